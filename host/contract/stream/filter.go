package stream

import (
	"strings"
)

// stepType is one of the six types of step.
type stepType uint8

const (
	workflowStart stepType = iota
	workflowEnd
	toolStart
	toolEnd
	functionStart
	functionEnd
	stepTypes
)

// wireName is the type on the wire.
func (t stepType) wireName() string {
	return [...]string{"WORKFLOW_START", "WORKFLOW_END", "TOOL_START", "TOOL_END",
		"FUNCTION_START", "FUNCTION_END"}[t]
}

// stepFilter is a set of step types, one bit each.
type stepFilter uint8

const allSteps stepFilter = 1<<stepTypes - 1

func (f stepFilter) passes(t stepType) bool { return f&(1<<t) != 0 }

// parseFilter reads filter_steps out of a raw query string (2.3). The first
// one counts; other parameters are ignored, and so are unknown names.
func parseFilter(query string) stepFilter {
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if unescape(key) == "filter_steps" {
			return parseTypes(unescape(value))
		}
	}
	return allSteps
}

func parseTypes(list string) stepFilter {
	var f stepFilter
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ToUpper(strings.TrimSpace(name))
		for t := range stepTypes {
			if name == t.wireName() {
				f |= 1 << t
			}
		}
	}
	return f
}

// unescape decodes a form-urlencoded string. What is no escape stays as it is,
// so a bad one makes a name unknown and never an error.
func unescape(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			b = append(b, ' ')
		case '%':
			if v, ok := hexPair(s[i+1:]); ok {
				b = append(b, v)
				i += 2
				continue
			}
			fallthrough
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

func hexPair(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	high, ok1 := hexDigit(s[0])
	low, ok2 := hexDigit(s[1])
	return high<<4 | low, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
