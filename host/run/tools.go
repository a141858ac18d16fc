package run

import (
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/telemetry"
)

// What a model reads instead of a result (agent-service contract, 5.5).
const (
	refusedPrefix  = "Tool call refused by policy: "
	withheldPrefix = "Tool result withheld by policy: "
	errorPrefix    = "Error: "    // begins the text of a failed call
	withheld       = "[withheld]" // what people read where a value may not be shown
)

// Names of the tool hooks' decision events.
const (
	toolCallDecision   = "guardrail_tool_call_decision"
	toolResultDecision = "guardrail_tool_result_decision"
)

// performTools performs a turn's calls one after the other, those after done.
func (r *run) performTools(calls []abi.ToolCall, done []abi.ToolResult) (abi.Event, *ending) {
	if len(calls) > maxCallsPerAction {
		return abi.Event{}, r.failed(fault.New(fault.Plugin,
			"workflow %s: %d tool calls in one action, at most %d", r.policy.Workflow(), len(calls), maxCallsPerAction))
	}
	r.noteCalls(calls)
	event := abi.Event{Type: abi.EventTools, Results: make([]abi.ToolResult, 0, len(calls))}
	event.Results = append(event.Results, done...)
	for i := len(done); i < len(calls); i++ {
		r.judged, r.sent = CallNote{}, nil
		result, end := r.performTool(calls[i])
		if end != nil {
			return abi.Event{}, end
		}
		r.note.Calls = append(r.note.Calls, r.judged)
		result.Ref, result.CallID, result.Name = r.thread.nextRef()+i, calls[i].ID, calls[i].Name
		event.Results = append(event.Results, result)
		if len(calls) > 1 || r.sent != nil { // or the event says it
			r.out.record(RecordResult, resultPayload{Index: i, Result: result, Note: r.judged}, false)
		}
		if r.sent != nil {
			if err := r.flush(); fault.Of(err) == fault.Conflict {
				return abi.Event{}, r.failed(err)
			} else if err != nil { // a resume says that it is not known
				r.opts.Logger.Error("the result of a call is not in the log", "run", r.req.RunID, "error", err)
			}
		}
	}
	return event, nil
}

// performTool holds one call against the host's policy and the guards, and
// performs it if both allow, or a person does. An ending ends the run, or
// leaves it waiting; whatever is wrong with the call is a result.
func (r *run) performTool(call abi.ToolCall) (abi.ToolResult, *ending) {
	if sent := r.unsettled; sent != nil {
		r.unsettled = nil
		return r.settleSent(call, sent)
	}
	if tool, ok := r.declared(call.Name); ok {
		return r.performDeclared(tool, call)
	}
	tool, check, refusal, end := r.judge(call)
	switch {
	case end != nil:
		return abi.ToolResult{}, end
	case refusal != nil:
		return *refusal, nil
	}
	return r.call(tool, check)
}

// judge holds one call against the host's policy, the guards and, if one of
// them wants that, a person. Without a refusal and an ending the call may be
// performed.
func (r *run) judge(call abi.ToolCall) (tool Tool, check ToolCheck, refusal *abi.ToolResult, end *ending) {
	no := func(reason string) (Tool, ToolCheck, *abi.ToolResult, *ending) {
		result := refused(reason)
		return tool, check, &result, nil
	}
	if g := r.take(gateVerdict); g != nil {
		r.judged.Asked = true
		return r.approved(call, g)
	}
	tool, args, denied := r.admit(call)
	if denied.reason != "" {
		r.opts.Tracer.ToolPolicy(r.ctx, tool.Name, tool.Name != "", telemetry.PolicyDeny, denied.code)
		r.judged.Why = denied.code
		return no(denied.reason)
	}
	r.opts.Tracer.ToolPolicy(r.ctx, tool.Name, true, telemetry.PolicyAllow, "")
	check = r.check(tool, args)
	verdict, err := r.guards.CheckToolCall(r.ctx, check)
	if err != nil {
		return tool, check, nil, r.failed(err)
	}
	r.decideTool(toolCallDecision, tool, verdict)
	switch {
	case verdict.Blocked:
		r.judged.Why = WhyGuard
		return no(verdict.Reason)
	case verdict.Approve:
		r.judged.Why = WhyApproval // unless the run waits for one now
		result, end := r.askApproval(tool, check, verdict)
		return tool, check, &result, end
	}
	return tool, check, nil, nil
}

func (r *run) check(tool Tool, args abi.Raw) ToolCheck {
	return ToolCheck{Tool: tool.Name, Arguments: args, ReadOnly: tool.ReadOnly, Text: r.req.latest()}
}

func refused(reason string) abi.ToolResult {
	return abi.ToolResult{Text: refusedPrefix + reason, Refused: true}
}

// denial is why the host's own policy refuses a call: a code for the span, and
// for the model the reason, which may quote names that the model made up.
type denial struct{ code, reason string }

// admit is the host's own policy: a known tool, arguments that can be read, a
// call left in the budget, arguments that fit the schema, in this order. The
// denial is zero when the call may go on.
func (r *run) admit(call abi.ToolCall) (Tool, abi.Raw, denial) {
	tool, args, err := r.tools.Parse(call.Name, call.Arguments)
	if err != nil {
		return Tool{}, nil, denial{"not_readable", err.Error()}
	}
	if !r.budget.takeToolCall() {
		return tool, nil, denial{"budget", r.budget.exhausted()}
	}
	if err := r.tools.Validate(tool.Name, args); err != nil {
		return tool, nil, denial{"schema", err.Error()}
	}
	return tool, args, denial{}
}

