package guard

import (
	"context"

	"weir/abi"
	"weir/host/fault"
)

// InputVerdict is what the input stage decided.
type InputVerdict struct {
	Blocked  bool
	Message  string  // for the user, when blocked
	Decision abi.Raw // the decision event's output (2.7)
}

// CheckInput asks the input guards about the conversation; its last turn is the
// one that they judge. An error means that ctx ended or that there is no turn.
func (s *Session) CheckInput(ctx context.Context, turns []abi.Turn) (InputVerdict, error) {
	if len(turns) == 0 {
		return InputVerdict{}, fault.New(fault.Invalid, "check input: no turn to check")
	}
	last := len(turns) - 1
	c, err := s.check(ctx, abi.HookCheckInput, StageInput, &s.chain.input,
		func(ctx context.Context, g *Guard, ask abi.Ask) (*abi.Verdict, uint64, error) {
			return g.Input.CheckInput(ctx, &abi.CheckInputRequest{
				Call: s.opts.Stamp(), Text: turns[last].Content, History: turns[:last],
				Roles: s.roles(g), Ask: ask,
			})
		})
	if err != nil {
		return InputVerdict{}, err
	}
	v := InputVerdict{Blocked: c.blocked(), Decision: c.event(StageInput, nil)}
	if v.Blocked {
		v.Message = s.chain.opts.InputBlockMessage
		if c.verdict != nil && c.verdict.Message != "" {
			v.Message = c.verdict.Message
		}
	}
	return v, nil
}
