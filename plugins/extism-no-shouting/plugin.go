// Command extism-no-shouting is the guardrail of package pdk's documentation,
// written with the Extism kit for Go and not with ours: the example of a module
// that any Extism kit could have made. It knows the messages of package abi and
// nothing else of weir.
package main

import (
	"strings"

	"weir/abi"
)

const pluginName = "extism-no-shouting"

func main() {}

// describe is the reply to the hook of that name.
func describe() *abi.Description {
	return &abi.Description{
		Name:    pluginName,
		Version: "0.1.0",
		ABI:     abi.Version,
		Kind:    abi.KindGuardrail,
		Summary: "Blocks questions that are all capital letters; an example of the Extism carrier.",
		Cases: []abi.Case{
			{Name: "a greeting is allowed", Hook: abi.HookCheckInput,
				Request: abi.Raw(`{"now":0,"seed":"0","text":"hello","history":[]}`), Expect: abi.Raw(`{"verdict":"allow"}`)},
			{Name: "shouting is blocked", Hook: abi.HookCheckInput,
				Request: abi.Raw(`{"now":0,"seed":"0","text":"HELLO","history":[]}`), Expect: abi.Raw(`{"verdict":"block"}`)},
		},
	}
}

// checkInput blocks a text with capital letters and no others.
func checkInput(q *abi.CheckInputRequest) *abi.Verdict {
	if q.Text == strings.ToUpper(q.Text) && q.Text != strings.ToLower(q.Text) {
		return &abi.Verdict{Verdict: abi.VerdictBlock, Message: "Please write in lower case."}
	}
	return &abi.Verdict{Verdict: abi.VerdictAllow}
}

// answer is a hook on bytes: what both the module's exports and the tests call.
func answer(hook abi.Hook, request []byte) ([]byte, error) {
	if hook == abi.HookDescribe {
		return describe().AppendJSON(nil), nil
	}
	var q abi.CheckInputRequest
	if err := q.DecodeJSON(request); err != nil {
		return nil, err
	}
	return checkInput(&q).AppendJSON(nil), nil
}