// call performs an admitted call and shows its start and end.
func (r *run) call(tool Tool, check ToolCheck) (abi.ToolResult, *ending) {
	step := Step{Kind: StepTool, ID: r.opts.NewID(), Name: tool.StepName,
		Input: r.guards.Display(r.ctx, check.Arguments)}
	ctx, span := r.opts.Tracer.StartTool(r.ctx, telemetry.ToolStart{
		Name: tool.Name, StepName: tool.StepName, Input: string(step.Input)})
	r.out.Step(step)
	if err := r.send(tool, step.ID); err != nil {
		span.End("", true)
		return abi.ToolResult{}, r.failed(err)
	}
	text, failed, err := r.tools.Call(ctx, tool.Name, check.Arguments)
	span.Returned()
	if r.ctx.Err() != nil {
		span.End("", true)
		return abi.ToolResult{}, r.failed(r.ctx.Err())
	}
	if err != nil {
		text, failed = errorPrefix+err.Error(), true
	}
	result, err := r.settle(tool, check, step, abi.ToolResult{Text: text, Failed: failed}, span)
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	return result, nil
}

// send makes durable that a call is about to be made which may change something,
// so that no resume makes it again. A run that nobody can resume needs no such
// record.
func (r *run) send(tool Tool, step string) error {
	if tool.ReadOnly || !r.out.journal.known {
		return nil
	}
	r.sent = &sentPayload{Step: step}
	r.out.record(RecordCallSent, r.sent, true)
	return r.flush()
}

// unknownResult is what a model reads of a call that a process made and did not
// outlive.
const unknownResult = errorPrefix + "it is not known whether this call was carried out. Look at the record before you report anything of it, and do not repeat it."

// settleSent is the result of a call that was about to be made when the run's
// process died.
func (r *run) settleSent(call abi.ToolCall, sent *sentPayload) (abi.ToolResult, *ending) {
	r.sent = sent
	r.judged.Asked = r.take(gateVerdict) != nil
	tool, args, err := r.tools.Parse(call.Name, call.Arguments)
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	check := r.check(tool, args)
	step := Step{Kind: StepTool, ID: sent.Step, Name: tool.StepName, Input: r.guards.Display(r.ctx, args)}
	result, err := r.settle(tool, check, step, abi.ToolResult{Text: unknownResult, Failed: true}, nil)
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	return result, nil
}

// settle holds a result against the guards and shows the step's end.
func (r *run) settle(tool Tool, check ToolCheck, step Step, result abi.ToolResult, span *telemetry.ToolSpan) (abi.ToolResult, error) {
	verdict, err := r.guards.CheckToolResult(r.ctx, check, result.Text, result.Failed)
	if err != nil {
		span.End("", true)
		return abi.ToolResult{}, err
	}
	if verdict.Blocked {
		result = abi.ToolResult{Text: withheldPrefix + verdict.Reason, Failed: result.Failed, Refused: true}
		r.judged.Why = WhyWithheld
	}
	shown := displayed(result)
	step.End, step.Output = true, r.guards.Display(r.ctx, shown)
	r.judged.Step, r.judged.Masked = step.ID, !same(shown, step.Output) || disguised(result.Text)
	r.decideTool(toolResultDecision, tool, verdict)
	span.End(string(step.Output), result.Failed)
	r.out.Step(step)
	return result, nil
}

// displayed is a result as JSON: an error object, the value that the text
// holds, or the text itself.
func displayed(result abi.ToolResult) abi.Raw {
	if result.Failed || result.Refused {
		b := append([]byte(`{"error":`), jsonString(strings.TrimPrefix(result.Text, errorPrefix))...)
		return append(b, '}')
	}
	if value := []byte(result.Text); strictjson.Valid(value) == nil {
		if compact, err := strictjson.Compact(nil, value); err == nil {
			return compact
		}
	}
	if disguised(result.Text) {
		return jsonString(withheld)
	}
	return jsonString(result.Text)
}

// disguised tells text that a consumer may still read as JSON though it is not
// strictly so (a name twice, for instance): an escape in it would hide a secret
// from the guards, which see the text as it stands.
func disguised(text string) bool {
	text = strings.TrimSpace(text)
	container := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	return container && strings.ContainsRune(text, '\\')
}

// decideTool shows a tool hook's decision unless every guard allowed.
func (r *run) decideTool(name string, tool Tool, verdict ToolVerdict) {
	if verdict.Decision == nil {
		return
	}
	r.out.decide(Step{Kind: StepFunction, End: true, ID: r.opts.NewID(), Name: name,
		Input: append(append([]byte(`{"tool":`), jsonString(tool.Name)...), '}'), Output: verdict.Decision})
}

// stringOf returns a JSON string's value, and nothing of any other value.
func stringOf(value abi.Raw) string {
	s, err := strictjson.NewDecoder(value).String()
	if err != nil {
		return ""
	}
	return s
}
