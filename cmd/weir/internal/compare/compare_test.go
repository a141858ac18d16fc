package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/cmd/weir/internal/compare/client"
	"weir/cmd/weir/internal/compare/stat"
	"weir/cmd/weir/internal/compare/suite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent answers like one of the contract. Whether it blocks is decided by the
// question; the order of all questions is written down.
type agent struct {
	name    string
	blocks  func(caseID string) bool
	version func() string
	serve   http.HandlerFunc // in place of the stream
	log     *order
}

type order struct {
	mu    sync.Mutex
	asked []string
}

func (o *order) add(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, text)
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if r.URL.Path == "/version" {
		text := `{"agent_runtime":"weir","generation":"g"}`
		if a.version != nil {
			text = a.version()
		}
		_, _ = io.WriteString(w, text)
		return
	}
	id := r.Header.Get("X-Evaluation-Case-Id")
	a.log.add(a.name + id)
	if a.serve != nil {
		a.serve(w, r)
		return
	}
	fmt.Fprintf(w, "intermediate_data: {\"id\":\"D\",\"type\":\"FUNCTION_END\",\"name\":\"guardrail_input_x\",\"payload\":{\"data\":{\"output\":{\"blocked\":%v}}}}\n\ndata: {\"value\":\"hello\"}\n\n",
		a.blocks != nil && a.blocks(id))
}

