package guard

import (
	"context"

	"weir/abi"
	"weir/abi/strictjson"
)

// ToolCheck is a proposed call that passed the host's own policy.
type ToolCheck struct {
	Tool      string
	Arguments abi.Raw
	ReadOnly  bool
	Text      string // the latest user turn
}

// ToolVerdict is what the guards say of a call or of a result. Decision is nil
// when every guard allowed.
type ToolVerdict struct {
	Blocked  bool
	Approve  bool   // a person has to agree to the call; never together with Blocked
	Message  string // for that person, as the guard put it
	Reason   string // for the model, after "by policy: "
	Decision abi.Raw
}

const (
	reasonUnavailable = "the check is not available"
	reasonBlocked     = "blocked"
)

// CheckToolCall asks the guards about a call that the model proposes. An error
// means that ctx ended.
func (s *Session) CheckToolCall(ctx context.Context, call ToolCheck) (ToolVerdict, error) {
	c, err := s.check(ctx, abi.HookCheckToolCall, StageToolCall, &s.chain.toolCall,
		func(ctx context.Context, g *Guard, ask abi.Ask) (*abi.Verdict, uint64, error) {
			return g.ToolCall.CheckToolCall(ctx, &abi.CheckToolCallRequest{
				Call: s.opts.Stamp(), Tool: call.Tool, Arguments: call.Arguments,
				ReadOnly: call.ReadOnly, Text: call.Text, Roles: s.roles(g), Ask: ask,
			})
		})
	if err != nil {
		return ToolVerdict{}, err
	}
	return c.toolVerdict(StageToolCall, call.Tool), nil
}

// CheckToolResult asks the guards about a tool's result before the model sees
// it. An error means that ctx ended.
func (s *Session) CheckToolResult(ctx context.Context, call ToolCheck, result string, failed bool) (ToolVerdict, error) {
	c, err := s.check(ctx, abi.HookCheckToolResult, StageToolResult, &s.chain.toolResult,
		func(ctx context.Context, g *Guard, ask abi.Ask) (*abi.Verdict, uint64, error) {
			return g.ToolResult.CheckToolResult(ctx, &abi.CheckToolResultRequest{
				Call: s.opts.Stamp(), Tool: call.Tool, Arguments: call.Arguments,
				Result: result, Failed: failed, Roles: s.roles(g), Ask: ask,
			})
		})
	if err != nil {
		return ToolVerdict{}, err
	}
	return c.toolVerdict(StageToolResult, call.Tool), nil
}

func (c *checks) toolVerdict(stage, tool string) ToolVerdict {
	if !c.blocked() && !c.failed() && !c.approves() {
		return ToolVerdict{}
	}
	v := ToolVerdict{
		Blocked:  c.blocked(),
		Approve:  c.approves(),
		Decision: c.event(stage, []member{{"tool", strictjson.AppendString(nil, tool)}}),
	}
	if v.Approve {
		v.Message = c.message
	}
	if v.Blocked {
		v.Reason = c.toolReason()
	}
	return v
}

func (c *checks) toolReason() string {
	t := &c.tallies[c.blocker]
	switch {
	case t.err != nil:
		return reasonUnavailable
	case t.reasonCode == "":
		return reasonBlocked
	}
	return t.reasonCode
}
