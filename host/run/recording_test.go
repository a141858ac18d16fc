package run

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/store/memory"
)

// TestRecordingIsGuarded: what stays of a run after its end is what a guard let
// pass: a recording names what was masked by its length only. (DECISIONS 5.)
func TestRecordingIsGuarded(t *testing.T) {
	w := &world{script: script{question: "Where is SECRET?", tools: map[string]toolTurn{"get_ticket": {text: `{"note":"SECRET"}`}},
		model: []modelTurn{
			{calls: []abi.ToolCall{{ID: "SECRET", Name: "get_ticket", Arguments: `{"id":"SECRET"}`}, {ID: "c2", Name: "SECRET", Arguments: `SECRET`}}},
			{text: []string{"It is ", "SECRET and more."}}}}}
	log := logs{memory.New(memory.Options{})}
	engine, err := New(Deps{Policy: func() (Policy, func()) { return w, func() {} }, Model: w, Tools: fakeTools{w}, Log: log},
		Options{Now: fixedNow, NewID: counter("id-"), Seed: func() uint64 { return 7 }})
	if err != nil {
		t.Fatal(err)
	}
	engine.Run(t.Context(), request(w.script), notes{w})
	report, err := Inspect(t.Context(), log, "run-1")
	if err != nil {
		t.Fatal(err)
	}
	recording := 0
	for _, r := range report.Entries {
		if strings.Contains(string(r.Content), "SECRET") {
			t.Errorf("record %d (%s) holds what a guard masked: %s", r.N, r.Kind, r.Content)
		}
		if r.Kind == RecordRecording {
			recording = len(r.Content)
			var got Recording
			if err := json.Unmarshal(r.Content, &got); err != nil {
				t.Fatal(err)
			}
			if !got.Masked || len(got.Heard) != 4 || len(got.Heard[2].Results) != 2 {
				t.Fatalf("recording %s", r.Content)
			}
			first, second := got.Heard[1].Calls[0], got.Heard[1].Calls[1]
			if !first.Masked || string(first.Arguments) != `{"id":"[REDACTED]"}` || !second.Unreadable || second.Name != "[REDACTED]" {
				t.Errorf("calls %+v", got.Heard[1].Calls)
			}
			if a, b := got.Heard[2].Results[0], got.Heard[2].Results[1]; a.Step == "" || !a.Masked || b.Why != WhyUnreadable || b.Step != "" {
				t.Errorf("results %+v", got.Heard[2].Results)
			}
			if !got.Heard[3].Stopped {
				t.Error("the reply that was cut is not marked")
			}
		}
	}
	if recording == 0 || recording > 2<<10 {
		t.Errorf("the recording has %d bytes", recording)
	}
}
