// Package run is weir's engine: one loop for every wire contract, workflow and
// policy. A run is a log of events; each event goes to the workflow plugin,
// whose answer is the next action; the engine performs the action and feeds
// what came of it back as the next event.
//
//	           ┌──────────── event ◄───────────┐
//	           ▼                               │
//	Run ─► screen ─► workflow.step ─► action ─► perform: model │ tools │ ask
//	           │                               │     └────► parked: a person
//	           ▼                               ▼            decides, [Keeper]
//	        blocked                    answer, finish, fail ─► ended
//
// The engine holds no rule about what a good answer is; it holds every rule
// about what may happen: the budgets, the order of checks, what reaches the
// client, what reaches the log.
package run

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
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
	// People is nil where nobody can be asked.
	People People
	// Keeper keeps the runs that wait for a person; nil where nobody is asked.
	Keeper *Keeper
	// Declare makes the registry of the tools that a caller performs; its Call
	// is never used. Nil where callers perform none.
	Declare func([]Tool) (Tools, error)
	// Pauses is how a person on the side of such a caller is asked. Nothing is
	// declared there. Nil where nobody can be.
	Pauses People
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

// Outcome is where [Engine.Run] and [Engine.Resume] leave a run.
type Outcome struct {
	State State // terminal, or AwaitingApproval
	// Parked is what a waiting run leaves behind, which is all that is left.
	Parked *Parked
	// Lost: somebody else has taken the run over. Nothing more is shown.
	Lost bool
	// unwritten is the log of a run that others know of and whose end the store
	// has not taken yet.
	unwritten *journal
}

// Parked is a run that waits for a person. It holds no plugin, no connection
// and no goroutine.
type Parked struct {
	Interaction
	Generation string
	Info       Info
	Position   int64 // of its log
}

// Run performs one run until it has ended or waits for a person. Cancelling
// ctx means that the client has left: the model stream and the tool call end
// at once and nothing more is shown. With a cause of code [CodeDrain] the
// client is still there: the run fails, and what was decided is shown.
func (e *Engine) Run(ctx context.Context, req Request, out Observer) Outcome {
	policy, release := e.deps.Policy()
	defer release()
	req.Turns = e.opts.Trim(req.Turns)
	r := e.begin(ctx, req, policy, out)
	defer r.stop()
	r.attach(ctx)
	r.out.Started(r.info)
	if r.unusable != nil {
		return r.end(*r.failed(r.unusable))
	}
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
	req       Request
	info      Info
	stamped   abi.Call // clock and seed of the guards' calls
	policy    Policy
	guards    Guards
	sink      Sink // nil until the input passed
	thread    thread
	budget    budget
	out       *shown
	given     *given       // what a person has answered; nil: nothing is answered
	sent      *sentPayload // the call in progress, if the log has it
	unsettled *sentPayload // of a process that died in it

	tools    Tools     // of the host, or those that the caller performs
	people   People    // nil where nobody can be asked
	past     *Exchange // of a caller's history, whose calls are being taken in
	unusable error     // the caller's tools cannot be offered

	client context.Context // ends when the client leaves
	leave  context.CancelCauseFunc
	ctx    context.Context // ends with client, at a drain, and when the running time is over
	cancel context.CancelCauseFunc
	began  time.Time
	before time.Duration // running time before the park
	timer  *time.Timer
	follow func() bool // stops following the caller's context
	span   *telemetry.RunSpan
	unlive func() // no follower reads it any more

	note   note     // of the event that comes next
	judged CallNote // of the call that is being performed
	heard  []input  // every event so far
	masked bool     // the display form of the conversation is another text

	verdict OutputVerdict // of the sink, when it has finished

	asksMu sync.Mutex
	asks   []AskNote

	state       State
	budgetTold  bool // the workflow knows that it has no model call left
	modelFailed bool // the last event was a provider's failure
}

