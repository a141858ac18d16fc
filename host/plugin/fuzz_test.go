package plugin_test

import (
	"context"
	"testing"
	"time"

	"weir/abi"
	"weir/host/plugin"
)

// FuzzInspect reads arbitrary bytes as a module: it never panics, and never
// reads what is not one as one.
func FuzzInspect(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if plugin.Inspect(wasm) == nil && (len(wasm) < 100 || string(wasm[:4]) != "\x00asm") {
			t.Errorf("accepted %x", wasm)
		}
	})
}

// FuzzLoad loads arbitrary bytes: whatever loads is a module with a description.
func FuzzLoad(f *testing.F) {
	seeds(f)
	r, err := plugin.NewRuntime(context.Background(), plugin.RuntimeOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = r.Close(context.Background()) })
	limits := plugin.Limits{Memory: 4 << 20, Setup: 50 * time.Millisecond, Timeout: 50 * time.Millisecond}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm, Limits: limits})
		if err != nil {
			return
		}
		defer p.Close(context.Background())
		if err := p.Description().Validate(); err != nil {
			t.Error(err)
		}
		_, _, _ = p.Call(context.Background(), abi.HookCheckInput, ordinary)
	})
}

func seeds(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add(checker().Build())
	f.Add(spinner())
	f.Add(cased(`{"verdict":"allow"}`).Build())
	g := checker()
	g.Table(3, 9)
	g.Import(abi.ImportWASI, "fd_write", "iiii", "i")
	f.Add(g.Build())
}
