package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Decisions of the host's own tool policy.
const (
	PolicyAllow           = "allow"
	PolicyRequireApproval = "require_approval"
	PolicyDeny            = "deny"
)

// ToolPolicy records one decision of the tool policy as a span of its own, and
// counts a call that it refused. Reason is a code. The name of a tool is shown only when it is a registered
// one: any other is the model's own text.
func (t *Tracer) ToolPolicy(ctx context.Context, tool string, known bool, decision, reason string) {
	if t == nil {
		return
	}
	if !known {
		tool = "unknown"
	}
	if decision == PolicyDeny {
		counted := tool
		if !known {
			counted = other
		}
		t.countTool(counted, "refused")
	}
	attrs := []attribute.KeyValue{
		attribute.String(AttrToolName, tool),
		attribute.String(AttrPolicyResult, code(decision)),
		attribute.String(AttrPolicyKind, "deterministic"),
	}
	if reason != "" {
		attrs = append(attrs, attribute.String(AttrPolicyReason, code(reason)))
	}
	_, s := t.start(ctx, SpanToolPolicy, trace.SpanKindInternal, attrs...)
	s.span.End()
}

// ToolStart is a call of a registered tool.
type ToolStart struct {
	Name     string // as the model knows it
	StepName string // group__name, the client span's name
	Input    string // the arguments, redacted for display
}

// ToolSpan is one tool call: execute_tool as the GenAI conventions have it, and
// under it the contract's client span for the call to the MCP server. Its
// methods do nothing on nil.
type ToolSpan struct {
	execute span
	call    span
	name    string
	began   time.Time
	took    time.Duration // zero: not returned yet
}

// StartTool begins the spans of a tool call.
func (t *Tracer) StartTool(ctx context.Context, start ToolStart) (context.Context, *ToolSpan) {
	if t == nil {
		return ctx, nil
	}
	s := ToolSpan{name: start.Name, began: time.Now()}
	ctx, s.execute = t.start(ctx, SpanExecuteTool+start.Name, trace.SpanKindInternal,
		attribute.String(AttrOpenInferenceKind, KindTool),
		attribute.String(AttrGenAIOperation, OperationExecuteTool),
		attribute.String(AttrGenAIToolName, start.Name),
		attribute.String(AttrGenAIToolType, "function"))
	attrs := []attribute.KeyValue{
		attribute.String(AttrMCPTool, start.Name),
		attribute.String(AttrMCPMethod, "tools/call"),
		attribute.String(AttrMCPMethodName, "tools/call"),
	}
	ctx, s.call = t.start(ctx, start.StepName, trace.SpanKindClient,
		t.content(attrs, AttrInputValue, start.Input)...)
	return ctx, &s
}

// Returned says that the server has answered, or that it will not; what comes
// until End is the guards' time and not the tool's.
func (s *ToolSpan) Returned() {
	if s != nil {
		s.took = time.Since(s.began)
	}
}

// End ends the call with its result, redacted for display. Failed marks a
// result that is an error.
func (s *ToolSpan) End(output string, failed bool) {
	if s == nil {
		return
	}
	if s.took == 0 {
		s.took = time.Since(s.began)
	}
	outcome := "ok"
	if failed {
		outcome = "error"
		s.call.fail("tool_error")
		s.execute.fail("tool_error")
	}
	s.call.set(s.call.t.content([]attribute.KeyValue{
		attribute.String(AttrToolOutcome, outcome)}, AttrOutputValue, output)...)
	s.count(outcome)
	s.call.span.End()
	s.execute.span.End()
}

// count records a call that was made.
func (s *ToolSpan) count(outcome string) {
	m := s.call.t.metrics
	s.call.t.countTool(s.name, outcome)
	record(m.toolTime, s.took, with(attribute.String(AttrTool, s.name), attribute.String(AttrOutcome, outcome)))
	attrs := []attribute.KeyValue{
		attribute.String(AttrMCPMethodName, "tools/call"),
		attribute.String(AttrGenAIToolName, s.name),
		attribute.String(AttrGenAIOperation, OperationExecuteTool),
	}
	if outcome != "ok" {
		attrs = append(attrs, attribute.String(AttrErrorType, "tool_error"))
	}
	record(m.mcpTime, s.took, with(attrs...))
}

func (t *Tracer) countTool(tool, outcome string) {
	count(t.metrics.tools, with(attribute.String(AttrTool, tool), attribute.String(AttrOutcome, outcome)))
}
