package plugin_test

import (
	"context"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"

	"weir/abi"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// The same guests as for the direct carrier, by Extism.
func extismGuests(b testing.TB) map[string][]byte {
	small := NewExtismGuest()
	small.Pages = 4
	return map[string][]byte{
		"small": small.Echo(abi.HookCheckInput).Build(),
		"go":    Build(b, "host/plugin/testdata/extismecho"),
	}
}

// plainSDK is the Extism SDK as it comes, with a timeout and a memory limit.
func plainSDK(b testing.TB, timeout time.Duration, wasm []byte) *extism.CompiledPlugin {
	b.Helper()
	p, err := extism.NewCompiledPlugin(context.Background(),
		extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}, Timeout: uint64(timeout.Milliseconds()),
			Memory: &extism.ManifestMemory{MaxPages: 1024, MaxVarBytes: -1, MaxHttpResponseBytes: -1}},
		extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func plainInstance(b testing.TB, c *extism.CompiledPlugin) *extism.Plugin {
	b.Helper()
	p, err := c.Instance(context.Background(), extism.PluginInstanceConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkExtismEcho is a whole call of the Extism carrier, each with an
// instance of its own: "queued" finds one in the queue and is what a caller
// waits for, "sustained" calls one after the other and is bounded by how fast
// instances are made. Beside it the SDK as it comes: an instance that is used
// again, and with it what the last caller left, and a new one for every call.
func BenchmarkExtismEcho(b *testing.B) {
	for _, name := range []string{"small", "go"} {
		wasm := extismGuests(b)[name]
		ours := func(b *testing.B, wait func(*plugin.Plugin)) {
			p, err := newRuntime(b).Load(context.Background(), plugin.Spec{Name: "guest", Wasm: wasm})
			if err != nil {
				b.Fatal(err)
			}
			measure(b, func() { wait(p) }, func() error {
				_, err := plugin.CallInto(p, context.Background(), abi.HookCheckInput, echo(), nil, anything)
				return err
			})
		}
		b.Run(name+"/queued", func(b *testing.B) { ours(b, plugin.AwaitQueue) })
		b.Run(name+"/sustained", func(b *testing.B) { ours(b, func(*plugin.Plugin) {}) })
		b.Run(name+"/sdk-reused", func(b *testing.B) {
			p := plainInstance(b, plainSDK(b, 10*time.Second, wasm))
			defer p.Close(context.Background())
			measure(b, func() {}, func() error { _, _, err := p.Call(string(abi.HookCheckInput), echo()); return err })
		})
		b.Run(name+"/sdk-new", func(b *testing.B) {
			c := plainSDK(b, 10*time.Second, wasm)
			measure(b, func() {}, func() error {
				p := plainInstance(b, c)
				defer p.Close(context.Background())
				_, _, err := p.Call(string(abi.HookCheckInput), echo())
				return err
			})
		})
	}
}

// measure times call and not before.
func measure(b *testing.B, before func(), call func() error) {
	var times plugin.Times
	for b.Loop() {
		before()
		begun := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		times.Add(time.Since(begun))
	}
	times.Report(b)
}
