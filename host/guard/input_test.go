package guard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
	"weir/host/fault"
)

type inputFunc func(q *abi.CheckInputRequest) (*abi.Verdict, error)

func (f inputFunc) CheckInput(_ context.Context, q *abi.CheckInputRequest) (*abi.Verdict, uint64, error) {
	v, err := f(q)
	return v, 5, err
}

func saying(v abi.Verdict) inputFunc {
	return func(*abi.CheckInputRequest) (*abi.Verdict, error) { return &v, nil }
}

func failing(code string) inputFunc {
	return func(*abi.CheckInputRequest) (*abi.Verdict, error) {
		return nil, fault.Coded(fault.Plugin, code, "plugin x: check_input: %s", code)
	}
}

// still is a clock that stands, so that ms is 0 in every decision.
func still() time.Time { return time.Time{} }

var turns = []abi.Turn{{Role: "user", Content: "first"}, {Role: "assistant", Content: "reply"}, {Role: "user", Content: "latest"}}

// Decision objects of input-screen as 2.7 shows them, with and without room for
// what the host sets.
const (
	ownPassed = `{"stage":"?","name":"self check input","outcome":"?","blocked":true,"modified":true,"llm_blocked":false,` +
		`"classifier_available":true,"decision_source":"llm","llm_call_count":9}`
	ownBare     = `{"name":"self check input", "llm_blocked":false,"decision_source":"llm"}`
	ownOversize = `{"stage":"input","outcome":"blocked","blocked":true,"decision_source":"deterministic_input_limit","input_length":9,"input_limit":8}`
)

func askGuard(decision string) inputFunc {
	return func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		if q.Reply == nil {
			return &abi.Verdict{Verdict: abi.VerdictAskModel, State: abi.Raw(`"s"`),
				Ask: &abi.ModelRequest{Model: abi.ModelGuard, Prompt: &abi.PromptUse{Name: "p"}}}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictAllow, Decision: abi.Raw(decision)}, nil
	}
}

func entry(name, verdict, code string, fuel string) string {
	return `{"name":"` + name + `","digest":"","mode":"enforce","verdict":"` + verdict + `","reason_code":"` + code + `","fuel":` + fuel + `,"ms":0}`
}

