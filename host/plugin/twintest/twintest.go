// Package twintest holds plugins against themselves: the module, loaded as the
// host loads it, and the same code in the test's own process must answer the
// same bytes. It is for the tests of package main of a plugin, whose init has
// registered the native one.
package twintest

import (
	"context"
	"testing"
	"time"

	"weir/abi"
	"weir/host/plugin"
	"weir/host/plugin/plugintest"
	"weir/pdk"
)

// Twin is a plugin as a module and natively, configured alike.
type Twin struct{ *plugin.Plugin }

// Load builds and loads the module of plugins/<name>, self-check included, and
// configures both. It ends with the test, which is skipped if it is short.
func Load(t testing.TB, name string, config abi.Raw, prompts ...abi.Prompt) *Twin {
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
	p, err := rt.Load(ctx, plugin.Spec{Name: name, Wasm: plugintest.Build(t, "plugins/"+name), Config: config, Prompts: prompts,
		Limits: plugin.Limits{Timeout: 10 * time.Second}}) // machines that test are busy
	if err != nil {
		t.Fatal(err)
	}
	q := abi.ConfigureRequest{Call: abi.Call{Now: 1, Seed: "2"}, Config: config, Prompts: prompts}
	if _, err := pdk.Invoke(abi.HookConfigure, q.AppendJSON(nil)); err != nil {
		t.Fatal(err)
	}
	return &Twin{p}
}

// Same calls a hook of both and returns the answer, or fails the test if there
// are two.
func (w *Twin) Same(t testing.TB, hook abi.Hook, request []byte) []byte {
	t.Helper()
	want, err := pdk.Invoke(hook, request)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := w.Call(context.Background(), hook, request)
	if err != nil || string(got) != string(want) {
		t.Fatalf("%s: in Wasm %s, %v; native %s", request, got, err, want)
	}
	return got
}
