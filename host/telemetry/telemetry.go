// Package telemetry starts and ends the spans of a run: one root span, and
// under it a span for every model call, tool call and guardrail verdict; and it
// counts and times the same things. It knows only the OpenTelemetry API; package
// export sets an SDK up.
//
// What may stand on a span or a metric is decided here and not by the callers:
//
//   - the question only after the input guards let it pass, in its redacted
//     form; of a blocked one the SHA-256 and the length,
//   - the answer as far as it was released,
//   - tool inputs and outputs in their redacted form,
//   - never messages to or from a model, keys, identities (but for a pseudonym
//     where the operator asked for it) or a plugin's own words: what a plugin or
//     a model can name is admitted only as a short code, and on a metric only
//     from a closed set.
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
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options say what spans may carry. The zero value captures no content.
type Options struct {
	// Metrics makes the instruments; nil records no metrics.
	Metrics metric.MeterProvider
	// LatestGenAI takes the metric names of the GenAI conventions' newest
	// release, which few backends draw yet (OTEL_SEMCONV_STABILITY_OPT_IN).
	LatestGenAI bool

	// Runtime is the value of agent.runtime; default "weir".
	Runtime string
	// Agent is the agent's name, and the meter's; empty leaves
	// gen_ai.agent.name out.
	Agent string
	// AgentType is the second part of the names of the agent's metrics;
	// default "agent".
	AgentType string
	// Version is the agent's, and the meter's.
	Version string
	// Routes are the method and route of those contracts whose requests are
	// runs, by the contract's name: a run's root span is the request's span.
	Routes map[string]Route
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

// Route is where a contract's runs come from.
type Route struct{ Method, Path string }

// Tracer starts spans and records metrics. It is safe for concurrent use; nil
// is off.
type Tracer struct {
	tracer  trace.Tracer
	tracing bool
	metrics *instruments
	opts    Options
}

// New returns a Tracer that starts its spans with the provider. Nil or a no-op
// provider starts none, so nobody invents a trace id where nothing is traced;
// without metrics either the Tracer is nil.
func New(provider trace.TracerProvider, opts Options) *Tracer {
	_, off := provider.(noop.TracerProvider)
	off = off || provider == nil
	if off && opts.Metrics == nil {
		return nil
	}
	if off {
		provider = noop.NewTracerProvider()
	}
	opts.defaults()
	return &Tracer{tracer: provider.Tracer(ScopeName), tracing: !off, metrics: newInstruments(opts.Metrics, opts), opts: opts}
}

func (opts *Options) defaults() {
	if opts.Runtime == "" {
		opts.Runtime = "weir"
	}
	if opts.AgentType == "" {
		opts.AgentType = "agent"
	}
	if opts.ContentMaxChars <= 0 {
		opts.ContentMaxChars = 65536
	}
	if opts.GuardMaxChars <= 0 {
		opts.GuardMaxChars = 16384
	}
}

// join returns a context in the trace of a W3C traceparent, if that is valid.
// The tracestate is not taken over: it would be the client's words on every
// span and on every request of ours.
func (t *Tracer) join(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" || !t.tracing {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// TraceID returns the trace id of ctx's span as 32 hex digits, and "" when
// there is none.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		return sc.TraceID().String()
	}
	return ""
}

// Traceparent returns ctx's span as the W3C header has it, and "" when there is
// none.
func Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
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
