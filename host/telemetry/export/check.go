package export

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"weir/host/fault"
)

// check is a form of value.
type check struct {
	expected string
	fits     func(string) bool
}

var (
	number   = check{"a positive whole number", func(v string) bool { n, err := strconv.Atoi(v); return err == nil && n > 0 }}
	millis   = check{"a positive whole number of milliseconds", number.fits}
	boolean  = check{"true or false", func(v string) bool { return strings.EqualFold(v, "true") || strings.EqualFold(v, "false") }}
	pairs    = check{"key=value pairs with commas between them, percent-encoded", arePairs}
	ratio    = check{"a number from 0 to 1", func(v string) bool { f, err := strconv.ParseFloat(v, 64); return err == nil && f >= 0 && f <= 1 }}
	readable = check{"a file that can be read", func(v string) bool { f, err := os.Open(v); _ = f.Close(); return err == nil }}
)

func oneOf(values ...string) check {
	return check{"one of " + strings.Join(values, ", "), func(v string) bool { return slices.Contains(values, v) }}
}

// checks are the forms of the variables that the SDK reads itself, and would
// pass over in silence. Of those with a sibling for each signal the general
// name stands here.
func checks() (single, perSignal map[string]check) {
	single = map[string]check{
		"OTEL_SDK_DISABLED":           boolean,
		"OTEL_RESOURCE_ATTRIBUTES":    pairs,
		"OTEL_METRIC_EXPORT_INTERVAL": millis,
		"OTEL_METRIC_EXPORT_TIMEOUT":  millis,
		"OTEL_TRACES_SAMPLER": oneOf("always_on", "always_off", "traceidratio",
			"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"),
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": oneOf("cumulative", "delta", "lowmemory"),
	}
	if strings.HasSuffix(variable("OTEL_TRACES_SAMPLER"), "traceidratio") {
		single["OTEL_TRACES_SAMPLER_ARG"] = ratio
	}
	for _, batch := range []string{"OTEL_BSP_", "OTEL_BLRP_"} {
		single[batch+"SCHEDULE_DELAY"], single[batch+"EXPORT_TIMEOUT"] = millis, millis
		single[batch+"MAX_QUEUE_SIZE"], single[batch+"MAX_EXPORT_BATCH_SIZE"] = number, number
	}
	return single, map[string]check{
		"TIMEOUT": millis, "HEADERS": pairs, "COMPRESSION": oneOf("gzip", "none"), "INSECURE": boolean,
		"CERTIFICATE": readable, "CLIENT_CERTIFICATE": readable, "CLIENT_KEY": readable,
	}
}

// checkAll holds every variable that is set against its form. No value is
// quoted: headers hold keys.
func checkAll() error {
	single, perSignal := checks()
	for last, c := range perSignal {
		for _, signal := range []string{"", traces + "_", metrics + "_", logs + "_"} {
			single["OTEL_EXPORTER_OTLP_"+signal+last] = c
		}
	}
	for _, name := range slices.Sorted(maps.Keys(single)) {
		c := single[name]
		if v := variable(name); v != "" && !c.fits(v) {
			return fault.New(fault.Invalid, "%s: expected %s", name, c.expected)
		}
	}
	return nil
}

func arePairs(list string) bool {
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(value); !found || strings.TrimSpace(key) == "" || err != nil {
			return false
		}
	}
	return true
}
