package main

import (
	"context"
	"testing"

	"weir/abi"
	"weir/host/plugin"
	"weir/host/plugin/plugintest"
	"weir/pdk"
)

// The module answers what the native code answers, byte by byte.
func TestWasmAnswersEqual(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module")
	}
	ctx := context.Background()
	rt, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: plugintest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(ctx) })
	config := abi.Raw(`{"extra":[{"name":"own","expr":"canary"}]}`)
	p, err := rt.Load(ctx, plugin.Spec{Name: pluginName, Wasm: plugintest.Build(t, "plugins/"+pluginName), Config: config})
	if err != nil {
		t.Fatal(err)
	}
	call := abi.Call{Now: 1, Seed: "2"}
	configure := abi.ConfigureRequest{Call: call, Config: config}
	if _, err := pdk.Invoke(abi.HookConfigure, configure.AppendJSON(nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { current = nil })
	for _, text := range append(append(lines(t, "prose.txt"), lines(t, "attacks.txt")...), "a canary", "") {
		for _, form := range forms(text) {
			q := request(form)
			q.Call = call
			data := q.AppendJSON(nil)
			want, err := pdk.Invoke(abi.HookCheckToolResult, data)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := p.Call(ctx, abi.HookCheckToolResult, data)
			if err != nil || string(got) != string(want) {
				t.Fatalf("%s: in Wasm %s, %v; native %s", form, got, err, want)
			}
		}
	}
}
