package export

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutlog"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Without an endpoint of ours the SDK's exporters read their own variables,
// whose default is a collector on this machine.

func (e *Exporter) startTraces(ctx context.Context, set settings, opts Options, res *resource.Resource) (err error) {
	var out sdktrace.SpanExporter
	if set.exporter == exporterConsole {
		out, err = stdouttrace.New(stdouttrace.WithWriter(opts.Console))
	} else {
		var o []otlptracehttp.Option
		if set.endpoint != "" {
			o = append(o, otlptracehttp.WithEndpointURL(set.endpoint))
		}
		out, err = otlptracehttp.New(ctx, o...)
	}
	if err != nil {
		return err
	}
	b := e.bounds[traces]
	e.tracing = sdktrace.NewTracerProvider(sdktrace.WithResource(res),
		sdktrace.WithSpanProcessor(spanQueue{sdktrace.NewBatchSpanProcessor(spanExit{out, b}), b}))
	e.flush, e.abandon = append(e.flush, e.tracing.Shutdown), append(e.abandon, out.Shutdown)
	return nil
}

func (e *Exporter) startMetrics(ctx context.Context, set settings, opts Options, res *resource.Resource) (err error) {
	var out sdkmetric.Exporter
	if set.exporter == exporterConsole {
		out, err = stdoutmetric.New(stdoutmetric.WithWriter(opts.Console))
	} else {
		var o []otlpmetrichttp.Option
		if set.endpoint != "" {
			o = append(o, otlpmetrichttp.WithEndpointURL(set.endpoint))
		}
		out, err = otlpmetrichttp.New(ctx, o...)
	}
	if err != nil {
		return err
	}
	e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(maxSeries),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), // postponed; they cost with every record
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExit{out, e.bounds[metrics]})))
	e.flush, e.abandon = append(e.flush, e.meters.Shutdown), append(e.abandon, out.Shutdown)
	return nil
}

func (e *Exporter) startLogs(ctx context.Context, set settings, opts Options, res *resource.Resource) (err error) {
	var out sdklog.Exporter
	if set.exporter == exporterConsole {
		out, err = stdoutlog.New(stdoutlog.WithWriter(opts.Console))
	} else {
		var o []otlploghttp.Option
		if set.endpoint != "" {
			o = append(o, otlploghttp.WithEndpointURL(set.endpoint))
		}
		out, err = otlploghttp.New(ctx, o...)
	}
	if err != nil {
		return err
	}
	b := e.bounds[logs]
	e.logs = sdklog.NewLoggerProvider(sdklog.WithResource(res),
		sdklog.WithProcessor(logQueue{sdklog.NewBatchProcessor(logExit{out, b}), b}))
	e.flush, e.abandon = append(e.flush, e.logs.Shutdown), append(e.abandon, out.Shutdown)
	return nil
}
