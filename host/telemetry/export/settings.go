package export

import (
	"net/url"
	"os"
	"strings"

	"weir/host/fault"
)

// Exporters by their names in OTEL_TRACES_EXPORTER.
const (
	exporterNone    = "none"
	exporterOTLP    = "otlp"
	exporterConsole = "console"
)

// settings are what the variables say of traces.
type settings struct {
	exporter string
	endpoint string // empty: the SDK's own default
}

func read() (settings, error) {
	var s settings
	var err error
	if s.endpoint, err = endpoint(); err != nil {
		return s, err
	}
	switch s.exporter = variable("OTEL_TRACES_EXPORTER"); {
	case strings.EqualFold(variable("OTEL_SDK_DISABLED"), "true"):
		s.exporter = exporterNone
	case s.exporter == "" && s.endpoint == "":
		s.exporter = exporterNone
	case s.exporter == "":
		s.exporter = exporterOTLP
	case s.exporter != exporterNone && s.exporter != exporterOTLP && s.exporter != exporterConsole:
		return s, fault.New(fault.Invalid, "OTEL_TRACES_EXPORTER: expected none, otlp or console")
	}
	if s.exporter == exporterOTLP {
		err = protocol()
	}
	return s, err
}

// endpoint returns the full address of the first variable that is set.
func endpoint() (string, error) {
	for _, v := range []struct{ name, path string }{
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "v1/traces"},
		{"OTEL_COLLECTOR_TRACES_ENDPOINT", ""},
	} {
		value := variable(v.name)
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", fault.New(fault.Invalid, "%s: expected an absolute http or https address", v.name)
		}
		if v.path != "" {
			u = u.JoinPath(v.path)
		}
		return u.String(), nil
	}
	return "", nil
}

// protocol refuses what would otherwise send protobuf to a port that expects
// something else.
func protocol() error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch variable(name) {
		case "":
			continue
		case "http/protobuf":
			return nil
		}
		return fault.New(fault.Invalid, "%s: expected http/protobuf", name)
	}
	return nil
}

func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }
