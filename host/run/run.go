// Package run is weir's engine: one loop for every wire contract, workflow and
// policy. A run is a log of events; each event goes to the workflow plugin,
// whose answer is the next action; the engine performs the action and feeds
// what came of it back as the next event.
//
//	           ┌──────────── event ◄───────────┐
//	           ▼                               │
//	Run ─► screen ─► workflow.step ─► action ─► perform: model │ tools │ ask
//	           │                               │
//	           ▼                               ▼
//	        blocked                    answer, finish, fail ─► ended
//
// The engine holds no rule about what a good answer is; it holds every rule
// about what may happen: the budgets, the order of checks, what reaches the
// client, what reaches the log.
package run

import (
	"context"
	"strconv"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/telemetry"
)

// Engine performs runs. It is safe for concurrent use.
type Engine struct {
	deps Deps
	opts Options
}

// Deps are the parts that an engine works with; all are required.
type Deps struct {
	// Policy returns the current generation and what to call when the run that
	// took it has ended.
	Policy func() (Policy, func())
	Model  Model
	Tools  Tools
	Log    Log
}

// New returns an engine.
func New(deps Deps, opts Options) (*Engine, error) {
	if deps.Policy == nil || deps.Model == nil || deps.Tools == nil || deps.Log == nil {
		return nil, fault.New(fault.Internal, "engine: a dependency is missing")
	}
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Engine{deps: deps, opts: opts}, nil
}

// CodeDrain marks the cause of a context that ends because the host stops.
const CodeDrain = "drain"

// Run performs one run to its end and returns the terminal state. Cancelling
// ctx means that the client has left: the model stream and the tool call end
// at once and nothing more is shown. With a cause of code [CodeDrain] the
// client is still there: the run fails, and what was decided is shown.
func (e *Engine) Run(ctx context.Context, req Request, out Observer) State {
	policy, release := e.deps.Policy()
	defer release()
	r := e.begin(ctx, req, policy, out)
	defer r.stop()
	r.out.Started(r.info)
	r.enter(ScreeningInput)
	end := r.screen()
	if end == nil {
		r.enter(Running)
		end = r.advance(r.startEvent())
	}
	return r.end(*end)
}

// advance is the loop: an event to the workflow, its action performed, what
// came of it as the next event.
func (r *run) advance(event abi.Event) *ending {
	for {
		action, err := r.step(event)
		if err != nil {
			return r.failed(err)
		}
		next, end := r.perform(action)
		if end != nil {
			return end
		}
		event = next
	}
}

// run is one run in progress. Everything but sink releases happens in the
// goroutine of [Engine.Run].
type run struct {
	*Engine
	req    Request
	info   Info
	policy Policy
	guards Guards
	sink   Sink // nil until the input passed
	thread thread
	budget budget
	out    *shown

	client context.Context // ends when the client leaves
	leave  context.CancelCauseFunc
	ctx    context.Context // ends with client, at a drain, and when the running time is over
	cancel context.CancelCauseFunc
	timer  *time.Timer
	follow func() bool // stops following the caller's context
	span   *telemetry.RunSpan

	state       State
	budgetTold  bool // the workflow knows that it has no model call left
	modelFailed bool // the last event was a provider's failure
}

// ending says how a run ended. Failure counts only with state Failed.
type ending struct {
	state   State
	failure Failure
	stopped bool // the answer was cut
}

// errTime ends a run whose running time is over.
var errTime = fault.Coded(fault.Limit, "timeout", "the run's time is over")

func (e *Engine) begin(ctx context.Context, req Request, policy Policy, out Observer) *run {
	r := &run{Engine: e, req: req, policy: policy, state: Received}
	ctx, r.span = e.opts.Tracer.StartRun(ctx, telemetry.RunStart{
		Contract: req.Contract, Name: e.opts.Name, RequestID: req.RequestID, RequestIDSource: req.RequestIDSource, RunID: req.RunID,
		Roles: req.Principal.Roles, Pseudonym: req.Principal.Pseudonym,
		Generation: policy.Generation(), Traceparent: req.Traceparent,
	})
	r.client, r.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	r.ctx, r.cancel = context.WithCancelCause(r.client)
	r.follow = context.AfterFunc(ctx, func() { r.interrupt(context.Cause(ctx)) })
	r.timer = time.AfterFunc(e.opts.Timeout, func() { r.cancel(errTime) })
	r.info = Info{RunID: req.RunID, StepID: e.opts.NewID(), TraceID: telemetry.TraceID(ctx),
		RequestID: req.RequestID, Generation: policy.Generation()}
	r.thread = thread{policy: policy}
	r.budget = budget{max: e.opts.MaxToolCalls}
	call := e.stamp()
	r.out = newShown(out, r.span, req, call, policy.Generation(), e.opts)
	r.guards = policy.Guards(r.client, GuardSession{
		Roles: req.Principal.Roles, Call: call, Ask: r.ask, Release: r.out.Text,
	})
	return r
}

// stop ends what the run holds; it is called once, at the very end.
func (r *run) stop() {
	r.follow()
	r.timer.Stop()
	r.leave(context.Canceled)
}

// drainGrace is how long a run may still decide and show what it holds when
// the host stops.
const drainGrace = time.Second

// interrupt ends the run because the caller's context has ended.
func (r *run) interrupt(cause error) {
	if fault.CodeOf(cause) != CodeDrain {
		r.leave(cause)
		return
	}
	r.cancel(cause)
	time.AfterFunc(drainGrace, func() { r.leave(cause) })
}

