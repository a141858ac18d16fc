package export_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"weir/host/fault"
	"weir/host/logtest"
	"weir/host/telemetry"
	"weir/host/telemetry/export"
	"weir/host/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	r := telemetrytest.Start(t)
	telemetrytest.Environment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": r.URL + "/custom/v1/traces",
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
	spans, res := map[string]*traces.Span{}, r.Resources()["traces"]
	for _, s := range r.Spans() {
		spans[s.Name] = s
	}
	delete(res, "telemetry.sdk.version")
	if diff := cmp.Diff(map[string]string{
		"service.name": "support-tickets-agent", "service.namespace": "agents", "service.version": "1.2.3",
		"deployment.environment": "local", "agent.runtime": "weir", "agent.type": "support-tickets",
		"telemetry.sdk.language": "go", "telemetry.sdk.name": "opentelemetry",
	}, res); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if !slices.Equal(slices.Compact(r.Paths()), []string{"/custom/v1/traces"}) {
		t.Errorf("paths %v", r.Paths())
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
	if got := telemetrytest.Texts(spans[root].Attributes)["output.value"]; got != "Two are open." {
		t.Errorf("output.value %q", got)
	}
	for _, canary := range append(canaries, "enduser.pseudonym") {
		if bytes.Contains(r.Raw(), []byte(canary)) {
			t.Errorf("%q left the process", canary)
		}
	}
}

// The canary test can see a canary: the pseudonym, once it is asked for.
func TestCanaryControl(t *testing.T) {
	r := telemetrytest.Start(t)
	telemetrytest.Environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL})
	e := begin(t, export.Options{})
	aRun(t.Context(), telemetry.New(e.TracerProvider(), telemetry.Options{CapturePseudonym: true}))
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(r.Raw(), []byte("CANARY-user")) {
		t.Error("the pseudonym is missing although it was asked for")
	}
	for _, content := range []string{"which tickets", "Two are open", "TKT-1", "REDACTED"} {
		if bytes.Contains(r.Raw(), []byte(content)) {
			t.Errorf("%q left the process without capture", content)
		}
	}
}

// DECISIONS 8, for each signal: the variable if set; else OTLP if an endpoint
// is; else none.
func TestExporterChoice(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		paths string // "" for no export
	}{
		"nothing set":          {},
		"blank endpoint":       {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "  "}},
		"traces endpoint":      {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL/a"}, paths: "/a"},
		"metrics endpoint":     {env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "URL/x/metrics"}, paths: "/x/metrics"},
		"logs endpoint":        {env: map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "URL/x/logs"}, paths: "/x/logs"},
		"base endpoint":        {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL/b/"}, paths: "/b/v1/logs /b/v1/metrics /b/v1/traces"},
		"collector's endpoint": {env: map[string]string{"OTEL_COLLECTOR_TRACES_ENDPOINT": "URL/c"}, paths: "/c"},
		"blank, then another":  {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": " ", "OTEL_COLLECTOR_TRACES_ENDPOINT": "URL/c"}, paths: "/c"},
		"otlp":                 {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL/v1/traces"}, paths: "/v1/traces"},
		"none of one":          {env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, paths: "/v1/logs /v1/metrics"},
		"none": {env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}},
		"disabled":      {env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}},
		"http/protobuf": {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "URL/logs"}, paths: "/logs"},
		"the platform's pod (platform 7.2)": {env: map[string]string{"OTEL_LOGS_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "otlp",
			"OTEL_METRIC_EXPORT_INTERVAL": "15000", "OTEL_SEMCONV_STABILITY_OPT_IN": "http", "OTEL_SERVICE_NAME": "x",
			"OTEL_RESOURCE_ATTRIBUTES":    "service.namespace=agents,service.version=1.2.3,deployment.environment=prod,agent.type=x",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, paths: "/v1/logs /v1/metrics /v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			r := telemetrytest.Start(t)
			for k, v := range c.env {
				c.env[k] = strings.ReplaceAll(v, "URL", r.URL)
			}
			telemetrytest.Environment(t, c.env)
			e := begin(t, export.Options{})
			tracer := telemetry.New(e.TracerProvider(), telemetry.Options{Metrics: e.MeterProvider()})
			ctx, run := tracer.StartRun(t.Context(), telemetry.RunStart{Name: "x", Traceparent: "00-" + traceID + "-00f067aa0ba902b7-01"})
			slog.New(e.Handler(slog.DiscardHandler)).InfoContext(ctx, "not this one: nobody writes it")
			slog.New(e.Handler(slog.NewTextHandler(io.Discard, nil))).InfoContext(ctx, "a record")
			run.End(telemetry.StateCompleted, "")
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			paths := r.Paths()
			slices.Sort(paths)
			if got := strings.Join(paths, " "); got != c.paths {
				t.Errorf("exported to %q, want %q", got, c.paths)
			}
			// Clause 9: an empty workflow_trace_id where nothing is traced.
			traced := strings.Contains(c.paths, "traces") || c.paths == "/a" || c.paths == "/c"
			if on := telemetry.TraceID(ctx) != ""; on != traced {
				t.Errorf("a trace id: %v, want %v", on, traced)
			}
		})
	}
}

