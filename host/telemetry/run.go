package telemetry

import (
	"context"
	"strings"
	"sync"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// States in which a run's root span ends.
const (
	StateCompleted = "completed"
	StateBlocked   = "blocked"
	StateFailed    = "failed"
	StateCancelled = "cancelled"
)

// RunStart is what the root span says of a run from its beginning.
type RunStart struct {
	Name            string // the span's name: the workflow step's, for instance support-tickets-agent.invoke
	RunID           string // the execution id
	RequestID       string
	RequestIDSource string // gateway or generated
	Generation      string
	Roles           []string
	Pseudonym       string // shown only with Options.CapturePseudonym
	Traceparent     string // W3C; ignored when empty or malformed
}

// RunSpan is the root span of one run. Its methods are safe for concurrent
// use, and do nothing on nil.
type RunSpan struct {
	span

	mu       sync.Mutex
	released strings.Builder
	chars    int // characters in released, one over the limit when there were more
}

// StartRun begins the root span, in the trace of the traceparent if that is
// valid. Spans started with the returned context are its children.
func (t *Tracer) StartRun(ctx context.Context, start RunStart) (context.Context, *RunSpan) {
	if t == nil {
		return ctx, nil
	}
	if start.Traceparent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx,
			propagation.MapCarrier{"traceparent": start.Traceparent})
	}
	attrs := []attribute.KeyValue{
		attribute.String(AttrAgentRuntime, t.opts.Runtime),
		attribute.String(AttrAgentEventType, "WORKFLOW_START"),
		attribute.String(AttrRequestID, start.RequestID),
		attribute.String(AttrRequestIDSource, start.RequestIDSource),
		attribute.String(AttrExecutionID, start.RunID),
		attribute.String(AttrRoles, strings.Join(start.Roles, ",")),
		attribute.String(AttrGeneration, start.Generation),
		attribute.String(AttrOpenInferenceKind, KindAgent),
		attribute.String(AttrGenAIOperation, OperationInvokeAgent),
	}
	if t.opts.Agent != "" {
		attrs = append(attrs, attribute.String(AttrGenAIAgentName, t.opts.Agent))
	}
	if t.opts.CapturePseudonym && start.Pseudonym != "" {
		attrs = append(attrs, attribute.String(AttrPseudonym, start.Pseudonym))
	}
	ctx, s := t.start(ctx, start.Name, trace.SpanKindServer, attrs...)
	return ctx, &RunSpan{span: s}
}

// TraceID returns the run's trace id as 32 hex digits, "" on nil.
func (s *RunSpan) TraceID() string {
	if s == nil {
		return ""
	}
	return s.span.span.SpanContext().TraceID().String()
}

// Question records the latest question once the input guards let it pass, in
// its redacted form.
func (s *RunSpan) Question(redacted string) {
	if s == nil {
		return
	}
	s.set(s.t.content(nil, AttrInputValue, redacted)...)
}

// QuestionBlocked records the digest and the length of a question that the
// input guards refused, and nothing else of it.
func (s *RunSpan) QuestionBlocked(question string) {
	if s == nil {
		return
	}
	digest, chars := fingerprint(question)
	s.set(attribute.String(AttrInputSHA256, digest), attribute.Int(AttrInputLength, chars))
}

// Released records text that the client receives, notices included. It keeps
// no more than the span may carry.
func (s *RunSpan) Released(text string) {
	if s == nil || !s.t.opts.CaptureContent {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(text) > 0 && s.chars <= s.t.opts.ContentMaxChars {
		_, n := utf8.DecodeRuneInString(text)
		s.released.WriteString(text[:n])
		s.chars++
		text = text[n:]
	}
}

// End ends the run's span in one of the states. Failure is the class of a
// failed run, a code; otherwise empty.
func (s *RunSpan) End(state, failure string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	output := s.released.String()
	s.mu.Unlock()
	s.set(s.t.content(nil, AttrOutputValue, output)...)
	s.set(attribute.String(AttrExecutionState, code(state)))
	if failure != "" {
		failure = code(failure)
		s.set(attribute.String(AttrErrorMessage, failure))
		s.fail(failure)
	}
	s.span.span.End()
}
