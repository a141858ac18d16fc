package export

import (
	"os"
	"strings"
	"testing"
)

// Every variable that is read or checked stands in the documentation.
func TestVariablesDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
	single, perSignal := checks()
	names := []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_[SIGNAL_]ENDPOINT", "OTEL_EXPORTER_OTLP_[SIGNAL_]PROTOCOL",
		"OTEL_COLLECTOR_TRACES_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_SEMCONV_STABILITY_OPT_IN"}
	for _, signal := range []string{traces, metrics, logs} {
		names = append(names, "OTEL_"+signal+"_EXPORTER")
	}
	for name := range single {
		names = append(names, name)
	}
	for last := range perSignal {
		names = append(names, "OTEL_EXPORTER_OTLP_[SIGNAL_]"+last)
	}
	for _, name := range names {
		if !strings.Contains(string(raw), "`"+name+"`") {
			t.Errorf("%s is not in docs/operations.md", name)
		}
	}
}
