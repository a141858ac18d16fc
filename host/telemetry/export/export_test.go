package export_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"weir/host/fault"
	"weir/host/telemetry"
	"weir/host/telemetry/export"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an OTLP/HTTP collector.
type receiver struct {
	url string

	mu       sync.Mutex
	raw      bytes.Buffer
	paths    []string
	requests []*collector.ExportTraceServiceRequest
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := io.Reader(req.Body)
		if req.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(body)
		}
		raw, err := io.ReadAll(body)
		message := &collector.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(raw, message)
		}
		if err != nil || req.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("a request of type %q: %v", req.Header.Get("Content-Type"), err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.Write(raw)
		r.paths = append(r.paths, req.URL.Path)
		r.requests = append(r.requests, message)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	r.url = server.URL
	return r
}

// spans returns what arrived, by name, and the resource's attributes.
func (r *receiver) spans(t *testing.T) (map[string]*traces.Span, map[string]string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	spans, res := map[string]*traces.Span{}, map[string]string{}
	for _, request := range r.requests {
		for _, rs := range request.ResourceSpans {
			res = texts(rs.Resource.Attributes)
			for _, ss := range rs.ScopeSpans {
				if ss.Scope.Name != "weir" {
					t.Errorf("scope %q, want weir", ss.Scope.Name)
				}
				for _, s := range ss.Spans {
					spans[s.Name] = s
				}
			}
		}
	}
	return spans, res
}

func texts(attrs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range attrs {
		out[kv.Key] = kv.Value.GetStringValue()
	}
	return out
}

// environment clears what the machine may have set.
func environment(t *testing.T, set map[string]string) {
	t.Helper()
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT",
		"OTEL_COLLECTOR_TRACES_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "DEPLOYMENT_ENVIRONMENT", "OTEL_SDK_DISABLED",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "HTTP_PROXY", "http_proxy", "OTEL_TRACES_SAMPLER"} {
		t.Setenv(name, set[name])
	}
}

