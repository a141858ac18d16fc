package compare

import (
	"encoding/json"
	"math"
	"slices"

	"weir/cmd/weir/internal/compare/client"
	"weir/cmd/weir/internal/compare/score"
	"weir/cmd/weir/internal/compare/stat"
	"weir/cmd/weir/internal/compare/suite"
)

// Result is what a comparison found. Its first members are those that result
// files of evaluators have (11.5); times are in seconds.
type Result struct {
	GeneratedAt string `json:"generated_at"`
	Mode        string `json:"mode"`
	Suite       string `json:"suite"`
	RunID       string `json:"run_id"`
	// Passed: every suite's gate on B; null when a suite is incomplete.
	Passed     *bool              `json:"passed"`
	Provenance Pair[Provenance]   `json:"provenance"`
	Latency    Pair[stat.Summary] `json:"latency"`
	First      Pair[stat.Summary] `json:"first_fragment"`
	Repeat     int                `json:"repeat"`
	Seed       uint64             `json:"seed"`
	Resamples  int                `json:"resamples"`
	Harness    Harness            `json:"harness"`
	Differs    []Differing        `json:"differs"`
	Broken     []string           `json:"broken"`
	Notes      []string           `json:"notes"`
	LatencyGap stat.Difference    `json:"latency_difference"`
	FirstGap   stat.Difference    `json:"first_fragment_difference"`
	Suites     []SuiteResult      `json:"suites"`
	Cases      []CaseResult       `json:"cases"`
}

// Pair is one thing of both agents.
type Pair[T any] struct {
	A T `json:"a"`
	B T `json:"b"`
}

func (p *Pair[T]) side(i int) *T {
	if i == 0 {
		return &p.A
	}
	return &p.B
}

// Differing is a member of /version that the agents do not share.
type Differing struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// SuiteResult is one suite of both agents.
type SuiteResult struct {
	Suite  suite.Kind `json:"suite"`
	Files  []string   `json:"files"`
	Cases  int        `json:"cases"`
	SHA256 string     `json:"cases_sha256"`

	RequiredMetric string  `json:"required_metric"`
	RequiredValue  float64 `json:"required_value"` // B's
	FailThreshold  float64 `json:"fail_threshold"`
	Passed         *bool   `json:"passed"` // B's gate; null when incomplete

	A Side `json:"a"`
	B Side `json:"b"`
	// Difference is of the required metric, B - A, one pair for each case.
	Difference stat.Difference `json:"difference"`
	LatencyGap stat.Difference `json:"latency_difference"`
}

// Side is one agent in one suite.
type Side struct {
	Passed  *bool              `json:"passed"`
	Metrics map[string]float64 `json:"metrics"` // <name>/mean
	Counts  map[string]int     `json:"counts"`  // of judgements behind each mean
	Faults  []string           `json:"faults"`  // metrics of which less is better
	Latency stat.Summary       `json:"latency"`
	First   stat.Summary       `json:"first_fragment"`
	Broken  int                `json:"broken"` // questions without a readable answer
}

// CaseResult is one case of both agents.
type CaseResult struct {
	Suite    suite.Kind      `json:"suite"`
	ID       string          `json:"case_id"`
	Question string          `json:"question"`
	Attack   string          `json:"attack,omitempty"`
	Tags     json.RawMessage `json:"tags,omitempty"`
	A        []Trial         `json:"a"`
	B        []Trial         `json:"b"`
}

// Trial is one answer to one question, or why there is none.
type Trial struct {
	Broken   string         `json:"broken,omitempty"`
	Answer   string         `json:"answer"`
	Blocked  bool           `json:"blocked"`
	Input    map[string]any `json:"input_decision,omitempty"`
	Output   map[string]any `json:"output_decision,omitempty"`
	Calls    []Call         `json:"tool_calls"`
	Metrics  []Metric       `json:"metrics"`
	Latency  float64        `json:"latency"`
	First    float64        `json:"first_fragment"` // 0: no answer text
	Attempts int            `json:"attempts"`
	RunID    string         `json:"workflow_run_id,omitempty"`
	TraceID  string         `json:"workflow_trace_id,omitempty"`

	final bool
}

