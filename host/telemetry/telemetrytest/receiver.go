// Package telemetrytest is for tests of what leaves the process: an OTLP
// collector on loopback that keeps every byte.
package telemetrytest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver is an OTLP/HTTP collector. The last part of a request's path says
// which signal it carries, as in v1/traces; any other path is one of traces.
type Receiver struct {
	URL string

	mu      sync.Mutex
	raw     bytes.Buffer
	paths   []string
	headers []http.Header
	traces  []*traces.ResourceSpans
	metrics []*metrics.ResourceMetrics
	logs    []*logs.ResourceLogs
}

// Start starts a collector, which ends with the test.
func Start(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := r.take(req); err != nil {
			t.Errorf("a request of type %q to %s: %v", req.Header.Get("Content-Type"), req.URL.Path, err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	r.URL = server.URL
	return r
}

func (r *Receiver) take(req *http.Request) error {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return err
		}
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw.Write(raw)
	r.paths = append(r.paths, req.URL.Path)
	r.headers = append(r.headers, req.Header.Clone())
	switch {
	case strings.HasSuffix(req.URL.Path, "/metrics"):
		message := &collectormetrics.ExportMetricsServiceRequest{}
		err = proto.Unmarshal(raw, message)
		r.metrics = append(r.metrics, message.ResourceMetrics...)
	case strings.HasSuffix(req.URL.Path, "/logs"):
		message := &collectorlogs.ExportLogsServiceRequest{}
		err = proto.Unmarshal(raw, message)
		r.logs = append(r.logs, message.ResourceLogs...)
	default:
		message := &collectortraces.ExportTraceServiceRequest{}
		err = proto.Unmarshal(raw, message)
		r.traces = append(r.traces, message.ResourceSpans...)
	}
	return err
}

// Paths returns the paths of all requests so far.
func (r *Receiver) Paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.paths...)
}

// Headers returns the heads of all requests so far.
func (r *Receiver) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]http.Header(nil), r.headers...)
}

// Raw returns every byte of every body so far, uncompressed.
func (r *Receiver) Raw() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.raw.Bytes())
}

// Spans returns all spans so far.
func (r *Receiver) Spans() []*traces.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*traces.Span
	for _, of := range r.traces {
		for _, scope := range of.ScopeSpans {
			all = append(all, scope.Spans...)
		}
	}
	return all
}

// Metrics returns the newest state of every metric, by name. Of the scopes it
// returns the names and versions.
func (r *Receiver) Metrics() (byName map[string]*metrics.Metric, scopes map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	byName, scopes = map[string]*metrics.Metric{}, map[string]string{}
	for _, of := range r.metrics {
		for _, scope := range of.ScopeMetrics {
			scopes[scope.Scope.GetName()] = scope.Scope.GetVersion()
			for _, m := range scope.Metrics {
				byName[m.Name] = m
			}
		}
	}
	return byName, scopes
}

// Logs returns all log records so far.
func (r *Receiver) Logs() []*logs.LogRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*logs.LogRecord
	for _, of := range r.logs {
		for _, scope := range of.ScopeLogs {
			all = append(all, scope.LogRecords...)
		}
	}
	return all
}

// Resources returns the resource attributes of every signal that came.
func (r *Receiver) Resources() map[string]map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]map[string]string{}
	for _, of := range r.traces {
		all["traces"] = Texts(of.Resource.GetAttributes())
	}
	for _, of := range r.metrics {
		all["metrics"] = Texts(of.Resource.GetAttributes())
	}
	for _, of := range r.logs {
		all["logs"] = Texts(of.Resource.GetAttributes())
	}
	return all
}

// Texts returns attributes as text, numbers and truth values included; others
// are empty.
func Texts(attrs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range attrs {
		switch v := kv.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.Key] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_BoolValue:
			out[kv.Key] = strconv.FormatBool(v.BoolValue)
		default:
			out[kv.Key] = ""
		}
	}
	return out
}

// Point is one series of a metric.
type Point struct {
	Attrs map[string]string
	Value float64 // of a sum; of a histogram its sum
	Count uint64  // of a histogram
}

// Points returns the series of a metric; nil has none.
func Points(m *metrics.Metric) []Point {
	var out []Point
	for _, p := range m.GetSum().GetDataPoints() {
		out = append(out, Point{Attrs: Texts(p.Attributes), Value: float64(p.GetAsInt()) + p.GetAsDouble()})
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		out = append(out, Point{Attrs: Texts(p.Attributes), Value: p.GetSum(), Count: p.Count})
	}
	return out
}

// Environment clears every OpenTelemetry variable that the machine may have
// set, and sets those given.
func Environment(t testing.TB, set map[string]string) {
	t.Helper()
	names := []string{"DEPLOYMENT_ENVIRONMENT", "HTTP_PROXY", "http_proxy"}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		t.Setenv(name, "")
	}
	for name, value := range set {
		t.Setenv(name, value)
	}
}