func begin(t *testing.T, opts export.Options) *export.Exporter {
	t.Helper()
	e, err := export.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

// canaries must not leave the process: keys, identities, what the guards have
// not seen, what a peer said.
var canaries = []string{"CANARY-gateway-key", "CANARY-mcp-key", "CANARY-secret", "Bearer ", "CANARY-user", "canary@example.com",
	"CANARY-blocked question", "CANARY-model text", "CANARY-tool", "CANARY-plugin words", "CANARY-provider error"}

// aRun plays a run with canaries wherever a caller could hand one in.
func aRun(ctx context.Context, tracer *telemetry.Tracer) {
	ctx, run := tracer.StartRun(ctx, telemetry.RunStart{
		Name: "support-tickets-agent.invoke", RunID: "run-1", RequestID: "req-1", RequestIDSource: "gateway",
		Roles: []string{"agent"}, Pseudonym: "CANARY-user", Traceparent: "00-" + traceID + "-00f067aa0ba902b7-01",
	})
	guardCtx, input := tracer.StartInputGuard(ctx, "CANARY-blocked question", "small")
	_, call := tracer.StartGuardModelCall(guardCtx, telemetry.ChatStart{Model: "small"})
	call.End(telemetry.ChatEnd{Failure: "CANARY-provider error: Bearer CANARY-gateway-key"})
	input.End([]byte(`{"outcome":"passed","decision_source":"CANARY-plugin words","note":"CANARY-secret","deterministic_block_matches":["CANARY-plugin words"]}`),
		"which tickets are open?", "CANARY-plugin words")
	run.Question("which tickets are open?")
	run.QuestionBlocked("CANARY-blocked question")

	_, chat := tracer.StartChat(ctx, telemetry.ChatStart{Model: "large", Stream: true})
	chat.FirstChunk()
	chat.End(telemetry.ChatEnd{FinishReason: "CANARY-model text"})
	tracer.ToolPolicy(ctx, "CANARY-tool", false, telemetry.PolicyDeny, "CANARY-model text of canary@example.com")
	_, tool := tracer.StartTool(ctx, telemetry.ToolStart{Name: "get_ticket", StepName: "tickets_mcp__get_ticket", Input: `{"ticket_id":"TKT-1"}`})
	tool.End(`{"title":"[REDACTED]"}`, false)
	tracer.GuardVerdict(ctx, telemetry.GuardVerdict{Stage: "tool_call", Name: "screen", Verdict: "block",
		ReasonCode: "CANARY-plugin words", Fuel: 1, Failure: "CANARY-plugin words"})
	_, output := tracer.StartOutputGuard(ctx)
	output.End([]byte(`{"outcome":"passed","masked_entities":{"CANARY-plugin words":1}}`), 3)
	run.Released("Two are open.")
	run.End(telemetry.StateCompleted, "CANARY-provider error: Bearer CANARY-mcp-key")
}

// Clause 9: one trace a run, its tree, the resource; and the canaries stay in.
func TestExport(t *testing.T) {
	r := receive(t)
	environment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": r.url + "/custom/v1/traces",
		"OTEL_COLLECTOR_TRACES_ENDPOINT":     "http://127.0.0.1:1/",
		"OTEL_RESOURCE_ATTRIBUTES":           "agent.type=support-tickets,agent.runtime=other",
	})
	e := begin(t, export.Options{ServiceName: "support-tickets-agent", Version: "1.2.3"})
	aRun(t.Context(), telemetry.New(e.TracerProvider(), telemetry.Options{CaptureContent: true, CaptureGuardContent: true}))
	for range 2 {
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	spans, res := r.spans(t)
	delete(res, "telemetry.sdk.version")
	if diff := cmp.Diff(map[string]string{
		"service.name": "support-tickets-agent", "service.namespace": "agents", "service.version": "1.2.3",
		"deployment.environment": "local", "agent.runtime": "weir", "agent.type": "support-tickets",
		"telemetry.sdk.language": "go", "telemetry.sdk.name": "opentelemetry",
	}, res); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if !slices.Equal(slices.Compact(r.paths), []string{"/custom/v1/traces"}) {
		t.Errorf("paths %v", r.paths)
	}
	const root = "support-tickets-agent.invoke"
	for child, parent := range map[string]string{
		"guardrail.input.self_check": root, "guard_model.call": "guardrail.input.self_check", "chat large": root, "tool.policy": root,
		"execute_tool get_ticket": root, "tickets_mcp__get_ticket": "execute_tool get_ticket", "guardrail.tool_call": root,
		"guardrail.output.stream": root,
	} {
		if spans[child] == nil || !bytes.Equal(spans[child].ParentSpanId, spans[parent].SpanId) {
			t.Errorf("span %s is not there or not under %s", child, parent)
		} else if got := hex.EncodeToString(spans[child].TraceId); got != traceID {
			t.Errorf("span %s is of trace %s, want the joined %s", child, got, traceID)
		}
	}
	if len(spans) != 9 {
		t.Errorf("%d spans, want 9", len(spans))
	}
	if got := hex.EncodeToString(spans[root].ParentSpanId); got != "00f067aa0ba902b7" {
		t.Errorf("the root's parent is %s, want the traceparent's", got)
	}
	if got := texts(spans[root].Attributes)["output.value"]; got != "Two are open." {
		t.Errorf("output.value %q", got)
	}
	for _, canary := range append(canaries, "enduser.pseudonym") {
		if bytes.Contains(r.raw.Bytes(), []byte(canary)) {
			t.Errorf("%q left the process", canary)
		}
	}
}

// The canary test can see a canary: the pseudonym, once it is asked for.
func TestCanaryControl(t *testing.T) {
	r := receive(t)
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.url})
	e := begin(t, export.Options{})
	aRun(t.Context(), telemetry.New(e.TracerProvider(), telemetry.Options{CapturePseudonym: true}))
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(r.raw.Bytes(), []byte("CANARY-user")) {
		t.Error("the pseudonym is missing although it was asked for")
	}
	for _, content := range []string{"which tickets", "Two are open", "TKT-1", "REDACTED"} {
		if bytes.Contains(r.raw.Bytes(), []byte(content)) {
			t.Errorf("%q left the process without capture", content)
		}
	}
}

