package variant

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
		entry(run.RecordRecording, 60_990, `{"parts":[],"asks":[{"plugin":"g"}],"heard":[{"type":"start"},{"type":"model"},{"type":"tools","results":[{"step":"s"},{"refused":true}]},{"type":"model_failed","code":"budget"},{"type":"model_failed","code":"timeout"}]}`),
		entry(run.RecordRunEnded, 61_000, `{"state":"completed"}`),
	}}
	got, err := Read(report)
	if err != nil {
		t.Fatal(err)
	}
	want := Sample{Run: "r", Variant: "v", Generation: "g", User: "p", Started: time.UnixMilli(1_700_000_000_000), State: run.Completed, Ended: true,
		Seconds: 0.4, Kept: true, Questions: 1, Answers: 1, CallsRefused: 1, ResultsWithheld: 1, Masks: 3, Cut: true, Fuel: 39,
		Recorded: true, ToolCalls: 1, ModelCalls: 2, GuardCalls: 1}
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

// of is so many runs of as many users, of which the first ones were masked.
func of(name string, users, masked int) (samples []Sample) {
	for i := range users {
		s := Sample{Variant: name, Generation: "g-" + name, User: fmt.Sprint(name, i), State: run.Completed, Ended: true, Kept: true, Recorded: true, Seconds: 1}
		if i < masked {
			s.Masks = 2
		}
		samples = append(samples, s)
	}
	return samples
}

func configured(variants ...string) Options {
	cfg := &config.Config{Path: "agent.toml"}
	for _, name := range variants {
		cfg.Variants = append(cfg.Variants, config.Variant{Name: name, Share: 0.25})
	}
	return Options{Config: cfg, Since: 24 * time.Hour}
}

func row(t *testing.T, r *Result, variant, metric string) Row {
	t.Helper()
	for _, c := range r.Comparisons {
		for _, row := range c.Rows {
			if c.Variant == variant && row.Name == metric {
				return row
			}
		}
	}
	t.Fatalf("no %s of %s in %+v", metric, variant, r)
	return Row{}
}

// A planted difference is found and its direction said; where there is none, or
// where too few users are, nobody wins.
func TestCompare(t *testing.T) {
	samples := slices.Concat(of("base", 40, 20), of("open", 30, 0), of("same", 30, 15), of("few", 4, 0))
	r := Compare(samples, configured("open", "same", "few"))
	for name, want := range map[string]string{"open": "less with open", "same": "no difference shown", "few": "too few users to say"} {
		if got := row(t, r, name, "masked"); got.Verdict != want || got.Difference.A != 0.5 {
			t.Errorf("%s: %q, want %q; %+v", name, got.Verdict, want, got.Difference)
		}
	}
	if got := row(t, r, "open", "completed"); got.Verdict != "no difference shown" {
		t.Errorf("completed: %q", got.Verdict)
	}
	if len(r.Broken) != 0 || len(r.Notes) != 0 || r.Groups[0].Users != 40 || r.Groups[0].Share != 0.25 || r.Since != "24h" {
		t.Errorf("%+v", r)
	}
	slow := of("slow", 30, 15)
	for i := range slow {
		slow[i].Seconds = 2
	}
	r = Compare(slices.Concat(of("base", 40, 20), slow), configured("slow"))
	if got := row(t, r, "slow", "running_time"); got.Verdict != "base is better" {
		t.Errorf("a slower variant: %q", got.Verdict)
	}
}

// One person who asks often is one person.
func TestRunsOfOneUserAreNoCases(t *testing.T) {
	loud := of("x", 300, 300)
	for i := range loud {
		loud[i].User = "the same"
	}
	r := Compare(slices.Concat(of("base", 40, 20), loud), configured("x"))
	if got := row(t, r, "x", "masked"); got.Verdict != "too few users to say" || r.Groups[1].Users != 1 || r.Groups[1].Runs != 300 {
		t.Errorf("%q, %+v", got.Verdict, r.Groups[1])
	}
}

// What could not be compared, and what limits the numbers, is said.
func TestWhatIsSaid(t *testing.T) {
	mixed := slices.Concat(of("base", 10, 0), of("x", 10, 0), of("gone", 7, 0))
	mixed[0].Generation = "another"
	mixed[1].Ended = false
	mixed[2].Variant = ""
	mixed[12].User = mixed[3].User
	for i := range mixed {
		if mixed[i].Variant == "gone" {
			mixed[i].Kept, mixed[i].Recorded = false, false
		}
	}
	r := Compare(mixed, configured("x", "never"))
	for _, want := range []string{"1 users have runs in more than one variant", "1 runs are left out", "base ran with 2 generations", "base has 1 runs that have not ended",
		"gone: no decision is kept"} {
		if !strings.Contains(strings.Join(r.Notes, "\n"), want) {
			t.Errorf("the notes lack %q: %q", want, r.Notes)
		}
	}
	if len(r.Broken) != 1 || !strings.Contains(r.Broken[0], "variant never: no run of it has ended in the last 24h") || r.Apart != 1 || len(r.Comparisons) != 2 {
		t.Errorf("%q, %d comparisons", r.Broken, len(r.Comparisons))
	}
	if got := row(t, r, "gone", "masked"); got.Verdict != "nothing to compare" {
		t.Errorf("of what is not kept: %q", got.Verdict)
	}
	for name, samples := range map[string][]Sample{"there is nothing to compare with": of("x", 9, 0), "variant x: no run": of("base", 9, 0)} {
		if r := Compare(samples, configured("x")); len(r.Comparisons) != 0 || len(r.Broken) == 0 || !strings.Contains(r.Broken[len(r.Broken)-1], name) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := Compare(nil, configured()); len(r.Broken) != 1 || !strings.Contains(r.Broken[0], "there are no variants") {
		t.Errorf("%+v", r.Broken)
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
		Compare([]Sample{s, {Variant: "base", Ended: true}}, configured("x"))
	})
}