// Call is a tool call with its result, nil when the stream held none.
type Call struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
	Result    any    `json:"result,omitempty"`
}

// Metric is one judgement.
type Metric struct {
	Name   string `json:"name"`
	Pass   bool   `json:"value"`
	Reason string `json:"reason,omitempty"`
	Fault  bool   `json:"fault,omitempty"`
}

func newCase(kind suite.Kind, c *suite.Case) CaseResult {
	return CaseResult{Suite: kind, ID: c.ID, Question: c.Question, Attack: c.Expect.Attack, Tags: c.Tags, A: []Trial{}, B: []Trial{}}
}

func (c *CaseResult) add(side int, t Trial) {
	if side == 0 {
		c.A = append(c.A, t)
	} else {
		c.B = append(c.B, t)
	}
}

func (c *CaseResult) trials(side int) []Trial {
	if side == 0 {
		return c.A
	}
	return c.B
}

func newTrial(got *client.Observation, metrics []score.Metric) Trial {
	t := Trial{
		Answer: got.Answer, Blocked: got.Blocked, Calls: []Call{}, Latency: got.Latency.Seconds(), First: got.First.Seconds(),
		Attempts: got.Attempts, RunID: got.RunID, TraceID: got.TraceID,
	}
	if got.Input != nil {
		t.Input = got.Input.Output
	}
	if got.Output != nil {
		t.Output = got.Output.Output
	}
	for _, c := range got.Calls {
		call := Call{Name: c.Name, Arguments: c.Arguments}
		i := slices.IndexFunc(got.Results, func(r client.ToolResult) bool { return r.ID == c.ID && r.Name == c.Name })
		if i >= 0 {
			call.Result = got.Results[i].Output
		}
		t.Calls = append(t.Calls, call)
	}
	for _, m := range metrics {
		t.Metrics = append(t.Metrics, Metric{m.Name, m.Pass, m.Reason, m.Fault})
	}
	return t
}

// summarize computes what follows from the trials.
func (r *Result) summarize(suites []suite.Suite, seed uint64) {
	r.Resamples = stat.Resamples
	passed, complete := true, true
	for _, s := range suites {
		sr := r.suite(s, seed)
		r.Suites = append(r.Suites, sr)
		complete = complete && sr.Passed != nil
		passed = passed && sr.Passed != nil && *sr.Passed
	}
	if complete {
		r.Passed = &passed
	}
	for side := range sideNames {
		latency, first := times(r.Cases, side)
		*r.Latency.side(side), *r.First.side(side) = stat.Summarize(latency), stat.Summarize(first)
	}
	alike := slices.DeleteFunc(slices.Clone(r.Cases), func(c CaseResult) bool { return !c.alike() })
	r.LatencyGap = stat.Paired(gaps(alike, latencyOf), seed)
	r.FirstGap = stat.Paired(gaps(alike, firstOf), seed)
}

func (r *Result) suite(s suite.Suite, seed uint64) SuiteResult {
	cases := slices.DeleteFunc(slices.Clone(r.Cases), func(c CaseResult) bool { return c.Suite != s.Kind })
	gate := score.Gate(s.Kind)
	sr := SuiteResult{Suite: s.Kind, Files: s.Files, Cases: len(s.Cases), SHA256: s.SHA256, RequiredMetric: gate + "/mean", FailThreshold: 1}
	sr.A, sr.B = side(cases, 0), side(cases, 1)
	for _, one := range []*Side{&sr.A, &sr.B} {
		if one.Broken == 0 && one.Counts[gate] == len(s.Cases)*r.Repeat {
			ok := one.Metrics[sr.RequiredMetric] >= sr.FailThreshold
			one.Passed = &ok
		}
	}
	sr.RequiredValue, sr.Passed = sr.B.Metrics[sr.RequiredMetric], sr.B.Passed
	sr.Difference = stat.Paired(gaps(cases, scoreOf), seed)
	alike := slices.DeleteFunc(cases, func(c CaseResult) bool { return !c.alike() })
	sr.LatencyGap = stat.Paired(gaps(alike, latencyOf), seed)
	return sr
}

