package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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
// ends now and is as long as the guardrail worked. A look at what people see of
// tools that changed nothing has no span: there are three of these for each
// guard in a run with one tool call, and they say nothing.
func (t *Tracer) GuardVerdict(ctx context.Context, v GuardVerdict) {
	if t == nil {
		return
	}
	t.countVerdict(v)
	if !t.tracing || v.Stage == "display" && v.Verdict == "allow" && v.Failure == "" {
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
	m := t.metrics
	of := m.verdict(verdictKey{v.Name, v.Stage, v.Verdict, v.Monitor})
	record(m.guardTime, v.Took, of.guard)
	count(m.guards, of.outcome)
	if v.Failure != "" {
		count(m.guardErrors, with(append(of.attrs[:len(of.attrs):len(of.attrs)], attribute.String(AttrErrorType, code(v.Failure)))...))
	}
}

// verdictKey is what a verdict's series depend on. All of it comes from
// agent.toml and closed sets.
type verdictKey struct {
	plugin, stage, verdict string
	monitor                bool
}

// verdictSeries are the attributes of a verdict, made once: there are about ten
// verdicts in a run.
type verdictSeries struct {
	attrs          []attribute.KeyValue
	guard, outcome metric.MeasurementOption
}

func (m *instruments) verdict(key verdictKey) *verdictSeries {
	if s, ok := m.verdicts.Load(key); ok {
		return s.(*verdictSeries)
	}
	mode := "enforce"
	if key.monitor {
		mode = "monitor"
	}
	attrs := []attribute.KeyValue{
		attribute.String(AttrPlugin, key.plugin),
		attribute.String(AttrStage, code(key.stage)),
		attribute.String(AttrMode, mode),
	}
	s := &verdictSeries{attrs: attrs, guard: with(attrs...),
		outcome: with(append(attrs[:3:3], attribute.String(AttrOutcome, code(key.verdict)))...)}
	m.verdicts.Store(key, s)
	return s
}
