package host_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"weir/host/benchtest"
	"weir/host/hosttest"
	"weir/host/telemetry/telemetrytest"
)

// BenchmarkTelemetry is whole runs over HTTP through the host as it is shipped,
// each with a guard's model call, two of the agent's and a tool, four at a time:
// with all three signals exported, and with none. Rounds take turns. The
// collector is in the same process and reads what comes.
func BenchmarkTelemetry(b *testing.B) {
	const runs, clients = 40, 4
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	b.Cleanup(collector.Close)
	key := map[string]string{"NAT_GATEWAY_API_KEY": hosttest.ServiceKey}
	telemetrytest.Environment(b, nil)
	off := neighbours(b, key, "")
	telemetrytest.Environment(b, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_METRIC_EXPORT_INTERVAL": "1000"})
	on := neighbours(b, key, "")
	round := func(o *observed) func() {
		return func() {
			var wait sync.WaitGroup
			for range clients {
				wait.Go(func() {
					for range runs / clients {
						if _, err := o.Ask(context.Background(), "Show me all open tickets"); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wait.Wait()
		}
	}
	round(off)()
	round(on)()
	var work [2]time.Duration
	worked := func(n int, f func()) func() {
		return func() {
			before := benchtest.Processor()
			f()
			work[n] += benchtest.Processor() - before
		}
	}
	without, with := worked(0, round(off)), worked(1, round(on))
	times := benchtest.InTurn(b, without, with, with, without)
	// What else the machine does lasts longer than four rounds, and grows or
	// shrinks within them.
	var ratios []float64
	for i := range times[0] {
		ratios = append(ratios, float64(times[1][i]+times[2][i])/float64(times[0][i]+times[3][i]))
	}
	b.ReportMetric(benchtest.Quantile(ratios, 0.5), "x-time")
	b.ReportMetric(float64(work[1])/float64(work[0]), "x-processor")
	b.ReportMetric(runs/times[0].Median().Seconds(), "runs/s-off")
	b.ReportMetric(runs/times[1].Median().Seconds(), "runs/s-on")
}
