package main

import (
	"testing"

	"weir/abi"
	"weir/host/plugin/twintest"
)

// loadWasm loads the module and configures the native plugin alike.
func loadWasm(t testing.TB, config abi.Raw, prompts ...abi.Prompt) *twintest.Twin {
	t.Helper()
	t.Cleanup(func() { current = nil })
	return twintest.Load(t, pluginName, config, prompts...)
}

// stamp is any clock and seed.
var stamp = abi.Call{Now: 1, Seed: "2"}

func TestWasmAnswersEqual(t *testing.T) {
	prompt := abi.Prompt{Name: promptName, Text: "Zoë's tools:\n{tools}\nUse {tool_names}."}
	p := loadWasm(t, abi.Raw(`{"temperature":0.25}`), prompt)
	var state abi.Raw
	for _, e := range []abi.Event{
		startEvent(),
		{Type: abi.EventModel, Ref: 1, Text: "é", ToolCalls: []abi.ToolCall{{ID: "c1", Name: "get", Arguments: `{"n":9007199254740993}`}}},
		{Type: abi.EventTools, Results: []abi.ToolResult{{Ref: 2, CallID: "c1", Name: "get", Text: "{}"}}},
		{Type: abi.EventModelFailed, Code: abi.FailBudget},
		{Type: abi.EventModelFailed, Code: abi.FailTimeout},
		{Type: abi.EventHuman, Outcome: abi.HumanUnavailable},
		{Type: abi.EventModel, Ref: 3},
	} {
		q := abi.StepRequest{Call: stamp, State: state, Event: e}
		var r abi.StepReply
		if err := r.DecodeJSON(p.Same(t, abi.HookStep, q.AppendJSON(nil))); err != nil {
			t.Fatal(err)
		}
		state = r.State
	}
}