func TestConsole(t *testing.T) {
	telemetrytest.Environment(t, map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console", "OTEL_LOGS_EXPORTER": "console"})
	var out logtest.Buffer // written by three exporters
	e := begin(t, export.Options{Console: &out})
	_, run := telemetry.New(e.TracerProvider(), telemetry.Options{Metrics: e.MeterProvider()}).StartRun(t.Context(), telemetry.RunStart{Name: "x.invoke"})
	slog.New(e.Handler(slog.NewTextHandler(io.Discard, nil))).Info("a record")
	run.End(telemetry.StateCompleted, "")
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"x.invoke", "agent.agent.runs", "a record"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the console does not show %q: %s", want, out.String())
		}
	}
}

// A value that is not understood is refused with its variable's name, and never
// quoted: headers hold keys.
func TestRefusals(t *testing.T) {
	for _, c := range [][2]string{
		{"OTEL_TRACES_EXPORTER", "zipkin"},
		{"OTEL_METRICS_EXPORTER", "prometheus"},
		{"OTEL_LOGS_EXPORTER", "otlp,console"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector-secret:4318"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "collector-secret:4318"},
		{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "collector-secret:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://collector-secret"},
		{"OTEL_COLLECTOR_TRACES_ENDPOINT", "://secret"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"},
		{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
		{"OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "-1"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "secret"},
		{"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=%zzsecret"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/secret.pem"},
		{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "sometimes"},
		{"OTEL_METRIC_EXPORT_INTERVAL", "15s"},
		{"OTEL_METRIC_EXPORT_TIMEOUT", "0"},
		{"OTEL_RESOURCE_ATTRIBUTES", "secret"},
		{"OTEL_SDK_DISABLED", "yes"},
		{"OTEL_TRACES_SAMPLER", "sometimes"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "many"},
		{"OTEL_BLRP_SCHEDULE_DELAY", "1s"},
	} {
		env := map[string]string{c[0]: c[1]}
		if strings.HasSuffix(c[0], "PROTOCOL") {
			env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:1"
		}
		telemetrytest.Environment(t, env)
		_, err := export.Start(t.Context(), export.Options{})
		if fault.Of(err) != fault.Invalid || !strings.HasPrefix(err.Error(), c[0]+": expected ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s=%s: %v, want kind invalid, the name and not the value", c[0], c[1], err)
		}
	}
}

// The control of TestRefusals: good values of the same variables start, and
// the SDK has them.
func TestVariablesHonoured(t *testing.T) {
	r := telemetrytest.Start(t)
	telemetrytest.Environment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x-key=m",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "60000", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_METRIC_EXPORT_INTERVAL": "20",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0",
		"OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BLRP_SCHEDULE_DELAY": "20", "OTEL_SDK_DISABLED": "false", "OTEL_SEMCONV_STABILITY_OPT_IN": "http, gen_ai_latest_experimental",
	})
	e := begin(t, export.Options{})
	tracer := telemetry.New(e.TracerProvider(), telemetry.Options{Metrics: e.MeterProvider(), LatestGenAI: export.LatestGenAI()})
	ctx, run := tracer.StartRun(t.Context(), telemetry.RunStart{Name: "x"})
	_, chat := tracer.StartChat(ctx, telemetry.ChatStart{Model: "m"})
	chat.End(telemetry.ChatEnd{})
	run.End(telemetry.StateCompleted, "")
	deadline := time.Now().Add(time.Minute) // the interval's work, not the shutdown's
	for len(r.Paths()) == 0 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if paths := r.Paths(); len(paths) == 0 || paths[0] != "/v1/metrics" {
		t.Errorf("paths %v before the shutdown, want metrics after 20 ms and no trace, of which none is sampled", paths)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.Headers()[0].Get("x-key"); got != "m" {
		t.Errorf("the header is %q, want that of the signal", got)
	}
	if got := r.Headers()[0].Get("Content-Encoding"); got != "gzip" {
		t.Errorf("the encoding is %q, want gzip", got)
	}
	byName, _ := r.Metrics()
	if byName["gen_ai.client.inference.duration"] == nil || byName["gen_ai.client.operation.duration"] != nil {
		t.Error("the newest GenAI names were asked for and are not there, or the others as well")
	}
}

// Whoever stops the exporter may close the log: nothing is told after that, not
// even by an export that a collector still holds.
func TestNothingIsToldAfterShutdown(t *testing.T) {
	r := telemetrytest.Start(t)
	telemetrytest.Environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL})
	for _, stopped := range []bool{false, true} {
		var log bytes.Buffer
		e := begin(t, export.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if stopped {
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		otel.Handle(context.DeadlineExceeded)
		if (log.Len() == 0) != stopped {
			t.Errorf("stopped %t: told %q", stopped, log.String())
		}
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
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
			telemetrytest.Environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
				"OTEL_EXPORTER_OTLP_TIMEOUT": "60000", "OTEL_BSP_SCHEDULE_DELAY": "1"})
			var log bytes.Buffer
			e := begin(t, export.Options{ShutdownTimeout: 200 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			tracer := telemetry.New(e.TracerProvider(), telemetry.Options{Metrics: e.MeterProvider()})
			tracer.Losses(e.Losses)
			exported := slog.New(e.Handler(slog.NewTextHandler(io.Discard, nil)))
			began := time.Now()
			for range 5000 { // more than the queue holds
				ctx, run := tracer.StartRun(t.Context(), telemetry.RunStart{Name: "x"})
				exported.WarnContext(ctx, "a record")
				run.End(telemetry.StateCompleted, "")
			}
			// Waiting for a collector would take the export's time-out, a minute,
			// for each queue of 2048.
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("5000 runs took %v: serving waits for the collector", took)
			}
			began = time.Now()
			err := e.Shutdown(t.Context())
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("shutdown took %v, want about 200ms", took)
			}
			// The last flush fails, or every batch has failed before it.
			told := err != nil || log.Len() > 0
			if !told || err != nil && (fault.Of(err) != fault.Unavailable || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("shutdown: %v, log %q, want kind unavailable and no address", err, log.String())
			}
			lost := map[string]int64{}
			for _, l := range e.Losses() {
				lost[l.Signal] += l.Count
			}
			// What the last batch held is lost without a count.
			if lost["traces"] < 5000-2048 || lost["logs"] < 5000-2048 {
				t.Errorf("lost %v of 5000 runs, want all but a queue's at least", lost)
			}
			if strings.Contains(log.String(), "127.0.0.1") {
				t.Errorf("the log holds the address: %s", log.String())
			}
		})
	}
}
