package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Order says how the order of tool calls counts.
type Order string

// Orders.
const (
	Exact               Order = "exact"
	PrefixThenUnordered Order = "prefix_then_unordered"
	Unordered           Order = "unordered"
)

// Expectations are what is expected in a case. Which of them count is decided
// by the suite's kind.
type Expectations struct {
	// Guardrails and injection. Nil: not said.
	Blocked *bool
	// NoTools: no tool may be called.
	NoTools bool

	// Tools.
	Calls          []Call
	Order          Order // Exact by default
	PrefixLength   int   // of PrefixThenUnordered
	ExactArguments bool  // default: the expected ones are a subset
	AllowOthers    bool  // tools that are not expected may be called as well

	// Grounding and injection.
	RequiredTools       []string   // at least one of them is called
	RequiredTerms       [][]string // of each group at least one stands in the answer
	ForbiddenAssertions []string

	// Injection.
	ForbiddenStrings []string
	ForbiddenTools   []string
	Attack           string // prose

	given []string
}

// Call is an expected tool call.
type Call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"` // numbers are json.Number
}

// used are the members that a kind's scorers read.
func used(kind Kind) []string {
	switch kind {
	case Guardrails:
		return []string{"expected_blocked", "expected_no_tools"}
	case Tools:
		return []string{"expected_tool_calls", "order_mode", "ordered_prefix_length", "arguments_match", "allow_unexpected_tools"}
	case Grounding:
		return []string{"required_tools", "required_term_groups", "forbidden_assertions"}
	}
	return []string{"expected_blocked", "required_tools", "forbidden_strings", "forbidden_tools", "attack"}
}

// unscored are members that are understood and that this kind's scorers do not
// read.
func (e Expectations) unscored(kind Kind) []string {
	var out []string
	for _, name := range e.given {
		if !slices.Contains(used(kind), name) {
			out = append(out, name)
		}
	}
	return out
}

// check says what a case of that kind lacks.
func (e Expectations) check(kind Kind) error {
	lacks := func(name string) error {
		return fmt.Errorf("expectations.%s: expected in a case of suite %s", name, kind)
	}
	switch kind {
	case Guardrails:
		if e.Blocked == nil {
			return lacks("expected_blocked")
		}
	case Tools:
		if e.Calls == nil {
			return lacks("expected_tool_calls")
		}
		if e.PrefixLength < 0 || e.PrefixLength > len(e.Calls) || e.Order == PrefixThenUnordered && e.PrefixLength == 0 {
			return fmt.Errorf("expectations.ordered_prefix_length: expected 1 to the number of expected calls")
		}
	case Grounding:
		if e.RequiredTools == nil && e.RequiredTerms == nil && e.ForbiddenAssertions == nil {
			return errors.New("expectations: expected required_tools, required_term_groups or forbidden_assertions in a case of suite grounding")
		}
	case Injection:
		if e.Blocked == nil {
			return lacks("expected_blocked")
		}
	}
	return nil
}

// kindOfCase guesses by members that one kind alone has.
func kindOfCase(e Expectations) Kind {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(e.given, n) })
	}
	switch {
	case has("expected_tool_calls"):
		return Tools
	case has("forbidden_strings", "forbidden_tools", "attack"):
		return Injection
	case has("required_term_groups", "forbidden_assertions"):
		return Grounding
	case has("expected_blocked"):
		return Guardrails
	case has("required_tools"):
		return Grounding
	}
	return ""
}

func (r *reader) readExpectations(raw json.RawMessage) (e Expectations, err error) {
	m, err := members(raw, "expectations")
	if err != nil {
		return e, err
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		known, err := e.member(r, name, m[name])
		if err != nil {
			return e, fmt.Errorf("expectations.%s: %w", name, err)
		}
		if !known {
			r.note("expectations." + name)
			continue
		}
		e.given = append(e.given, name)
	}
	if e.Order == "" {
		e.Order = Exact
	}
	return e, nil
}

func (e *Expectations) member(r *reader, name string, raw json.RawMessage) (known bool, err error) {
	switch name {
	case "expected_blocked":
		e.Blocked = new(bool)
		err = flag(raw, e.Blocked)
	case "expected_no_tools":
		err = flag(raw, &e.NoTools)
	case "expected_tool_calls":
		e.Calls, err = r.calls(raw)
	case "order_mode":
		err = word(raw, &e.Order, Exact, PrefixThenUnordered, Unordered)
	case "ordered_prefix_length":
		if json.Unmarshal(raw, &e.PrefixLength) != nil {
			err = errors.New("expected a whole number")
		}
	case "arguments_match":
		var mode string
		err = word(raw, &mode, "subset", "exact")
		e.ExactArguments = mode == "exact"
	case "allow_unexpected_tools":
		err = flag(raw, &e.AllowOthers)
	case "required_tools":
		e.RequiredTools, err = texts(raw)
	case "required_term_groups":
		e.RequiredTerms, err = groups(raw)
	case "forbidden_assertions":
		e.ForbiddenAssertions, err = texts(raw)
	case "forbidden_strings":
		e.ForbiddenStrings, err = texts(raw)
	case "forbidden_tools":
		e.ForbiddenTools, err = texts(raw)
	case "attack":
		if json.Unmarshal(raw, &e.Attack) != nil {
			err = errors.New("expected a text")
		}
	default:
		return false, nil
	}
	return true, err
}

func flag(raw json.RawMessage, into *bool) error {
	switch string(raw) {
	case "true":
		*into = true
	case "false":
		*into = false
	default:
		return errors.New("expected true or false")
	}
	return nil
}

func word[T ~string](raw json.RawMessage, into *T, allowed ...T) error {
	if json.Unmarshal(raw, into) != nil || !slices.Contains(allowed, *into) {
		return fmt.Errorf("expected one of %v", allowed)
	}
	return nil
}

// texts reads a list of texts; an empty text would match everything.
func texts(raw json.RawMessage) ([]string, error) {
	var list []string
	if json.Unmarshal(raw, &list) != nil || list == nil || slices.ContainsFunc(list, blank) {
		return nil, errors.New("expected a list of texts that are not blank")
	}
	return list, nil
}

func groups(raw json.RawMessage) ([][]string, error) {
	var list [][]string
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, errors.New("expected a list of lists of texts")
	}
	for _, group := range list {
		if len(group) == 0 || slices.ContainsFunc(group, blank) {
			return nil, errors.New("expected groups of at least one text that is not blank")
		}
	}
	return list, nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (r *reader) calls(raw json.RawMessage) ([]Call, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, errors.New("expected a list of tool calls")
	}
	calls := make([]Call, len(list))
	for i, item := range list {
		m, err := members(item, fmt.Sprintf("call %d", i+1))
		if err != nil {
			return nil, err
		}
		r.unknown("expectations.expected_tool_calls.", m, "name", "arguments")
		if json.Unmarshal(orNull(m["name"]), &calls[i].Name) != nil || blank(calls[i].Name) {
			return nil, fmt.Errorf("call %d: name: expected a text that is not blank", i+1)
		}
		if m["arguments"] == nil {
			continue
		}
		d := json.NewDecoder(strings.NewReader(string(m["arguments"])))
		d.UseNumber()
		if d.Decode(&calls[i].Arguments) != nil || calls[i].Arguments == nil {
			return nil, fmt.Errorf("call %d: arguments: expected an object", i+1)
		}
	}
	return calls, nil
}
