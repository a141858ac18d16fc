// Package evaluation carries the shipped suites of `weir compare` into the
// program. Each JSON file beside it is one suite in the evaluators' dataset
// format (agent-service.md, 11.1), over the tickets of the demo's desk.
package evaluation

import (
	"embed"
	"io/fs"
)

//go:embed *.json
var files embed.FS

// Suites returns the suites' files.
func Suites() fs.FS { return files }
