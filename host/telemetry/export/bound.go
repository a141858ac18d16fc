package export

import (
	"context"
	"sync/atomic"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"weir/host/fault"
	"weir/host/telemetry"
)

// bound counts what waits for its export. The SDK's own queues drop what does
// not fit without saying how much, so what would not fit is dropped before:
//
//	span, record ─► bound.enter ─► SDK's queue ─► batch ─► exporter ─► bound.leave
//	                  │ full: counted                          │ failed: counted
type bound struct {
	limit   int64
	waiting atomic.Int64
	full    atomic.Int64
	failed  atomic.Int64
	gone    atomic.Bool // nothing is exported any more
}

// errGone counts what still comes from a processor that is left to itself.
var errGone = fault.New(fault.Unavailable, "telemetry: nothing is exported any more")

// export calls f unless nothing is exported any more: a batch costs work before
// its exporter finds that it was shut down.
func (b *bound) export(f func() error) error {
	if b.gone.Load() {
		return errGone
	}
	return f()
}

// enter reports whether one more may wait.
func (b *bound) enter() bool {
	if b.waiting.Add(1) > b.limit {
		b.waiting.Add(-1)
		b.full.Add(1)
		return false
	}
	return true
}

func (b *bound) leave(n int, err error) {
	b.waiting.Add(int64(-n))
	if err != nil {
		b.failed.Add(int64(n))
	}
}

func (b *bound) losses(signal string) []telemetry.Loss {
	return []telemetry.Loss{
		{Signal: signal, Reason: "queue_full", Count: b.full.Load()},
		{Signal: signal, Reason: "not_exported", Count: b.failed.Load()},
	}
}

// spanQueue is the SDK's batches behind a bound.
type spanQueue struct {
	sdktrace.SpanProcessor
	bound *bound
}

// OnEnd implements sdktrace.SpanProcessor. It never waits.
func (q spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() && q.bound.enter() {
		q.SpanProcessor.OnEnd(s)
	}
}

type spanExit struct {
	sdktrace.SpanExporter
	bound *bound
}

// ExportSpans implements sdktrace.SpanExporter.
func (e spanExit) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.bound.export(func() error { return e.SpanExporter.ExportSpans(ctx, spans) })
	e.bound.leave(len(spans), err)
	return err
}

// logQueue is the SDK's batches behind a bound.
type logQueue struct {
	sdklog.Processor
	bound *bound
}

// OnEmit implements sdklog.Processor. It never waits.
func (q logQueue) OnEmit(ctx context.Context, r *sdklog.Record) error {
	if !q.bound.enter() {
		return nil
	}
	return q.Processor.OnEmit(ctx, r)
}

type logExit struct {
	sdklog.Exporter
	bound *bound
}

// Export implements sdklog.Exporter.
func (e logExit) Export(ctx context.Context, records []sdklog.Record) error {
	err := e.bound.export(func() error { return e.Exporter.Export(ctx, records) })
	e.bound.leave(len(records), err)
	return err
}

// metricExit counts exports that failed. Nothing waits here: the next export
// has the sums again.
type metricExit struct {
	sdkmetric.Exporter
	bound *bound
}

// Export implements sdkmetric.Exporter.
func (e metricExit) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	err := e.bound.export(func() error { return e.Exporter.Export(ctx, m) })
	if err != nil {
		e.bound.failed.Add(1)
	}
	return err
}