// between starts two agents and compares them over n cases that have to be
// blocked.
func between(t *testing.T, a, b *agent, n int, opts Options) *Result {
	t.Helper()
	result, err := try(t.Context(), t, a, b, n, opts)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func try(ctx context.Context, t *testing.T, a, b *agent, n int, opts Options) (*Result, error) {
	t.Helper()
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`{"inputs":{"question":"q","case_id":"%d"},"expectations":{"expected_blocked":true}}`, i))
	}
	kind, cases, _, err := suite.Parse("guardrails.json", []byte("["+strings.Join(items, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	log := &order{}
	party := func(a *agent) Party {
		a.log = log
		s := httptest.NewServer(a)
		t.Cleanup(s.Close)
		c, err := client.New(s.URL, "key-4711", client.Options{Backoff: time.Microsecond, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return Party{Name: a.name, Agent: c}
	}
	return Run(ctx, party(a), party(b), []suite.Suite{{Kind: kind, Cases: cases}}, opts)
}

func always(string) bool { return true }

// The questions are put by turns, and every second round begins with the other
// agent.
func TestOrder(t *testing.T) {
	a, b := &agent{name: "A", blocks: always}, &agent{name: "B", blocks: always}
	var seen []Progress
	r := between(t, a, b, 2, Options{Repeat: 2, Progress: func(p Progress) { seen = append(seen, p) }})
	if got := strings.Join(a.log.asked, " "); got != "A0 B0 A1 B1 B0 A0 B1 A1" {
		t.Errorf("asked %s", got)
	}
	if len(seen) != 8 || seen[7].Done != 8 || seen[7].Total != 8 || !seen[7].Passed {
		t.Errorf("progress %+v", seen)
	}
	if len(r.Cases[1].A) != 2 || r.Latency.B.N != 4 || r.Suites[0].Difference.Pairs != 2 {
		t.Errorf("%+v", r)
	}
}

// A winner is named when the interval does not hold zero, and not otherwise;
// the gate is B's.
func TestScores(t *testing.T) {
	tests := []struct {
		name    string
		a, b    func(string) bool
		n       int
		verdict string
		passed  bool
	}{
		{"B blocks, A does not", nil, always, 8, "B is better", true},
		{"A blocks, B does not", always, nil, 8, "A is better", false},
		{"one of eight", func(id string) bool { return id != "0" }, always, 8, "no difference shown", true},
		{"too few", nil, always, 5, "too few pairs to say", true},
		{"the same", nil, nil, 8, "no difference shown", false},
	}
	for _, tt := range tests {
		r := between(t, &agent{name: "A", blocks: tt.a}, &agent{name: "B", blocks: tt.b}, tt.n, Options{})
		s := r.Suites[0]
		if got := Verdict(s.Difference, false); got != tt.verdict || r.Passed == nil || *r.Passed != tt.passed || *s.Passed != tt.passed || len(r.Broken) > 0 {
			t.Errorf("%s: %q, passed %v, %+v", tt.name, got, r.Passed, s)
		}
		if s.RequiredMetric != "guardrail_correct/mean" || s.FailThreshold != 1 || s.RequiredValue != s.B.Metrics["guardrail_correct/mean"] {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
	if Verdict(stat.Difference{Pairs: 9, Mean: 1, Decided: true}, true) != "A is better" {
		t.Error("more time is no better")
	}
}

// Refusals are fast: cases that one agent alone stopped say nothing about
// speed.
func TestTimesOfLikeCases(t *testing.T) {
	r := between(t, &agent{name: "A"}, &agent{name: "B", blocks: func(id string) bool { return id < "3" }}, 8, Options{})
	if r.LatencyGap.Pairs != 5 || r.Suites[0].LatencyGap.Pairs != 5 || r.Suites[0].Difference.Pairs != 8 {
		t.Errorf("%+v, %+v", r.LatencyGap, r.Suites[0])
	}
}

// A harness that does not work never looks like a bad score: no gate speaks, no
// answer is counted, and the reason is said.
func TestBroken(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	once := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Evaluation-Case-Id") == "1" {
			_, _ = io.WriteString(w, "<html>")
			return
		}
		_, _ = io.WriteString(w, "intermediate_data: {\"id\":\"D\",\"type\":\"FUNCTION_END\",\"name\":\"guardrail_input_x\",\"payload\":{\"data\":{\"output\":{\"blocked\":true}}}}\n\n")
	}
	for _, tt := range []struct {
		name   string
		serve  http.HandlerFunc
		want   string
		asked  int // of both
		scored int // of B
	}{
		{"refused", status(401), "refuses the key", 2, 0},
		{"failing", status(500), "answered 500", 6 + 3*3, 0}, // four tries each
		{"once", once, "no block of the contract", 16, 7},
	} {
		r := between(t, &agent{name: "A", blocks: always}, &agent{name: "B", serve: tt.serve}, 8, Options{})
		s := r.Suites[0]
		if r.Passed != nil || s.Passed != nil || s.B.Passed != nil || !strings.Contains(strings.Join(r.Broken, "\n"), tt.want) {
			t.Errorf("%s: passed %v, %v, broken %q", tt.name, r.Passed, s.Passed, r.Broken)
		}
		if s.B.Counts["guardrail_correct"] != tt.scored || s.Difference.Pairs != tt.scored || s.B.Latency.N != tt.scored {
			t.Errorf("%s: %d counted, %d pairs", tt.name, s.B.Counts["guardrail_correct"], s.Difference.Pairs)
		}
		data, err := json.Marshal(r)
		if err != nil || !strings.Contains(string(data), `"passed":null`) || strings.Contains(string(data), `"metrics":null`) {
			t.Errorf("%s: %v", tt.name, err)
		}
		got := r.Cases[1].B
		if tt.name == "once" && (len(got) != 1 || got[0].Broken == "" || len(r.Cases[2].B) != 1) {
			t.Errorf("once: %+v", got)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := func(w http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }
	if r, err := try(ctx, t, &agent{name: "A", blocks: always}, &agent{name: "B", serve: stop}, 3, Options{}); err == nil {
		t.Errorf("a result of a cancelled run: %+v", r)
	}
}

// 11.4: consistent when every check holds that could be made; the reasons and
// what could not be looked at stand beside it.
func TestProvenance(t *testing.T) {
	prompts, err := ReadPrompts([]byte("workflow:\n  system_prompt: |\n    You are helpful.\nguardrails:\n  prompts:\n  - task: self_check_input\n    content: \"Answer: é\\n\"\n    max_tokens: 4\n"))
	if err != nil {
		t.Fatal(err)
	}
	// section 7's own values
	if prompts.System != "4b4246f390dadec7e7af966a981c1fe88a05388863d468470b2ad9605e21cadf" || prompts.Guardrails != "79a7cc8ab6d52d287aec0227c1ef20c590773367be1f26df7fcb325bc332106d" {
		t.Fatalf("%+v", prompts)
	}
	good := fmt.Sprintf(`{"agent_runtime":"weir","build_commit":"0123456789abcdef","prompt_sha256":%q,"guardrails_prompts_sha256":%q,"tools_exposed":["a","b"]}`, prompts.System, prompts.Guardrails)
	turns := 0
	for _, tt := range []struct {
		name       string
		version    func() string
		opts       Options
		consistent bool
		runtime    string
		reasons    string
		unchecked  int
	}{
		{"all hold", func() string { return good }, Options{Prompts: prompts, Harness: Harness{Commit: "0123456"}}, true, "weir", "", 0},
		{"nothing to check against", func() string { return good }, Options{}, true, "weir", "", 2},
		{"another prompt", func() string { return strings.Replace(good, prompts.System, "00", 1) }, Options{Prompts: prompts}, false, "weir", "prompt_sha256 is not that", 1},
		{"another build", func() string { return good }, Options{Harness: Harness{Commit: "fffffff"}}, false, "weir", "another commit", 1},
		{"unknown build", func() string { return strings.Replace(good, "0123456789abcdef", "unknown", 1) }, Options{Harness: Harness{Commit: "fffffff"}}, true, "weir", "", 2},
		{"no runtime named", func() string { return `{"available":true}` }, Options{}, true, "nat", "", 2},
		{"no version", func() string { return `<html>` }, Options{}, false, "unknown", "/version could not be read", 0},
		{"swapped during the run", func() string { turns++; return fmt.Sprintf(`{"agent_runtime":"weir","generation":"%d"}`, turns) }, Options{}, false, "weir", "changed during the run: generation", 2},
	} {
		r := between(t, &agent{name: "A", blocks: always}, &agent{name: "B", blocks: always, version: tt.version}, 1, tt.opts)
		p := r.Provenance.B
		if p.Consistent != tt.consistent || p.Runtime != tt.runtime || !strings.Contains(strings.Join(p.Reasons, ";"), tt.reasons) || len(p.Unchecked) != tt.unchecked || p.Consistent != (len(p.Reasons) == 0) {
			t.Errorf("%s: %+v", tt.name, p)
		}
	}
	r := between(t, &agent{name: "A", blocks: always}, &agent{name: "B", blocks: always, version: func() string { return good }}, 1, Options{})
	if !slices.ContainsFunc(r.Differs, func(d Differing) bool { return d.Name == "generation" && d.A == "g" && d.B == "(not said)" }) || r.Provenance.B.ToolCount != 2 {
		t.Errorf("%+v", r.Differs)
	}
	for _, bad := range []string{"", "a: [", "workflow: {system_prompt: x}", "guardrails: {prompts: []}"} {
		if _, err := ReadPrompts([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// 11.5: the members that a validator of result files asks for.
func TestFiles(t *testing.T) {
	r := between(t, &agent{name: "A"}, &agent{name: "B", blocks: always}, 2, Options{})
	for side, passed := range map[string]bool{"a": false, "b": true} {
		files := r.Files(side)
		data, err := json.Marshal(files[0])
		if err != nil || len(files) != 1 {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"generated_at", "mode", "suite", "run_id", "required_metric", "required_value", "fail_threshold", "passed", "provenance", "metrics", "latency"} {
			if m[key] == nil {
				t.Errorf("%s: %s is missing", side, key)
			}
		}
		if m["passed"] != passed || m["suite"] != "guardrails" || m["provenance"].(map[string]any)["name"] != strings.ToUpper(side) {
			t.Errorf("%s: %s", side, data)
		}
	}
}

func TestChanged(t *testing.T) {
	call := func(v any) []Call { return []Call{{Name: "get", Arguments: v}} }
	base := Trial{Answer: "x", Metrics: []Metric{{Name: "m", Pass: true}}, Calls: call("1")}
	with := func(change func(*Trial)) Trial { t := base; change(&t); return t }
	for name, tt := range map[string]struct {
		b    Trial
		want bool
	}{
		"other words":       {with(func(t *Trial) { t.Answer = "y" }), false},
		"another result":    {with(func(t *Trial) { t.Calls = []Call{{Name: "get", Arguments: "1", Result: "z"}} }), false},
		"another decision":  {with(func(t *Trial) { t.Blocked = true }), true},
		"another judgement": {with(func(t *Trial) { t.Metrics = []Metric{{Name: "m"}} }), true},
		"other arguments":   {with(func(t *Trial) { t.Calls = call("2") }), true},
		"no call":           {with(func(t *Trial) { t.Calls = nil }), true},
		"broken":            {Trial{Broken: "x"}, true},
	} {
		c := CaseResult{A: []Trial{base}, B: []Trial{tt.b}}
		if c.Changed() != tt.want {
			t.Errorf("%s: %v", name, c.Changed())
		}
	}
}
