package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// script is one transcript's set-up: what the world around the engine does.
// Lines of a transcript's script section become its fields (see parse in
// transcript_test.go).
type script struct {
	question string
	history  []abi.Turn
	max      int
	blockIn  string // the input guards refuse with this message
	failIn   bool   // the input guards cannot decide
	denyCall string // the guards refuse calls of this tool
	withhold string // the guards withhold results of this tool
	approve  string // the guards want a person to agree to calls of this tool, which writes
	model    []modelTurn
	tools    map[string]toolTurn
	actions  []abi.Action // a scripted workflow; none: the react-like one
	leave    string       // the client leaves: "model", "tool" or "input"
	hang     bool         // the model's stream stalls after its text
}

type modelTurn struct {
	text  []string
	calls []abi.ToolCall
	fail  string
}

type toolTurn struct {
	text string
	fail bool
	err  bool
	hold chan struct{}
}

// world is all fakes of one transcript; everything they see goes to lines.
type world struct {
	script script
	cancel context.CancelFunc

	mu    sync.Mutex
	lines []string
	turn  int
	acts  int

	records  [][]byte
	messages int
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// Policy.

func (w *world) Generation() string { return strings.Repeat("9e", 32) }
func (w *world) Workflow() string   { return "fake" }
func (w *world) Prompt(plugin, name string) (string, bool) {
	if name != "check" {
		return "", false
	}
	return "Is {{ user_input }} fine for " + plugin + "? {{ user_input }}", true
}

func (w *world) Parts() []Part {
	return []Part{{Name: "fake", ID: "1", Stages: StageWorkflow}, {Name: "screen", ID: "2", Stages: StageInput}}
}

func (w *world) Step(_ context.Context, req *abi.StepRequest) (*abi.StepReply, error) {
	e := req.Event
	w.note("step    %s", describe(e))
	if len(w.script.actions) > 0 {
		a := w.script.actions[min(w.acts, len(w.script.actions)-1)]
		w.acts++
		return &abi.StepReply{State: abi.Raw(fmt.Sprint(w.acts)), Action: a}, nil
	}
	return reactLike(req)
}

// reactLike is the plainest agent loop; its state is the highest ref.
func reactLike(req *abi.StepRequest) (*abi.StepReply, error) {
	e := req.Event
	refs := 0
	if req.State != nil {
		fmt.Sscan(string(req.State), &refs)
	}
	ask := func() (*abi.StepReply, error) {
		messages := []abi.Message{{Role: abi.RoleSystem, Content: "You help."}, {Turn: 1}}
		for i := range refs {
			messages = append(messages, abi.Message{Ref: i + 1})
		}
		return &abi.StepReply{State: abi.Raw(fmt.Sprint(refs)), Action: abi.Action{Type: abi.ActionModel,
			Request: &abi.ModelRequest{Model: abi.ModelAgent, Messages: messages, Tools: &abi.ToolSet{All: true}, Stream: true}}}, nil
	}
	end := func(a abi.Action) (*abi.StepReply, error) {
		return &abi.StepReply{State: abi.Raw(fmt.Sprint(refs)), Action: a}, nil
	}
	switch e.Type {
	case abi.EventStart:
		return ask()
	case abi.EventModel:
		refs++
		if len(e.ToolCalls) > 0 {
			return end(abi.Action{Type: abi.ActionTools, Calls: e.ToolCalls})
		}
		return end(abi.Action{Type: abi.ActionFinish})
	case abi.EventTools:
		refs += len(e.Results)
		return ask()
	case abi.EventModelFailed:
		if e.Code == abi.FailBudget {
			return end(abi.Action{Type: abi.ActionAnswer, Text: "No final answer in time."})
		}
	}
	return end(abi.Action{Type: abi.ActionFail, Reason: "unexpected " + e.Type})
}

func describe(e abi.Event) string {
	s := fmt.Sprintf("%s left=%d/%d", e.Type, e.ToolCallsLeft, e.ModelCallsLeft)
	switch e.Type {
	case abi.EventStart:
		s += fmt.Sprintf(" turns=%d tools=%d", len(e.Turns), len(e.Tools))
	case abi.EventModel:
		s += fmt.Sprintf(" ref=%d text=%q calls=%d", e.Ref, e.Text, len(e.ToolCalls))
	case abi.EventModelFailed:
		s += " " + e.Code
	case abi.EventTools:
		for _, r := range e.Results {
			s += fmt.Sprintf(" [ref=%d %s failed=%t refused=%t %q]", r.Ref, r.Name, r.Failed, r.Refused, r.Text)
		}
	case abi.EventHuman:
		s += " " + e.Outcome
	}
	return s
}

// Guards.

type fakeGuards struct {
	w    *world
	ctx  context.Context
	s    GuardSession
	sink *fakeSink
}

func (w *world) Guards(ctx context.Context, s GuardSession) Guards {
	g := &fakeGuards{w: w, ctx: ctx, s: s}
	g.sink = &fakeSink{g: g, cut: make(chan struct{})}
	return g
}

func (g *fakeGuards) CheckInput(ctx context.Context, turns []abi.Turn) (InputVerdict, error) {
	sc := g.w.script
	if sc.leave == "input" {
		g.w.cancel()
		<-ctx.Done()
		return InputVerdict{}, ctx.Err()
	}
	if sc.failIn {
		return InputVerdict{}, errors.New("the guards are broken")
	}
	if sc.blockIn != "" {
		return InputVerdict{Blocked: true, Message: sc.blockIn, Decision: abi.Raw(`{"outcome":"blocked","blocked":true}`)}, nil
	}
	return InputVerdict{Decision: abi.Raw(`{"outcome":"passed","blocked":false}`)}, nil
}

func (g *fakeGuards) CheckToolCall(_ context.Context, c ToolCheck) (ToolVerdict, error) {
	if c.Tool == g.w.script.denyCall {
		return ToolVerdict{Blocked: true, Reason: "not_today", Decision: abi.Raw(`{"outcome":"blocked"}`)}, nil
	}
	return ToolVerdict{Approve: c.Tool == g.w.script.approve}, nil
}

func (g *fakeGuards) CheckToolResult(_ context.Context, c ToolCheck, _ string, _ bool) (ToolVerdict, error) {
	if c.Tool == g.w.script.withhold {
		return ToolVerdict{Blocked: true, Reason: "injected", Decision: abi.Raw(`{"outcome":"blocked"}`)}, nil
	}
	return ToolVerdict{}, nil
}

func (g *fakeGuards) Display(_ context.Context, v abi.Raw) abi.Raw {
	return abi.Raw(strings.ReplaceAll(string(v), "SECRET", "[REDACTED]"))
}

func (g *fakeGuards) Sink() Sink { return g.sink }

// fakeSink releases at once and cuts at the word SECRET.
type fakeSink struct {
	g     *fakeGuards
	chars int
	isCut bool
	cut   chan struct{}
}

func (s *fakeSink) Push(text string) {
	if s.isCut {
		return
	}
	s.chars += len([]rune(text))
	if before, _, found := strings.Cut(text, "SECRET"); found {
		s.g.s.Release(before)
		s.g.s.Release("[cut]")
		s.isCut = true
		close(s.cut)
		return
	}
	s.g.s.Release(text)
}

func (s *fakeSink) Sync(ctx context.Context) error { return ctx.Err() }
func (s *fakeSink) Cut() <-chan struct{}           { return s.cut }
func (s *fakeSink) Finish(context.Context) OutputVerdict {
	return OutputVerdict{Cut: s.isCut, RawChars: s.chars, Decision: abi.Raw(fmt.Sprintf(`{"blocked":%t}`, s.isCut))}
}

// Model.

func (w *world) Name(alias string) string { return "fake-" + alias }

func (w *world) Complete(ctx context.Context, call *ModelCall, onText func(string)) (*ModelReply, error) {
	var kinds []string
	for _, m := range call.Messages {
		kinds = append(kinds, m.Role)
	}
	w.note("model   %s stream=%t tools=%d messages=%s", call.Alias, call.Stream, len(call.Tools), strings.Join(kinds, ","))
	if w.turn >= len(w.script.model) {
		return nil, fault.Coded(fault.Unavailable, abi.FailUnavailable, "no more replies")
	}
	turn := w.script.model[w.turn]
	w.turn++
	for _, t := range turn.text {
		if onText != nil {
			onText(t)
		}
	}
	if w.script.leave == "model" {
		w.cancel()
	}
	if w.script.hang || w.script.leave == "model" {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if turn.fail != "" {
		return nil, fault.Coded(fault.Unavailable, turn.fail, "the provider said: internal-host-7")
	}
	return &ModelReply{Text: strings.Join(turn.text, ""), ToolCalls: turn.calls}, nil
}

// Tools.

type fakeTools struct{ w *world }

func (f fakeTools) List() []Tool {
	list := []Tool{
		{Name: "get_ticket", StepName: "tickets_mcp__get_ticket", ReadOnly: true, Schema: abi.Raw(`{}`)},
		{Name: "search_tickets", StepName: "tickets_mcp__search_tickets", ReadOnly: true, Schema: abi.Raw(`{}`)},
	}
	if f.w != nil && f.w.script.approve != "" {
		name := f.w.script.approve
		list = append(list, Tool{Name: name, StepName: "tickets_mcp__" + name, Schema: abi.Raw(`{}`)})
	}
	return list
}

func (f fakeTools) Parse(name, arguments string) (Tool, abi.Raw, error) {
	i := indexTool(f.List(), name)
	if i < 0 {
		return Tool{}, nil, fault.New(fault.Denied, "tool %q is not available", name)
	}
	return f.List()[i], abi.Raw(arguments), nil
}

func (f fakeTools) Validate(_ string, args abi.Raw) error {
	if strings.Contains(string(args), "bogus") {
		return fault.New(fault.Denied, `unknown argument "bogus"`)
	}
	return nil
}

func (f fakeTools) Call(ctx context.Context, name string, args abi.Raw) (string, bool, error) {
	f.w.note("call    %s %s", name, args)
	if f.w.script.leave == "tool" {
		f.w.cancel()
		<-ctx.Done()
		return "", false, ctx.Err()
	}
	t := f.w.script.tools[name]
	if t.hold != nil {
		<-t.hold
	}
	if t.err {
		return "", false, errors.New(t.text)
	}
	return t.text, t.fail, nil
}

// Log.

// noted is the world's store; it notes what a run does with it.
type noted struct {
	logs
	w *world
}

func (n noted) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	n.w.mu.Lock()
	n.w.records = append(n.w.records, records...)
	n.w.messages++
	n.w.mu.Unlock()
	return n.logs.Append(ctx, log, expected, id, records)
}

func (n noted) PutBlob(ctx context.Context, space string, data []byte) (string, error) {
	n.w.note("blob    %s %d bytes", space, len(data))
	return n.logs.PutBlob(ctx, space, data)
}

func (n noted) Complete(ctx context.Context, log, id string, records [][]byte) error {
	if _, err := n.Append(ctx, wholePrefix+log, 0, id, records); err != nil {
		return err
	}
	return n.End(ctx, wholePrefix+log)
}

func (n noted) End(ctx context.Context, log string) error {
	n.w.note("logged  %s", strings.TrimPrefix(log, wholePrefix))
	return n.logs.End(ctx, log)
}

// Observer.

type notes struct{ w *world }

func (n notes) Started(Info) { n.w.note("emit    WORKFLOW_START") }
func (n notes) Ended(Info)   { n.w.note("emit    WORKFLOW_END") }
func (n notes) Asked(i Interaction) {
	n.w.note("emit    asks %s %s %s", i.ID, i.Kind, i.Prompt)
}
func (n notes) Text(t string) {
	n.w.note("emit    text %q", t)
}
func (n notes) Failed(f Failure) {
	n.w.note("emit    error %s", map[Failure]string{FailureRun: "run", FailureModel: "model"}[f])
}

func (n notes) Step(s Step) {
	kind := map[StepKind]string{StepTool: "TOOL", StepFunction: "FUNCTION"}[s.Kind]
	if s.End {
		n.w.note("emit    %s_END %s %s %s -> %s", kind, s.ID, s.Name, s.Input, s.Output)
		return
	}
	n.w.note("emit    %s_START %s %s %s", kind, s.ID, s.Name, s.Input)
}

// counter is a source of ids and seeds that repeats itself in every test.
func counter(prefix string) func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("%s%d", prefix, n)
	}
}

func fixedNow() time.Time { return time.UnixMilli(1_780_000_000_000) }
