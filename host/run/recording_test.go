package run

import (
	"context"
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

// counted is a model whose provider tells tokens.
type counted struct{ *world }

func (c counted) Complete(ctx context.Context, call *ModelCall, onText func(string)) (*ModelReply, error) {
	reply, err := c.world.Complete(ctx, call, onText)
	if reply != nil {
		reply.InputTokens, reply.OutputTokens = 70, 8
	}
	return reply, err
}

// Tokens are in a recording where the provider tells them, with the variant that
// they were used in, but not how long a reply was whose end stands behind a cut.
func TestTokensAreRecorded(t *testing.T) {
	for text, want := range map[string]int{"All is well.": 8, "It is SECRET and more.": 0} {
		w := &world{script: script{question: "How is it?", model: []modelTurn{{text: []string{text}}}}}
		log := logs{memory.New(memory.Options{})}
		engine, err := New(Deps{Policy: func() (Policy, func()) { return w, func() {} }, Model: counted{w}, Tools: fakeTools{w}, Log: log},
			Options{Now: fixedNow, NewID: counter("id-"), Seed: func() uint64 { return 7 }})
		if err != nil {
			t.Fatal(err)
		}
		req := request(w.script)
		req.Variant = "short"
		engine.Run(t.Context(), req, notes{w})
		report, err := Inspect(t.Context(), log, "run-1")
		if err != nil {
			t.Fatal(err)
		}
		rec, err := ReadRecorded(report)
		if err != nil || rec.Recording == nil || report.Variant != "short" || rec.Variant != "short" {
			t.Fatalf("%+v, %v", rec, err)
		}
		last := rec.Recording.Heard[len(rec.Recording.Heard)-1]
		if last.OutputTokens != want || want > 0 && last.InputTokens != 70 {
			t.Errorf("%s: %+v", text, last)
		}
	}
}
