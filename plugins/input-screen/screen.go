package main

import (
	"unicode/utf8"

	"weir/abi"
)

// screen is the guardrail with its configuration.
type screen struct {
	config
}

// check decides one turn. The layers stand in the order of clause 6.1: length,
// critical patterns, allow templates, classifier. The patterns never save the
// classifier's call: what it says is part of the decision even when a pattern
// has already decided.
func (s *screen) check(q *abi.CheckInputRequest) (*abi.Verdict, error) {
	if n := utf8.RuneCountInString(q.Text); n > s.maxChars {
		return s.tooLong(n), nil
	}
	if q.Reply == nil {
		return s.ask(q.Text, s.look(q)), nil
	}
	if len(q.State) == 0 {
		return s.resolve(s.look(q), voteOf(q.Reply)), nil
	}
	found, err := s.readFindings(q.State)
	if err != nil {
		return nil, err
	}
	return s.resolve(found, voteOf(q.Reply)), nil
}

// ask puts the latest turn, and nothing else, to the classifier (6.5).
func (s *screen) ask(text string, found findings) *abi.Verdict {
	temperature := s.temperature
	return &abi.Verdict{
		Verdict: abi.VerdictAskModel,
		Ask: &abi.ModelRequest{
			Model:       abi.ModelGuard,
			Prompt:      &abi.PromptUse{Name: promptName, Vars: []abi.Var{{Name: promptVar, Value: text}}},
			Temperature: &temperature,
			MaxTokens:   s.maxTokens,
		},
		State: found.appendJSON(nil),
	}
}

func (s *screen) tooLong(n int) *abi.Verdict {
	return &abi.Verdict{
		Verdict:    abi.VerdictBlock,
		Message:    s.oversizeMessage,
		ReasonCode: sourceLimit,
		Decision:   appendLimitDecision(nil, n, s.maxChars),
	}
}