// ending says how a run ended. Failure counts only with state Failed.
type ending struct {
	state   State
	failure Failure
	stopped bool   // the answer was cut
	reason  string // of a failure, in our own words; what a plugin says is in no log
	parked  *Parked
	lost    bool
}

// errTime ends a run whose running time is over.
var errTime = fault.Coded(fault.Limit, "timeout", "the run's time is over")

// begin starts a new run; it does not follow ctx before attach.
func (e *Engine) begin(ctx context.Context, req Request, policy Policy, out Observer) *run {
	r := &run{Engine: e, req: req, policy: policy, state: Received, stamped: e.stamp()}
	ctx = r.open(ctx, req.Traceparent)
	r.info = Info{RunID: req.RunID, StepID: e.opts.NewID(), TraceID: telemetry.TraceID(ctx),
		RequestID: req.RequestID, Generation: policy.Generation(), Variant: req.Variant}
	j := &journal{run: req.RunID, generation: policy.Generation(), epoch: 1, now: e.opts.Now, digests: e.opts.Digests, reached: e.opts.Reached}
	r.equip(out, j, "")
	r.out.record(RecordRunStarted, startedPayload{
		Principal: req.Principal.UserID, Pseudonym: req.Principal.Pseudonym, Roles: req.Principal.Roles,
		RequestID: req.RequestID, Source: req.RequestIDSource, Traceparent: telemetry.Traceparent(ctx),
		StepID: r.info.StepID, TraceID: r.info.TraceID, Generation: policy.Generation(), Variant: req.Variant, Contract: req.Contract,
		Call: r.stamped, Caller: recordedCaller(req.Caller),
	}, true)
	r.out.record(RecordRequest, requestPayload{Turns: req.Turns}, false)
	return r
}

// open makes the run's contexts and its span, which joins a trace.
func (r *run) open(ctx context.Context, traceparent string) context.Context {
	ctx, r.span = r.opts.Tracer.StartRun(ctx, telemetry.RunStart{
		Contract: r.req.Contract, Name: r.opts.Name, RequestID: r.req.RequestID, RequestIDSource: r.req.RequestIDSource, RunID: r.req.RunID,
		Roles: r.req.Principal.Roles, Pseudonym: r.req.Principal.Pseudonym,
		Generation: r.policy.Generation(), Variant: r.req.Variant, Traceparent: traceparent, Before: r.before,
	})
	r.client, r.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	r.ctx, r.cancel = context.WithCancelCause(r.client)
	return ctx
}

// equip gives the run its budget, its time and its guards.
func (r *run) equip(out Observer, j *journal, released string) {
	r.began = r.opts.Now()
	r.timer = time.AfterFunc(max(r.opts.Timeout-r.before, time.Millisecond), func() { r.cancel(errTime) })
	r.follow = func() bool { return true }
	r.thread = thread{policy: r.policy}
	r.budget = budget{max: r.opts.MaxToolCalls}
	r.out = newShown(out, r.span, j, r.opts, released)
	r.choose()
	r.unlive = r.deps.Keeper.live(r.req.RunID, r.req.Principal.UserID, r.info, r.out)
	r.guards = r.policy.Guards(r.client, GuardSession{
		Roles: r.req.Principal.Roles, Call: r.stamped, Ask: r.ask, Release: r.out.Text, People: r.people != nil,
	})
}

// attach ends the run when the client leaves, from now on.
func (r *run) attach(ctx context.Context) {
	r.follow = context.AfterFunc(ctx, func() { r.interrupt(context.Cause(ctx)) })
}

// stop ends what the run holds; it is called once, at the very end.
func (r *run) stop() {
	r.follow()
	r.timer.Stop()
	r.unlive()
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
	turns := r.redactedTurns()
	if r.span != nil {
		redacted := r.redactedLatest(turns)
		r.span.Question(redacted)
		stage.End(verdict.Decision, redacted, "")
	}
	r.masked = !slices.Equal(turns, r.req.Turns)
	r.out.record(RecordQuestion, requestPayload{Turns: turns}, true)
	r.sink = r.guards.Sink()
	return nil
}

