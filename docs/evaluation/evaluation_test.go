package evaluation

import (
	"io/fs"
	"slices"
	"testing"
)

// The program carries one file for each suite and nothing else.
func TestSuites(t *testing.T) {
	names, err := fs.Glob(Suites(), "*")
	if err != nil || !slices.Equal(names, []string{"grounding.json", "guardrails.json", "injection.json", "tools.json"}) {
		t.Errorf("got %q, %v", names, err)
	}
}
