package plugin_test

import (
	"context"
	"testing"

	"weir/abi"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

func TestExtismEcho(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: NewExtismGuest().Answer(abi.HookCheckInput, allow).Build()})
	for range 5 {
		reply, fuel, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
		if err != nil || string(reply) != allow {
			t.Fatalf("%s, %d, %v", reply, fuel, err)
		}
		t.Log(fuel)
	}
}
