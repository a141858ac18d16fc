package telemetry_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"weir/host/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record returns a tracer and what its spans have become, by name.
func record(t *testing.T, opts telemetry.Options) (*telemetry.Tracer, func() map[string]map[string]any) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	return telemetry.New(provider, opts), func() map[string]map[string]any {
		spans := map[string]map[string]any{}
		for _, s := range recorder.Ended() {
			attrs := map[string]any{}
			for _, kv := range s.Attributes() {
				attrs[string(kv.Key)] = kv.Value.AsInterface()
			}
			if s.Status().Code == codes.Error {
				attrs["status"] = s.Status().Description
			}
			spans[s.Name()] = attrs
		}
		return spans
	}
}

func wantAttrs(t *testing.T, got map[string]any, want map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

var everything = telemetry.Options{CaptureContent: true, CaptureGuardContent: true, CapturePseudonym: true, Agent: "support-tickets-agent"}

var start = telemetry.RunStart{
	Name: "support-tickets-agent.invoke", RunID: "E", RequestID: "R", RequestIDSource: "gateway",
	Generation: "G", Roles: []string{"agent", "lead"}, Pseudonym: "P",
}

// Clause 9: the root span.
func TestRootSpan(t *testing.T) {
	tracer, ended := record(t, everything)
	_, run := tracer.StartRun(t.Context(), start)
	run.Question("which tickets are open?")
	run.Released("Two")
	run.Released(" tickets.")
	run.End(telemetry.StateCompleted, "")
	wantAttrs(t, ended()[start.Name], map[string]any{
		"agent.runtime": "weir", "agent.event_type": "WORKFLOW_START", "request.id": "R", "request.id_source": "gateway",
		"execution.id": "E", "enduser.roles": "agent,lead", "enduser.pseudonym": "P", "weir.generation": "G",
		"openinference.span.kind": "AGENT", "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-tickets-agent",
		"input.value": "which tickets are open?", "output.value": "Two tickets.", "agent.execution.state": "completed",
	})
}

// DECISIONS 8: of a blocked question digest and length; content and identity
// only when switched on.
func TestRootSpanWithout(t *testing.T) {
	tracer, ended := record(t, telemetry.Options{})
	_, run := tracer.StartRun(t.Context(), start)
	run.Question("é")
	run.QuestionBlocked("é")
	run.Released("no")
	run.End(telemetry.StateFailed, "model_provider")
	wantAttrs(t, ended()[start.Name], map[string]any{
		"agent.runtime": "weir", "agent.event_type": "WORKFLOW_START", "request.id": "R", "request.id_source": "gateway",
		"execution.id": "E", "enduser.roles": "agent,lead", "weir.generation": "G",
		"openinference.span.kind": "AGENT", "gen_ai.operation.name": "invoke_agent",
		"input.sha256": "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c", "input.length": int64(1),
		"agent.execution.state": "failed", "error.message": "model_provider", "error.type": "model_provider", "status": "model_provider",
	})
}

// Clause 9: cut to limit characters, newline, mark.
func TestTruncation(t *testing.T) {
	const mark = "\n[trace content truncated]"
	for _, c := range []struct{ text, want string }{
		{"abc", "abc"}, {"abcd", "abcd"}, {"abcde", "abcd" + mark}, {"éééé", "éééé"}, {"ééééé", "éééé" + mark}, {"", ""},
	} {
		tracer, ended := record(t, telemetry.Options{CaptureContent: true, ContentMaxChars: 4, CaptureGuardContent: true, GuardMaxChars: 4})
		ctx, run := tracer.StartRun(t.Context(), start)
		_, guard := tracer.StartInputGuard(ctx, c.text, "")
		guard.End(nil, c.text, "")
		run.Question(c.text)
		for _, r := range c.text {
			run.Released(string(r))
		}
		run.End(telemetry.StateCompleted, "")
		for name, got := range map[string]any{
			"input": ended()[start.Name]["input.value"], "output": ended()[start.Name]["output.value"],
			"guard": ended()["guardrail.input.self_check"]["guardrail.user_input"],
		} {
			if s, _ := got.(string); s != c.want {
				t.Errorf("%s of %q = %q, want %q", name, c.text, s, c.want)
			}
		}
	}
}

// Released keeps no more than the span may carry.
func TestReleasedIsBounded(t *testing.T) {
	tracer, ended := record(t, telemetry.Options{CaptureContent: true, ContentMaxChars: 10})
	_, run := tracer.StartRun(t.Context(), start)
	for range 1000 {
		run.Released(strings.Repeat("x", 1000))
	}
	run.End(telemetry.StateCompleted, "")
	if got := ended()[start.Name]["output.value"].(string); got != strings.Repeat("x", 10)+"\n[trace content truncated]" {
		t.Errorf("output.value = %q", got)
	}
}

// Clause 9: the trace is joined to a valid traceparent; a malformed one is
// ignored.
func TestTraceparent(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, c := range []struct {
		traceparent string
		joined      bool
	}{
		{"00-" + id + "-00f067aa0ba902b7-01", true},
		{"", false},
		{"garbage", false},
		{"00-" + id + "-0000000000000000-01", false},
		{"00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
		{"ff-" + id + "-00f067aa0ba902b7-01", false},
		{"00-" + id + "-00f067aa0ba902b7-01-more", false},
		{"00-" + strings.ToUpper(id) + "-00f067aa0ba902b7-01", false},
	} {
		tracer, _ := record(t, telemetry.Options{})
		s := start
		s.Traceparent = c.traceparent
		ctx, run := tracer.StartRun(t.Context(), s)
		run.End(telemetry.StateCompleted, "")
		got := telemetry.TraceID(ctx)
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(got) {
			t.Errorf("%q: trace id %q", c.traceparent, got)
		}
		if joined := got == id; joined != c.joined {
			t.Errorf("%q: trace id %s, joined %v, want %v", c.traceparent, got, joined, c.joined)
		}
	}
}

// Without a tracer there is no trace id, not even the caller's (clause 9: no
// endpoint, no export, an empty workflow_trace_id), and every method does
// nothing.
func TestOff(t *testing.T) {
	for name, tracer := range map[string]*telemetry.Tracer{
		"nil":         nil,
		"no provider": telemetry.New(nil, everything),
		"no-op":       telemetry.New(noop.NewTracerProvider(), everything),
	} {
		t.Run(name, func(t *testing.T) {
			s := start
			s.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			ctx, run := tracer.StartRun(t.Context(), s)
			if id := telemetry.TraceID(ctx); id != "" {
				t.Errorf("trace id %q, want none", id)
			}
			useAll(ctx, tracer, run, "")
			if allocs := testing.AllocsPerRun(10, func() { useAll(ctx, tracer, run, "") }); allocs > 0 {
				t.Errorf("%v allocations while off, want none", allocs)
			}
		})
	}
}

// useAll calls everything, with a text wherever one is taken.
func useAll(ctx context.Context, tracer *telemetry.Tracer, run *telemetry.RunSpan, text string) {
	run.Question(text)
	run.QuestionBlocked(text)
	run.Released(text)
	_, chat := tracer.StartChat(ctx, telemetry.ChatStart{Model: "m"})
	chat.FirstChunk()
	chat.End(telemetry.ChatEnd{FinishReason: text, Failure: text})
	_, call := tracer.StartGuardModelCall(ctx, telemetry.ChatStart{Model: "m"})
	call.End(telemetry.ChatEnd{})
	tracer.ToolPolicy(ctx, text, false, text, text)
	_, tool := tracer.StartTool(ctx, telemetry.ToolStart{Name: "t", StepName: "g__t", Input: text})
	tool.End(text, true)
	_, input := tracer.StartInputGuard(ctx, text, "")
	input.End(nil, text, text)
	_, output := tracer.StartOutputGuard(ctx)
	output.End(nil, 0)
	tracer.GuardVerdict(ctx, telemetry.GuardVerdict{Stage: text, Monitor: true, Verdict: text, ReasonCode: text, Fuel: 1, Failure: text})
	run.End(text, text)
}

// Clause 9: the children and what they say.
func TestChildSpans(t *testing.T) {
	tracer, ended := record(t, everything)
	cold := 0.0
	ctx, run := tracer.StartRun(t.Context(), start)

	guardCtx, input := tracer.StartInputGuard(ctx, "hi", "small")
	_, call := tracer.StartGuardModelCall(guardCtx, telemetry.ChatStart{Model: "small", MaxTokens: 4})
	call.End(telemetry.ChatEnd{})
	tracer.GuardVerdict(guardCtx, telemetry.GuardVerdict{Stage: "input", Name: "input-screen", Digest: "d", Verdict: "allow", Fuel: 12, Took: time.Second})
	input.End([]byte(`{"stage":"input","outcome":"passed","blocked":false,"llm_blocked":false,"deterministic_block_matches":["history:x"],`+
		`"deterministic_allow_matches":[],"allow_override_applied":true,"decision_source":"llm","llm_call_count":1,"extra":"secret words"}`), "hi", "")

	_, chat := tracer.StartChat(ctx, telemetry.ChatStart{Model: "large", Stream: true, Temperature: &cold, MaxTokens: 9})
	chat.End(telemetry.ChatEnd{FinishReason: "stop", InputTokens: 3, OutputTokens: 4})
	tracer.ToolPolicy(ctx, "get_ticket", true, telemetry.PolicyAllow, "")
	_, tool := tracer.StartTool(ctx, telemetry.ToolStart{Name: "get_ticket", StepName: "tickets_mcp__get_ticket", Input: `{"a":1}`})
	tool.End(`{"b":2}`, false)
	_, output := tracer.StartOutputGuard(ctx)
	output.End([]byte(`{"outcome":"modified","blocked":false,"modified":true,"oversized":false,"masked_entities":{"EMAIL_ADDRESS":2},"sanitized_output_length":40}`), 44)
	run.End(telemetry.StateCompleted, "")

	spans := ended()
	wantAttrs(t, spans["guardrail.input.self_check"], map[string]any{
		"openinference.span.kind": "GUARDRAIL", "guardrail.stage": "input", "guardrail.name": "self check input", "guardrail.framework": "weir",
		"guardrail.type":         "llm_self_check_with_deny_and_read_only_allow_overrides",
		"guardrail.input.sha256": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4", "guardrail.input.length": int64(2),
		"guardrail.outcome": "passed", "guardrail.blocked": false, "guardrail.final.blocked": false, "guardrail.llm.blocked": false,
		"guardrail.deterministic.matches": `["history:x"]`, "guardrail.deterministic.allow_matches": `[]`,
		"guardrail.deterministic.allow_override_applied": true, "guardrail.decision_source": "llm", "guardrail.user_input": "hi",
		"gen_ai.operation.name": "guardrail_check", "gen_ai.request.model": "small",
	})
	wantAttrs(t, spans["guard_model.call"], map[string]any{
		"openinference.span.kind": "LLM", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
		"weir.model.alias": "guard", "gen_ai.request.model": "small", "gen_ai.request.max_tokens": int64(4),
	})
	wantAttrs(t, spans["guardrail.input"], map[string]any{
		"openinference.span.kind": "GUARDRAIL", "guardrail.name": "input-screen", "guardrail.digest": "d", "guardrail.stage": "input",
		"guardrail.framework": "weir", "guardrail.verdict": "allow", "guardrail.fuel": int64(12),
	})
	wantAttrs(t, spans["chat large"], map[string]any{
		"openinference.span.kind": "LLM", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "large", "weir.model.alias": "agent",
		"gen_ai.request.stream": true, "gen_ai.request.temperature": 0.0, "gen_ai.request.max_tokens": int64(9),
		"gen_ai.response.finish_reasons": []string{"stop"}, "gen_ai.usage.input_tokens": int64(3), "gen_ai.usage.output_tokens": int64(4),
	})
	wantAttrs(t, spans["tool.policy"], map[string]any{"tool.name": "get_ticket", "policy.decision": "allow", "policy.kind": "deterministic"})
	wantAttrs(t, spans["execute_tool get_ticket"], map[string]any{
		"openinference.span.kind": "TOOL", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_ticket", "gen_ai.tool.type": "function",
	})
	wantAttrs(t, spans["tickets_mcp__get_ticket"], map[string]any{
		"mcp.tool.name": "get_ticket", "mcp.method": "tools/call", "mcp.method.name": "tools/call", "tool.outcome": "ok",
		"input.value": `{"a":1}`, "output.value": `{"b":2}`,
	})
	wantAttrs(t, spans["guardrail.output.stream"], map[string]any{
		"openinference.span.kind": "GUARDRAIL", "guardrail.stage": "output", "guardrail.name": "regex + deterministic PII output",
		"guardrail.framework": "weir", "guardrail.type": "streaming_window_output_pipeline", "gen_ai.operation.name": "guardrail_check",
		"guardrail.outcome": "modified", "guardrail.blocked": false, "guardrail.modified": true, "guardrail.oversized": false,
		"guardrail.masked_entities": `{"EMAIL_ADDRESS":2}`, "guardrail.output.length": int64(40), "guardrail.input.length": int64(44),
	})
}

// Words that a plugin, a model or an error chose reach no span, whatever form
// a decision has.
func TestForeignWordsStayOut(t *testing.T) {
	const words = "mail bob@example.com now"
	for _, decision := range []string{
		`{"outcome":"` + words + `","decision_source":"` + words + `","deterministic_block_matches":["` + words + `"],"deterministic_allow_matches":["` + words + `"],"masked_entities":{"` + words + `":1},"note":"` + words + `"}`,
		`{"outcome":7,"masked_entities":["` + words + `"]}`, `"` + words + `"`, words, `{`, ``,
	} {
		tracer, ended := record(t, telemetry.Options{})
		ctx, run := tracer.StartRun(t.Context(), start)
		useAll(ctx, tracer, run, words)
		_, input := tracer.StartInputGuard(ctx, words, "")
		input.End([]byte(decision), words, "")
		_, output := tracer.StartOutputGuard(ctx)
		output.End([]byte(decision), 1)
		for name, attrs := range ended() {
			for key, value := range attrs {
				if list, ok := value.([]string); ok {
					value = strings.Join(list, " ")
				}
				if s, _ := value.(string); strings.Contains(s, "bob") || strings.Contains(s, "mail") {
					t.Errorf("%s of %s holds %q", key, name, s)
				}
			}
		}
	}
}

// A run whose request already has a span goes on in it.
func TestChildrenFollowTheContext(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), telemetry.Options{})
	ctx, run := tracer.StartRun(t.Context(), start)
	toolCtx, tool := tracer.StartTool(ctx, telemetry.ToolStart{Name: "t", StepName: "g__t"})
	tool.End("", false)
	run.End(telemetry.StateCompleted, "")
	spans := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range recorder.Ended() {
		spans[s.Name()] = s
	}
	root, execute, call := spans[start.Name], spans["execute_tool t"], spans["g__t"]
	if execute.Parent().SpanID() != root.SpanContext().SpanID() || call.Parent().SpanID() != execute.SpanContext().SpanID() {
		t.Error("the tool's spans do not hang under the root")
	}
	if trace.SpanContextFromContext(toolCtx).SpanID() != call.SpanContext().SpanID() {
		t.Error("the context of a tool call is not the call's")
	}
	if root.SpanKind() != trace.SpanKindServer || call.SpanKind() != trace.SpanKindClient {
		t.Errorf("kinds %v and %v, want server and client", root.SpanKind(), call.SpanKind())
	}
}

