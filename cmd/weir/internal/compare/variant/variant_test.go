package variant

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// of is so many runs of as many users, of which the first ones were masked.
func of(name string, users, masked int) (samples []Sample) {
	for i := range users {
		s := Sample{Variant: name, Generation: "g-" + name, User: fmt.Sprint(name, i), State: Completed, Ended: true, Kept: true, Recorded: true, Seconds: 1}
		if i < masked {
			s.Masks = 2
		}
		samples = append(samples, s)
	}
	return samples
}

func configured(variants ...string) Options {
	opts := Options{Config: "agent.toml", Since: 24 * time.Hour}
	for _, name := range variants {
		opts.Variants = append(opts.Variants, Declared{name, 0.25})
	}
	return opts
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

// A run counts for a metric where that is known of it: times of completed runs,
// calls where the recording is kept, tokens where the provider tells them.
func TestWhatIsKnown(t *testing.T) {
	run := func(state string, s Sample) Sample {
		s.Variant, s.User, s.State, s.Ended = "x", "u", state, true
		return s
	}
	r := Compare([]Sample{
		run(Completed, Sample{Kept: true, Recorded: true, Seconds: 2, ToolCalls: 3, ModelCalls: 2, InputTokens: 10, OutputTokens: 4}),
		run(Completed, Sample{Kept: true, Recorded: true, Seconds: 4, ToolCalls: 1, ModelCalls: 1}), // not told
		run(Completed, Sample{Seconds: 6}),
		run(Blocked, Sample{Kept: true, Recorded: true, Seconds: 0.001}),                                            // no call, so no token
		run(Failed, Sample{Kept: true, Recorded: true, Cut: true, ModelCalls: 2, InputTokens: 20, OutputTokens: 1}), // what was cut is not told
	}, configured("x"))
	g := r.Groups[1]
	if g.Time.N != 3 || g.Time.Min != 2 || g.Time.Mean != 4 {
		t.Errorf("times: %+v", g.Time)
	}
	want := map[string]Value{"completed": {"completed", 0.6, 5}, "tool_calls": {"tool_calls", 1, 4}, "input_tokens": {"input_tokens", 10, 3},
		"output_tokens": {"output_tokens", 2, 2}, "guard_fuel": {"guard_fuel", 0, 4}, "running_time": {"running_time", 4, 3}}
	for _, got := range g.Metrics {
		if w, ok := want[got.Name]; ok && got != w {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
}

// The base has what the variants leave, and nothing where they leave nothing.
func TestShareOfBase(t *testing.T) {
	for _, tt := range []struct {
		shares []float64
		want   float64
	}{
		{[]float64{0.7, 0.2, 0.1}, 0}, {[]float64{0.1, 0.2, 0.7}, 0}, {[]float64{0.1, 0.2, 0.3}, 0.4}, {[]float64{0.999999}, 0.000001}, {nil, 1},
	} {
		opts := Options{}
		for i, share := range tt.shares {
			opts.Variants = append(opts.Variants, Declared{fmt.Sprint(i), share})
		}
		if got := Compare(nil, opts).Groups[0].Share; got != tt.want || math.Signbit(got) {
			t.Errorf("%v leave %v, want %v", tt.shares, got, tt.want)
		}
	}
}

// A result says how often users were drawn again: fewer times where there are
// very many, and not at all where nothing is compared.
func TestResamples(t *testing.T) {
	few, many := of("x", 6, 0), of("base", 4_994, 0)
	for i := range many {
		many[i].Kept, many[i].Recorded, many[i].State = false, false, Failed
	}
	r := Compare(slices.Concat(few, many), configured("x"))
	if got := row(t, r, "x", "failed").Difference; r.Resamples != 8000 || got.Resamples != 8000 {
		t.Errorf("%d resamples, %+v", r.Resamples, got)
	}
	if got := row(t, r, "x", "masked").Difference; got.Resamples != 0 {
		t.Errorf("nothing to compare: %+v", got)
	}
	if r := Compare(of("base", 9, 0), configured("x")); r.Resamples != 0 {
		t.Errorf("nothing to compare: %d resamples", r.Resamples)
	}
	if r := Compare(slices.Concat(few, of("base", 6, 0)), configured("x")); r.Resamples != 10_000 {
		t.Errorf("few users: %d resamples", r.Resamples)
	}
}
