// Package replay folds recorded runs through another generation and says what
// that changes: who is blocked now and was not, what is masked, which calls are
// made, what a person is asked, what the client reads.
//
//	recording ─► engine with the other policy ─► its own recording ─┬─► changes
//	    │           ▲ replies, results, answers                     │
//	    └───────────┴───────────────────────────────────────────────┘
//
// The engine is the real one and so are the plugins; the model, the tools and
// the people are the recording. What it cannot tell is unanswerable, which is
// counted and never invented: a model call that nobody made, a result of a call
// that was not performed, the text behind a mask or a cut where who made it is
// another one now. A run that gets to such a question ends there.
package replay

import (
	"context"
	"strconv"
	"time"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/run"
)

// Target is the generation that runs are folded through. It must allow
// concurrent use; nothing of it is changed.
type Target struct {
	Policy run.Policy
	// People is what a person may authorise; nil: nobody can be asked. Its
	// Execute is never called. Pauses is the same for callers that perform the
	// tools.
	People, Pauses run.People
	// AsThen asks people only in runs in which they could be asked then, for
	// those who do not know whether they could be now.
	AsThen bool
	// Options are the engine's; clock, seed, ids, log and tracer are not used.
	Options run.Options
	// Variants are the targets of runs that were recorded in a variant of that
	// name; the others, and those of a name that is not here, have this one.
	Variants map[string]Target
	// Timeout bounds one run, 30 s by default.
	Timeout time.Duration
}

// Run folds one run. Its error means that the engine could not be made, or
// that ctx ended; whatever is wrong with the recording is in the result.
func Run(ctx context.Context, target Target, rec *run.Recorded) (*Result, error) {
	began := time.Now()
	result := &Result{Run: rec.Run, Generation: rec.Generation, Variant: rec.Variant, Contract: rec.Contract, Started: rec.Started, State: string(rec.State)}
	if reason := unusable(rec); reason != "" {
		result.Status, result.Reason = StatusSkipped, reason
		return result, nil
	}
	result.GenerationNow = target.Policy.Generation()
	if rec.State == run.Blocked {
		blocked(result, target.Policy, rec)
		result.finish(began)
		return result, nil
	}
	s := newSession(target, rec)
	got, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	s.compare(result, got)
	result.finish(began)
	return result, nil
}

// unusable says why a run cannot be replayed.
func unusable(rec *run.Recorded) string {
	switch {
	case rec.State == run.Cancelled:
		return "the client left"
	case !rec.State.Terminal():
		return "it has not ended"
	case rec.Recording == nil:
		return "no recording is kept"
	case damaged(rec.Recording):
		return "its recording is damaged"
	case rec.State != run.Blocked && len(rec.Turns) == 0:
		return "its question is not kept"
	}
	return ""
}

// maxStream is far above what a run may say.
const maxStream = 1 << 30

// damaged tells whether places in the stream cannot be what they say.
func damaged(r *run.Recording) bool {
	end := 0
	for _, e := range r.Edits {
		if e.Start < end || e.End < e.Start || e.End > maxStream {
			return true
		}
		end = e.End
	}
	said := 0
	for _, h := range r.Heard {
		if h.Said < 0 || h.Said > maxStream {
			return true
		}
		said += h.Said
	}
	return said > maxStream || r.Stop != nil && (r.Stop.At < 0 || r.Stop.At > maxStream)
}

// blocked is a run whose question was refused, which nothing keeps.
func blocked(result *Result, policy run.Policy, rec *run.Recorded) {
	result.Items = 1
	if !sameStage(rec.Recording.Parts, policy.Parts(), run.StageInput) {
		result.unanswer(Unanswered{Stage: StageInput, Was: WasBlock, What: "the question",
			Why: "it was blocked, so it is not kept, and the guards are others now"})
	}
	result.Fuel, result.Millis = costs(rec.Decisions)
	result.FuelNow, result.MillisNow = result.Fuel, result.Millis
}

// run performs the run and returns what its own log says.
func (s *session) run(ctx context.Context) (*run.Recorded, error) {
	timeout := s.target.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fault.Coded(fault.Limit, run.CodeDrain, "the replay took longer than %s", timeout))
	defer cancel()
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	engine, err := s.engine()
	if err != nil {
		return nil, err
	}
	s.fresh = true
	out := engine.Run(s.ctx, s.request(), nobody{})
	for out.State == run.AwaitingApproval && out.Parked != nil {
		outcome, value := s.answer(out.Parked.Interaction)
		if err := run.Respond(context.WithoutCancel(ctx), s.log, s.rec.Run, answered(outcome, value)); err != nil {
			return nil, err
		}
		s.rewind(outcome)
		if out, err = engine.Resume(s.ctx, s.rec.Run, "replay", nobody{}); err != nil {
			return nil, err
		}
	}
	if err := outer.Err(); err != nil {
		return nil, context.Cause(outer)
	}
	if ctx.Err() != nil {
		s.halt(Unanswered{Stage: StageRun, Was: WasAllow, What: "the rest", Why: context.Cause(ctx).Error()})
	}
	report, err := run.Inspect(outer, s.log, s.rec.Run)
	if err != nil {
		return nil, err
	}
	return run.ReadRecorded(report)
}

// answered is a person's answer as logs keep it.
func answered(outcome, value string) abi.Raw {
	b := strictjson.AppendString([]byte(`{"outcome":`), outcome)
	b = strictjson.AppendString(append(b, `,"value":`...), value)
	return append(b, '}')
}

func (s *session) engine() (*run.Engine, error) {
	opts := s.target.Options
	started := time.UnixMilli(s.rec.Call.Now)
	opts.Now = func() time.Time { return started }
	seed, _ := strconv.ParseUint(s.rec.Call.Seed, 10, 64)
	opts.Seed = func() uint64 { return seed }
	opts.NewID, opts.Reached, opts.Tracer, opts.Logger, opts.Digests = nil, nil, nil, nil, false
	deps := run.Deps{Policy: func() (run.Policy, func()) { return policy{s.target.Policy, s}, func() {} },
		Model: s, Tools: tools{s}, Log: s.log}
	if asked := s.people(); asked != nil {
		deps.People = people{asked, s}
	}
	return run.New(deps, opts)
}

func (s *session) people() run.People {
	then, known := s.record.Part(run.PartApprovals)
	switch {
	case s.rec.Caller:
		return s.target.Pauses
	case s.target.AsThen && known && then.ID == "off":
		return nil
	}
	return s.target.People
}

// request is the run's, without a person: no plugin sees one. A caller's tools
// are played by the recording like the host's own.
func (s *session) request() run.Request {
	return run.Request{Principal: run.Principal{UserID: "replay", Pseudonym: "replay", Roles: s.rec.Roles},
		RequestID: s.rec.RequestID, RequestIDSource: s.rec.Source, Contract: s.rec.Contract, RunID: s.rec.Run,
		Turns: append([]abi.Turn(nil), s.rec.Turns...)}
}

// nobody watches.
type nobody struct{}

func (nobody) Started(run.Info)      {}
func (nobody) Step(run.Step)         {}
func (nobody) Text(string)           {}
func (nobody) Asked(run.Interaction) {}
func (nobody) Failed(run.Failure)    {}
func (nobody) Ended(run.Info)        {}
