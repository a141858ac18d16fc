package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

const framework = "weir"

// InputGuardSpan is the input stage of a run. Its methods do nothing on nil.
type InputGuardSpan struct{ span }

// StartInputGuard begins the span of the input stage. Of the question only
// digest and length are recorded; model is the guard model's name, or empty.
func (t *Tracer) StartInputGuard(ctx context.Context, question, model string) (context.Context, *InputGuardSpan) {
	if t == nil {
		return ctx, nil
	}
	digest, chars := fingerprint(question)
	attrs := []attribute.KeyValue{
		attribute.String(AttrOpenInferenceKind, KindGuardrail),
		attribute.String(AttrGuardStage, "input"),
		attribute.String(AttrGuardName, "self check input"),
		attribute.String(AttrGuardFramework, framework),
		attribute.String(AttrGuardType, "llm_self_check_with_deny_and_read_only_allow_overrides"),
		attribute.String(AttrGuardInputSHA256, digest),
		attribute.Int(AttrGuardInputLength, chars),
		attribute.String(AttrGenAIOperation, OperationGuardCheck),
	}
	if model != "" {
		attrs = append(attrs, attribute.String(AttrGenAIModel, model))
	}
	ctx, s := t.start(ctx, SpanInputGuard, trace.SpanKindInternal, attrs...)
	return ctx, &InputGuardSpan{span: s}
}

// End ends the stage with its decision object. Question is the question,
// redacted for display, when it passed; empty when it was blocked. Failure is
// a code when the stage itself failed.
func (s *InputGuardSpan) End(decision []byte, question, failure string) {
	if s == nil {
		return
	}
	attrs := inputDecision(decision)
	if s.t.opts.CaptureGuardContent && question != "" {
		attrs = append(attrs, attribute.String(AttrGuardUserInput, truncate(question, s.t.opts.GuardMaxChars)))
	}
	s.set(attrs...)
	if failure != "" {
		s.fail(code(failure))
	}
	s.span.span.End()
}

// OutputGuardSpan is the output stage of a run. Its methods do nothing on nil.
type OutputGuardSpan struct{ span }

// StartOutputGuard begins the span of the output stage.
func (t *Tracer) StartOutputGuard(ctx context.Context) (context.Context, *OutputGuardSpan) {
	if t == nil {
		return ctx, nil
	}
	ctx, s := t.start(ctx, SpanOutputGuard, trace.SpanKindInternal,
		attribute.String(AttrOpenInferenceKind, KindGuardrail),
		attribute.String(AttrGuardStage, "output"),
		attribute.String(AttrGuardName, "regex + deterministic PII output"),
		attribute.String(AttrGuardFramework, framework),
		attribute.String(AttrGuardType, "streaming_window_output_pipeline"),
		attribute.String(AttrGenAIOperation, OperationGuardCheck))
	return ctx, &OutputGuardSpan{span: s}
}

// End ends the stage with its decision object and the number of characters
// that came in.
func (s *OutputGuardSpan) End(decision []byte, rawChars int) {
	if s == nil {
		return
	}
	s.set(append(outputDecision(decision), attribute.Int(AttrGuardInputLength, rawChars))...)
	s.span.span.End()
}

// GuardVerdict is what one guardrail said at one stage of a run.
type GuardVerdict struct {
	Stage      string // input, output, tool_call, tool_result, display
	Name       string // the plugin's
	Digest     string
	Monitor    bool // it judged beside the run and changed nothing
	Verdict    string
	ReasonCode string
	Fuel       uint64
	Took       time.Duration
	Failure    string // the code of the plugin's failure, if it failed
}

// GuardVerdict counts one guardrail's verdict and records it as a span that
// ends now and is as long as the guardrail worked.
func (t *Tracer) GuardVerdict(ctx context.Context, v GuardVerdict) {
	if t == nil {
		return
	}
	t.countVerdict(v)
	if !t.tracing {
		return
	}
	now := time.Now()
	attrs := []attribute.KeyValue{
		attribute.String(AttrOpenInferenceKind, KindGuardrail),
		attribute.String(AttrGuardStage, code(v.Stage)),
		attribute.String(AttrGuardName, v.Name),
		attribute.String(AttrGuardDigest, v.Digest),
		attribute.String(AttrGuardFramework, framework),
		attribute.String(AttrGuardVerdict, code(v.Verdict)),
	}
	if v.Monitor {
		attrs = append(attrs, attribute.String(AttrGuardMode, "monitor"))
	}
	if v.ReasonCode != "" {
		attrs = append(attrs, attribute.String(AttrGuardReasonCode, code(v.ReasonCode)))
	}
	if v.Fuel > 0 {
		attrs = append(attrs, attribute.Int64(AttrGuardFuel, int64(min(v.Fuel, 1<<63-1))))
	}
	_, s := t.tracer.Start(ctx, SpanGuardPrefix+code(v.Stage), trace.WithTimestamp(now.Add(-v.Took)),
		trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attrs...))
	if v.Failure != "" {
		(&span{t: t, span: s}).fail(code(v.Failure))
	}
	s.End(trace.WithTimestamp(now))
}

// countVerdict has no reason code among its attributes: a plugin could make up
// as many as it likes.
func (t *Tracer) countVerdict(v GuardVerdict) {
	mode := "enforce"
	if v.Monitor {
		mode = "monitor"
	}
	attrs := []attribute.KeyValue{
		attribute.String(AttrPlugin, v.Name),
		attribute.String(AttrStage, code(v.Stage)),
		attribute.String(AttrMode, mode),
	}
	if v.Failure != "" {
		count(t.metrics.guardErrors, with(append(attrs[:3:3], attribute.String(AttrErrorType, code(v.Failure)))...))
	}
	record(t.metrics.guardTime, v.Took, with(attrs...))
	count(t.metrics.guards, with(append(attrs, attribute.String(AttrOutcome, code(v.Verdict)))...))
}