// redactedTurns is the conversation as people may read it afterwards.
func (r *run) redactedTurns() []abi.Turn {
	texts, err := json.Marshal(textsOf(r.req.Turns))
	if err != nil {
		return nil
	}
	var shown []string
	if json.Unmarshal(r.guards.Display(r.ctx, texts), &shown) != nil || len(shown) != len(r.req.Turns) {
		return nil
	}
	turns := slices.Clone(r.req.Turns)
	for i := range turns {
		turns[i].Content = shown[i]
	}
	return turns
}

// redactedLatest is the question out of the redacted conversation, or redacted
// alone where that could not be had.
func (r *run) redactedLatest(turns []abi.Turn) string {
	if n := len(turns); n > 0 {
		return turns[n-1].Content
	}
	return r.redacted(r.req.latest())
}

func textsOf(turns []abi.Turn) []string {
	texts := make([]string, len(turns))
	for i, t := range turns {
		texts[i] = t.Content
	}
	return texts
}

// redacted returns text as the output guards let people see it.
func (r *run) redacted(text string) string {
	return stringOf(r.guards.Display(r.ctx, jsonString(text)))
}

func (r *run) startEvent() abi.Event {
	tools := r.offered()
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
	in := input{Call: r.stamp(), Event: event, Note: r.note}
	r.note = note{}
	r.hear(in)
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
	if fault.Of(err) == fault.Conflict {
		return &ending{lost: true}
	}
	if cause := context.Cause(r.ctx); cause != nil {
		err = cause
	}
	r.opts.Logger.WarnContext(r.ctx, "run failed", "run", r.req.RunID, "kind", fault.Of(err).String(), "error", err)
	e := &ending{state: Failed, failure: FailureRun}
	if r.modelFailed {
		e.failure = FailureModel
	}
	return e
}

// end shows how the run ended and writes its log. What was still undecided is
// decided first, also after a failure. A run that waits for a person is left
// as it is.
func (r *run) end(e ending) Outcome {
	if e.parked != nil || e.lost {
		return r.pause(e)
	}
	if r.client.Err() != nil {
		e.state = Cancelled
	}
	if e.state != Cancelled && r.sink != nil {
		r.finish(&e)
	}
	r.enter(e.state)
	if r.state != Cancelled && !r.opts.Digests {
		r.out.record(RecordRecording, r.recording(), true)
	}
	r.out.record(RecordRunEnded, endedPayload{State: r.state, Failure: e.failure, Stopped: e.stopped, Reason: e.reason}, true)
	r.span.End(string(r.state), failureCode(e))
	o := Outcome{State: r.state}
	first := r.out.journal.known // or a crash would bring back what the client saw end
	if first && !r.write() {
		o.unwritten = r.out.journal
	}
	r.show(e)
	if !first {
		written := r.unlive
		r.unlive = func() {}
		r.deps.Keeper.later(func() {
			defer written() // until then followers read it here
			r.write()
		})
	}
	return o
}

// write writes the rest of the log and reports whether it is there. Nobody waits
// for it, so a failure is logged and changes nothing for the client.
func (r *run) write() bool {
	err := r.out.journal.close(r.client, r.deps.Log, r.opts.NewID)
	if err != nil {
		r.opts.Logger.ErrorContext(r.client, "run log not written", "run", r.req.RunID, "error", err)
	}
	return err == nil
}

func (r *run) show(e ending) {
	switch r.state {
	case Cancelled:
	case Failed:
		r.out.Failed(e.failure)
		fallthrough
	default:
		r.out.Ended(r.info)
	}
}

// pause leaves a run that goes on later, or elsewhere.
func (r *run) pause(e ending) Outcome {
	r.enter(AwaitingApproval)
	r.span.End(string(AwaitingApproval), "")
	return Outcome{State: AwaitingApproval, Parked: e.parked, Lost: e.lost}
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
	r.verdict = verdict
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
