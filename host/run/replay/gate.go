package replay

import (
	"slices"
	"strconv"
	"strings"

	"weir/host/fault"
)

// Rule bounds how many runs may change in one way. A run in which that change
// cannot be ruled out counts as one that changes: a gate that somebody relies on
// is not passed by what nobody knows.
type Rule struct {
	Kind    string  `json:"kind"` // a kind of change, "changed" or "unanswerable"
	Most    float64 `json:"most"`
	Percent bool    `json:"percent,omitempty"` // of the replayed runs
}

// KindChanged and KindUnanswerable count runs with any change, and runs with a
// question that is not answered.
const (
	KindChanged      = "changed"
	KindUnanswerable = "unanswerable"
)

// ParseGate reads rules such as "block->allow=0,allow->block<=0.5%".
func ParseGate(text string) ([]Rule, error) {
	var rules []Rule
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		rule, err := parseRule(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(rules, func(r Rule) bool { return r.Kind == rule.Kind }) {
			return nil, fault.New(fault.Invalid, "gate: %s stands there twice", rule.Kind)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseRule(text string) (Rule, error) {
	at := strings.IndexByte(text, '=')
	if at < 0 {
		return Rule{}, fault.New(fault.Invalid, "gate: %.64q: expected KIND=N or KIND<=N, with N a number of runs or a percentage", text)
	}
	kind := strings.TrimSpace(strings.TrimSuffix(text[:at], "<"))
	exact := !strings.HasSuffix(text[:at], "<")
	kinds := append(Kinds(), KindChanged, KindUnanswerable)
	if !slices.Contains(kinds, kind) {
		return Rule{}, fault.New(fault.Invalid, "gate: %.64q: expected one of %s", kind, strings.Join(kinds, ", "))
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text[at+1:]), "%")
	most, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(most >= 0) || percent && most > 100 || !percent && most != float64(int64(most)) {
		return Rule{}, fault.New(fault.Invalid, "gate: %.64q: expected a whole number of runs, or a percentage from 0 to 100", text)
	}
	if exact && most != 0 {
		return Rule{}, fault.New(fault.Invalid, "gate: %.64q: = says 0 only; a bound is written <=", text)
	}
	return Rule{Kind: kind, Most: most, Percent: percent}, nil
}

// String is the rule as ParseGate reads it.
func (r Rule) String() string {
	number := strconv.FormatFloat(r.Most, 'f', -1, 64)
	if r.Percent {
		number += "%"
	}
	if r.Most == 0 {
		return r.Kind + "=" + number
	}
	return r.Kind + "<=" + number
}

// counts tells whether a run counts against the rule.
func (r Rule) counts(result *Result) bool {
	switch r.Kind {
	case KindChanged:
		return len(result.Changes) > 0
	case KindUnanswerable:
		return len(result.Unanswered) > 0
	}
	return slices.ContainsFunc(result.Changes, func(c Change) bool { return c.Kind == r.Kind }) ||
		slices.ContainsFunc(result.Unanswered, func(u Unanswered) bool { return u.Kind() == r.Kind })
}

// Check is what a rule said. Unknown is how many of the runs counted only
// because the change cannot be ruled out.
type Check struct {
	Rule    string `json:"rule"`
	Runs    int    `json:"runs"`
	Unknown int    `json:"unknown,omitempty"`
	Passed  bool   `json:"passed"`
}

// check holds results against a rule.
func (r Rule) check(results []*Result, replayed int) Check {
	c := Check{Rule: r.String()}
	for _, result := range results {
		if result.Status == StatusSkipped || !r.counts(result) {
			continue
		}
		c.Runs++
		known := r.Kind == KindUnanswerable || r.Kind == KindChanged ||
			slices.ContainsFunc(result.Changes, func(change Change) bool { return change.Kind == r.Kind })
		if !known {
			c.Unknown++
		}
	}
	most := r.Most
	if r.Percent {
		most = most * float64(replayed) / 100
	}
	c.Passed = float64(c.Runs) <= most
	return c
}
