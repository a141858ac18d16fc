// Package telemetry starts and ends the spans of a run: one root span, and
// under it a span for every model call, tool call and guardrail verdict. It
// knows only the OpenTelemetry API; package export sets an SDK up.
//
// What may stand on a span is decided here and not by the callers:
//
//   - the question only after the input guards let it pass, in its redacted
//     form; of a blocked one the SHA-256 and the length,
//   - the answer as far as it was released,
//   - tool inputs and outputs in their redacted form,
//   - never messages to or from a model, keys, identities (but for a pseudonym
//     where the operator asked for it) or a plugin's own words: what a plugin or
//     a model can name is admitted only as a short code.
//
// A nil *Tracer is off, and so is every span that it starts: their methods do
// nothing, at the cost of a nil check.
package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options say what spans may carry. The zero value captures no content.
type Options struct {
	// Runtime is the value of agent.runtime; default "weir".
	Runtime string
	// Agent is the agent's name; empty leaves gen_ai.agent.name out.
	Agent string
	// CaptureContent admits questions, answers and tool inputs and outputs
	// (NAT_TRACE_CAPTURE_CONTENT).
	CaptureContent bool
	// ContentMaxChars bounds each of them (NAT_TRACE_CONTENT_MAX_CHARS);
	// default 65536.
	ContentMaxChars int
	// CaptureGuardContent admits the question on the input guard's span
	// (GUARDRAILS_TRACE_CAPTURE_CONTENT).
	CaptureGuardContent bool
	// GuardMaxChars bounds it (GUARDRAILS_TRACE_MAX_CHARS); default 16384.
	GuardMaxChars int
	// CapturePseudonym admits the user's pseudonym (OTEL_TRACE_USER_ID).
	CapturePseudonym bool
}

// Tracer starts spans. It is safe for concurrent use; nil is off.
type Tracer struct {
	tracer trace.Tracer
	opts   Options
}

// New returns a Tracer that starts its spans with the provider. A nil or no-op
// provider gives nil, so nobody invents a trace id where nothing is traced.
func New(provider trace.TracerProvider, opts Options) *Tracer {
	if _, off := provider.(noop.TracerProvider); off || provider == nil {
		return nil
	}
	if opts.Runtime == "" {
		opts.Runtime = "weir"
	}
	if opts.ContentMaxChars <= 0 {
		opts.ContentMaxChars = 65536
	}
	if opts.GuardMaxChars <= 0 {
		opts.GuardMaxChars = 16384
	}
	return &Tracer{tracer: provider.Tracer(ScopeName), opts: opts}
}

// TraceID returns the trace id of ctx's span as 32 hex digits, and "" when
// there is none.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		return sc.TraceID().String()
	}
	return ""
}

// span is what all kinds of span have in common.
type span struct {
	t    *Tracer
	span trace.Span
}

func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, span) {
	ctx, s := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return ctx, span{t: t, span: s}
}

func (s *span) set(attrs ...attribute.KeyValue) { s.span.SetAttributes(attrs...) }

// fail marks the span as failed with a code, never with an error's text.
func (s *span) fail(failure string) {
	s.span.SetStatus(codes.Error, failure)
	s.set(attribute.String(AttrErrorType, failure))
}

// content appends a captured text, when that is switched on and there is one.
func (t *Tracer) content(attrs []attribute.KeyValue, key, text string) []attribute.KeyValue {
	if !t.opts.CaptureContent || text == "" {
		return attrs
	}
	return append(attrs, attribute.String(key, truncate(text, t.opts.ContentMaxChars)))
}

const truncated = "\n[trace content truncated]"

// truncate returns the first limit characters of text and, when that is not
// all of it, says so.
func truncate(text string, limit int) string {
	if len(text) <= limit { // never more characters than bytes
		return text
	}
	for i := range text {
		if limit == 0 {
			return text[:i] + truncated
		}
		limit--
	}
	return text
}

// code admits words that a plugin, a model or a peer chose: names and codes
// pass, sentences do not.
func code(s string) string {
	if s == "" || len(s) > 64 {
		return "other"
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			continue
		}
		switch c {
		case '_', '-', '.', ':', '/', '*':
			continue
		}
		return "other"
	}
	return s
}

// fingerprint is what may be known of a text that may not be shown.
func fingerprint(text string) (digest string, chars int) {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]), utf8.RuneCountInString(text)
}
