package turn

import (
	"strings"

	"weir/abi/strictjson"
)

// readSpanContext reads the body's trace (section 6): a traceparent, or the two
// ids of one. What is malformed is no trace and no error.
func readSpanContext(d *strictjson.Decoder) (string, error) {
	raw, err := d.Raw()
	if err != nil {
		return "", err
	}
	m := members(raw)
	if tp := textOf(m["traceparent"]); validTraceparent(tp) {
		return tp, nil
	}
	if tp := "00-" + textOf(m["trace_id"]) + "-" + textOf(m["span_id"]) + "-01"; validTraceparent(tp) {
		return tp, nil
	}
	return "", nil
}

// joined is the trace that a run joins: the body's first, else the header's.
func joined(body, header string) string {
	for _, tp := range []string{body, header} {
		if validTraceparent(tp) {
			return tp
		}
	}
	return ""
}

// traceID is the trace of a valid traceparent.
func traceID(traceparent string) string {
	if !validTraceparent(traceparent) {
		return ""
	}
	return traceparent[3:35]
}

// validTraceparent takes version 00 in lower case, as the harness sends it, with
// ids that are not all zero.
func validTraceparent(tp string) bool {
	parts := strings.Split(tp, "-")
	if len(parts) != 4 || parts[0] != "00" {
		return false
	}
	for i, size := range []int{2, 32, 16, 2} {
		if len(parts[i]) != size || strings.Trim(parts[i], "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}
