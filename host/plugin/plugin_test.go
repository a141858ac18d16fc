package plugin_test

import (
	"context"
	"testing"

	"weir/abi"
	"weir/host/plugin"
	"weir/host/plugin/plugintest"
)

func newRuntime(t testing.TB) *plugin.Runtime {
	t.Helper()
	r, err := plugin.NewRuntime(context.Background(), plugin.RuntimeOptions{CacheDir: plugintest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestGoGuest(t *testing.T) {
	p, err := newRuntime(t).Load(context.Background(), plugin.Spec{
		Name: "quiet", Wasm: plugintest.Build(t, "pdk/testdata/noshouting"),
	})
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := p.CheckInput(context.Background(), &abi.CheckInputRequest{Call: abi.Call{Now: 1, Seed: "1"}, Text: "HELLO"})
	if err != nil {
		t.Fatal(err)
	}
	if v.Verdict != abi.VerdictBlock {
		t.Errorf("verdict = %+v", v)
	}
}
