// Package export sets the OpenTelemetry SDK up: where spans go, and as whose.
// It is the only package that knows the SDK.
//
// It is configured by the standard OTEL_ variables of the process, most of
// which the SDK reads itself (headers, time-outs, batches, sampling, limits).
// Decided here are:
//
//	OTEL_TRACES_EXPORTER                none, otlp or console; when unset, otlp
//	                                    if one of the endpoints is set
//	OTEL_EXPORTER_OTLP_TRACES_ENDPOINT  the full address, else
//	OTEL_EXPORTER_OTLP_ENDPOINT         the base of it, else
//	OTEL_COLLECTOR_TRACES_ENDPOINT      the full address
//	OTEL_SERVICE_NAME                   default: the agent's name
//	OTEL_RESOURCE_ATTRIBUTES            service.namespace is "agents" without it
//	DEPLOYMENT_ENVIRONMENT              deployment.environment; default "local"
//	OTEL_SDK_DISABLED                   true: none
package export

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"weir/host/fault"
	"weir/host/telemetry"
)

// Options say what the variables leave open. The zero value is useful.
type Options struct {
	// ServiceName is the service's name without OTEL_SERVICE_NAME; default
	// "weir".
	ServiceName string
	// Version is service.version, unless OTEL_RESOURCE_ATTRIBUTES has one;
	// empty leaves it out.
	Version string
	// Runtime is agent.runtime; default "weir".
	Runtime string
	// Console receives the spans of the console exporter; default standard
	// error, because standard output may carry a protocol.
	Console io.Writer
	// ShutdownTimeout bounds the last flush; default 5 s. A collector that does
	// not answer costs as much at every shutdown.
	ShutdownTimeout time.Duration
	// Logger is told when spans cannot be exported, at most once a minute and
	// without the collector's words; nil tells nobody.
	Logger *slog.Logger
}

// Exporter owns the SDK. A nil *Exporter exports nothing.
type Exporter struct {
	provider *sdktrace.TracerProvider
	exporter sdktrace.SpanExporter
	timeout  time.Duration
}

// Start sets the SDK up as the variables say. Without an exporter it returns
// nil. It connects to nothing: a collector that cannot be reached costs spans
// and nothing else. An error is of kind Invalid and names the variable.
func Start(ctx context.Context, opts Options) (*Exporter, error) {
	opts.defaults()
	set, err := read()
	if err != nil || set.exporter == exporterNone {
		return nil, err
	}
	exporter, err := newExporter(ctx, set, opts.Console)
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(&complaints{logger: opts.Logger})
	return &Exporter{
		exporter: exporter,
		provider: sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(exporter),
			sdktrace.WithResource(newResource(ctx, opts))),
		timeout: opts.ShutdownTimeout,
	}, nil
}

func (o *Options) defaults() {
	if o.ServiceName == "" {
		o.ServiceName = "weir"
	}
	if o.Runtime == "" {
		o.Runtime = "weir"
	}
	if o.Console == nil {
		o.Console = os.Stderr
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// TracerProvider returns the provider for [telemetry.New]; nil on a nil
// Exporter.
func (e *Exporter) TracerProvider() trace.TracerProvider {
	if e == nil {
		return nil
	}
	return e.provider
}

// Shutdown exports what is left, for no longer than the time-out, and stops.
// Spans that end later are dropped. It may be called twice.
func (e *Exporter) Shutdown(ctx context.Context) error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		// The processor goes on draining its queue behind our back; without an
		// exporter it is done at once.
		_ = e.exporter.Shutdown(context.WithoutCancel(ctx))
		// The cause may quote the collector or hold its address.
		return fault.New(fault.Unavailable, "telemetry: the last spans were not exported")
	}
	return nil
}

func newExporter(ctx context.Context, set settings, console io.Writer) (sdktrace.SpanExporter, error) {
	if set.exporter == exporterConsole {
		return stdouttrace.New(stdouttrace.WithWriter(console))
	}
	var options []otlptracehttp.Option
	if set.endpoint != "" { // else the SDK reads its own variables
		options = append(options, otlptracehttp.WithEndpointURL(set.endpoint))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fault.New(fault.Internal, "telemetry: the exporter does not start")
	}
	return exporter, nil
}

// newResource says whose spans these are; the variables win over the defaults,
// the runtime is a fact.
func newResource(ctx context.Context, opts Options) *resource.Resource {
	environment := strings.TrimSpace(os.Getenv("DEPLOYMENT_ENVIRONMENT"))
	if environment == "" {
		environment = "local"
	}
	defaults := []attribute.KeyValue{
		attribute.String(telemetry.ResourceServiceName, opts.ServiceName),
		attribute.String(telemetry.ResourceServiceNamespace, "agents"),
		attribute.String(telemetry.ResourceEnvironment, environment),
	}
	if opts.Version != "" {
		defaults = append(defaults, attribute.String(telemetry.ResourceServiceVersion, opts.Version))
	}
	// An error means that a part of OTEL_RESOURCE_ATTRIBUTES was not understood;
	// the rest is there.
	r, _ := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(defaults...),
		resource.WithFromEnv(),
		resource.WithAttributes(attribute.String(telemetry.AttrAgentRuntime, opts.Runtime)))
	return r
}

// complaints receives the SDK's errors. Their text holds addresses, so it is
// not passed on.
type complaints struct {
	logger *slog.Logger
	last   atomic.Int64 // Unix seconds
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	now, last := time.Now().Unix(), c.last.Load()
	if now-last < 60 || !c.last.CompareAndSwap(last, now) {
		return
	}
	c.logger.Warn("spans are not exported", "timeout", errors.Is(err, context.DeadlineExceeded))
}
