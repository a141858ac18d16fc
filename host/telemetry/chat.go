package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// ChatStart is what is known of a model call before it is made. Zero values
// are left out.
type ChatStart struct {
	Model       string
	Provider    string // gen_ai.provider.name; default "openai", the protocol's name
	Stream      bool
	Temperature *float64
	MaxTokens   int
}

// ChatEnd is how a model call ended. Its zero value is a reply of which
// nothing more is known.
type ChatEnd struct {
	FinishReason string
	InputTokens  int    // 0: not told
	OutputTokens int    // 0: not told
	Failure      string // code of the failure: unavailable, timeout, bad_reply
}

// ChatSpan is one model call. Its methods do nothing on nil.
type ChatSpan struct {
	span
	run   *RunSpan // whose client waits for this text; nil of a guard's call
	attrs []attribute.KeyValue
	began time.Time
	first bool
}

// StartChat begins the span of a call to the agent's model.
func (t *Tracer) StartChat(ctx context.Context, start ChatStart) (context.Context, *ChatSpan) {
	if t == nil {
		return ctx, nil
	}
	ctx, s := t.startChat(ctx, SpanChat+start.Model, "agent", start)
	s.run, _ = ctx.Value(runKey{}).(*RunSpan)
	return ctx, s
}

// StartGuardModelCall begins the span of a guardrail's model call.
func (t *Tracer) StartGuardModelCall(ctx context.Context, start ChatStart) (context.Context, *ChatSpan) {
	if t == nil {
		return ctx, nil
	}
	return t.startChat(ctx, SpanGuardModelCall, "guard", start)
}

func (t *Tracer) startChat(ctx context.Context, name, alias string, start ChatStart) (context.Context, *ChatSpan) {
	if start.Provider == "" {
		start.Provider = "openai"
	}
	shared := []attribute.KeyValue{ // by the span and the metrics
		attribute.String(AttrGenAIOperation, OperationChat),
		attribute.String(AttrGenAIProvider, start.Provider),
		attribute.String(AttrGenAIModel, start.Model),
		attribute.String(AttrModelAlias, alias),
	}
	attrs := append(slices.Clone(shared), attribute.String(AttrOpenInferenceKind, KindLLM))
	if start.Stream {
		attrs = append(attrs, attribute.Bool(AttrGenAIStream, true))
	}
	if start.Temperature != nil {
		attrs = append(attrs, attribute.Float64(AttrGenAITemperature, *start.Temperature))
	}
	if start.MaxTokens > 0 {
		attrs = append(attrs, attribute.Int(AttrGenAIMaxTokens, start.MaxTokens))
	}
	began := time.Now()
	ctx, s := t.start(ctx, name, trace.SpanKindClient, attrs...)
	return ctx, &ChatSpan{span: s, attrs: shared, began: began}
}

// FirstChunk records the time to the first text of a streamed reply; calls
// after the first do nothing. It is not safe for concurrent use.
func (s *ChatSpan) FirstChunk() {
	if s == nil || s.first {
		return
	}
	s.first = true
	if s.run != nil {
		s.run.text()
	}
	took := time.Since(s.began)
	s.set(attribute.Float64(AttrGenAIFirstChunk, took.Seconds()))
	record(s.t.metrics.firstChunk, took, with(s.attrs...))
}

// End ends the span.
func (s *ChatSpan) End(end ChatEnd) {
	if s == nil {
		return
	}
	s.count(end)
	if end.FinishReason != "" {
		s.set(attribute.StringSlice(AttrGenAIFinishReasons, []string{code(end.FinishReason)}))
	}
	if end.InputTokens > 0 || end.OutputTokens > 0 {
		s.set(attribute.Int(AttrGenAIInputTokens, end.InputTokens),
			attribute.Int(AttrGenAIOutputTokens, end.OutputTokens))
	}
	if end.Failure != "" {
		s.fail(code(end.Failure))
	}
	s.span.span.End()
}

// count records the call's duration and tokens.
func (s *ChatSpan) count(end ChatEnd) {
	m, attrs := s.t.metrics, s.attrs[:len(s.attrs):len(s.attrs)]
	s.tokens(attrs, "input", end.InputTokens)
	s.tokens(attrs, "output", end.OutputTokens)
	if end.Failure != "" {
		attrs = append(attrs, attribute.String(AttrErrorType, code(end.Failure)))
	}
	record(m.chatTime, time.Since(s.began), with(attrs...))
}

func (s *ChatSpan) tokens(attrs []attribute.KeyValue, kind string, n int) {
	if n > 0 {
		s.t.metrics.tokens.Record(context.Background(), int64(n),
			with(append(attrs, attribute.String(AttrGenAITokenType, kind))...))
	}
}
