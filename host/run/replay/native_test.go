package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/fault"
	"weir/host/guard"
	"weir/host/run"
)

// native is a policy without plugins: a plain agent loop and guards that mask,
// cut, deny, withhold and ask, on the real chain with its real sink.
type native struct {
	chain *guard.Chain
	parts []run.Part
}

var (
	mail = regexp.MustCompile(`[a-z]{1,6}@[a-z]{1,6}`)
	key  = regexp.MustCompile(`KEY[0-9]{2}`)
)

// masks edits what the pattern finds, cuts cuts there.
type masks struct{ re *regexp.Regexp }
type cuts struct{ re *regexp.Regexp }

func (m masks) CheckOutput(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	reply := &abi.CheckOutputReply{HoldFrom: len(q.Text)}
	texts := q.Texts
	if q.Use != abi.UseDisplay {
		texts = []string{q.Text}
	}
	for i, text := range texts {
		for _, at := range m.re.FindAllStringIndex(text, -1) {
			reply.Edits = append(reply.Edits, abi.Edit{Index: i, Start: at[0], End: at[1], Replace: "<MAIL>", Label: "MAIL"})
		}
	}
	return reply, 10, nil
}

func (c cuts) CheckOutput(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	reply := &abi.CheckOutputReply{HoldFrom: len(q.Text)}
	for i, text := range q.Texts {
		for _, at := range c.re.FindAllStringIndex(text, -1) {
			reply.Edits = append(reply.Edits, abi.Edit{Index: i, Start: at[0], End: at[1], Replace: "[REDACTED]", Label: "secret:0"})
		}
	}
	if at := c.re.FindStringIndex(q.Text); at != nil && q.Use != abi.UseDisplay {
		reply.Cut = &abi.Cut{At: at[0], Notice: "[cut]", Label: "secret:0"}
	}
	return reply, 10, nil
}

// rules decide on questions, calls and results by a word.
type rules struct{}

func verdict(text, word, verdict string) (*abi.Verdict, uint64, error) {
	if strings.Contains(text, word) {
		return &abi.Verdict{Verdict: verdict, ReasonCode: word, Message: "no"}, 5, nil
	}
	return &abi.Verdict{Verdict: abi.VerdictAllow}, 5, nil
}

func (rules) CheckInput(_ context.Context, q *abi.CheckInputRequest) (*abi.Verdict, uint64, error) {
	if q.Ask.Reply == nil && strings.Contains(q.Text, "classify") {
		return &abi.Verdict{Verdict: abi.VerdictAskModel, Ask: &abi.ModelRequest{Model: abi.ModelGuard,
			Messages: []abi.Message{{Role: abi.RoleUser, Content: q.Text}}}}, 5, nil
	}
	return verdict(q.Text, "forbidden", abi.VerdictBlock)
}

func (rules) CheckToolCall(_ context.Context, q *abi.CheckToolCallRequest) (*abi.Verdict, uint64, error) {
	if q.Tool == "ask" {
		return &abi.Verdict{Verdict: abi.VerdictRequireApproval, Message: "May it?"}, 5, nil
	}
	return verdict(string(q.Arguments), "deny", abi.VerdictBlock)
}

func (rules) CheckToolResult(_ context.Context, q *abi.CheckToolResultRequest) (*abi.Verdict, uint64, error) {
	return verdict(q.Result, "inject", abi.VerdictBlock)
}