func side(cases []CaseResult, i int) Side {
	s := Side{Metrics: map[string]float64{}, Counts: map[string]int{}, Faults: []string{}}
	for _, c := range cases {
		for _, t := range c.trials(i) {
			if t.Broken != "" {
				s.Broken++
				continue
			}
			for _, m := range t.Metrics {
				s.Counts[m.Name]++
				if m.Pass {
					s.Metrics[m.Name+"/mean"]++
				}
				if m.Fault && !slices.Contains(s.Faults, m.Name) {
					s.Faults = append(s.Faults, m.Name)
				}
			}
		}
	}
	for name, n := range s.Counts {
		s.Metrics[name+"/mean"] /= float64(n)
	}
	latency, first := times(cases, i)
	s.Latency, s.First = stat.Summarize(latency), stat.Summarize(first)
	return s
}

func times(cases []CaseResult, i int) (latency, first []float64) {
	for _, c := range cases {
		for _, t := range c.trials(i) {
			if t.Broken != "" {
				continue
			}
			latency = append(latency, t.Latency)
			if t.First > 0 {
				first = append(first, t.First)
			}
		}
	}
	return latency, first
}

// alike tells whether both agents let the case pass to its end, or both stopped
// it: a refusal is fast, so times of other cases say nothing about speed.
func (c *CaseResult) alike() bool {
	stops := func(trials []Trial) (stopped, whole bool) {
		for _, t := range trials {
			cut := t.Blocked || t.Output["blocked"] == true
			stopped, whole = stopped || cut, whole || !cut
		}
		return stopped, whole
	}
	stoppedA, wholeA := stops(c.A)
	stoppedB, wholeB := stops(c.B)
	return stoppedA == stoppedB && wholeA == wholeB
}

func latencyOf(t Trial) float64 { return t.Latency }

func firstOf(t Trial) float64 {
	if t.First == 0 {
		return math.NaN()
	}
	return t.First
}

func scoreOf(t Trial) float64 {
	if t.Metrics[0].Pass {
		return 1
	}
	return 0
}

// gaps are the differences B - A of the cases for which both agents have a
// value: of each case's repetitions the mean, because they are no cases of
// their own.
func gaps(cases []CaseResult, value func(Trial) float64) []float64 {
	var out []float64
	for _, c := range cases {
		a, b := values(c.A, value), values(c.B, value)
		if len(a) > 0 && len(b) > 0 {
			out = append(out, stat.Mean(b)-stat.Mean(a))
		}
	}
	return out
}

func values(trials []Trial, value func(Trial) float64) []float64 {
	var out []float64
	for _, t := range trials {
		if t.Broken != "" {
			continue
		}
		if v := value(t); !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// Verdict says in words what a difference shows. A winner is named only when
// there are enough pairs and the interval does not hold zero.
func Verdict(d stat.Difference, lessIsBetter bool) string {
	switch {
	case d.Pairs == 0:
		return "nothing to compare"
	case d.Pairs < stat.MinPairs:
		return "too few pairs to say"
	case !d.Decided:
		return "no difference shown"
	case (d.Mean > 0) != lessIsBetter:
		return "B is better"
	}
	return "A is better"
}

// Changed tells whether the agents did different things in a case: another
// decision, other judgements or other tools. Different words are no change.
func (c *CaseResult) Changed() bool {
	a, b := c.last(0), c.last(1)
	if (a == nil) != (b == nil) {
		return true
	}
	if a == nil {
		return false
	}
	same := a.Blocked == b.Blocked && (a.Broken == "") == (b.Broken == "") && len(a.Metrics) == len(b.Metrics) && sameTools(a.Calls, b.Calls)
	for i := range a.Metrics {
		same = same && i < len(b.Metrics) && a.Metrics[i].Pass == b.Metrics[i].Pass
	}
	return !same
}

func sameTools(a, b []Call) bool {
	return slices.EqualFunc(a, b, func(x, y Call) bool {
		p, q := marshal(x.Arguments), marshal(y.Arguments)
		return x.Name == y.Name && p == q
	})
}

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

func (c *CaseResult) last(side int) *Trial {
	trials := c.trials(side)
	if len(trials) == 0 {
		return nil
	}
	return &trials[len(trials)-1]
}
