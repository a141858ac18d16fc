package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"weir/host/fault"
	"weir/host/telemetry"
	"weir/host/telemetry/export"
	"weir/host/telemetry/telemetrytest"
)

// Platform 7.3: a bridge to the log provider, attached once, without a provider
// none; level and text are the handler's.
func TestLogBridge(t *testing.T) {
	var nobody *export.Exporter
	plain := slog.NewTextHandler(new(bytes.Buffer), nil)
	if nobody.Handler(plain) != slog.Handler(plain) {
		t.Error("without an exporter the handler is another")
	}
	r := telemetrytest.Start(t)
	telemetrytest.Environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL})
	e := begin(t, export.Options{})
	var text bytes.Buffer
	h := e.Handler(slog.NewTextHandler(&text, nil))
	if e.Handler(h) != h {
		t.Error("a second attachment is another handler: every record would leave twice")
	}
	ctx, run := telemetry.New(e.TracerProvider(), telemetry.Options{}).StartRun(t.Context(), telemetry.RunStart{Name: "x"})
	logger := slog.New(h).With("replica", "a")
	logger.DebugContext(ctx, "below the level")
	logger.WarnContext(ctx, "with a span", "n", 3)
	logger.Warn("without one")
	run.End(telemetry.StateCompleted, "")
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	records := r.Logs()
	if len(records) != 2 {
		t.Fatalf("%d records, want 2", len(records))
	}
	first := records[0]
	attrs := telemetrytest.Texts(first.Attributes)
	if fmt.Sprintf("%x", first.TraceId) != telemetry.TraceID(ctx) || len(first.SpanId) != 8 || attrs["n"] != "3" || attrs["replica"] != "a" ||
		first.SeverityText != "WARN" {
		t.Errorf("the first record is %v", first)
	}
	if len(records[1].TraceId) != 0 {
		t.Errorf("the second record has trace %x", records[1].TraceId)
	}
	if got := strings.Count(text.String(), "trace_id="+telemetry.TraceID(ctx)+" span_id="); got != 1 || strings.Count(text.String(), "\n") != 2 {
		t.Errorf("the text is %q", text.String())
	}
}

// Words of a plugin, and of whatever broke, stay on standard error: of such an
// error its kind and code go out.
func TestErrorsInTheLog(t *testing.T) {
	pluginErr := fault.Coded(fault.Plugin, "trap", "plugin x: it printed CANARY")
	for name, c := range map[string]struct {
		err        error
		kind, text string
	}{
		"a plugin's":          {err: pluginErr, kind: "plugin:trap"},
		"wrapped":             {err: fmt.Errorf("a: %w", pluginErr), kind: "plugin:trap"},
		"below one of ours":   {err: fault.New(fault.Invalid, "a: %w", pluginErr), kind: "invalid:trap"},
		"among several":       {err: fault.New(fault.Invalid, "a: %w", errors.Join(errors.New("b"), pluginErr)), kind: "invalid:trap"},
		"joined with ours":    {err: errors.Join(fault.New(fault.Invalid, "a"), pluginErr), kind: "invalid"},
		"of nobody":           {err: errors.New("CANARY"), kind: "internal"},
		"ours":                {err: fault.Coded(fault.Unavailable, "timeout", "model agent: no reply"), kind: "unavailable:timeout", text: "model agent: no reply"},
		"ours, of a standard": {err: fault.New(fault.Unavailable, "store: %w", context.Canceled), kind: "unavailable", text: "store: context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			r := telemetrytest.Start(t)
			telemetrytest.Environment(t, map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": r.URL + "/logs"})
			e := begin(t, export.Options{})
			var text bytes.Buffer
			logger := slog.New(e.Handler(slog.NewTextHandler(&text, nil)))
			logger.Warn("it failed", "error", c.err, "unknown", struct{ Field string }{"CANARY"}, slog.Group("g", "error", c.err))
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			attrs := telemetrytest.Texts(r.Logs()[0].Attributes)
			if attrs["error.type"] != c.kind || attrs["error"] != c.text || bytes.Contains(r.Raw(), []byte("CANARY")) {
				t.Errorf("exported %v", attrs)
			}
			if !strings.Contains(text.String(), "CANARY") {
				t.Error("standard error does not have it all")
			}
		})
	}
}
