package telemetry

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// States in which a run's root span ends.
const (
	StateCompleted = "completed"
	StateBlocked   = "blocked"
	StateFailed    = "failed"
	StateCancelled = "cancelled"
	StateAwaiting  = "awaiting_approval" // parked: it goes on later, with a span of its own
)

// RunStart is what the root span says of a run from its beginning.
type RunStart struct {
	Contract        string // the wire contract's name
	Name            string // the span's name: the workflow step's, for instance support-tickets-agent.invoke
	RunID           string // the execution id
	RequestID       string
	RequestIDSource string // gateway or generated
	Generation      string
	Variant         string // empty: there are none
	Roles           []string
	Pseudonym       string        // shown only with Options.CapturePseudonym
	Traceparent     string        // W3C; ignored when empty or malformed
	Before          time.Duration // how long it ran before it was parked
}

// RunSpan is the root span of one run. Its methods are safe for concurrent
// use, and do nothing on nil.
type RunSpan struct {
	span
	contract string
	variant  string
	began    time.Time

	mu        sync.Mutex
	released  strings.Builder
	chars     int       // characters in released, one over the limit when there were more
	firstText time.Time // of the model; zero before, and once its delay is known
	shown     bool      // something was released since firstText
}

// runKey is where a context keeps its run's span.
type runKey struct{}

// StartRun begins the root span, in the trace of the traceparent if that is
// valid. Spans started with the returned context are its children.
func (t *Tracer) StartRun(ctx context.Context, start RunStart) (context.Context, *RunSpan) {
	if t == nil {
		return ctx, nil
	}
	ctx = t.join(ctx, start.Traceparent)
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
	if start.Variant != "" {
		attrs = append(attrs, attribute.String(AttrVariant, start.Variant))
	}
	if t.opts.Agent != "" {
		attrs = append(attrs, attribute.String(AttrGenAIAgentName, t.opts.Agent))
	}
	if t.opts.CapturePseudonym && start.Pseudonym != "" {
		attrs = append(attrs, attribute.String(AttrPseudonym, start.Pseudonym))
	}
	if r, ok := t.opts.Routes[start.Contract]; ok {
		attrs = append(attrs, attribute.String(AttrHTTPMethod, r.Method), attribute.String(AttrHTTPRoute, r.Path),
			attribute.String(AttrURLScheme, "http"), attribute.String(AttrHTTPVersion, "1.1"), attribute.Int(AttrHTTPStatus, 200))
	}
	began := time.Now()
	ctx, s := t.start(ctx, start.Name, trace.SpanKindServer, attrs...)
	r := &RunSpan{span: s, contract: start.Contract, variant: start.Variant, began: began.Add(-start.Before)}
	return context.WithValue(ctx, runKey{}, r), r
}

// text hears that the agent's model has said something.
func (s *RunSpan) text() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.firstText.IsZero() && !s.shown {
		s.firstText = time.Now()
	}
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
// no more than the span may carry. The first after the model's first text tells
// what the guards added to the time of the first token.
func (s *RunSpan) Released(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shown && !s.firstText.IsZero() {
		s.shown = true
		record(s.t.metrics.firstToken, time.Since(s.firstText), with(s.kind()...))
	}
	if !s.t.opts.CaptureContent || !s.t.tracing {
		return
	}
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
	s.count(code(state), failure)
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

// count records a run that ended; one that is parked has not.
func (s *RunSpan) count(state, failure string) {
	if state == StateAwaiting {
		return
	}
	m, kind := s.t.metrics, s.kind()
	attrs := with(append(kind, attribute.String(AttrState, state))...)
	count(m.runs, attrs)
	record(m.runTime, time.Since(s.began), attrs)
	if state == StateFailed {
		count(m.runErrors, with(append(kind, attribute.String(AttrErrorType, code(failure)))...))
	}
}

// kind is what every metric of a run says of it.
func (s *RunSpan) kind() []attribute.KeyValue {
	kind := []attribute.KeyValue{attribute.String(AttrContract, code(s.contract))}
	if s.variant != "" {
		kind = append(kind, attribute.String(AttrVariant, s.variant))
	}
	return slices.Clip(kind)
}
