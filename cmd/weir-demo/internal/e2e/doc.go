// Package e2e holds the tests of the whole host: the shipped agent.toml, the
// four shipped modules, a real MCP server, a model behind real HTTP, and a
// gateway that reads the stream as the known consumers do. It has no code of
// its own.
package e2e
