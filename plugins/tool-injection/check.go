package main

import (
	"slices"
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/match"
)

const reasonCode = "tool_injection"

// check looks at every text of a result, each for itself: two tickets that are
// harmless alone are harmless in one list.
func (g *guard) check(q *abi.CheckToolResultRequest) *abi.Verdict {
	if len(g.tools) > 0 && !slices.Contains(g.tools, q.Tool) {
		return &abi.Verdict{Verdict: abi.VerdictAllow}
	}
	scanner := g.set.Scanner()
	for _, text := range textsOf(q.Result) {
		if names := g.flagged(scanner, text); names != nil {
			return &abi.Verdict{
				Verdict: abi.VerdictBlock, ReasonCode: reasonCode,
				Reason:   "rules: " + strings.Join(names, ", "),
				Decision: decision(names),
			}
		}
	}
	return &abi.Verdict{Verdict: abi.VerdictAllow}
}

// flagged returns the rules that a text matches, in their order, if they are
// enough together.
func (g *guard) flagged(s *match.Scanner, text string) []string {
	s.Reset(text, 0)
	found, _ := s.Scan(text, true)
	hit := make([]bool, len(g.rules))
	for _, m := range found {
		hit[m.Pattern] = true
	}
	weight := 0
	var names []string
	for i, r := range g.rules {
		if hit[i] {
			weight += r.weight
			names = append(names, r.name)
		}
	}
	if weight < enough {
		return nil
	}
	return names
}

// textsOf returns every string of a result that is JSON, names of members too:
// a server that passes on what strangers wrote may put it there. Any other
// result is one text.
func textsOf(result string) []string {
	var texts []string
	d := strictjson.NewDecoder([]byte(result))
	if collect(d, &texts) != nil || d.End() != nil {
		return []string{result}
	}
	return texts
}

func collect(d *strictjson.Decoder, texts *[]string) error {
	switch d.Kind() {
	case strictjson.Object:
		return d.Object(func(name string) error {
			*texts = append(*texts, name)
			return collect(d, texts)
		})
	case strictjson.Array:
		return d.Array(func() error { return collect(d, texts) })
	case strictjson.String:
		s, err := d.String()
		*texts = append(*texts, s)
		return err
	}
	return d.Skip()
}

// decision is what the decision event shows: names of rules, never the text.
func decision(names []string) abi.Raw {
	b := []byte(`{"name":"tool injection","decision_source":"deterministic_rules","deterministic_block_matches":[`)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, name)
	}
	return append(b, "]}"...)
}
