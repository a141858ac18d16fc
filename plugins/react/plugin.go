// Command react is a workflow: the loop of a model that uses tools. It asks the
// model, lets the host perform the calls that come back, and asks again, until
// the model answers without one.
package main

import (
	"errors"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/step"
)

const (
	pluginName = "react"
	promptName = "system"
)

// current is set by configure and only read afterwards.
var current *loop

func init() {
	pdk.Describe(abi.Description{
		Name:         pluginName,
		Version:      "0.1.0",
		Summary:      "Answers with a model that uses the agent's tools.",
		ConfigSchema: abi.Raw(configSchema),
		Prompts:      []string{promptName},
		Skills: []abi.Skill{{
			ID:          "answer-with-tools",
			Name:        "Answer with tools",
			Description: "Answers questions from what the agent's tools return, over as many calls as it takes.",
			Tags:        []string{"tools", "question-answering"},
		}},
		Cases: cases(),
	})
	pdk.Configure(configure)
	step.Handle(func(q *abi.StepRequest) (*abi.StepReply, error) {
		if current == nil {
			return nil, errors.New("not configured")
		}
		return current.step(q)
	})
}

func main() {}

func configure(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
	l, err := readConfig(q.Config)
	if err == nil {
		l.prompt, err = systemPrompt(q.Prompts)
	}
	if err != nil {
		return &abi.ConfigureReply{Error: err.Error()}, nil
	}
	current = l
	return &abi.ConfigureReply{Prompts: []string{promptName}}, nil
}

// cases hold whatever the operator configured.
func cases() []abi.Case {
	const begin = `{"now":0,"seed":"0","state":{"system":"s","turns":1,"ref":0,"max":1},"event":{"tool_calls_left":1,"model_calls_left":1,`
	return []abi.Case{
		{Name: "a reply without calls ends the run", Hook: abi.HookStep,
			Request: abi.Raw(begin + `"type":"model","ref":1,"text":"Good morning!"}}`),
			Expect:  abi.Raw(`{"action":{"type":"finish"}}`)},
		{Name: "calls are handed on as they are", Hook: abi.HookStep,
			Request: abi.Raw(begin + `"type":"model","ref":1,"tool_calls":[{"id":"c1","name":"look","arguments":"{}"}]}}`),
			Expect:  abi.Raw(`{"action":{"type":"tools","calls":[{"id":"c1","name":"look","arguments":"{}"}]}}`)},
		{Name: "a model that cannot be reached fails the run", Hook: abi.HookStep,
			Request: abi.Raw(begin + `"type":"model_failed","code":"unavailable"}}`),
			Expect:  abi.Raw(`{"action":{"type":"fail","reason":"the model failed: unavailable"}}`)},
	}
}