// The error handling of callers needs no span: an ended context is fine.
func TestEndedContext(t *testing.T) {
	tracer, ended := record(t, telemetry.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	_, run := tracer.StartRun(ctx, start)
	run.End(telemetry.StateCancelled, "")
	if ended()[start.Name]["agent.execution.state"] != "cancelled" {
		t.Error("the span of a cancelled run is missing")
	}
}

// Clause 9: the spans of a change that a person has approved.
func TestApprovalSpans(t *testing.T) {
	opened := time.Unix(1_700_000_000, 0)
	run := func(opts telemetry.Options) map[string]map[string]any {
		tracer, ended := record(t, opts)
		tracer.Waited(t.Context(), "I", "radio", "selected", opened, opened.Add(time.Minute))
		_, execute := tracer.StartExecute(t.Context())
		execute.End(telemetry.GateRefused)
		tracer.Gated(t.Context(), telemetry.Gate{Action: "set_ticket_priority", Resource: "TKT-1", Outcome: telemetry.GateApplied, Override: true, Committed: true})
		tracer.Responded(t.Context(), "E", "I", "not_owner")
		return ended()
	}
	spans := run(everything)
	wantAttrs(t, spans["human_approval.wait"], map[string]any{"interaction.id": "I", "interaction.kind": "radio", "interaction.outcome": "selected"})
	wantAttrs(t, spans["mcp.approvals.execute"], map[string]any{"status": "refused_by_mcp", "error.type": "refused_by_mcp"})
	wantAttrs(t, spans["approval.gate"], map[string]any{"approval.action": "set_ticket_priority", "approval.resource_id": "TKT-1",
		"approval.outcome": "applied", "approval.override": true, "approval.committed": true})
	wantAttrs(t, spans["human_approval.respond"], map[string]any{"execution.id": "E", "interaction.id": "I", "interaction.outcome": "not_owner"})
	if _, there := run(telemetry.Options{})["approval.gate"]["approval.resource_id"]; there {
		t.Error("what is changed stands on a span without content")
	}
	tracer, ended := record(t, everything)
	tracer.Responded(t.Context(), "words of", "the client", "not_found")
	wantAttrs(t, ended()["human_approval.respond"], map[string]any{"interaction.outcome": "not_found"})
}