// DECISIONS 8: the variable if set; else OTLP if an endpoint is; else none.
func TestExporterChoice(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		path string // "" for no export
	}{
		"nothing set":          {},
		"blank endpoint":       {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "  "}},
		"traces endpoint":      {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL/a"}, path: "/a"},
		"base endpoint":        {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL/b/"}, path: "/b/v1/traces"},
		"collector's endpoint": {env: map[string]string{"OTEL_COLLECTOR_TRACES_ENDPOINT": "URL/c"}, path: "/c"},
		"blank, then another":  {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": " ", "OTEL_COLLECTOR_TRACES_ENDPOINT": "URL/c"}, path: "/c"},
		"otlp":                 {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, path: "/v1/traces"},
		"none":                 {env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}},
		"disabled":             {env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}},
		"http/protobuf":        {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, path: "/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t)
			for k, v := range c.env {
				c.env[k] = strings.ReplaceAll(v, "URL", r.url)
			}
			environment(t, c.env)
			e := begin(t, export.Options{})
			tracer := telemetry.New(e.TracerProvider(), telemetry.Options{})
			ctx, run := tracer.StartRun(t.Context(), telemetry.RunStart{Name: "x"})
			run.End(telemetry.StateCompleted, "")
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if on := telemetry.TraceID(ctx) != ""; on != (c.path != "") {
				t.Errorf("a trace id: %v, want %v", on, c.path != "")
			}
			if got := strings.Join(r.paths, " "); got != c.path {
				t.Errorf("exported to %q, want %q", got, c.path)
			}
		})
	}
}

func TestConsole(t *testing.T) {
	environment(t, map[string]string{"OTEL_TRACES_EXPORTER": "console"})
	var out bytes.Buffer
	e := begin(t, export.Options{Console: &out})
	_, run := telemetry.New(e.TracerProvider(), telemetry.Options{}).StartRun(t.Context(), telemetry.RunStart{Name: "x.invoke"})
	run.End(telemetry.StateCompleted, "")
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "x.invoke") {
		t.Errorf("the console shows %q", out.String())
	}
}

func TestRefusals(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_TRACES_EXPORTER":               "zipkin",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector-secret:4318",
		"OTEL_EXPORTER_OTLP_ENDPOINT":        "grpc://collector-secret",
		"OTEL_COLLECTOR_TRACES_ENDPOINT":     "://secret",
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "grpc",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json",
	} {
		env := map[string]string{name: value}
		if strings.HasSuffix(name, "PROTOCOL") {
			env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:1"
		}
		environment(t, env)
		_, err := export.Start(t.Context(), export.Options{})
		if fault.Of(err) != fault.Invalid || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s=%s: %v, want kind invalid, the name and not the value", name, value, err)
		}
	}
}

// A collector that cannot be reached, or that hangs, costs spans and nothing
// else.
func TestUnreachableCollector(t *testing.T) {
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close() // accepts by its backlog and never answers
	for name, endpoint := range map[string]string{"refusing": "http://127.0.0.1:1", "hanging": "http://" + hanging.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "1"})
			var log bytes.Buffer
			e := begin(t, export.Options{ShutdownTimeout: 200 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			tracer := telemetry.New(e.TracerProvider(), telemetry.Options{})
			began := time.Now()
			for range 5000 { // more than the queue holds
				_, run := tracer.StartRun(t.Context(), telemetry.RunStart{Name: "x"})
				run.End(telemetry.StateCompleted, "")
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("5000 runs took %v: serving waits for the collector", took)
			}
			began = time.Now()
			err := e.Shutdown(t.Context())
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("shutdown took %v, want about 200ms", took)
			}
			// The last flush fails, or every batch has failed before it.
			told := err != nil || log.Len() > 0
			if !told || err != nil && (fault.Of(err) != fault.Unavailable || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("shutdown: %v, log %q, want kind unavailable and no address", err, log.String())
			}
			if strings.Contains(log.String(), "127.0.0.1") {
				t.Errorf("the log holds the address: %s", log.String())
			}
		})
	}
}
