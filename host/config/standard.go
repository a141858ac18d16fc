package config

// telemetryVariables are OpenTelemetry's own, which host/telemetry/export and
// the SDK behind it read from the process. docs/operations.md says more of them.
func telemetryVariables() []Variable {
	direct := func(name, about string) Variable { return Variable{Name: name, Kind: KindDirect, About: about} }
	list := []Variable{
		direct("OTEL_TRACES_EXPORTER", "otlp, console or none; without it otlp where there is an endpoint."),
		direct("OTEL_METRICS_EXPORTER", "The same for metrics."),
		direct("OTEL_LOGS_EXPORTER", "The same for logs."),
		direct("OTEL_COLLECTOR_TRACES_ENDPOINT", "Full URL for traces, where none of the standard variables is set."),
	}
	for _, v := range []struct{ name, about string }{
		{"ENDPOINT", "Base URL of the OTLP receiver; /v1/traces and so on is added."},
		{"PROTOCOL", "http/protobuf is the only one."},
		{"HEADERS", "Headers for the receiver, key=value with commas; they may hold a key and are never printed."},
		{"TIMEOUT", "Milliseconds of one export."},
		{"COMPRESSION", "gzip or none."},
		{"INSECURE", "true or false."},
		{"CERTIFICATE", "Path of a PEM file: the authority of the receiver's certificate."},
		{"CLIENT_CERTIFICATE", "Path of a PEM file: the own certificate."},
		{"CLIENT_KEY", "Path of a PEM file: its key."},
	} {
		const prefix = "OTEL_EXPORTER_OTLP_"
		list = append(list, direct(prefix+v.name, v.about))
		for _, signal := range []string{"TRACES_", "METRICS_", "LOGS_"} {
			about := "For this signal in place of " + prefix + v.name + "."
			if v.name == "ENDPOINT" {
				about = "Full URL for this signal."
			}
			list = append(list, direct(prefix+signal+v.name, about))
		}
	}
	list = append(list,
		direct("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative, delta or lowmemory."),
		direct("OTEL_SERVICE_NAME", "Default: the agent's name."),
		direct("OTEL_RESOURCE_ATTRIBUTES", "More resource attributes, name=value with commas; service.namespace defaults to agents."),
		direct("OTEL_METRIC_EXPORT_INTERVAL", "Milliseconds between two exports of metrics."),
		direct("OTEL_METRIC_EXPORT_TIMEOUT", "Milliseconds of one."),
		direct("OTEL_SEMCONV_STABILITY_OPT_IN", "http is always in force."),
		direct("OTEL_TRACES_SAMPLER", "Which traces are kept, by the standard names."),
		direct("OTEL_TRACES_SAMPLER_ARG", "From 0 to 1, for a sampler by ratio."),
		direct("OTEL_SDK_DISABLED", "true exports nothing."),
	)
	for _, batch := range []string{"OTEL_BSP_", "OTEL_BLRP_"} {
		of := "spans"
		if batch == "OTEL_BLRP_" {
			of = "log records"
		}
		list = append(list,
			direct(batch+"SCHEDULE_DELAY", "Milliseconds between two exports of "+of+"."),
			direct(batch+"EXPORT_TIMEOUT", "Milliseconds of one."),
			direct(batch+"MAX_QUEUE_SIZE", "How many "+of+" may wait; more are dropped."),
			direct(batch+"MAX_EXPORT_BATCH_SIZE", "How many go in one export."))
	}
	return list
}