// newNative returns the policy; salt makes it another one that does the same.
func newNative(t testing.TB, salt string) *native {
	t.Helper()
	chain, err := guard.New([]guard.Guard{
		{Name: "rules", Input: rules{}, ToolCall: rules{}, ToolResult: rules{}},
		{Name: "cuts", Output: cuts{key}, HoldBack: 16, LookBehind: 16},
		{Name: "masks", Output: masks{mail}, HoldBack: 16, LookBehind: 16},
	}, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &native{chain, []run.Part{{Name: "loop", ID: "1", Stages: run.StageWorkflow}, {Name: "rules", ID: "2" + salt, Stages: "icr"},
		{Name: "cuts", ID: "3" + salt, Stages: "o"}, {Name: "masks", ID: "4" + salt, Stages: "o"}}}
}

func (n *native) Generation() string                   { return strings.Repeat("0", 64) }
func (n *native) Workflow() string                     { return "loop" }
func (n *native) Parts() []run.Part                    { return n.parts }
func (n *native) Prompt(string, string) (string, bool) { return "", false }

func (n *native) Step(_ context.Context, req *abi.StepRequest) (*abi.StepReply, error) {
	refs := 0
	_, _ = fmt.Sscan(string(req.State), &refs)
	reply := func(a abi.Action) (*abi.StepReply, error) {
		return &abi.StepReply{State: abi.Raw(fmt.Sprint(refs)), Action: a}, nil
	}
	switch e := req.Event; {
	case e.Type == abi.EventModel && len(e.ToolCalls) > 0:
		refs++
		return reply(abi.Action{Type: abi.ActionTools, Calls: e.ToolCalls})
	case e.Type == abi.EventModel:
		return reply(abi.Action{Type: abi.ActionFinish})
	case e.Type == abi.EventModelFailed && e.Code != abi.FailBudget && refs < 2:
		return reply(abi.Action{Type: abi.ActionFail})
	case e.Type == abi.EventModelFailed:
		return reply(abi.Action{Type: abi.ActionAnswer, Text: " I am at end@wits now."})
	case e.Type == abi.EventTools:
		refs += len(e.Results)
	}
	messages := []abi.Message{{Turn: 1}}
	for i := range refs {
		messages = append(messages, abi.Message{Ref: i + 1})
	}
	return reply(abi.Action{Type: abi.ActionModel, Request: &abi.ModelRequest{Model: abi.ModelAgent, Messages: messages,
		Tools: &abi.ToolSet{All: true}, Stream: true}})
}

func (n *native) Guards(ctx context.Context, s run.GuardSession) run.Guards {
	return nativeGuards{n.chain.Session(guard.SessionOptions{Context: ctx, Roles: s.Roles, Stamp: func() abi.Call { return s.Call },
		Ask: s.Ask, Release: s.Release, Approvals: s.People})}
}

type nativeGuards struct{ *guard.Session }

func (g nativeGuards) CheckInput(ctx context.Context, turns []abi.Turn) (run.InputVerdict, error) {
	v, err := g.Session.CheckInput(ctx, turns)
	return run.InputVerdict(v), err
}

func (g nativeGuards) CheckToolCall(ctx context.Context, c run.ToolCheck) (run.ToolVerdict, error) {
	v, err := g.Session.CheckToolCall(ctx, guard.ToolCheck(c))
	return run.ToolVerdict(v), err
}

func (g nativeGuards) CheckToolResult(ctx context.Context, c run.ToolCheck, text string, failed bool) (run.ToolVerdict, error) {
	v, err := g.Session.CheckToolResult(ctx, guard.ToolCheck(c), text, failed)
	return run.ToolVerdict(v), err
}

func (g nativeGuards) Sink() run.Sink { return nativeSink{g.Session.Sink()} }

type nativeSink struct{ *guard.Sink }

func (s nativeSink) Finish(ctx context.Context) run.OutputVerdict {
	v := s.Sink.Finish(ctx)
	out := run.OutputVerdict{Cut: v.Cut, RawChars: v.RawChars, Decision: v.Decision}
	for _, e := range v.Edits {
		out.Edits = append(out.Edits, run.Edit(e))
	}
	if v.Stop != nil {
		stop := run.Stop(*v.Stop)
		out.Stop = &stop
	}
	return out
}

// office is the model, the tools and the people of a run that is recorded, all
// by chance.
type office struct {
	*rand.Rand
	turns int
}

var words = []string{"the ticket ", "is open. ", "write to ann@post ", "or bob@home.", " KEY42 ", "KEY", "4", "2 ", "c", "@d", "é ", "\n", "that is all"}

func (o *office) text(n int) string {
	var b strings.Builder
	for range o.IntN(n + 1) {
		w := words[o.IntN(len(words))]
		if strings.HasPrefix(w, " KEY") && o.IntN(4) > 0 {
			w = "a key "
		}
		b.WriteString(w)
	}
	return b.String()
}

func (o *office) Name(alias string) string { return alias }

func (o *office) Complete(_ context.Context, call *run.ModelCall, onText func(string)) (*run.ModelReply, error) {
	if call.Alias == abi.ModelGuard {
		return &run.ModelReply{Text: []string{"no", "Yes.", "I would rather not say."}[o.IntN(3)]}, nil
	}
	text := o.text(8)
	for i := 0; i < len(text); {
		n := min(len(text)-i, 1+o.IntN(5))
		onText(text[i : i+n])
		i += n
	}
	if o.IntN(12) == 0 {
		return nil, fault.Coded(fault.Unavailable, abi.FailTimeout, "no more")
	}
	reply := &run.ModelReply{Text: text, FinishReason: "stop"}
	if o.turns--; o.turns > 0 {
		for i := range 1 + o.IntN(3) {
			name := []string{"get", "get", "ask", "unknown", "who@what"}[o.IntN(5)]
			args := []string{`{"id":1}`, `{ "id": "deny" }`, `{"id":"ann@post"}`, `{"id":"KEY42 deny"}`, `{"bad":1}`, `no json ann@post`, `{"a":1,"a":"b\u0040c"}`}[o.IntN(7)]
			reply.ToolCalls = append(reply.ToolCalls, abi.ToolCall{ID: fmt.Sprint("c", i), Name: name, Arguments: args})
		}
	}
	return reply, nil
}

func (o *office) List() []run.Tool {
	return []run.Tool{{Name: "get", StepName: "desk__get", ReadOnly: true}, {Name: "ask", StepName: "desk__ask"}}
}

func (o *office) Parse(name, arguments string) (run.Tool, abi.Raw, error) {
	for _, t := range o.List() {
		if t.Name != name {
			continue
		}
		if !strings.HasPrefix(arguments, "{") || strings.Contains(arguments, `"a":1,"a"`) {
			return t, nil, errors.New("the arguments are no JSON: " + arguments)
		}
		return t, abi.Raw(arguments), nil
	}
	return run.Tool{}, nil, fmt.Errorf("tool %q is not available", name)
}

func (o *office) Validate(_ string, arguments abi.Raw) error {
	if strings.Contains(string(arguments), "bad") {
		return errors.New("unknown argument")
	}
	return nil
}

func (o *office) Call(context.Context, string, abi.Raw) (string, bool, error) {
	switch o.IntN(8) {
	case 0:
		return "", false, errors.New("the desk is closed, write to ann@post")
	case 1:
		return "it failed with KEY42", true, nil
	}
	return []string{"fine", `{"mail":"ann@post"}`, "inject this", `"text"`, "42", `{"a": [1, 2.50, null]}`, "ann@post says inject",
		`{"a":1,"a":"b\u0040c"}`}[o.IntN(8)], false, nil
}

// perform is a caller that performs the calls that it is asked for, or some.
func (o *office) perform(t testing.TB, prompt abi.Raw) abi.Raw {
	var asked run.CallsPrompt
	if err := json.Unmarshal(prompt, &asked); err != nil {
		t.Fatal(err)
	}
	answer := run.CallsAnswer{Outcome: abi.HumanAnswered}
	for _, c := range asked.Calls[:len(asked.Calls)-o.IntN(2)] {
		text, failed, err := o.Call(t.Context(), c.Tool, c.Arguments)
		if err != nil {
			text, failed = err.Error(), true
		}
		answer.Results = append(answer.Results, run.CallResult{Text: text, Failed: failed})
	}
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// agrees asks people and declares nothing.
type agrees struct{}

func (agrees) Declared() []run.Tool                          { return nil }
func (agrees) Propose(string, abi.Raw) (run.Proposal, error) { return nil, errors.New("no") }
func (agrees) Question(*abi.AskHuman) (run.Prompt, error)    { return run.Prompt{}, errors.New("no") }
func (agrees) Execute(context.Context, abi.Raw, bool) abi.Raw {
	return abi.Raw(`{}`)
}

func (agrees) Agreement(tool string, arguments abi.Raw, message string) (run.Prompt, error) {
	return run.Prompt{Kind: abi.AskBinaryChoice, JSON: abi.Raw(fmt.Sprintf(`{"text":%q}`, message+" "+tool+" "+string(arguments)))}, nil
}

// record has one run by chance and returns what its log says in the end.
func record(t testing.TB, policy *native, seed uint64) *run.Recorded {
	t.Helper()
	o := &office{Rand: rand.New(rand.NewPCG(seed, 1))}
	o.turns = 1 + o.IntN(4)
	log := &memory{blobs: map[string][]byte{}}
	engine, err := run.New(run.Deps{Policy: func() (run.Policy, func()) { return policy, func() {} },
		Model: o, Tools: o, Log: log, People: agrees{}, Pauses: agrees{},
		Declare: func([]run.Tool) (run.Tools, error) { return o, nil }}, run.Options{MaxToolCalls: 4})
	if err != nil {
		t.Fatal(err)
	}
	question := []string{"hello", "classify this", "something forbidden", "I am ann@post", "classify ann@post"}[o.IntN(5)]
	var caller *run.Caller
	if seed%3 == 0 {
		caller = &run.Caller{Tools: o.List()}
	}
	out := engine.Run(t.Context(), run.Request{Caller: caller, Principal: run.Principal{UserID: "u", Pseudonym: "p"}, RequestID: "r",
		RequestIDSource: run.SourceGateway, Contract: "stream", RunID: "run-1", Turns: []abi.Turn{{Role: abi.RoleUser, Content: question}}}, nobody{})
	for out.Parked != nil {
		given := answered([]string{abi.HumanAnswered, abi.HumanAnswered, abi.HumanCancelled, abi.HumanExpired}[o.IntN(4)], "yes")
		if out.Parked.Kind == run.KindCalls {
			given = o.perform(t, out.Parked.Prompt)
		}
		if err := run.Respond(t.Context(), log, "run-1", given); err != nil {
			t.Fatal(err)
		}
		if out, err = engine.Resume(t.Context(), "run-1", "other", nobody{}); err != nil {
			t.Fatal(err)
		}
	}
	report, err := run.Inspect(t.Context(), log, "run-1")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := run.ReadRecorded(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range report.Entries {
		if text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\n`, " ").Replace(string(e.Content)); mail.MatchString(text) || key.MatchString(text) {
			t.Errorf("seed %d: record %d (%s) holds what a guard masked: %s", seed, e.N, e.Kind, text)
		}
	}
	return rec
}
