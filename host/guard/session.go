package guard

import (
	"context"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// SessionOptions are what the guards need of the run that they guard.
type SessionOptions struct {
	// Context is the run's. When it ends the sink's goroutine ends and nothing
	// is released any more. Nil is a context that never ends; then only Finish
	// ends the sink.
	Context context.Context
	// Roles of the caller, for guards that the operator granted them to.
	Roles []string
	// Stamp gives the clock and seed of the next call. Required; it is called
	// from several goroutines. For guards that make use of them the promise
	// needs one stamp for a whole run.
	Stamp func() abi.Call
	// Ask sends a guard's model request. The name says whose prompts it means.
	// A failure is in the reply. Nil: no model can be asked.
	Ask func(ctx context.Context, guard string, req *abi.ModelRequest) abi.AskReply
	// Release receives the guarded text in order, from one goroutine. It may
	// block while the client does not read, and must return once Context or the
	// context given to Finish has ended. Fragments are never empty, never split
	// a character and are never a lone JSON container.
	Release func(text string)
	// Hold keeps what the guards need from being freed, for one that judges in
	// monitor mode after the run's end, until the function that it returns is
	// called. It returns nil when that is too late. Nil: nothing is ever freed.
	Hold func() (release func())
	// Approvals: a person can be asked whether a call may be made. Else a guard
	// that requires it blocks.
	Approvals bool
	// Observer is told of every verdict; nil when nobody wants to know. It must
	// be safe for concurrent use.
	Observer Observer
}

// Observer sees what guards decided, for spans, counters and the log.
type Observer interface {
	GuardVerdict(Verdict)
}

// Stages of a verdict.
const (
	StageInput      = "input"
	StageOutput     = "output"
	StageToolCall   = "tool_call"
	StageToolResult = "tool_result"
	StageDisplay    = "display"
)

// What a guard's verdict is called in decision events and for observers.
const (
	VerdictAllow   = "allow"
	VerdictBlock   = "block"
	VerdictModify  = "modify"  // output and display only
	VerdictError   = "error"   // it failed
	VerdictSkipped = "skipped" // one before it blocked

	VerdictApproval = "require_approval" // tool calls only

	// Of guards in monitor mode, beside allow and error.
	VerdictPending     = "pending"      // in decision events only: not judged yet
	VerdictWouldBlock  = "would_block"  // observers only, as the next ones
	VerdictWouldModify = "would_modify" // output and display only
	VerdictDropped     = "dropped"      // there was no room or no time to judge
)

// Verdict is what one guard said at one stage.
type Verdict struct {
	Guard      string
	Digest     string
	Stage      string
	Monitor    bool // it changed nothing
	Verdict    string
	ReasonCode string        // of a failure: its code
	Reason     string        // guest text, capped; for the log only, never with a decision
	Calls      int           // of the hook
	Asks       int           // of a model
	Fuel       uint64        // over all calls
	Took       time.Duration // in the guard, without its model calls
	Err        error         // the failure
}

// Session guards one run. Its methods may be called concurrently.
type Session struct {
	chain *Chain
	opts  SessionOptions
	sink  Sink
}

// Session begins the guarding of a run. It starts nothing: the sink's goroutine
// begins with the first text.
func (c *Chain) Session(opts SessionOptions) *Session {
	if opts.Context == nil {
		opts.Context = context.Background()
	}
	s := &Session{chain: c, opts: opts}
	s.sink.init(s)
	return s
}

// Sink returns the run's one guarded stream.
func (s *Session) Sink() *Sink { return &s.sink }

func (s *Session) roles(g *Guard) []string {
	if !g.GrantRoles {
		return nil
	}
	return s.opts.Roles
}

// tally is what one guard did at one stage.
type tally struct {
	guard      *Guard
	verdict    string
	reasonCode string
	reason     string
	calls      int
	asks       int
	fuel       uint64
	took       time.Duration
	err        error
}

func (t *tally) called(fuel uint64, took time.Duration) {
	t.calls++
	t.fuel += fuel
	t.took += took
}

func (t *tally) fail(err error) {
	t.verdict = VerdictError
	t.reasonCode = failureCode(err)
	t.err = err
}

func (s *Session) observe(stage string, t *tally) {
	if s.opts.Observer == nil {
		return
	}
	s.opts.Observer.GuardVerdict(Verdict{
		Guard: t.guard.Name, Digest: t.guard.Digest, Stage: stage, Monitor: t.guard.Monitor,
		Verdict: t.verdict, ReasonCode: t.reasonCode, Reason: t.reason,
		Calls: t.calls, Asks: t.asks, Fuel: t.fuel, Took: t.took, Err: t.err,
	})
}

// codeBadReply is the code of a reply that breaks the protocol.
const codeBadReply = "bad_reply"

func badReply(g *Guard, hook abi.Hook, format string, args ...any) error {
	err := fault.Coded(fault.Plugin, codeBadReply, format, args...)
	return fault.Coded(fault.Plugin, codeBadReply, "plugin %s: %s: %w", g.Name, hook, err)
}

// failureCode is a failure's code as decision events show it.
func failureCode(err error) string {
	if code := fault.CodeOf(err); code != "" {
		return code
	}
	return "failed"
}
