package telemetry

import (
	"context"
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
	began time.Time
	first bool
}

// StartChat begins the span of a call to the agent's model.
func (t *Tracer) StartChat(ctx context.Context, start ChatStart) (context.Context, *ChatSpan) {
	if t == nil {
		return ctx, nil
	}
	return t.startChat(ctx, SpanChat+start.Model, start)
}

// StartGuardModelCall begins the span of a guardrail's model call.
func (t *Tracer) StartGuardModelCall(ctx context.Context, start ChatStart) (context.Context, *ChatSpan) {
	if t == nil {
		return ctx, nil
	}
	return t.startChat(ctx, SpanGuardModelCall, start)
}

func (t *Tracer) startChat(ctx context.Context, name string, start ChatStart) (context.Context, *ChatSpan) {
	if start.Provider == "" {
		start.Provider = "openai"
	}
	attrs := []attribute.KeyValue{
		attribute.String(AttrOpenInferenceKind, KindLLM),
		attribute.String(AttrGenAIOperation, OperationChat),
		attribute.String(AttrGenAIProvider, start.Provider),
		attribute.String(AttrGenAIModel, start.Model),
	}
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
	return ctx, &ChatSpan{span: s, began: began}
}

// FirstChunk records the time to the first chunk of a streamed reply; calls
// after the first do nothing. It is not safe for concurrent use.
func (s *ChatSpan) FirstChunk() {
	if s == nil || s.first {
		return
	}
	s.first = true
	s.set(attribute.Float64(AttrGenAIFirstChunk, time.Since(s.began).Seconds()))
}

// End ends the span.
func (s *ChatSpan) End(end ChatEnd) {
	if s == nil {
		return
	}
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
