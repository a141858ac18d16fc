package run

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// past is what the log of a parked run tells.
type past struct {
	started startedPayload
	turns   []abi.Turn
	inputs  []input      // what the workflow was given, in order
	actions []abi.Action // what it answered; the last one is the one in progress
	said    []string     // everything that went into the sink, in order
	results []abi.ToolResult
	notes   []CallNote     // of the results
	calls   map[int]judged // of the action in progress, where the caller performs them
	parked  parkedPayload
	given   *given
	sent    *sentPayload   // without a result
	opened  *openedPayload // the last question
	open    bool           // and nobody has answered it
	wait    [2]time.Time   // since when it was, and until when
	ended   *endedPayload

	released string
}

// fold reads a run's log.
func fold(ctx context.Context, log Log, j *journal) (*past, error) {
	p := &past{}
	for i := range j.entries {
		if err := p.take(ctx, log, j, i); err != nil {
			return nil, err
		}
	}
	if p.started.StepID == "" {
		return nil, fault.New(fault.Internal, "run %s: the log does not begin with the run's start", j.run)
	}
	return p, nil
}

func (p *past) take(ctx context.Context, log Log, j *journal, i int) error {
	load := func(into any) error { return j.load(ctx, log, i, into) }
	switch j.entries[i].Kind {
	case RecordRunStarted:
		return load(&p.started)
	case RecordRequest:
		var r requestPayload
		err := load(&r)
		p.turns = r.Turns
		return err
	case RecordEvent:
		return p.takeEvent(load)
	case RecordAction:
		var a abi.Action
		err := load(&a)
		p.actions = append(p.actions, a)
		return err
	case RecordSaid:
		var said saidPayload
		err := load(&said)
		p.said = append(p.said, said.Text)
		return err
	case RecordReleased:
		var r releasedPayload
		err := load(&r)
		p.released += r.Text
		return err
	case RecordResult:
		var r resultPayload
		err := load(&r)
		p.results, p.notes, p.given, p.sent = append(p.results, r.Result), append(p.notes, r.Note), nil, nil
		p.judge(r.Index, judged{result: &r.Result, note: r.Note})
		return err
	case RecordCallSent:
		p.sent = new(sentPayload)
		return load(p.sent)
	case RecordCallProposed:
		var c proposedPayload
		err := load(&c)
		p.given = nil
		p.judge(c.Index, judged{proposed: &c, note: c.Note})
		return err
	case RecordParked:
		return load(&p.parked)
	case RecordInteractionOpened:
		p.wait[0] = time.UnixMilli(j.entries[i].Time)
		return p.takeOpened(load)
	case RecordInteractionAnswered:
		var r resolvedPayload
		err := load(&r)
		p.resolve(r.Answer, j.entries[i].Time)
		return err
	case RecordInteractionExpired:
		p.resolve(expired, j.entries[i].Time)
	case RecordInteractionCancelled:
		p.resolve(nil, j.entries[i].Time)
	case RecordActionClaims:
		var c claimsPayload
		err := load(&c)
		p.gate().claims = c.Claims
		return err
	case RecordActionSettled:
		var s settledPayload
		err := load(&s)
		p.gate().result = s.Result
		return err
	case RecordRunEnded:
		p.ended = new(endedPayload)
		return load(p.ended)
	}
	return nil
}

func (p *past) takeEvent(load func(any) error) error {
	var in input
	if err := load(&in); err != nil {
		return err
	}
	if n := len(p.actions); n > 0 && in.Event.Type == abi.EventModel {
		if req := p.actions[n-1].Request; req != nil && req.Stream {
			p.said = append(p.said, in.Event.Text)
		}
	}
	p.inputs = append(p.inputs, in)
	p.results, p.notes, p.calls, p.given, p.sent = nil, nil, nil, nil, nil
	return nil
}

func (p *past) takeOpened(load func(any) error) error {
	p.opened, p.open = new(openedPayload), true
	if err := load(p.opened); err != nil {
		return err
	}
	g := p.gate()
	g.gate, g.step = p.opened.Gate, p.opened.Step
	g.shown = append(g.shown, p.opened.Shown)
	return nil
}

func (p *past) resolve(answer abi.Raw, at int64) {
	p.open, p.wait[1] = false, time.UnixMilli(at)
	g := p.gate()
	g.answers = append(g.answers, answer)
}

func (p *past) gate() *given {
	if p.given == nil {
		p.given = &given{}
	}
	return p.given
}

// interaction is the question that waits.
func (p *past) interaction(run string) Interaction {
	return Interaction{Run: run, ID: p.opened.ID, Kind: p.opened.Kind, Prompt: p.opened.Prompt,
		Owner: p.opened.Owner, Expires: time.UnixMilli(p.opened.Expires)}
}

// Resume takes over a run whose question is answered and goes on with it as
// [Engine.Run] does. The engine is that of the run's own generation.
// Outcome.Lost means that somebody else was first, or that the question is open.
// An approved change is executed whether the client is there or not; only then
// does the end of ctx end the run.
func (e *Engine) Resume(ctx context.Context, id, replica string, out Observer) (Outcome, error) {
	return e.takeOver(ctx, id, replica, "", out)
}

