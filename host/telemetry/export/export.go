// Package export sets the OpenTelemetry SDK up: where traces, metrics and logs
// go, and as whose. It is the only package that knows the SDK.
//
// It is configured by the standard OTEL_ variables of the process, most of
// which the SDK reads itself (headers, time-outs, batches, intervals, sampling,
// limits). Decided here are, for each SIGNAL of TRACES, METRICS and LOGS:
//
//	OTEL_<SIGNAL>_EXPORTER                none, otlp or console; when unset, otlp
//	                                      if one of its endpoints is set
//	OTEL_EXPORTER_OTLP_<SIGNAL>_ENDPOINT  the full address, else
//	OTEL_EXPORTER_OTLP_ENDPOINT           the base of it, else
//	OTEL_COLLECTOR_TRACES_ENDPOINT        the full address, of traces only
//	OTEL_SERVICE_NAME                     default: the agent's name
//	OTEL_RESOURCE_ATTRIBUTES              service.namespace is "agents" without it
//	DEPLOYMENT_ENVIRONMENT                deployment.environment; default "local"
//	OTEL_SDK_DISABLED                     true: none
//
// A value that is not understood is refused at the start, also where the SDK
// would pass over it. Nothing here makes a request wait: what finds no room is
// dropped and counted.
package export

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
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
	// AgentType is agent.type, unless OTEL_RESOURCE_ATTRIBUTES has one; empty
	// leaves it out.
	AgentType string
	// Runtime is agent.runtime; default "weir".
	Runtime string
	// Console receives what the console exporters write; default standard
	// error, because standard output may carry a protocol.
	Console io.Writer
	// ShutdownTimeout bounds the last flush; default 5 s. A collector that does
	// not answer costs as much at every shutdown.
	ShutdownTimeout time.Duration
	// Logger is told when telemetry cannot be exported, at most once a minute
	// and without the collector's words, and never after Shutdown; nil tells
	// nobody. It must not be one that exports.
	Logger *slog.Logger
}

// maxSeries bounds the series of one instrument; what comes beyond goes into
// one for the rest.
const maxSeries = 500

// Exporter owns the SDK. A nil *Exporter exports nothing.
type Exporter struct {
	timeout time.Duration
	tracing *sdktrace.TracerProvider // nil: no traces
	meters  *sdkmetric.MeterProvider // nil: no metrics
	logs    *sdklog.LoggerProvider   // nil: no logs
	bounds  map[string]*bound        // by signal
	flush   []func(context.Context) error
	abandon []func(context.Context) error // the exporters', for what is not flushed in time
	told    *complaints
	stop    sync.Once
	left    error // what Shutdown returns
}

// Start sets the SDK up as the variables say. Without an exporter it returns
// nil. It connects to nothing: a collector that cannot be reached costs
// telemetry and nothing else. An error is of kind Invalid and names the
// variable.
func Start(ctx context.Context, opts Options) (*Exporter, error) {
	opts.defaults()
	set, err := readAll()
	if err != nil {
		return nil, err
	}
	e := &Exporter{timeout: opts.ShutdownTimeout, bounds: map[string]*bound{}, told: &complaints{logger: opts.Logger}}
	res := newResource(ctx, opts)
	for signal, start := range map[string]func(context.Context, settings, Options, *resource.Resource) error{
		traces: e.startTraces, metrics: e.startMetrics, logs: e.startLogs,
	} {
		if set[signal].exporter == exporterNone {
			continue
		}
		e.bounds[signal] = &bound{limit: int64(set[signal].queue)}
		if err := start(ctx, set[signal], opts, res); err != nil {
			return nil, errors.Join(fault.New(fault.Internal, "telemetry: an exporter does not start"), e.Shutdown(ctx))
		}
	}
	if len(e.bounds) == 0 {
		return nil, nil
	}
	otel.SetErrorHandler(e.told)
	return e, nil
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

// TracerProvider returns the provider for [telemetry.New]; nil when no traces
// are exported.
func (e *Exporter) TracerProvider() trace.TracerProvider {
	if e == nil || e.tracing == nil {
		return nil
	}
	return e.tracing
}

// MeterProvider returns the provider for [telemetry.Options]; nil when no
// metrics are exported.
func (e *Exporter) MeterProvider() metric.MeterProvider {
	if e == nil || e.meters == nil {
		return nil
	}
	return e.meters
}

// Handler returns a handler that writes with next and exports as well, with
// the trace and the span of the context in both. A handler that it returned is
// not attached to again.
func (e *Exporter) Handler(next slog.Handler) slog.Handler {
	switch {
	case e == nil:
		return next
	case e.logs == nil:
		return telemetry.Correlated(next)
	default:
		return newBridge(next, e.logs)
	}
}

// Losses tells what was lost since the start, for [telemetry.Tracer.Losses].
func (e *Exporter) Losses() []telemetry.Loss {
	if e == nil {
		return nil
	}
	var all []telemetry.Loss
	for signal, b := range e.bounds {
		all = append(all, b.losses(strings.ToLower(signal))...)
	}
	return all
}

// Shutdown exports what is left, for no longer than the time-out, and stops.
// What comes later is dropped. It may be called twice and by several goroutines;
// all get the first call's result.
func (e *Exporter) Shutdown(ctx context.Context) error {
	if e == nil {
		return nil
	}
	e.stop.Do(func() { e.left = e.shutdown(ctx) })
	return e.left
}

func (e *Exporter) shutdown(ctx context.Context) error {
	defer e.told.end()
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	if together(ctx, e.flush) == nil {
		return nil
	}
	// The processors go on draining their queues behind our back; without an
	// exporter they are done at once.
	for _, b := range e.bounds {
		b.gone.Store(true)
	}
	_ = together(context.WithoutCancel(ctx), e.abandon)
	// The cause may quote the collector or hold its address.
	return fault.New(fault.Unavailable, "telemetry: the last of it was not exported")
}

// together calls all at once and waits, so that one time-out is enough.
func together(ctx context.Context, calls []func(context.Context) error) error {
	errs := make([]error, len(calls))
	var wait sync.WaitGroup
	for i, call := range calls {
		wait.Go(func() { errs[i] = call(ctx) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// newResource says whose telemetry this is; the variables win over the defaults,
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
	if opts.AgentType != "" {
		defaults = append(defaults, attribute.String(telemetry.ResourceAgentType, opts.AgentType))
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

// complaints receives the SDK's errors until it is ended. Their text holds
// addresses, so it is not passed on.
type complaints struct {
	mu     sync.Mutex
	logger *slog.Logger // nil: ended
	last   time.Time
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logger == nil || !c.last.IsZero() && time.Since(c.last) < time.Minute {
		return
	}
	c.last = time.Now()
	c.logger.Warn("telemetry is not exported", "timeout", errors.Is(err, context.DeadlineExceeded))
}

// end returns when nothing is being told, and nothing will be.
func (c *complaints) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logger = nil
}
