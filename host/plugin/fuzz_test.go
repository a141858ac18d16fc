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

// FuzzHost gives every host function arbitrary arguments and memory: none
// reads or writes outside of the memory.
func FuzzHost(f *testing.F) {
	f.Add([]byte("memory"), uint64(1), uint64(0), uint64(1), uint64(64))
	f.Add(make([]byte, 48), uint64(0), uint64(1024), uint64(1), uint64(4096))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint64(2), uint64(0), uint64(1<<32-1), uint64(1<<32-1))
	r, err := plugin.NewRuntime(context.Background(), plugin.RuntimeOptions{Logger: new(lines).logger()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = r.Close(context.Background()) })
	p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: checker().Build(), Log: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, memory []byte, a, b, c, d uint64) {
		plugin.HostCall(p, memory, [9]uint64{a, b, c, d})
	})
}
