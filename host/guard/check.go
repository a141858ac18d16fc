package guard

import (
	"context"

	"weir/abi"
)

const (
	maxDecision = 16 << 10 // bytes of a guard's decision object
	maxReason   = 256      // bytes of a reason in the log

	codeApprovalUnavailable = "approval_unavailable"
)

// checks is what a chain of verdicts came to.
type checks struct {
	all      []*Guard // of the stage, those in monitor mode included
	tallies  []tally
	blocker  int          // index of the guard that blocked, -1 when none did
	approver int          // index of the first guard that wants a person to agree, -1 when none does
	message  string       // the approver's, for that person
	verdict  *abi.Verdict // the blocker's; nil when it failed
	decision abi.Raw      // the first guard's object
	asks     int          // model calls of all guards

	approvals bool // a person can be asked
}

func (c *checks) blocked() bool { return c.blocker >= 0 }

// failed returns whether some guard gave no verdict.
func (c *checks) failed() bool {
	for i := range c.tallies {
		if c.tallies[i].err != nil {
			return true
		}
	}
	return false
}

// caller makes one call of the hook at hand for one guard.
type caller func(ctx context.Context, g *Guard, ask abi.Ask) (*abi.Verdict, uint64, error)

// check asks the guards one after the other until one blocks; the rest are
// skipped. Its error says only that ctx ended.
func (s *Session) check(ctx context.Context, hook abi.Hook, stage string, guards *lineup, call caller) (*checks, error) {
	c := &checks{all: guards.all, tallies: make([]tally, len(guards.enforcing)), blocker: -1, approver: -1, approvals: s.opts.Approvals}
	for i, g := range guards.enforcing {
		t := &c.tallies[i]
		t.guard, t.verdict = g, VerdictSkipped
		if c.blocked() {
			continue
		}
		v, err := s.consult(ctx, hook, t, call)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.asks += t.asks
		c.take(i, v, err)
		s.observe(stage, t)
	}
	// Only now, so that they take no processor from what the run waits for.
	for _, g := range guards.watching {
		s.watch(ctx, stage, g, func(ctx context.Context, t *tally) { s.judge(ctx, hook, t, call) })
	}
	return c, nil
}

func (c *checks) take(i int, v *abi.Verdict, err error) {
	t := &c.tallies[i]
	if err != nil {
		t.fail(err)
		if !t.guard.AllowOnError {
			c.blocker = i
		}
		return
	}
	if i == 0 {
		c.decision = v.Decision
	}
	t.take(v, c.approvals)
	switch {
	case t.verdict == VerdictBlock:
		c.blocker, c.verdict = i, v
	case t.verdict == VerdictApproval && c.approver < 0:
		c.approver, c.message = i, v.Message
	}
}

// approves tells whether a person has to agree; a block weighs more.
func (c *checks) approves() bool { return c.approver >= 0 && !c.blocked() }

// take notes what a guard said. Without approvals nobody can be asked, so a
// call that needs a person's consent has none.
func (t *tally) take(v *abi.Verdict, approvals bool) {
	t.verdict, t.reasonCode = VerdictAllow, v.ReasonCode
	t.reason = capText(v.Reason, maxReason)
	switch {
	case v.Verdict == abi.VerdictRequireApproval && approvals:
		t.verdict = VerdictApproval
	case v.Verdict == abi.VerdictRequireApproval:
		t.verdict, t.reasonCode = VerdictBlock, codeApprovalUnavailable
	case v.Verdict == abi.VerdictBlock:
		t.verdict = VerdictBlock
	}
}

// consult calls one guard, and calls it again with a model's reply for as long
// as it may ask for one.
func (s *Session) consult(ctx context.Context, hook abi.Hook, t *tally, call caller) (*abi.Verdict, error) {
	var ask abi.Ask
	for {
		began := s.chain.opts.Clock()
		v, fuel, err := call(ctx, t.guard, ask)
		t.called(fuel, s.chain.opts.Clock().Sub(began))
		if err != nil {
			return nil, err
		}
		if err := checkVerdict(t.guard, hook, v); err != nil {
			return nil, err
		}
		if v.Verdict != abi.VerdictAskModel {
			return v, nil
		}
		if t.asks == abi.MaxAskRounds {
			return nil, badReply(t.guard, hook, "asked a model more than %d times", abi.MaxAskRounds)
		}
		t.asks++
		reply, err := s.ask(ctx, t.guard, v.Ask)
		if err != nil {
			return nil, err
		}
		ask = abi.Ask{State: v.State, Reply: &reply}
	}
}

// ask sends a guard's model request. Its error says only that ctx ended or that
// a monitor found no room: a model's failure is a reply.
func (s *Session) ask(ctx context.Context, g *Guard, req *abi.ModelRequest) (abi.AskReply, error) {
	if s.opts.Ask == nil {
		return abi.AskReply{Failed: abi.FailUnavailable}, nil
	}
	if g.Monitor {
		if !s.chain.monitors.beginAsk() {
			return abi.AskReply{}, errNoRoom
		}
		defer s.chain.monitors.endAsk()
	}
	within, cancel := context.WithTimeout(ctx, s.chain.opts.AskTimeout)
	defer cancel()
	reply := s.opts.Ask(within, g.Name, req)
	if ctx.Err() != nil {
		return reply, context.Cause(ctx)
	}
	return reply, nil
}

// checkVerdict holds a reply against the protocol.
func checkVerdict(g *Guard, hook abi.Hook, v *abi.Verdict) error {
	switch {
	case v == nil:
		return badReply(g, hook, "no verdict")
	case len(v.Decision) > maxDecision:
		return badReply(g, hook, "decision: %d bytes, expected at most %d", len(v.Decision), maxDecision)
	}
	if err := v.Validate(hook); err != nil {
		return badReply(g, hook, "%w", err)
	}
	if len(v.Decision) > 0 {
		if _, err := readMembers(v.Decision); err != nil {
			return badReply(g, hook, "decision: %w", err)
		}
	}
	return nil
}

// capText returns the beginning of s of at most n bytes, cut between runes.
func capText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:runeStart(s, n)]
}
