package plugin

import (
	"context"
	"slices"

	"weir/abi"
	"weir/host/fault"
)

// The typed callers below may be used concurrently. Each returns a valid
// message or an error, never both, and the fuel that the call used in either
// case.

// CheckInput calls check_input.
func (p *Plugin) CheckInput(ctx context.Context, req *abi.CheckInputRequest) (*abi.Verdict, uint64, error) {
	return p.verdict(ctx, abi.HookCheckInput, req.Call, req)
}

// CheckToolCall calls check_tool_call.
func (p *Plugin) CheckToolCall(ctx context.Context, req *abi.CheckToolCallRequest) (*abi.Verdict, uint64, error) {
	return p.verdict(ctx, abi.HookCheckToolCall, req.Call, req)
}

// CheckToolResult calls check_tool_result.
func (p *Plugin) CheckToolResult(ctx context.Context, req *abi.CheckToolResultRequest) (*abi.Verdict, uint64, error) {
	return p.verdict(ctx, abi.HookCheckToolResult, req.Call, req)
}

func (p *Plugin) verdict(ctx context.Context, hook abi.Hook, call abi.Call, req request) (*abi.Verdict, uint64, error) {
	out := new(abi.Verdict)
	check := func() error { return out.Validate(hook) }
	fuel, err := p.typed(ctx, hook, call, req, decoding(out, check))
	if err != nil {
		return nil, fuel, err
	}
	return out, fuel, nil
}

// CheckOutput calls check_output.
func (p *Plugin) CheckOutput(ctx context.Context, req *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	out := new(abi.CheckOutputReply)
	check := func() error { return out.Validate(req) }
	fuel, err := p.typed(ctx, abi.HookCheckOutput, req.Call, req, decoding(out, check))
	if err != nil {
		return nil, fuel, err
	}
	return out, fuel, nil
}

// Step calls step.
func (p *Plugin) Step(ctx context.Context, req *abi.StepRequest) (*abi.StepReply, uint64, error) {
	out := new(abi.StepReply)
	fuel, err := p.typed(ctx, abi.HookStep, req.Call, req, decoding(out, out.Validate))
	if err != nil {
		return nil, fuel, err
	}
	return out, fuel, nil
}

// Call calls any hook with a request in JSON, which must carry now and seed,
// and returns its reply. The reply is valid for that hook and that request.
func (p *Plugin) Call(ctx context.Context, hook abi.Hook, request []byte) (reply []byte, fuel uint64, err error) {
	if !slices.Contains(abi.Hooks(), hook) {
		return nil, 0, fault.New(fault.Invalid, "unknown hook %s, expected one of %v", quote(string(hook)), abi.Hooks())
	}
	st, err := stampIn(request)
	if err != nil {
		return nil, 0, p.report(string(hook), err, "")
	}
	return p.invoke(ctx, hook, st, request, nil, func(reply []byte) error {
		return abi.ValidateReply(hook, request, reply)
	})
}

type request interface{ AppendJSON(b []byte) []byte }

type message interface{ DecodeJSON(data []byte) error }

// decoding makes a decoder of a message and of what checks its meaning.
func decoding(out message, check func() error) decoder {
	return func(reply []byte) error {
		if err := out.DecodeJSON(reply); err != nil {
			return err
		}
		return check()
	}
}

func (p *Plugin) typed(ctx context.Context, hook abi.Hook, call abi.Call, req request, decode decoder) (uint64, error) {
	st, err := stampOf(call)
	if err != nil {
		return 0, p.report(string(hook), err, "")
	}
	if q, ok := req.(*abi.CheckOutputRequest); ok {
		st.display = q.Use == abi.UseDisplay
	}
	_, fuel, err := p.invoke(ctx, hook, st, req.AppendJSON(nil), nil, decode)
	return fuel, err
}
