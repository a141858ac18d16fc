// Package host is the program: it joins the parts, starts them in order and
// stops them in order. It is the only package that knows every other.
//
// A request flows one way, and what it needs flows back:
//
//	bytes ─ server ─ auth ─ contract ─► run ──► plugin (workflow: step)
//	                           ▲         │ ▲
//	                           │         ▼ │
//	bytes ◄────────────── contract ◄─ guard ◄─ model, tool, human
//
// The packages, in the order of that flow:
//
//	config           agent.toml and the environment, checked at once
//	server           the listener, and what no route may see
//	auth             service key, then one identity
//	contract/stream  the agent-service contract: HTTP and server-sent events
//	contract/turn    action objects, turn by turn: HTTP, stdio, sockets; the
//	                 caller performs the tools
//	contract/platform health, readiness and the manifest, all public
//	run              the engine: event, action, event; budgets, records, and
//	                 the keeper of runs that wait
//	approval         what a person may authorise: prompts, answers, tokens
//	guard            the guardrail chain and the guarded stream
//	plugin           WebAssembly modules: load, limit, call; generations
//	model            OpenAI-compatible chat completions
//	tool             the MCP client and the tool policy
//	store            append-only logs and values: memory, jetstream
//	lock             agent.lock: digests of what may run under a name
//	watch            files that change
//	admin            the operators' listener: reload, rollback, status
//	registry         tells the agent gateway where this agent is
//	hold             files that one process at a time may hold
//	dna              digests that tie an evaluation to what was evaluated
//	telemetry        spans, and what may stand on them
//	fault            the kinds of error that they tell apart
//
// Parts do not import each other. Each declares what it needs as a small
// interface over package abi, and the files of this package put one behind the
// other: policy.go for plugins and guards, ports.go for models, tools and the
// store, swap.go for one policy after another, people.go and keep.go for runs
// that wait for a person, archive.go for the policies that those began with,
// turn.go and alone.go for callers that perform the tools.
package host
