package judge

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"weir/cmd/weir/internal/agentv/sandbox"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/dna"
)

// Outcome says which of a node's expected outcomes do not hold, each as a
// sentence; none is parity.
func Outcome(e Evidence) []string {
	var out []string
	for i, a := range e.Node.Outcome {
		if !holds(a, e) {
			out = append(out, fmt.Sprintf("expected_outcome[%d]: expected %s%s %s %s, got %s", i, a.Target, dotted(a.Property), a.Mode, limit(string(a.Expected)), found(a, e)))
		}
	}
	return out
}

func dotted(property string) string {
	if property == "" {
		return ""
	}
	return "." + property
}

func found(a scenario.Assertion, e Evidence) string {
	value, ok := actual(a, e)
	if !ok {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "nothing"
	}
	return limit(string(text))
}

func limit(text string) string {
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func holds(a scenario.Assertion, e Evidence) bool {
	value, ok := actual(a, e)
	if !ok {
		return false
	}
	switch a.Mode {
	case scenario.Regex:
		return a.Pattern.MatchString(textOf(value))
	case scenario.Tolerance:
		return near(value, a.Number, a.Tolerance)
	}
	return exact(value, a.Expected)
}

// actual is the value that an assertion is about.
//
// A property of the message is looked for in the reply and then in its text, if
// that is JSON; where neither has it, the assertion is about the text. A shim is
// the part of the state under shims.<id>, or under <id>.
func actual(a scenario.Assertion, e Evidence) (any, bool) {
	switch {
	case a.Target == "state":
		return e.State.Lookup(a.Property)
	case strings.HasPrefix(a.Target, "shim:"):
		path := strings.TrimPrefix(a.Target, "shim:")
		if a.Property != "" {
			path += "." + a.Property
		}
		if value, ok := e.State.Lookup("shims." + path); ok {
			return value, true
		}
		return e.State.Lookup(path)
	case a.Property != "":
		for _, source := range [][]byte{e.Reply, []byte(e.Text)} {
			object, err := sandbox.Decode(source)
			if _, is := object.(map[string]any); err != nil || !is {
				continue
			}
			if value, ok := sandbox.Lookup(object, a.Property); ok {
				return value, true
			}
		}
	}
	return e.Text, true
}

// exact compares texts without the white space around them; a text that is held
// against something else is read as JSON.
func exact(value any, expected []byte) bool {
	want, err := sandbox.Decode(expected)
	if err != nil {
		return false
	}
	text, isText := value.(string)
	if wanted, ok := want.(string); ok && isText {
		return strings.TrimSpace(text) == strings.TrimSpace(wanted)
	}
	if isText {
		if value, err = sandbox.Decode([]byte(text)); err != nil {
			return false
		}
	}
	return sandbox.Equal(value, want)
}

func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	text, err := dna.Dumps(nil, raw)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

var numberForm = regexp.MustCompile(`[-+]?(\d[\d,]*(\.\d+)?|\.\d+)([eE][-+]?\d+)?`)

// near holds for a number, and for a text with any number that is near enough.
// Commas between digits are read as thousands.
func near(value any, want, tolerance float64) bool {
	for _, text := range numberForm.FindAllString(textOf(value), -1) {
		got, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		// What binary fractions lose must not decide.
		if err == nil && math.Abs(got-want) <= tolerance+1e-9*math.Max(1, math.Abs(want)) {
			return true
		}
	}
	return false
}

// Hygiene says which of a node's rules about the state do not hold before it
// begins.
func Hygiene(n scenario.Node, state *sandbox.State) []string {
	var out []string
	for i, r := range n.Hygiene {
		if value, ok := state.Lookup(r.Path); !obeys(r, value, ok) {
			out = append(out, fmt.Sprintf("state_hygiene.rules[%d]: expected %s %s %s", i, r.Path, r.Op, limit(string(r.Expected))))
		}
	}
	return out
}

func obeys(r scenario.Rule, value any, there bool) bool {
	switch r.Op {
	case "exists":
		return there
	case "not_exists":
		return !there
	}
	want, err := sandbox.Decode(r.Expected)
	if err != nil || !there {
		return false
	}
	switch r.Op {
	case "==", "eq", "equals":
		return sandbox.Equal(value, want)
	case "!=", "ne", "not_equals":
		return !sandbox.Equal(value, want)
	case "contains":
		return contains(value, want)
	}
	return compare(r.Op, value, want)
}

func contains(value, want any) bool {
	switch v := value.(type) {
	case string:
		part, ok := want.(string)
		return ok && strings.Contains(v, part)
	case []any:
		for _, item := range v {
			if sandbox.Equal(item, want) {
				return true
			}
		}
	case map[string]any:
		name, ok := want.(string)
		_, there := v[name]
		return ok && there
	}
	return false
}

func compare(op string, value, want any) bool {
	a, okA := value.(json.Number)
	b, okB := want.(json.Number)
	if !okA || !okB {
		return false
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	if errX != nil || errY != nil {
		return false
	}
	switch op {
	case "<", "lt":
		return x < y
	case "<=", "le":
		return x <= y
	case ">", "gt":
		return x > y
	}
	return x >= y
}
