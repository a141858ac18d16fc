package run

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"weir/host/fault"
	"weir/host/store/memory"
	"weir/host/telemetry"
)

// Platform 7.4: every question to a person is counted once, by what became of
// it, whoever answers and however often.
func TestQuestionsAreCounted(t *testing.T) {
	reader := metric.NewManualReader()
	tracer := telemetry.New(nil, telemetry.Options{Metrics: metric.NewMeterProvider(metric.WithReader(reader))})
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true, Tracer: tracer})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	for range 3 {
		_ = r.keeper.Answer(t.Context(), "support-rep-1", runID, first.ID, accept("answered", "high"))
	}
	within(t, "question", c.asked) // the second one
	c.leave(fault.Coded(fault.Gone, "client_gone", "the client has left"))
	within(t, "end", c.over)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == telemetry.AgentMetric("agent", telemetry.MetricApprovals) {
			for _, p := range sum.DataPoints {
				outcome, _ := p.Attributes.Value(telemetry.AttrOutcome)
				got[outcome.AsString()] += p.Value
			}
		}
	}
	if got["answered"] != 1 || got["cancelled"] != 1 || len(got) != 2 {
		t.Errorf("counted %v, want one answered and one cancelled", got)
	}
}
