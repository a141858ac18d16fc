package sample

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/internal/compare/variant"
	"weir/host/config"
	"weir/host/run"
)

// entry is one record of a log, so many milliseconds after its start.
func entry(kind string, ms int64, content string) run.LogRecord {
	r := run.LogRecord{Header: run.Header{Kind: kind, Time: 1_700_000_000_000 + ms}, Kept: run.KeptFull, Content: json.RawMessage(content)}
	if content == "" {
		r.Content, r.Kept = nil, run.KeptDropped
	}
	return r
}

// DECISIONS 5 and 10: what a log says of a run; waiting for people is no running
// time, and who asks twice is counted once.
func TestRead(t *testing.T) {
	const decision = `{"id":"1","name":"x","output":{"stage":"%s","blocked":%v,"masked_entities":{"EMAIL":2,"IBAN":1},"guards":[{"fuel":7},{"fuel":5}]}}`
	report := &run.Report{Run: "r", Variant: "v", Generation: "g", Entries: []run.LogRecord{
		entry(run.RecordRunStarted, 0, `{"pseudonym":"p","variant":"v"}`),
		entry(run.RecordDecision, 1, `{"output":{"stage":"input","blocked":false,"masked_entities":"a plugin's own","guards":[{"fuel":3}]}}`),
		entry(run.RecordEvent, 2, ""),
		entry(run.RecordDecision, 3, fmt.Sprintf(decision, "tool_call", true)),
		entry(run.RecordDecision, 3, fmt.Sprintf(decision, "tool_result", true)),
		entry(run.RecordInteractionOpened, 100, `{"kind":"radio","owner":"p"}`),
		entry(run.RecordParked, 100, `{"elapsed_ms":100}`),
		entry(run.RecordInteractionAnswered, 60_100, `{"id":"q"}`),
		entry(run.RecordRunClaimed, 60_200, `{"replica":"a"}`),
		entry(run.RecordHuman, 60_201, `{"outcome":"answered"}`),
		entry(run.RecordRunClaimed, 60_300, `{"replica":"b"}`), // the first one died
		entry(run.RecordHuman, 60_301, `{"outcome":"answered"}`),
		entry(run.RecordInteractionOpened, 60_400, `{"kind":"tool_calls"}`),
		entry(run.RecordRunClaimed, 60_900, `{"replica":"b"}`),
		entry(run.RecordDecision, 60_950, fmt.Sprintf(decision, "output", true)),
		entry(run.RecordRecording, 60_990, `{"parts":[],"asks":[{"plugin":"g"}],"heard":[{"type":"start"},{"type":"model","input_tokens":70,"output_tokens":8},{"type":"tools","results":[{"step":"s"},{"why":"guard","refused":true},{"step":"t","why":"withheld","refused":true}]},{"type":"model_failed","code":"budget"},{"type":"model_failed","code":"timeout"}]}`),
		entry(run.RecordRunEnded, 61_000, `{"state":"completed"}`),
	}}
	got, err := Read(report)
	if err != nil {
		t.Fatal(err)
	}
	want := variant.Sample{Run: "r", Variant: "v", Generation: "g", User: "p", Started: time.UnixMilli(1_700_000_000_000), State: variant.Completed, Ended: true,
		Seconds: 0.4, Kept: true, Questions: 1, Answers: 1, CallsRefused: 1, ResultsWithheld: 1, Masks: 3, Cut: true, Fuel: 39,
		Recorded: true, ToolCalls: 2, ModelCalls: 2, GuardCalls: 1, InputTokens: 70, OutputTokens: 8}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Where only digests stay it is known how the run ended, and nothing else.
	bare := *report
	bare.Entries = slices.Clone(report.Entries)
	for i := range bare.Entries {
		if e := &bare.Entries[i]; e.Kind != run.RecordRunStarted && e.Kind != run.RecordRunEnded {
			e.Kept, e.Content = run.KeptDropped, nil
		}
	}
	if got, err := Read(&bare); err != nil || got.Kept || got.Recorded || !got.Ended || got.User != "p" || got.Seconds != 0.4 {
		t.Errorf("%+v, %v", got, err)
	}
	bare.Entries[0].Content = json.RawMessage(`{`)
	if _, err := Read(&bare); err == nil || !strings.Contains(err.Error(), "run r: record 0 (run_started)") {
		t.Errorf("%v", err)
	}
}

// What is not in a log is not known: a run whose client left before its first
// decision looks alike whether digests are kept or everything is. One without
// guardrails decides nothing and is known all the same.
func TestReadWithoutDecisions(t *testing.T) {
	started, ended := entry(run.RecordRunStarted, 0, `{"pseudonym":"p"}`), entry(run.RecordRunEnded, 9, `{"state":"cancelled"}`)
	for _, tt := range []struct {
		name    string
		between []run.LogRecord
		kept    bool
	}{
		{"the client left at once", []run.LogRecord{entry(run.RecordRequest, 1, "")}, false},
		{"only digests", []run.LogRecord{entry(run.RecordRequest, 1, ""), entry(run.RecordQuestion, 2, ""), entry(run.RecordDecision, 3, "")}, false},
		{"no guardrails", []run.LogRecord{entry(run.RecordRequest, 1, ""), entry(run.RecordQuestion, 2, `{"turns":[]}`)}, true},
		{"digests from the middle on", []run.LogRecord{entry(run.RecordQuestion, 2, `{"turns":[]}`), entry(run.RecordDecision, 3, "")}, false},
	} {
		entries := slices.Concat([]run.LogRecord{started}, tt.between, []run.LogRecord{ended})
		got, err := Read(&run.Report{Run: "r", Variant: "v", Entries: entries})
		if err != nil || got.Kept != tt.kept || got.State != variant.Cancelled || got.User != "p" {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

// The two sides call things alike.
func TestNames(t *testing.T) {
	for ours, theirs := range map[string]run.State{variant.Completed: run.Completed, variant.Blocked: run.Blocked, variant.Failed: run.Failed, variant.Cancelled: run.Cancelled} {
		if ours != string(theirs) {
			t.Errorf("%s is %s in a log", ours, theirs)
		}
	}
	if variant.Base != config.Base {
		t.Errorf("the base is %s in a log", config.Base)
	}
}

// FuzzRead: a log that somebody has written is read or refused.
func FuzzRead(f *testing.F) {
	f.Add(run.RecordDecision, `{"output":{"stage":"output","masked_entities":{"A":1}}}`)
	f.Add(run.RecordRecording, `{"heard":[{"type":"tools","results":[{}]}]}`)
	f.Add(run.RecordRunEnded, `{"state":"completed"}`)
	f.Fuzz(func(t *testing.T, kind, content string) {
		s, err := Read(&run.Report{Run: "r", Variant: "x", Entries: []run.LogRecord{entry(run.RecordRunStarted, 0, `{}`), entry(kind, 1, content)}})
		if err != nil {
			return
		}
		variant.Compare([]variant.Sample{s, {Variant: variant.Base, Ended: true}}, variant.Options{Variants: []variant.Declared{{Name: "x", Share: 0.5}}})
	})
}
