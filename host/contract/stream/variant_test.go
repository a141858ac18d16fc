package stream

import (
	"encoding/json"
	"testing"

	"weir/host/run"
)

// W7: the metadata of a workflow step and /version name variants, where there
// are any.
func TestVariantsOnTheWire(t *testing.T) {
	info := run.Info{RunID: "E", RequestID: "R", Generation: "g"}
	for variant, want := range map[string]string{
		"":      `,"metadata":{"provided_metadata":{"workflow_trace_id":"","workflow_run_id":"E","request_id":"R","agent_runtime":"weir","generation":"g"}}`,
		"short": `,"metadata":{"provided_metadata":{"workflow_trace_id":"","workflow_run_id":"E","request_id":"R","agent_runtime":"weir","generation":"g","variant":"short"}}`,
	} {
		info.Variant = variant
		if got := string(appendProvided(nil, providedBy(info))); got != want {
			t.Errorf("variant %q:\n%s\nwant\n%s", variant, got, want)
		}
	}
	v := Version{Available: true, Generation: "g"}
	var got map[string]any
	if err := json.Unmarshal(v.encode(), &got); err != nil || got["variants"] != nil {
		t.Errorf("without variants: %v, %v", got, err)
	}
	v.Variants = []Variant{{"short", 0.05, "h"}, {"long", 1e-7, "i"}}
	var with struct {
		Generation string
		Variants   []Variant
	}
	if err := json.Unmarshal(v.encode(), &with); err != nil || with.Generation != "g" || len(with.Variants) != 2 || with.Variants[1] != v.Variants[1] || with.Variants[0] != v.Variants[0] {
		t.Errorf("%+v, %v: %s", with, err, v.encode())
	}
}
