package main

import (
	"context"
	"testing"

	"weir/abi"
	"weir/host/plugin"
	"weir/host/plugin/plugintest"
	"weir/pdk"
)

// loadWasm loads the plugin's module as the host does, self-check included,
// and configures the native one alike.
func loadWasm(t testing.TB, config abi.Raw, prompts ...abi.Prompt) *plugin.Plugin {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles a module")
	}
	ctx := context.Background()
	rt, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: plugintest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(ctx) })
	p, err := rt.Load(ctx, plugin.Spec{Name: pluginName, Wasm: plugintest.Build(t, "plugins/"+pluginName), Config: config, Prompts: prompts})
	if err != nil {
		t.Fatal(err)
	}
	q := abi.ConfigureRequest{Call: stamp, Config: config, Prompts: prompts}
	if _, err := pdk.Invoke(abi.HookConfigure, q.AppendJSON(nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { current = nil })
	return p
}

// stamp is any clock and seed.
var stamp = abi.Call{Now: 1, Seed: "2"}

// same holds the module's answer against the native one, byte by byte.
func same(t *testing.T, p *plugin.Plugin, hook abi.Hook, request []byte) []byte {
	t.Helper()
	want, err := pdk.Invoke(hook, request)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := p.Call(context.Background(), hook, request)
	if err != nil || string(got) != string(want) {
		t.Fatalf("%s: in Wasm %s, %v; native %s", request, got, err, want)
	}
	return got
}

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
		if err := r.DecodeJSON(same(t, p, abi.HookStep, q.AppendJSON(nil))); err != nil {
			t.Fatal(err)
		}
		state = r.State
	}
}
