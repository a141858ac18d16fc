package score

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"weir/cmd/weir/internal/compare/client"
	"weir/cmd/weir/internal/compare/suite"
)

// trajectory compares calls with the expected ones.
func trajectory(e *suite.Expectations, calls []client.ToolCall) []Metric {
	expects := func(c client.ToolCall) bool {
		return slices.ContainsFunc(e.Calls, func(w suite.Call) bool { return w.Name == c.Name })
	}
	foreign := slices.DeleteFunc(slices.Clone(calls), expects)
	counted := calls
	if e.AllowOthers {
		counted = slices.DeleteFunc(slices.Clone(calls), func(c client.ToolCall) bool { return !expects(c) })
	}
	t := trial{e: e, calls: counted}
	count := len(counted) == len(e.Calls)
	names, arguments, order := t.names(), t.matching(0) == len(e.Calls), t.ordered()
	absent := e.AllowOthers || len(foreign) == 0
	correct := count && absent && t.correct()
	return []Metric{
		{Name: "tool_call_correct", Pass: correct, Reason: t.reason(correct, count, names, order)},
		{Name: "tool_name_match", Pass: names},
		{Name: "tool_argument_match", Pass: arguments},
		{Name: "tool_order_correct", Pass: order},
		{Name: "unexpected_tools_absent", Pass: absent},
		{Name: "duplicate_tool_calls_absent", Pass: !duplicates(calls)},
		{Name: "tool_call_count_match", Pass: count},
	}
}

// trial is the calls that count and what they are held against.
type trial struct {
	e     *suite.Expectations
	calls []client.ToolCall
}

// prefix is how many expected calls have a fixed place.
func (t *trial) prefix() int {
	switch t.e.Order {
	case suite.PrefixThenUnordered:
		return t.e.PrefixLength
	case suite.Unordered:
		return 0
	}
	return len(t.e.Calls)
}

// correct: the fixed ones match in their places, and the others match one to
// one. The number of calls has been compared.
func (t *trial) correct() bool {
	fixed := t.prefix()
	for i := range fixed {
		if !t.matches(i, i) {
			return false
		}
	}
	return t.matching(fixed) == len(t.e.Calls)-fixed
}

// matching is the size of the largest one-to-one match between the expected
// calls and the made ones, both from index from on. Taking the first call that
// fits would not do: an expectation without arguments fits every call and would
// take the only one that fits another.
func (t *trial) matching(from int) int {
	taken := make([]int, len(t.calls)) // by expectation, plus one
	size := 0
	for want := from; want < len(t.e.Calls); want++ {
		if t.place(want, from, taken, make([]bool, len(t.calls))) {
			size++
		}
	}
	return size
}

func (t *trial) place(want, from int, taken []int, seen []bool) bool {
	for i := from; i < len(t.calls); i++ {
		if seen[i] || !t.matches(want, i) {
			continue
		}
		seen[i] = true
		if taken[i] == 0 || t.place(taken[i]-1, from, taken, seen) {
			taken[i] = want + 1
			return true
		}
	}
	return false
}

func (t *trial) matches(want, got int) bool {
	if got >= len(t.calls) || t.e.Calls[want].Name != t.calls[got].Name {
		return false
	}
	made, ok := t.calls[got].Arguments.(map[string]any)
	expected := t.e.Calls[want].Arguments
	if !ok {
		return len(expected) == 0 && !t.e.ExactArguments
	}
	return within(expected, made, t.e.ExactArguments)
}

// names: the same names equally often, in any order.
func (t *trial) names() bool {
	var want, got []string
	for _, c := range t.e.Calls {
		want = append(want, c.Name)
	}
	for _, c := range t.calls {
		got = append(got, c.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	return slices.Equal(want, got)
}

// ordered: the names of the fixed ones stand in their places.
func (t *trial) ordered() bool {
	for i := range t.prefix() {
		if i >= len(t.calls) || t.calls[i].Name != t.e.Calls[i].Name {
			return false
		}
	}
	return t.e.Order != suite.Exact || len(t.calls) == len(t.e.Calls)
}

func (t *trial) reason(correct, count, names, order bool) string {
	switch {
	case correct:
		return ""
	case !count:
		return fmt.Sprintf("expected %d tool calls, got %d", len(t.e.Calls), len(t.calls))
	case !names:
		return "other tools than the expected ones"
	case !order:
		return "the tools were called in another order"
	}
	return "the arguments differ"
}

func duplicates(calls []client.ToolCall) bool {
	for i, a := range calls {
		for _, b := range calls[:i] {
			if a.Name == b.Name && equal(a.Arguments, b.Arguments) {
				return true
			}
		}
	}
	return false
}

// within tells whether want is in got: every member at every depth; exactly:
// and no other.
func within(want, got any, exactly bool) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || exactly && len(object) != len(want) {
			return false
		}
		for name, value := range want {
			inner, there := object[name]
			if !there || !within(value, inner, exactly) {
				return false
			}
		}
		return true
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !within(want[i], list[i], exactly) {
				return false
			}
		}
		return true
	}
	return scalar(want, got)
}

func equal(a, b any) bool { return within(a, b, true) }

// scalar compares by value: 5 is 5.0. A text is a number if the other one is
// and they have the same value, because an evaluator decodes the texts of made
// calls and not those of expected ones.
func scalar(a, b any) bool {
	x, y := number(a), number(b)
	_, numeric := a.(json.Number)
	_, other := b.(json.Number)
	if x != nil && y != nil && (numeric || other) {
		return x.Cmp(y) == 0
	}
	if s, ok := a.(string); ok {
		if v, ok := b.(bool); ok {
			return s == strconv.FormatBool(v)
		}
	}
	return a == b
}

// number is the value of a JSON number, or of a text that is one.
func number(v any) *big.Rat {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	return rat(text)
}

// rat reads a decimal number whose size is bounded: 1e999999999 as a fraction
// would take all memory.
func rat(text string) *big.Rat {
	if text == "" || len(text) > 64 {
		return nil
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || f > 1e60 || f < -1e60 || f != 0 && f < 1e-60 && f > -1e-60 {
		return nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}
