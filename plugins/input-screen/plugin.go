// Command input-screen is a guardrail for the latest user turn. Deterministic
// patterns and templates and one model that classifies the turn are weighed by
// a fixed table; a turn over the length limit is refused unread. Patterns,
// templates and messages are the operator's: the plugin has none of its own.
package main

import (
	"errors"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkinput"
)

const (
	pluginName = "input-screen"
	promptName = "self_check_input"
	promptVar  = "user_input"
)

// current is set by configure and only read afterwards.
var current *screen

func init() {
	pdk.Describe(abi.Description{
		Name:         pluginName,
		Version:      "0.1.0",
		Summary:      "Screens the latest user turn by length, patterns, allow templates and a classifier.",
		ConfigSchema: abi.Raw(configSchema),
		Prompts:      []string{promptName},
		Cases:        cases(),
	})
	pdk.Configure(configure)
	checkinput.Handle(func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		if current == nil {
			return nil, errors.New("not configured")
		}
		return current.check(q)
	})
}

func main() {}

func configure(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
	c, err := readConfig(q.Config)
	if err == nil {
		err = checkPrompt(q.Prompts)
	}
	if err != nil {
		return &abi.ConfigureReply{Error: err.Error()}, nil
	}
	current = &screen{config: *c}
	current.warm()
	return &abi.ConfigureReply{Prompts: []string{promptName}}, nil
}

// cases hold whatever the operator configured, as long as an ordinary greeting
// is neither an attack nor something that no classifier may refuse.
func cases() []abi.Case {
	const greeting = `{"now":0,"seed":"0","text":"Good morning!","history":[]`
	return []abi.Case{
		{Name: "a clean turn is put to the classifier", Hook: abi.HookCheckInput,
			Request: abi.Raw(greeting + `}`), Expect: abi.Raw(`{"verdict":"ask_model"}`)},
		{Name: "a No lets it pass", Hook: abi.HookCheckInput,
			Request: abi.Raw(greeting + `,"reply":{"text":"No"}}`), Expect: abi.Raw(`{"verdict":"allow"}`)},
		{Name: "a Yes blocks it", Hook: abi.HookCheckInput,
			Request: abi.Raw(greeting + `,"reply":{"text":"Yes"}}`), Expect: abi.Raw(`{"verdict":"block","reason_code":"llm"}`)},
		{Name: "no answer blocks it", Hook: abi.HookCheckInput,
			Request: abi.Raw(greeting + `,"reply":{"failed":"unavailable"}}`), Expect: abi.Raw(`{"verdict":"block","reason_code":"llm"}`)},
	}
}
