package main

import (
	"errors"
	"strconv"
	"strings"

	"weir/abi"
)

// step answers one event.
//
//	start ──► model ──► (calls) tools ──► model ──► … ──► (no calls) finish
//	            └► (budget spent) answer with the closing sentence
func (l *loop) step(q *abi.StepRequest) (*abi.StepReply, error) {
	if q.Event.Type == abi.EventStart {
		return l.start(&q.Event), nil
	}
	s, err := readState(q.State)
	if err != nil {
		return nil, err
	}
	action := l.next(&s, &q.Event)
	return &abi.StepReply{State: s.appendJSON(nil), Action: action}, nil
}

func (l *loop) start(e *abi.Event) *abi.StepReply {
	s := state{system: fill(l.prompt, e.Tools), turns: len(e.Turns), max: e.ToolCallsLeft}
	return &abi.StepReply{State: s.appendJSON(nil), Action: l.ask(&s)}
}

func (l *loop) next(s *state, e *abi.Event) abi.Action {
	switch e.Type {
	case abi.EventModel:
		s.ref = max(s.ref, e.Ref)
		if len(e.ToolCalls) == 0 {
			return abi.Action{Type: abi.ActionFinish} // its text has been streamed, if it had any
		}
		return abi.Action{Type: abi.ActionTools, Calls: e.ToolCalls}
	case abi.EventTools:
		for i := range e.Results {
			s.ref = max(s.ref, e.Results[i].Ref)
		}
		return l.ask(s)
	case abi.EventModelFailed:
		if e.Code == abi.FailBudget {
			return abi.Action{Type: abi.ActionAnswer, Text: strings.ReplaceAll(l.budget, maxCalls, strconv.Itoa(s.max))}
		}
		return fail("the model failed: " + e.Code)
	}
	return fail("unexpected event: " + e.Type)
}

func fail(reason string) abi.Action {
	return abi.Action{Type: abi.ActionFail, Reason: reason}
}

// ask puts the whole conversation to the model: the system prompt, the turns,
// and what the model and the tools have said since, which the host has by number.
func (l *loop) ask(s *state) abi.Action {
	messages := make([]abi.Message, 0, 1+s.turns+s.ref)
	messages = append(messages, abi.Message{Role: abi.RoleSystem, Content: s.system})
	for i := range s.turns {
		messages = append(messages, abi.Message{Turn: i + 1})
	}
	for i := range s.ref {
		messages = append(messages, abi.Message{Ref: i + 1})
	}
	temperature := l.temperature
	return abi.Action{Type: abi.ActionModel, Request: &abi.ModelRequest{
		Model:       abi.ModelAgent,
		Messages:    messages,
		Temperature: &temperature,
		MaxTokens:   l.maxTokens,
		Tools:       &abi.ToolSet{All: true},
		Stream:      true,
	}}
}

// fill puts the tools into the system prompt (5.3), in one pass, so that a
// placeholder in a tool's description stays what it is.
func fill(prompt string, tools []abi.ToolInfo) string {
	lines, names := make([]string, len(tools)), make([]string, len(tools))
	for i, t := range tools {
		lines[i] = t.Name + ": " + t.Description
		names[i] = t.Name
	}
	return strings.NewReplacer(
		"{tools}", strings.Join(lines, "\n"),
		"{tool_names}", strings.Join(names, ", "),
	).Replace(prompt)
}

var errNoState = errors.New("an event other than start needs a state")