// DECISIONS 1 "Decision events" and 2.7: keys and their order.
func TestInputDecision(t *testing.T) {
	allow := saying(abi.Verdict{Verdict: abi.VerdictAllow})
	block := saying(abi.Verdict{Verdict: abi.VerdictBlock, ReasonCode: "shouting", Message: "No shouting."})
	for _, c := range []struct {
		name    string
		guards  []Guard
		blocked bool
		message string
		want    string
	}{
		{"the host's members are set in place", []Guard{{Name: "a", Input: askGuard(ownPassed)}}, false, "",
			`{"stage":"input","name":"self check input","outcome":"passed","blocked":false,"modified":false,"llm_blocked":false,` +
				`"classifier_available":true,"decision_source":"llm","llm_call_count":1,"guards":[` + entry("a", "allow", "", "10") + `]}`},
		{"and where 2.7 has them if the guard left no room", []Guard{{Name: "a", Input: askGuard(ownBare)}}, false, "",
			`{"stage":"input","name":"self check input","outcome":"passed","blocked":false,"modified":false,"llm_blocked":false,` +
				`"decision_source":"llm","llm_call_count":1,"guards":[` + entry("a", "allow", "", "10") + `]}`},
		{"the short form of an input refused unread", []Guard{{Name: "a", Input: saying(abi.Verdict{Verdict: abi.VerdictBlock, Message: "Too long.", Decision: abi.Raw(ownOversize)})}}, true, "Too long.",
			strings.TrimSuffix(ownOversize, "}") + `,"guards":[` + entry("a", "block", "", "5") + `]}`},
		{"another guard blocked", []Guard{{Name: "a", Input: askGuard(ownPassed)}, {Name: "b", Input: block}, {Name: "c", Input: allow}}, true, "No shouting.",
			`{"stage":"input","name":"self check input","outcome":"blocked","blocked":true,"modified":false,"llm_blocked":false,` +
				`"classifier_available":true,"decision_source":"plugin:b","llm_call_count":1,"guards":[` +
				entry("a", "allow", "", "10") + `,` + entry("b", "block", "shouting", "5") + `,` + entry("c", "skipped", "", "0") + `]}`},
		{"another guard failed and blocks", []Guard{{Name: "a", Input: askGuard(ownPassed)}, {Name: "b", Input: failing("trap")}}, true, defaultInputBlockMessage,
			`{"stage":"input","name":"self check input","outcome":"blocked","blocked":true,"modified":false,"llm_blocked":false,` +
				`"classifier_available":true,"decision_source":"plugin_failure:b","llm_call_count":1,"guards":[` +
				entry("a", "allow", "", "10") + `,` + entry("b", "error", "trap", "5") + `]}`},
		{"a failure that allows is seen", []Guard{{Name: "a", Input: askGuard(ownBare)}, {Name: "b", AllowOnError: true, Input: failing("timeout")}}, false, "",
			`{"stage":"input","name":"self check input","outcome":"passed","blocked":false,"modified":false,"llm_blocked":false,` +
				`"decision_source":"llm","llm_call_count":1,"guards":[` + entry("a", "allow", "", "10") + `,` + entry("b", "error", "timeout", "5") + `]}`},
		{"the first guard failed and blocks", []Guard{{Name: "a", Input: failing("memory")}, {Name: "b", Input: allow}}, true, defaultInputBlockMessage,
			`{"stage":"input","name":"a","outcome":"blocked","blocked":true,"modified":false,"decision_source":"plugin_failure:a","llm_call_count":0,"guards":[` +
				entry("a", "error", "memory", "5") + `,` + entry("b", "skipped", "", "0") + `]}`},
		{"the first guard says nothing", []Guard{{Name: "a", Input: block}}, true, "No shouting.",
			`{"stage":"input","name":"a","outcome":"blocked","blocked":true,"modified":false,"decision_source":"plugin:a","llm_call_count":0,"guards":[` +
				entry("a", "block", "shouting", "5") + `]}`},
		{"no guard", nil, false, "",
			`{"stage":"input","name":"input","outcome":"passed","blocked":false,"modified":false,"decision_source":"none","llm_call_count":0,"guards":[]}`},
		{"members of its own stay, guards is the host's", []Guard{{Name: "a", Input: saying(abi.Verdict{Verdict: abi.VerdictAllow, Decision: abi.Raw(`{"guards":1,"score":1.50,"decision_source":"x"}`)})}}, false, "",
			`{"stage":"input","outcome":"passed","blocked":false,"score":1.50,"decision_source":"x","guards":[` + entry("a", "allow", "", "5") + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain := must(New(c.guards, Options{Clock: still}))
			s := chain.Session(SessionOptions{Stamp: stamp,
				Ask: func(context.Context, string, *abi.ModelRequest) abi.AskReply { return abi.AskReply{Text: "no"} }})
			v, err := s.CheckInput(t.Context(), turns)
			if err != nil {
				t.Fatal(err)
			}
			if v.Blocked != c.blocked || v.Message != c.message {
				t.Errorf("blocked %v %q, want %v %q", v.Blocked, v.Message, c.blocked, c.message)
			}
			if diff := cmp.Diff(c.want, string(v.Decision)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// DECISIONS 1: the guard is called again with the same request, its state and
// the reply; a model's failure is a reply.
func TestAskModelRounds(t *testing.T) {
	var calls []*abi.CheckInputRequest
	g := Guard{Name: "g", GrantRoles: true, Input: inputFunc(func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		calls = append(calls, q)
		if len(calls) < 3 {
			return &abi.Verdict{Verdict: abi.VerdictAskModel, State: abi.Raw(`{"round":` + string(rune('0'+len(calls))) + `}`),
				Ask: &abi.ModelRequest{Model: abi.ModelGuard, Prompt: &abi.PromptUse{Name: "p"}}}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	})}
	replies := []abi.AskReply{{Text: "maybe"}, {Failed: abi.FailTimeout}}
	s := must(New([]Guard{g}, Options{})).Session(SessionOptions{
		Stamp: stamp, Roles: []string{"admin"},
		Ask: func(ctx context.Context, guard string, _ *abi.ModelRequest) abi.AskReply {
			if _, ok := ctx.Deadline(); !ok || guard != "g" {
				t.Errorf("asked for %q, with a deadline: %v", guard, ok)
			}
			r := replies[0]
			replies = replies[1:]
			return r
		}})
	v, err := s.CheckInput(t.Context(), turns)
	if err != nil || v.Blocked {
		t.Fatalf("verdict %+v, %v", v, err)
	}
	request := func(ask abi.Ask) *abi.CheckInputRequest {
		return &abi.CheckInputRequest{Call: stamp(), Text: "latest", History: turns[:2], Roles: []string{"admin"}, Ask: ask}
	}
	want := []*abi.CheckInputRequest{
		request(abi.Ask{}),
		request(abi.Ask{State: abi.Raw(`{"round":1}`), Reply: &abi.AskReply{Text: "maybe"}}),
		request(abi.Ask{State: abi.Raw(`{"round":2}`), Reply: &abi.AskReply{Failed: abi.FailTimeout}}),
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(v.Decision), `"llm_call_count":2`) {
		t.Errorf("decision %s, want two model calls", v.Decision)
	}
}

// P12: a verdict that breaks the protocol is a failure of the guard.
func TestBadVerdictBlocks(t *testing.T) {
	ask := func(r *abi.ModelRequest, state abi.Raw) abi.Verdict {
		return abi.Verdict{Verdict: abi.VerdictAskModel, Ask: r, State: state}
	}
	prompt := &abi.PromptUse{Name: "p"}
	for _, c := range []struct {
		name string
		v    abi.Verdict
	}{
		{"empty", abi.Verdict{}},
		{"unknown", abi.Verdict{Verdict: "perhaps"}},
		{"require_approval of an input", abi.Verdict{Verdict: abi.VerdictRequireApproval}},
		{"reason code", abi.Verdict{Verdict: abi.VerdictAllow, ReasonCode: "Not a code"}},
		{"long reason code", abi.Verdict{Verdict: abi.VerdictAllow, ReasonCode: strings.Repeat("x", 65)}},
		{"decision that is no object", abi.Verdict{Verdict: abi.VerdictAllow, Decision: abi.Raw(`[]`)}},
		{"decision that is no JSON", abi.Verdict{Verdict: abi.VerdictAllow, Decision: abi.Raw(`{"a":`)}},
		{"decision with a repeated name", abi.Verdict{Verdict: abi.VerdictAllow, Decision: abi.Raw(`{"a":1,"a":2}`)}},
		{"decision too large", abi.Verdict{Verdict: abi.VerdictAllow, Decision: abi.Raw(`{"a":"` + strings.Repeat("x", maxDecision) + `"}`)}},
		{"ask without a request", ask(nil, nil)},
		{"ask a third time", ask(&abi.ModelRequest{Model: abi.ModelGuard, Prompt: prompt}, nil)},
		{"ask with a large state", ask(&abi.ModelRequest{Model: abi.ModelGuard, Prompt: prompt}, slices.Repeat(abi.Raw("1"), abi.MaxAskState+1))},
		{"ask an unknown model", ask(&abi.ModelRequest{Model: "http://x", Prompt: prompt}, nil)},
		{"ask with tools", ask(&abi.ModelRequest{Model: abi.ModelGuard, Prompt: prompt, Tools: &abi.ToolSet{All: true}}, nil)},
		{"ask with a value of the run", ask(&abi.ModelRequest{Model: abi.ModelGuard, Messages: []abi.Message{{Ref: 1}}}, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, allow := range []bool{false, true} {
				asked := 0
				s := must(New([]Guard{{Name: "g", AllowOnError: allow, Input: saying(c.v)}}, Options{InputBlockMessage: "Sorry."})).Session(
					SessionOptions{Stamp: stamp, Ask: func(context.Context, string, *abi.ModelRequest) abi.AskReply {
						asked++
						return abi.AskReply{}
					}})
				v, err := s.CheckInput(t.Context(), turns)
				if err != nil || v.Blocked == allow || v.Blocked && v.Message != "Sorry." {
					t.Errorf("allow %v: verdict %+v, %v", allow, v, err)
				}
				if asked > abi.MaxAskRounds {
					t.Errorf("%d model calls, want at most %d", asked, abi.MaxAskRounds)
				}
				if !strings.Contains(string(v.Decision), `"verdict":"error","reason_code":"bad_reply"`) {
					t.Errorf("decision %s", v.Decision)
				}
			}
		})
	}
}

// Roles are a grant; an end of the run is not a verdict; no turn is an error.
func TestInputEdges(t *testing.T) {
	var roles []string
	g := Guard{Name: "g", Input: inputFunc(func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		roles = q.Roles
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	})}
	s := must(New([]Guard{g}, Options{})).Session(SessionOptions{Stamp: stamp, Roles: []string{"admin"}})
	if _, err := s.CheckInput(t.Context(), turns); err != nil || roles != nil {
		t.Errorf("roles %v, %v: they were not granted", roles, err)
	}
	if _, err := s.CheckInput(t.Context(), nil); fault.Of(err) != fault.Invalid {
		t.Errorf("no turns: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := s.CheckInput(ctx, turns); !errors.Is(err, gone) {
		t.Errorf("ended context: %v", err)
	}
}

// A guard's model call ends at its own time-out, and the guard is told so.
func TestAskTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := must(New([]Guard{{Name: "g", Input: askGuard(ownBare)}}, Options{})).Session(SessionOptions{Stamp: stamp,
			Ask: func(ctx context.Context, _ string, _ *abi.ModelRequest) abi.AskReply {
				<-ctx.Done()
				return abi.AskReply{Failed: abi.FailTimeout}
			}})
		v, err := s.CheckInput(t.Context(), turns)
		if err != nil || v.Blocked || time.Since(began) != defaultAskTimeout {
			t.Errorf("verdict %+v, %v after %v", v, err, time.Since(began))
		}
		if strings.Contains(string(v.Decision), `"ms":20000`) {
			t.Error("the model's time counts as the guard's")
		}
	})
}

// What New refuses, each beside what it takes.
func TestNewRefuses(t *testing.T) {
	ok := Guard{Name: "a", Input: saying(abi.Verdict{})}
	for _, c := range []struct {
		want   string
		guards []Guard
		opts   Options
	}{
		{"", []Guard{ok, {Name: "b", Input: ok.Input, LookBehind: 512}}, Options{}},
		{"", []Guard{{Name: "m", Monitor: true, Input: ok.Input}}, Options{}},
		{"guards: the bounds of monitors must be positive", nil, Options{MonitorQueue: -1}},
		{"guard: a name is required", []Guard{{Input: ok.Input}}, Options{}},
		{"guard a: the name is used twice", []Guard{ok, ok}, Options{}},
		{"guard a: it has no check", []Guard{{Name: "a"}}, Options{}},
		{"guard a: look_behind must be 0 to 65536 bytes, not -1", []Guard{{Name: "a", Input: ok.Input, LookBehind: -1}}, Options{}},
		{"guards: the output limit must be positive, not -1", nil, Options{MaxOutputChars: -1}},
		{"guards: the tail bound must be positive, not -1", nil, Options{TailBytes: -1}},
		{"guards: the model time-out must be positive, not -1s", nil, Options{AskTimeout: -time.Second}},
	} {
		_, err := New(c.guards, c.opts)
		if got := errorText(err); got != c.want || err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("New = %q, want %q", got, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type recorder struct{ verdicts []Verdict }

func (r *recorder) GuardVerdict(v Verdict) { r.verdicts = append(r.verdicts, v) }

// An observer sees every verdict once, with its cost and its reason.
func TestObserver(t *testing.T) {
	r := &recorder{}
	guards := []Guard{
		{Name: "in", Input: saying(abi.Verdict{Verdict: abi.VerdictAllow, Reason: strings.Repeat("é", 200)})},
		named(digitMask("D"), "out").guard(),
	}
	s := must(New(guards, Options{Clock: still})).Session(SessionOptions{Stamp: stamp, Observer: r, Release: func(string) {}})
	if _, err := s.CheckInput(t.Context(), turns); err != nil {
		t.Fatal(err)
	}
	s.Display(t.Context(), abi.Raw(`"no digits"`))
	s.Sink().Push("a 123 b")
	s.Sink().Finish(t.Context())
	want := []Verdict{
		{Guard: "in", Stage: StageInput, Verdict: VerdictAllow, Reason: strings.Repeat("é", 128), Calls: 1, Fuel: 5},
		{Guard: "out", Digest: "d-out", Stage: StageDisplay, Verdict: VerdictAllow, Calls: 1, Fuel: 7},
		{Guard: "out", Digest: "d-out", Stage: StageOutput, Verdict: VerdictModify},
	}
	// How many calls a stream takes depends on what arrives while one is made.
	last := &r.verdicts[len(r.verdicts)-1]
	if last.Calls < 1 || last.Fuel != 7*uint64(last.Calls) {
		t.Errorf("%d calls, fuel %d", last.Calls, last.Fuel)
	}
	last.Calls, last.Fuel = 0, 0
	if diff := cmp.Diff(want, r.verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
