package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"weir/host/telemetry"
)

// Platform 7.2 and 7.6: a request is timed to the last byte of its answer, so a
// stream counts with its whole length; one whose client leaves counts, too.
func TestRequestsAreTimed(t *testing.T) {
	reader := metric.NewManualReader()
	tracer := telemetry.New(nil, telemetry.Options{Metrics: metric.NewMeterProvider(metric.WithReader(reader))})
	const length = 300 * time.Millisecond
	stream := func(c *fiber.Ctx, _ any) error {
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 64<<10))
			time.Sleep(length)
			_, _ = w.Write([]byte("end"))
			_ = w.Close()
		}()
		c.Context().Response.SetBodyStream(r, -1)
		return nil
	}
	s, url := start(t, Options{Tracer: tracer}, Route{Method: "GET", Path: "/stream/:id", Handle: stream, Traced: true})
	ask := func(path string, whole bool) {
		req, err := http.NewRequest(http.MethodGet, "http://"+url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("x-authenticated-user-id", "alice")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if whole {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		_ = resp.Body.Close()
	}
	ask("/stream/1", true)
	ask("/stream/2", false)
	for range 5 {
		ask("/version", true)
	}
	s.Stop(context.Background())
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	counts, sums, least := map[string]uint64{}, map[string]float64{}, map[string]float64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == telemetry.MetricHTTPServerDuration {
			for _, p := range h.DataPoints {
				route, _ := p.Attributes.Value(telemetry.AttrHTTPRoute)
				counts[route.AsString()] += p.Count
				sums[route.AsString()] += p.Sum
				least[route.AsString()], _ = p.Min.Value()
			}
		}
	}
	if counts["/stream/:id"] != 2 || counts["/version"] != 5 || len(counts) != 2 {
		t.Errorf("requests by route: %v, want two streams and five versions", counts)
	}
	if got := sums["/stream/:id"]; got < length.Seconds() {
		t.Errorf("the streams took %v s, want %v at least", got, length)
	}
	if got := least["/version"]; got >= length.Seconds() {
		t.Errorf("the shortest version took %v s: the control is as long as a stream", got)
	}
}
