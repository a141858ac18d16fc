package telemetry

import (
	"context"

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

// GuardStart names one guardrail and the hook that is called.
type GuardStart struct {
	Hook   string // check_input, check_tool_call, …
	Name   string // the plugin's
	Digest string
	Mode   string // enforce or monitor
}

// GuardSpan is one guardrail's own verdict. Its methods do nothing on nil.
type GuardSpan struct{ span }

// StartGuard begins the span of one guardrail's verdict.
func (t *Tracer) StartGuard(ctx context.Context, start GuardStart) (context.Context, *GuardSpan) {
	if t == nil {
		return ctx, nil
	}
	ctx, s := t.start(ctx, SpanGuardPrefix+start.Hook, trace.SpanKindInternal,
		attribute.String(AttrOpenInferenceKind, KindGuardrail),
		attribute.String(AttrGuardName, start.Name),
		attribute.String(AttrGuardDigest, start.Digest),
		attribute.String(AttrGuardMode, start.Mode),
		attribute.String(AttrGuardFramework, framework))
	return ctx, &GuardSpan{span: s}
}

// End ends the span with the verdict and its reason code. Failure is the code
// of the plugin's failure, if it failed.
func (s *GuardSpan) End(verdict, reasonCode string, fuel uint64, failure string) {
	if s == nil {
		return
	}
	if verdict != "" {
		s.set(attribute.String(AttrGuardVerdict, code(verdict)))
	}
	if reasonCode != "" {
		s.set(attribute.String(AttrGuardReasonCode, code(reasonCode)))
	}
	if fuel > 0 {
		s.set(attribute.Int64(AttrGuardFuel, int64(min(fuel, 1<<63-1))))
	}
	if failure != "" {
		s.fail(code(failure))
	}
	s.span.span.End()
}