// stamp returns a clock and a seed for plugins.
func (e *Engine) stamp() abi.Call {
	return abi.Call{Now: e.opts.Now().UnixMilli(), Seed: strconv.FormatUint(e.opts.Seed(), 10)}
}

// enter moves the run on. An illegal move is a bug: it is logged and the state
// stays.
func (r *run) enter(next State) {
	if !r.state.May(next) {
		r.opts.Logger.ErrorContext(r.ctx, "illegal state of a run", "run", r.req.RunID, "from", string(r.state), "to", string(next))
		return
	}
	r.state = next
}

// screen runs the input guards. It returns nil when the run may go on.
func (r *run) screen() *ending {
	latest := r.req.latest()
	id := r.opts.NewID()
	r.out.Step(Step{Kind: StepFunction, ID: id, Name: r.opts.InputDecision, Input: questionInput(latest)})
	ctx, stage := r.opts.Tracer.StartInputGuard(r.ctx, latest, r.deps.Model.Name(abi.ModelGuard))
	verdict, err := r.guards.CheckInput(ctx, r.req.Turns)
	if err != nil {
		stage.End(nil, "", "failed")
		return r.failed(err)
	}
	r.out.decide(Step{Kind: StepFunction, End: true, ID: id, Name: r.opts.InputDecision,
		Input: abi.Raw("{}"), Output: verdict.Decision})
	if verdict.Blocked {
		r.span.QuestionBlocked(latest)
		stage.End(verdict.Decision, "", "")
		r.out.Text(r.redacted(verdict.Message))
		return &ending{state: Blocked}
	}
	if r.span != nil {
		redacted := r.redacted(latest)
		r.span.Question(redacted)
		stage.End(verdict.Decision, redacted, "")
	}
	r.sink = r.guards.Sink()
	return nil
}

// redacted returns text as the output guards let people see it.
func (r *run) redacted(text string) string {
	return stringOf(r.guards.Display(r.ctx, jsonString(text)))
}

func (r *run) startEvent() abi.Event {
	tools := r.deps.Tools.List()
	infos := make([]abi.ToolInfo, len(tools))
	for i, t := range tools {
		infos[i] = abi.ToolInfo{Name: t.Name, Description: t.Description}
	}
	return abi.Event{Type: abi.EventStart, Turns: r.req.Turns, Tools: infos}
}

// step records an event, gives it to the workflow and records the action.
func (r *run) step(event abi.Event) (abi.Action, error) {
	if err := r.ctx.Err(); err != nil {
		return abi.Action{}, err
	}
	if !r.budget.takeStep() {
		return abi.Action{}, fault.New(fault.Plugin, "workflow %s: no end after %d steps", r.policy.Workflow(), r.budget.steps-1)
	}
	event.ToolCallsLeft, event.ModelCallsLeft = r.budget.toolCallsLeft(), r.budget.modelCallsLeft()
	r.modelFailed = event.Type == abi.EventModelFailed && event.Code != abi.FailBudget
	in := input{Call: r.stamp(), Event: event}
	r.out.record(RecordEvent, in, false)
	action, err := r.thread.step(r.ctx, in)
	if err == nil {
		r.out.record(RecordAction, action, false)
	}
	return action, err
}

// failed tells a client that left from a run that could not go on.
func (r *run) failed(err error) *ending {
	if r.client.Err() != nil {
		return &ending{state: Cancelled}
	}
	if cause := context.Cause(r.ctx); cause != nil {
		err = cause
	}
	r.opts.Logger.WarnContext(r.ctx, "run failed", "run", r.req.RunID, "kind", fault.Of(err).String(), "error", err)
	if r.modelFailed {
		return &ending{state: Failed, failure: FailureModel}
	}
	return &ending{state: Failed, failure: FailureRun}
}

// end shows how the run ended and writes its log. What was still undecided is
// decided first, also after a failure.
func (r *run) end(e ending) State {
	if r.client.Err() != nil {
		e.state = Cancelled
	}
	if e.state != Cancelled && r.sink != nil {
		r.finish(&e)
	}
	r.enter(e.state)
	switch r.state {
	case Cancelled:
	case Failed:
		r.out.Failed(e.failure)
		fallthrough
	default:
		r.out.Ended(r.info)
	}
	r.out.record(RecordRunEnded, map[string]any{"state": r.state, "stopped": e.stopped}, true)
	r.span.End(string(r.state), failureCode(e))
	r.appendLog()
	return r.state
}

// finish decides the rest of the answer and shows the output decision.
func (r *run) finish(e *ending) {
	ctx, stage := r.opts.Tracer.StartOutputGuard(r.client)
	verdict := r.sink.Finish(ctx)
	stage.End(verdict.Decision, verdict.RawChars)
	if r.client.Err() != nil {
		e.state = Cancelled
		return
	}
	e.stopped = verdict.Cut
	r.out.decide(Step{Kind: StepFunction, End: true, ID: r.opts.NewID(), Name: r.opts.OutputDecision,
		Input:  abi.Raw(`{"raw_output_length":` + strconv.Itoa(verdict.RawChars) + `}`),
		Output: verdict.Decision})
}

func failureCode(e ending) string {
	switch {
	case e.state != Failed:
		return ""
	case e.failure == FailureModel:
		return "model"
	default:
		return "run"
	}
}
