package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Outcomes of a proposed change that are told of by no other package.
const (
	GateUnavailable = "unavailable"
	GateApplied     = "applied"
	GateRefused     = "refused_by_mcp"
	GateUnknown     = "unknown" // whether it was applied
)

// Gate is how a proposed change ended.
type Gate struct {
	Action    string // as the executing server calls it
	Resource  string // as a person was shown it; recorded with content only
	Outcome   string // a code
	Override  bool   // a person has chosen another state than the one there was
	Committed bool
}

// Gated records the end of a proposed change as a span of its own: the time that
// it took is that of its questions, each of which has one.
func (t *Tracer) Gated(ctx context.Context, g Gate) {
	if t == nil {
		return
	}
	_, s := t.start(ctx, SpanApprovalGate, trace.SpanKindInternal, t.content([]attribute.KeyValue{
		attribute.String(AttrApprovalAction, code(g.Action)),
		attribute.String(AttrApprovalOutcome, code(g.Outcome)),
		attribute.Bool(AttrApprovalOverride, g.Override),
		attribute.Bool(AttrApprovalCommitted, g.Committed),
	}, AttrApprovalResource, g.Resource)...)
	s.span.End()
}

// Waited records how long a run has waited for a person. Outcome is what became
// of the question: selected, answered, cancelled or timed_out.
func (t *Tracer) Waited(ctx context.Context, interaction, kind, outcome string, from, to time.Time) {
	if t == nil {
		return
	}
	_, span := t.tracer.Start(ctx, SpanApprovalWait, trace.WithTimestamp(from), trace.WithAttributes(
		attribute.String(AttrInteractionID, interaction),
		attribute.String(AttrInteractionKind, code(kind)),
		attribute.String(AttrInteractionOutcome, code(outcome))))
	span.End(trace.WithTimestamp(to))
}

// ExecuteSpan is the request that has an approved change carried out. Its method
// does nothing on nil.
type ExecuteSpan struct{ span }

// StartExecute begins it.
func (t *Tracer) StartExecute(ctx context.Context) (context.Context, *ExecuteSpan) {
	if t == nil {
		return ctx, nil
	}
	ctx, s := t.start(ctx, SpanApprovalExecute, trace.SpanKindClient)
	return ctx, &ExecuteSpan{s}
}

// End ends it with an outcome, which is applied or a failure.
func (s *ExecuteSpan) End(outcome string) {
	if s == nil {
		return
	}
	if outcome != GateApplied {
		s.fail(code(outcome))
	}
	s.span.span.End()
}

// Responded records an answer that was given, in a trace of its own. Outcome is
// accepted, not_found, not_owner, gone or not_offered; what was not found is not
// named, since the names are the client's own words.
func (t *Tracer) Responded(ctx context.Context, execution, interaction, outcome string) {
	if t == nil {
		return
	}
	attrs := []attribute.KeyValue{attribute.String(AttrInteractionOutcome, code(outcome))}
	if outcome != "not_found" {
		attrs = append(attrs, attribute.String(AttrExecutionID, execution), attribute.String(AttrInteractionID, interaction))
	}
	_, s := t.start(ctx, SpanApprovalRespond, trace.SpanKindInternal, attrs...)
	s.span.End()
}
