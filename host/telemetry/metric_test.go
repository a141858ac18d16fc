package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"weir/host/telemetry"
)

// meter returns a tracer whose metrics can be read.
func meter(t *testing.T, opts telemetry.Options) (*telemetry.Tracer, func() map[string]metricdata.Aggregation) {
	t.Helper()
	reader := metric.NewManualReader()
	opts.Metrics, opts.Agent, opts.AgentType = metric.NewMeterProvider(metric.WithReader(reader)), "a", "t"
	tracer := telemetry.New(nil, opts)
	return tracer, func() map[string]metricdata.Aggregation {
		var all metricdata.ResourceMetrics
		if err := reader.Collect(context.Background(), &all); err != nil {
			t.Fatal(err)
		}
		out := map[string]metricdata.Aggregation{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				out[m.Name] = m.Data
			}
		}
		return out
	}
}

func seconds(t *testing.T, a metricdata.Aggregation) []float64 {
	t.Helper()
	h, ok := a.(metricdata.Histogram[float64])
	if !ok {
		return nil
	}
	var sums []float64
	for _, p := range h.DataPoints {
		sums = append(sums, p.Sum)
	}
	return sums
}

// The first token's delay is what the guards add: from the model's first text
// to the first released character, once a run, and never of a notice before it.
func TestFirstTokenDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, read := meter(t, telemetry.Options{})
		ctx, run := tracer.StartRun(t.Context(), start)
		run.Released("text that no model said")
		time.Sleep(time.Second)
		for range 2 {
			_, chat := tracer.StartChat(ctx, telemetry.ChatStart{Model: "m", Stream: true})
			time.Sleep(2 * time.Second)
			chat.FirstChunk()
			time.Sleep(30 * time.Millisecond)
			run.Released("a")
			run.Released("b")
			chat.End(telemetry.ChatEnd{})
		}
		_, guard := tracer.StartGuardModelCall(ctx, telemetry.ChatStart{Model: "g"})
		guard.FirstChunk()
		guard.End(telemetry.ChatEnd{})
		run.End(telemetry.StateCompleted, "")
		all := read()
		if got := seconds(t, all["agent.t.first_token_delay.duration"]); !slices.Equal(got, []float64{0.03}) {
			t.Errorf("the delay is %v, want once 30 ms", got)
		}
		if got := seconds(t, all["gen_ai.client.operation.time_to_first_chunk"]); len(got) != 2 || slices.Max(got) != 4 {
			t.Errorf("the time to the first chunk is %v, want 2 s twice of the agent's model", got)
		}
		if got := seconds(t, all["agent.t.runs.duration"]); !slices.Equal(got, []float64{5.06}) {
			t.Errorf("the run took %v, want 5.06 s", got)
		}
	})
}

// A tool's time ends with the server's answer; approvals are counted with the
// time that they were open.
func TestToolsAndApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, read := meter(t, telemetry.Options{})
		_, tool := tracer.StartTool(t.Context(), telemetry.ToolStart{Name: "get_ticket"})
		time.Sleep(time.Second)
		tool.Returned()
		time.Sleep(time.Hour) // guards, here
		tool.End("", false)
		tracer.Approval("answered", time.Minute)
		_, run := tracer.StartRun(t.Context(), start)
		run.End(telemetry.StateAwaiting, "") // parked; then it goes on
		resumed := start
		resumed.Before = 3 * time.Second
		_, run = tracer.StartRun(t.Context(), resumed)
		time.Sleep(time.Second)
		run.End(telemetry.StateCompleted, "")
		all := read()
		for name, want := range map[string]float64{"agent.t.tool_calls.duration": 1, "mcp.client.operation.duration": 1, "agent.t.approvals.duration": 60,
			"agent.t.runs.duration": 4} {
			if got := seconds(t, all[name]); !slices.Equal(got, []float64{want}) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

// Nobody outside makes new series: names of a model, a plugin or a client are
// admitted from closed sets only.
func TestCardinality(t *testing.T) {
	tracer, read := meter(t, telemetry.Options{})
	for _, word := range []string{"one", "two", "three", "a sentence of somebody"} {
		tracer.ToolPolicy(t.Context(), word, false, telemetry.PolicyDeny, "x")
		tracer.Served(telemetry.Exchange{Method: strings.ToUpper(word), Status: 404, Began: time.Now(), Quiet: true})
		tracer.GuardVerdict(t.Context(), telemetry.GuardVerdict{Stage: "input", Name: "screen", Verdict: "block", ReasonCode: word})
	}
	for name, a := range read() {
		n := 0
		switch a := a.(type) {
		case metricdata.Sum[int64]:
			n = len(a.DataPoints)
		case metricdata.Histogram[float64]:
			n = len(a.DataPoints)
		}
		if n != 1 {
			t.Errorf("%s has %d series, want 1", name, n)
		}
	}
}

// Platform 7.6: W3C context out, and only with a span to speak of.
func TestTransport(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Traceparent"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	reader := metric.NewManualReader()
	tracer := telemetry.New(sdktrace.NewTracerProvider(), telemetry.Options{Metrics: metric.NewMeterProvider(metric.WithReader(reader))})
	client := &http.Client{Transport: tracer.Transport(http.DefaultTransport)}
	ctx, run := tracer.StartRun(t.Context(), start)
	for _, ctx := range []context.Context{ctx, context.Background()} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/secret", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if req.Header.Get("Traceparent") != "" {
			t.Error("the caller's own request was changed")
		}
	}
	run.End(telemetry.StateCompleted, "")
	if len(seen) != 2 || !strings.Contains(seen[0], telemetry.TraceID(ctx)) || seen[1] != "" {
		t.Errorf("the server saw %q, want the trace %s and nothing", seen, telemetry.TraceID(ctx))
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		h, ok := m.Data.(metricdata.Histogram[float64])
		if !ok || m.Name != "http.client.request.duration" {
			continue
		}
		if v, _ := h.DataPoints[0].Attributes.Value(attribute.Key("error.type")); v.AsString() != "418" || h.DataPoints[0].Count != 2 {
			t.Errorf("the client's metric is %+v", h.DataPoints)
		}
		return
	}
	t.Error("the client's metric is missing")
}