// takeOver is Resume also for a run that the dead replica had gone on with.
func (e *Engine) takeOver(ctx context.Context, id, replica, dead string, out Observer) (Outcome, error) {
	reading := context.WithoutCancel(ctx) // a client that leaves ends no run that it has just let go on
	j, err := read(reading, e.deps.Log, id)
	if err != nil {
		return Outcome{}, err
	}
	if j.hasEnded() { // whoever wrote that may have died before it was closed
		return Outcome{Lost: true}, j.close(reading, e.deps.Log, e.opts.NewID)
	}
	p, err := fold(reading, e.deps.Log, j)
	switch {
	case fault.Of(err) == fault.Gone && ended(reading, e.deps.Log, id): // somebody else has just dropped what was to be read
		return Outcome{Lost: true}, nil
	case err != nil:
		return Outcome{}, err
	case p.open:
		return Outcome{Lost: true}, nil
	}
	if by, err := j.claimant(reading, e.deps.Log); err != nil || by != "" && by != replica && by != dead {
		return Outcome{Lost: true}, err
	}
	j.now, j.reached, j.digests = e.opts.Now, e.opts.Reached, e.opts.Digests
	j.epoch++
	if err := j.add(RecordRunClaimed, claimedPayload{Replica: replica}, true); err != nil {
		return Outcome{}, err
	}
	if err := j.flush(ctx, e.deps.Log, e.opts.NewID, false); err != nil {
		if taken(err) {
			return Outcome{Lost: true}, nil
		}
		return Outcome{}, err
	}
	policy, release := e.deps.Policy()
	defer release()
	r := e.revive(ctx, p, policy, j, out)
	defer r.stop()
	return r.end(*r.goOn(ctx, p)), nil
}

// revive is begin for a run that has a past.
func (e *Engine) revive(ctx context.Context, p *past, policy Policy, j *journal, out Observer) *run {
	s := &p.started
	r := &run{Engine: e, policy: policy, state: AwaitingApproval, stamped: s.Call, given: p.given,
		before: time.Duration(p.parked.ElapsedMS) * time.Millisecond, budgetTold: p.parked.Told,
		req: Request{Principal: Principal{UserID: s.Principal, Pseudonym: s.Pseudonym, Roles: s.Roles},
			RequestID: s.RequestID, RequestIDSource: s.Source, Contract: s.Contract, Variant: s.Variant, RunID: j.run, Turns: p.turns, Caller: s.Caller.caller()},
		info: Info{RunID: j.run, StepID: s.StepID, TraceID: s.TraceID, RequestID: s.RequestID, Generation: s.Generation, Variant: s.Variant},
	}
	r.unsettled = p.sent
	r.open(ctx, s.Traceparent)
	r.waited(p)
	r.equip(out, j, p.released)
	r.asks = p.parked.Asks
	r.budget.toolCalls, r.budget.modelCalls, r.budget.steps = p.parked.ToolCalls, p.parked.ModelCalls, p.parked.Steps
	return r
}

// waited records how long the question was open that a person has answered.
func (r *run) waited(p *past) {
	if p.opened == nil || p.opened.Kind == KindCalls || p.given == nil {
		return
	}
	outcome := p.given.last().Outcome
	switch {
	case outcome == abi.HumanExpired:
		outcome = "timed_out"
	case outcome == abi.HumanAnswered && p.opened.Kind != abi.AskText:
		outcome = "selected"
	}
	r.opts.Tracer.Waited(r.client, p.opened.ID, p.opened.Kind, outcome, p.wait[0], p.wait[1])
}

// goOn brings the run back to where it was and on from there.
func (r *run) goOn(ctx context.Context, p *past) *ending {
	if p.given == nil || p.given.gate != gateAction {
		r.attach(ctx) // else only when the change is settled
	}
	r.enter(Running)
	action, err := abi.Action{}, r.unusable
	if err == nil {
		action, err = r.refold(p)
	}
	if err == nil {
		err = r.resay(p)
	}
	if err != nil {
		return r.failed(err)
	}
	var event abi.Event
	var end *ending
	switch {
	case action.Type == abi.ActionTools && r.req.Caller != nil:
		event, end = r.proposeTools(action.Calls, p.calls)
	case action.Type == abi.ActionTools:
		r.note.Calls = p.notes
		event, end = r.performTools(action.Calls, p.results)
	default:
		event, end = r.perform(action)
	}
	if p.given != nil && p.given.gate == gateAction {
		r.attach(ctx)
	}
	if end == nil {
		end = r.advance(event)
	}
	return end
}

// refold gives the workflow its events again. It must answer as it did.
func (r *run) refold(p *past) (last abi.Action, err error) {
	if len(p.actions) == 0 || len(p.actions) != len(p.inputs) {
		return last, fault.New(fault.Internal, "the log has %d events and %d actions", len(p.inputs), len(p.actions))
	}
	for i, in := range p.inputs {
		r.hear(in)
		if last, err = r.thread.step(r.ctx, in); err != nil {
			return last, err
		}
		if !sameAction(last, p.actions[i]) {
			return last, fault.New(fault.Plugin, "workflow %s: step %d of a resumed run is another one than before", r.policy.Workflow(), i+1)
		}
	}
	return last, nil
}

func sameAction(a, b abi.Action) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && slices.Equal(x, y)
}

// resay gives the sink again what went into it. What it releases must begin
// with what the client has.
func (r *run) resay(p *past) error {
	r.sink, r.masked = r.guards.Sink(), !slices.Equal(r.redactedTurns(), r.req.Turns)
	for _, text := range p.said {
		r.sink.Push(text)
	}
	if err := r.sink.Sync(r.ctx); err != nil {
		return err
	}
	if r.out.hasDiverged() {
		return fault.New(fault.Plugin, "the guards of a resumed run release another text than before")
	}
	return nil
}
