package export

import (
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"weir/host/fault"
	"weir/host/telemetry"
)

// Exporters by their names in OTEL_TRACES_EXPORTER and its siblings.
const (
	exporterNone    = "none"
	exporterOTLP    = "otlp"
	exporterConsole = "console"
)

// signals by their names in the variables.
const (
	traces  = "TRACES"
	metrics = "METRICS"
	logs    = "LOGS"
)

// settings are what the variables say of one signal.
type settings struct {
	exporter string
	endpoint string // empty: the SDK's own default
	queue    int    // what may wait for export
}

// readAll reads and checks every variable. A value that is not understood is
// refused, whether it would have counted or not.
func readAll() (map[string]settings, error) {
	if err := checkAll(); err != nil {
		return nil, err
	}
	all := make(map[string]settings, 3)
	for _, signal := range []string{traces, metrics, logs} {
		s, err := read(signal)
		if err != nil {
			return nil, err
		}
		all[signal] = s
	}
	return all, nil
}

func read(signal string) (settings, error) {
	s := settings{queue: queue(signal)}
	var err error
	if s.endpoint, err = endpoint(signal); err != nil {
		return s, err
	}
	name := "OTEL_" + signal + "_EXPORTER"
	switch s.exporter = variable(name); {
	case s.exporter == "" && s.endpoint == "":
		s.exporter = exporterNone
	case s.exporter == "":
		s.exporter = exporterOTLP
	case s.exporter != exporterNone && s.exporter != exporterOTLP && s.exporter != exporterConsole:
		return s, fault.New(fault.Invalid, "%s: expected none, otlp or console", name)
	}
	if strings.EqualFold(variable("OTEL_SDK_DISABLED"), "true") {
		s.exporter = exporterNone
	}
	if s.exporter == exporterOTLP {
		err = protocol(signal)
	}
	return s, err
}

// endpoint returns the full address of the first variable that is set.
func endpoint(signal string) (string, error) {
	type source struct{ name, path string }
	sources := []source{
		{"OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "v1/" + strings.ToLower(signal)},
	}
	if signal == traces {
		sources = append(sources, source{"OTEL_COLLECTOR_TRACES_ENDPOINT", ""})
	}
	for _, v := range sources {
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
func protocol(signal string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
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

// queue is how much the SDK lets wait; metrics do not.
func queue(signal string) int {
	name, size := "OTEL_BSP_MAX_QUEUE_SIZE", 2048
	if signal == logs {
		name = "OTEL_BLRP_MAX_QUEUE_SIZE"
	}
	if n, err := strconv.Atoi(variable(name)); err == nil {
		size = n
	}
	return size
}

// LatestGenAI reports whether OTEL_SEMCONV_STABILITY_OPT_IN asks for the newest
// GenAI names. Its word for stable HTTP names needs no asking: there are no
// others here.
func LatestGenAI() bool {
	return slices.Contains(strings.Split(strings.ReplaceAll(variable("OTEL_SEMCONV_STABILITY_OPT_IN"), " ", ""), ","), telemetry.OptInGenAI)
}

func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }
