package main

import (
	"weir/abi"
	"weir/abi/strictjson"
)

// Sources of a decision (2.7).
const (
	sourceClassifier    = "llm"
	sourceBoth          = "llm_and_deterministic_block"
	sourcePattern       = "deterministic_block_fallback"
	sourceTemplate      = "deterministic_allow_override"
	sourceTemplateAgree = "llm_and_deterministic_allow"
	sourceLimit         = "deterministic_input_limit"
)

// decision is a row of the precedence table of 6.1.
type decision struct {
	blocked    bool
	source     string
	overridden bool // a template overruled the classifier
}

// precedence: a critical pattern blocks whatever else is said; without one a
// template allows; without either the classifier decides.
func precedence(pattern, template, classifier bool) decision {
	switch {
	case pattern && classifier:
		return decision{blocked: true, source: sourceBoth}
	case pattern:
		return decision{blocked: true, source: sourcePattern}
	case template && classifier:
		return decision{source: sourceTemplate, overridden: true}
	case template:
		return decision{source: sourceTemplateAgree}
	default:
		return decision{blocked: classifier, source: sourceClassifier}
	}
}

func (s *screen) resolve(f findings, v vote) *abi.Verdict {
	d := precedence(f.blocked(), f.allowed(), v.block)
	verdict := &abi.Verdict{Verdict: abi.VerdictAllow, Decision: s.appendDecision(nil, f, v, d)}
	if d.blocked {
		verdict.Verdict = abi.VerdictBlock
		verdict.ReasonCode = d.source
		verdict.Message = s.refusal(v)
	}
	return verdict
}

// refusal is the rule of 2.10: the classifier's own words only when it was
// there to vote.
func (s *screen) refusal(v vote) string {
	if v.block && v.available {
		return s.classifierMessage
	}
	return s.blockMessage
}

// appendDecision appends the decision object in the order of 2.7.
func (s *screen) appendDecision(b []byte, f findings, v vote, d decision) []byte {
	b = append(b, `{"stage":"input","name":"self check input","outcome":`...)
	b = append(b, outcome(d.blocked)...)
	b = appendBool(b, `,"blocked":`, d.blocked)
	b = appendBool(b, `,"modified":`, false)
	b = appendBool(b, `,"llm_blocked":`, v.block)
	b = appendBool(b, `,"classifier_available":`, v.available)
	b = appendBool(b, `,"deterministic_blocked":`, f.blocked())
	b = append(b, `,"deterministic_block_matches":[`...)
	b = appendNames(b, s.critical, f.block, "")
	b = appendNames(b, s.critical, f.history, "history:")
	b = append(b, `],"deterministic_allow_matches":[`...)
	b = appendNames(b, s.allow, f.allow, "")
	b = appendBool(b, `],"allow_override_applied":`, d.overridden)
	b = append(b, `,"decision_source":`...)
	b = strictjson.AppendString(b, d.source)
	b = append(b, `,"llm_call_count":1`...)
	if len(f.plain)+len(f.plainHistory) > 0 { // what the contract does not know stands behind what it does
		b = append(b, `,"normalised_block_matches":[`...)
		b = appendNames(b, s.critical, f.plain, "")
		b = appendNames(b, s.critical, f.plainHistory, "history:")
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendLimitDecision appends the short form of 2.7, of a turn that nothing
// but its length was looked at.
func appendLimitDecision(b []byte, length, limit int) []byte {
	b = append(b, `{"stage":"input","outcome":"blocked","blocked":true,"decision_source":"`+sourceLimit+`","input_length":`...)
	b = strictjson.AppendInt(b, int64(length))
	b = append(b, `,"input_limit":`...)
	b = strictjson.AppendInt(b, int64(limit))
	return append(b, '}')
}

func outcome(blocked bool) string {
	if blocked {
		return `"blocked"`
	}
	return `"passed"`
}

func appendBool(b []byte, key string, v bool) []byte {
	return strictjson.AppendBool(append(b, key...), v)
}

// appendNames continues a list of names.
func appendNames(b []byte, r rules, places []int, prefix string) []byte {
	for _, p := range places {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, prefix+r.names[p])
	}
	return b
}
