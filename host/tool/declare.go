package tool

import (
	"slices"
	"strings"

	"weir/host/fault"
)

// Declare returns a set of tools that nobody here performs: it reads and checks
// proposed arguments like any other, with the same subset of schemas, and its
// Call refuses. Names must differ; an empty schema takes no arguments. The
// error names the tool.
func Declare(tools []Tool) (*Set, error) {
	set := &Set{byName: map[string]*entry{}}
	for _, t := range slices.SortedFunc(slices.Values(tools), func(a, b Tool) int { return strings.Compare(a.Name, b.Name) }) {
		if t.Name == "" || set.byName[t.Name] != nil {
			return nil, fault.New(fault.Invalid, "tools: expected distinct names, got %s", quote(t.Name))
		}
		if len(t.Schema) == 0 {
			t.Schema = []byte(`{"type":"object","properties":{}}`)
		}
		if t.StepName == "" {
			t.StepName = t.Name
		}
		compiled, err := compile(t.Schema)
		if err != nil {
			return nil, fault.New(fault.Invalid, "tool %s: schema: %w", quote(t.Name), err)
		}
		set.byName[t.Name] = &entry{Tool: t, schema: compiled, digest: Digest(t)}
		set.tools = append(set.tools, t)
	}
	return set, nil
}
