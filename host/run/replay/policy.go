package replay

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"

	"weir/abi"
	"weir/host/fault"
	"weir/host/run"
)

// policy is the target's as one session uses it.
type policy struct {
	run.Policy
	s *session
}

func (p policy) Step(ctx context.Context, req *abi.StepRequest) (*abi.StepReply, error) {
	if p.s.over() {
		return nil, p.s.wait(ctx)
	}
	p.s.event(req)
	return p.Policy.Step(ctx, req)
}

func (p policy) Guards(ctx context.Context, g run.GuardSession) run.Guards {
	if !p.s.fresh { // of a text of its own, such as a prompt
		return p.Policy.Guards(ctx, g)
	}
	p.s.fresh = false
	inner := p.Policy.Guards(ctx, g)
	p.s.main = &sink{s: p.s, release: g.Release}
	return guards{inner, p.s}
}

// guards are the target's own. Where a guard of the recorded run saw a text that
// is not kept as it was, the same guards are taken at their word, and others
// leave a question open.
type guards struct {
	run.Guards
	s *session
}

func (g guards) CheckInput(ctx context.Context, turns []abi.Turn) (run.InputVerdict, error) {
	s := g.s
	same := s.unchanged(run.StageInput)
	if same && (s.record.Masked || !s.asksKept()) {
		return run.InputVerdict{Decision: s.decided()}, nil
	}
	v, err := g.Guards.CheckInput(ctx, turns)
	if err != nil || same || !s.record.Masked {
		return v, err
	}
	u := Unanswered{Stage: StageInput, Was: WasAllow, What: "the question", Why: "it is kept masked, and the guards are others now"}
	if v.Blocked {
		s.halt(u)
		return v, s.wait(ctx)
	}
	s.doubt(u)
	return v, nil
}

// asksKept tells whether every model call of a guard has a reply.
func (s *session) asksKept() bool {
	for _, a := range s.record.Asks {
		if a.Reply == "" && a.Failed == "" {
			return false
		}
	}
	return true
}

// decided is the recorded decision on the question.
func (s *session) decided() abi.Raw {
	if len(s.rec.Decisions) > 0 {
		return s.rec.Decisions[0].Output
	}
	return abi.Raw(`{}`)
}

func (g guards) CheckToolCall(ctx context.Context, c run.ToolCheck) (run.ToolVerdict, error) {
	v, err := g.Guards.CheckToolCall(ctx, c)
	was := g.s.now()
	if err != nil || was == nil || !was.masked {
		return v, err
	}
	// Arguments that are kept masked were not shown to a person either.
	blocked, approve := was.Why == run.WhyGuard || was.Why == run.WhyApproval && (v.Approve || g.s.unchanged(run.StageToolCall)), was.Asked
	if was.Why == run.WhyApproval && v.Approve {
		return run.ToolVerdict{Blocked: true, Reason: was.reason(), Decision: v.Decision}, nil
	}
	if g.s.unchanged(run.StageToolCall) {
		if v.Blocked != blocked || v.Approve != approve {
			v = run.ToolVerdict{Blocked: blocked, Approve: approve && !blocked, Decision: v.Decision}
			if blocked {
				v.Reason = was.reason()
			}
		}
		return v, nil
	}
	u := Unanswered{Stage: StageToolCall, Was: wasBlock(blocked), What: c.Tool, Why: "what the guards saw is kept masked, and they are others now"}
	if v.Blocked != blocked || v.Approve != approve {
		g.s.halt(u)
		return v, g.s.wait(ctx)
	}
	g.s.doubt(u)
	return v, nil
}

func (g guards) CheckToolResult(ctx context.Context, c run.ToolCheck, text string, failed bool) (run.ToolVerdict, error) {
	was := g.s.now()
	if was == nil {
		return g.Guards.CheckToolResult(ctx, c, text, failed)
	}
	blocked := was.Why == run.WhyWithheld
	same := g.s.unchanged(run.StageToolResult)
	if blocked && same {
		message, _ := was.text()
		return run.ToolVerdict{Blocked: true, Reason: strings.TrimPrefix(message, "Tool result withheld by policy: ")}, nil
	}
	if blocked {
		g.s.halt(Unanswered{Stage: StageToolResult, Was: WasBlock, What: c.Tool, Why: "the result was withheld, so it is not kept, and the guards are others now"})
		return run.ToolVerdict{}, g.s.wait(ctx)
	}
	if same && (was.Masked() || was.masked) {
		return run.ToolVerdict{}, nil
	}
	v, err := g.Guards.CheckToolResult(ctx, c, text, failed)
	if err != nil || same || !was.Masked() && !was.masked {
		return v, err
	}
	u := Unanswered{Stage: StageToolResult, Was: WasAllow, What: c.Tool, Why: "the result is kept masked, and the guards are others now"}
	if v.Blocked {
		g.s.halt(u)
		return v, g.s.wait(ctx)
	}
	g.s.doubt(u)
	return v, nil
}

// Masked tells whether the result is kept in another form than it had.
func (c *call) Masked() bool { return c.CallNote.Masked }

func (g guards) Sink() run.Sink {
	g.s.main.Sink = g.Guards.Sink()
	g.s.main.end = make(chan struct{})
	return g.s.main
}

// sink is the target's, which ends where the recording was cut by a guard that
// is the same now: what made it cut is not kept.
type sink struct {
	run.Sink
	s       *session
	release func(string)
	pushed  int
	cut     atomic.Bool
	end     chan struct{}
}

