package tool

import (
	"strings"
	"testing"

	"weir/abi"
)

// Tools that somebody else performs are held to the same policy, and are never
// performed here.
func TestDeclare(t *testing.T) {
	set, err := Declare([]Tool{{Name: "b", Description: "does b"},
		{Name: "a", Schema: []byte(`{"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if tools := set.Tools(); len(tools) != 2 || tools[0].Name != "a" || tools[1].Description != "does b" || tools[1].StepName != "b" {
		t.Errorf("tools: %+v", tools)
	}
	for _, tt := range []struct{ name, args, want string }{
		{"a", `{"zone":"UTC"}`, ""}, {"a", `{"zone":1}`, "zone"}, {"a", `{}`, "missing required argument"}, {"b", `{}`, ""}, {"b", `{"x":1}`, "unknown argument"}, {"c", `{}`, "not available"},
	} {
		if err := set.Validate(tt.name, abi.Raw(tt.args)); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.name, tt.args, err, tt.want)
		}
	}
	if len(set.Changed()) != 0 {
		t.Errorf("changed: %v", set.Changed())
	}
	if text, failed, err := set.Call(t.Context(), "b", nil); err != nil || !failed || !strings.HasPrefix(text, refusedPrefix) {
		t.Errorf("called: %q, %v, %v", text, failed, err)
	}
	for name, tools := range map[string][]Tool{
		"twice": {{Name: "a"}, {Name: "a"}}, "no name": {{}}, "a schema that nobody enforces": {{Name: "a", Schema: []byte(`{"type":"object","oneOf":[]}`)}},
		"a reserved name": {{Name: "a", Schema: []byte(`{"type":"object","properties":{"approved":{"type":"boolean"}}}`)}},
	} {
		if _, err := Declare(tools); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
