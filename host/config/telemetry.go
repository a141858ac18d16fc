package config

import "strings"

// Exporters of traces.
const (
	ExporterOTLP    = "otlp"
	ExporterConsole = "console"
	ExporterNone    = "none"
)

// otherEndpoint is an address that counts only while a better one is not known.
func (t *Telemetry) otherEndpoint(url string) {
	if t.TracesEndpoint == "" {
		t.TracesEndpoint = url
	}
}

func (t *Telemetry) resolve(agent string) {
	if t.ServiceName == "" {
		t.ServiceName = agent
	}
	t.ServiceNamespace = "agents"
	for pair := range strings.SplitSeq(t.ResourceAttributes, ",") {
		name, v, _ := strings.Cut(pair, "=")
		if strings.TrimSpace(name) == "service.namespace" && strings.TrimSpace(v) != "" {
			t.ServiceNamespace = strings.TrimSpace(v)
		}
	}
	if t.TracesExporter == "" {
		t.TracesExporter = ExporterNone
		if t.TracesEndpoint != "" {
			t.TracesExporter = ExporterOTLP
		}
	}
}