// Push drops what the workflow adds behind a cut in what models said.
func (k *sink) Push(text string) {
	if k.s.record.Stop != nil && !k.s.record.Own && k.pushed >= k.s.stream.all() {
		return
	}
	k.pushed += len(text)
	k.Sink.Push(text)
}

func (k *sink) Cut() <-chan struct{} {
	if k.cut.Load() {
		return k.end
	}
	return k.Sink.Cut()
}

// cutHere ends the answer, unless the target has. False: nobody knows how it
// would have gone on.
func (k *sink) cutHere() bool {
	if k.cut.Load() || k.s.record.Stop == nil {
		return true
	}
	if !k.s.stops() {
		// The guards may have cut before this place.
		if k.Sink.Sync(k.s.ctx) == nil {
			select {
			case <-k.Sink.Cut():
				return true
			default:
			}
		}
		k.s.halt(k.s.uncut())
		return false
	}
	k.cut.Store(true)
	close(k.end)
	return true
}

func (k *sink) Finish(ctx context.Context) run.OutputVerdict {
	stop := k.s.record.Stop
	v := k.Sink.Finish(ctx)
	if v.Cut || stop == nil || k.s.isHalted() || !k.cut.Load() && k.s.record.Own {
		return v
	}
	if !k.cut.Load() && !k.s.stops() {
		k.s.doubt(k.s.uncut())
		k.s.endless = true
		return v
	}
	k.release(stop.Notice)
	v.Cut, v.Stop = true, &run.Stop{At: k.pushed, Notice: stop.Notice, Label: stop.Label, Guard: stop.Guard}
	return v
}

// stops tells whether who cut the recorded answer would do it again.
func (s *session) stops() bool {
	if guard := s.record.Stop.Guard; guard != "" {
		return s.same(guard)
	}
	return s.unchanged(run.StageOutput)
}

func (s *session) uncut() Unanswered {
	stop := s.record.Stop
	what := "the text behind the cut"
	if stop.Label != "" {
		what += " " + stop.Label
	}
	return Unanswered{Stage: StageOutput, Was: WasBlock, What: what, Why: "it is not kept, and who cut it is another one now: " + named(stop.Guard)}
}

func named(guard string) string {
	if guard == "" {
		return "the limit of an answer's length"
	}
	return guard
}

func wasBlock(blocked bool) string {
	if blocked {
		return WasBlock
	}
	return WasAllow
}

// tools are those that the recorded run offered.
type tools struct{ s *session }

func (t tools) List() []run.Tool {
	out := make([]run.Tool, len(t.s.record.Tools))
	for i, n := range t.s.record.Tools {
		out[i] = run.Tool{Name: n.Name, StepName: n.StepName, ReadOnly: n.ReadOnly}
	}
	return out
}

func (t tools) Parse(name, arguments string) (run.Tool, abi.Raw, error) {
	c := t.s.find(name, arguments)
	if c == nil {
		t.s.halt(Unanswered{Stage: StageTools, Was: WasAllow, What: t.shown(name), Why: "this call was never made"})
	} else if c.Why == run.WhyUnreadable {
		return run.Tool{}, nil, refusal(c)
	}
	for _, tool := range t.List() {
		if tool.Name == name {
			return tool, abi.Raw(arguments), nil
		}
	}
	return run.Tool{}, nil, fault.New(fault.Denied, "this tool is not available")
}

// shown is a tool's name if it is one, and not a text of a model's.
func (t tools) shown(name string) string {
	for _, tool := range t.s.record.Tools {
		if tool.Name == name {
			return name
		}
	}
	return "a tool that is not offered"
}

func refusal(c *call) error { return fault.New(fault.Denied, "%s", c.reason()) }

// reason is why a call was refused.
func (c *call) reason() string {
	return strings.TrimPrefix(c.HeardResult.Text, "Tool call refused by policy: ")
}

func (t tools) Validate(string, abi.Raw) error {
	if c := t.s.now(); c != nil && c.Why == run.WhySchema {
		return refusal(c)
	}
	return nil
}

func (t tools) Call(ctx context.Context, name string, _ abi.Raw) (string, bool, error) {
	c := t.s.now()
	if c == nil || t.s.isHalted() {
		return "", false, t.s.wait(ctx)
	}
	if c.Step == "" {
		t.s.halt(Unanswered{Stage: StageTools, Was: wasBlock(c.Refused), What: name, Why: "the call was not performed then"})
		return "", false, t.s.wait(ctx)
	}
	text, failed := c.text()
	return text, failed, nil
}

// people are the target's; what they authorised has been carried out.
type people struct {
	run.People
	s *session
}

func (p people) Declared() []run.Tool {
	if p.s.rec.Caller {
		return nil
	}
	return p.People.Declared()
}

func (p people) Propose(name string, arguments abi.Raw) (run.Proposal, error) {
	c := p.s.find(name, string(arguments))
	switch {
	case c == nil:
		p.s.halt(Unanswered{Stage: StageTools, Was: WasAllow, What: name, Why: "this change was never proposed"})
	case c.HeardCall.Masked && (c.Why == run.WhyProposal || c.Why == run.WhyUnreadable):
		var said struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal([]byte(c.HeardResult.Text), &said)
		return nil, fault.Coded(fault.Denied, run.CodeProposal, "%s", said.Message)
	}
	return p.People.Propose(name, arguments)
}

func (p people) Execute(context.Context, abi.Raw, bool) abi.Raw {
	if c := p.s.now(); c != nil && c.Step != "" && c.output != nil {
		return c.output // of one that was withheld, what stands in its place
	}
	p.s.halt(Unanswered{Stage: StageTools, Was: WasBlock, What: "a change", Why: "it was not carried out then"})
	return abi.Raw(`{}`)
}
