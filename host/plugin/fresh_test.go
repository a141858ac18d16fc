package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// methods are the ways of resetting that this system has.
func methods() []plugin.Reset {
	if runtime.GOOS != "linux" {
		return []plugin.Reset{plugin.ResetCopy}
	}
	return []plugin.Reset{plugin.ResetScan, plugin.ResetPagemap, plugin.ResetCopy}
}

// withReset loads a plugin in a runtime that resets by one method.
func withReset(t testing.TB, method plugin.Reset, spec plugin.Spec) *plugin.Plugin {
	t.Helper()
	r, err := plugin.NewRuntime(context.Background(), plugin.RuntimeOptions{CacheDir: CacheDir(t), Reset: method})
	if method == plugin.ResetScan && err != nil {
		t.Skip(err) // before Linux 6.7
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	spec.Name = "keeper"
	p, err := r.Load(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keeper is a guest that stores each request in its memory and a global, and
// answers what it found there.
func keeper() []byte {
	const kept, found = 0x30000, 0x38000
	g := NewGuest()
	global := g.Global()
	return g.Hook(abi.HookCheckInput,
		I32(found), I32(kept), I32(64), MemoryCopy,
		I32(found+64), GlobalGet(global), Op(0x36, 2, 0), // i32.store
		I32(kept), Get(0), Get(1), MemoryCopy,
		Get(0), Op(0x28, 2, 0), GlobalSet(global), // i32.load
		I64(found<<32|68)).Build()
}

// soak is how many calls the properties below are tried with.
func soak(t testing.TB, short int) int {
	if os.Getenv("WEIR_SOAK") != "" {
		return 100_000
	}
	if testing.Short() {
		return short / 10
	}
	return short
}

func secretOf(n int) string { return fmt.Sprintf("secret-%08d-%d", n*7919, n%10) }

// What one call leaves in globals and memory, the next does not find, by each
// method; an idle instance is its image byte by byte.
func TestFreshStateSmallGuest(t *testing.T) {
	for _, method := range methods() {
		t.Run(string(method), func(t *testing.T) {
			p := withReset(t, method, plugin.Spec{Wasm: keeper(), Limits: plugin.Limits{Instances: 1}})
			nothing := make([]byte, 68)
			for n := range soak(t, 5000) {
				secret := secretOf(n)
				err := plugin.CallDecoding(p, context.Background(), abi.HookCheckInput, []byte(secret), func(reply []byte) error {
					if strings.Contains(string(reply), "secret") || n == 0 && bytes.Equal(reply, nothing) {
						return fmt.Errorf("call %d found %q", n, reply)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if left := plugin.Residue(p, secret); left != "" {
					t.Fatalf("after call %d: %s", n, left)
				}
			}
			if n := plugin.Discarded(p); n != 0 {
				t.Errorf("%d instances were discarded", n)
			}
		})
	}
}

// The same for a Go guest whose heap, goroutines and collector work.
func TestFreshStateGoGuest(t *testing.T) {
	wasm := Build(t, "host/plugin/testdata/probe")
	for _, method := range methods() {
		t.Run(string(method), func(t *testing.T) {
			p := withReset(t, method, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Instances: 1, Timeout: time.Minute}})
			first := ""
			for n := range soak(t, 1000) {
				secret := secretOf(n)
				found, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, "keep "+secret)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					first = found
				}
				if found != first || strings.Contains(found, "secret") {
					t.Fatalf("call %d found %q, the first %q", n, found, first)
				}
				if n%8 != 0 && n > 100 { // looking costs more than the call
					continue
				}
				if left := plugin.Residue(p, secret); left != "" {
					t.Fatalf("after call %d: %s", n, left)
				}
			}
			t.Logf("image of %d KiB, %d instances discarded", plugin.ImageSize(p)>>10, plugin.Discarded(p))
		})
	}
}

// The positive control: without a reset the guests above do find what was left.
func TestKeeperKeeps(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: keeper(), Limits: plugin.Limits{Instances: 1}})
	for n, want := range []bool{false, true} {
		reply, err := plugin.CallWithoutReset(p, abi.HookCheckInput, []byte(secretOf(n)))
		if err != nil || strings.Contains(string(reply), secretOf(0)) != want {
			t.Errorf("call %d: %q, %v", n, reply, err)
		}
	}
}

// A guest whose memory grew is not used again, and the next call finds the
// size that the first one found.
func TestGrownInstanceIsDiscarded(t *testing.T) {
	g := NewGuest()
	ok := g.Reply(allow)
	// Traps unless the memory has the size that it began with; then grows.
	wasm := g.Hook(abi.HookCheckInput, Op(0x3f, 0), I32(8), Op(0x47), If(Op(OpUnreachable)),
		I32(16), MemoryGrow, Op(OpDrop), ok).Build()
	for _, method := range methods() {
		p := withReset(t, method, plugin.Spec{Wasm: wasm})
		for range 20 {
			if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
				t.Fatal(method, err)
			}
		}
		if n := plugin.Discarded(p); n != 20 {
			t.Errorf("%s: %d instances were discarded", method, n)
		}
	}
}

// DECISIONS 3: modules whose state is more than memory and globals get a new
// instance for every call.
func TestOtherStateIsFreshToo(t *testing.T) {
	for name, make := range map[string]func(g *Guest) []byte{
		"table": func(g *Guest) []byte { // traps unless element 0 is null, then sets it
			g.Table(1, 1)
			f := g.Func("", "", 0)
			g.Export("f", KindFunc, f)                                                    // declares it for ref.func
			code := append(append(I32(0), 0x25, 0, 0xd1, 0x45), If(Op(OpUnreachable))...) // table.get; ref.is_null; i32.eqz
			return append(append(append(code, I32(0)...), 0xd2, byte(f)), 0x26, 0)        // ref.func; table.set
		},
		"data segment": func(g *Guest) []byte { // traps once it is dropped
			n := byte(g.Passive([]byte("passive")))
			init := append(append(append(I32(0x20000), I32(0)...), I32(7)...), 0xfc, 8, n, 0)
			return append(init, 0xfc, 9, n)
		},
		"vector": func(g *Guest) []byte { // traps unless the upper half of a v128 is zero, then sets it
			v := byte(g.GlobalOf(append([]byte{0x7b, 1, 0xfd, 0x0c}, make([]byte, 16)...)...))
			test := append([]byte{0x23, v, 0xfd, 0x1d, 1, 0x50, 0x45}, If(Op(OpUnreachable))...) // i64x2.extract_lane 1; i64.eqz; i32.eqz
			ones := append([]byte{0xfd, 0x0c}, bytes.Repeat([]byte{1}, 16)...)
			return append(append(test, ones...), 0x24, v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewGuest()
			code := make(g)
			ok := g.Reply(allow)
			p := load(t, plugin.Spec{Wasm: g.Hook(abi.HookCheckInput, code, ok).Build()})
			for n := range 10 {
				if reply, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil || string(reply) != allow {
					t.Fatalf("call %d: %q, %v", n, reply, err)
				}
			}
			if plugin.ImageSize(p) != -1 {
				t.Error("it has an image")
			}
		})
	}
}

// DECISIONS 1: compiled code depends on the module only. What changes a
// configuration or a prompt makes an image and compiles nothing.
func TestCompilesOnce(t *testing.T) {
	r := newRuntime(t)
	wasm := Build(t, "host/plugin/testdata/probe")
	before := plugin.Compiled(r)
	for n, spec := range []plugin.Spec{
		{},
		{}, // the same image
		{Config: abi.Raw(`{ }`)},
		{Config: abi.Raw(`{"a":1}`)},
		{Prompts: []abi.Prompt{{Name: "p", Text: "one"}}},
		{Prompts: []abi.Prompt{{Name: "p", Text: "two"}}},
		{Prompts: []abi.Prompt{{Name: "p", Text: "two"}}}, // again the same
	} {
		spec.Name, spec.Wasm = "x", wasm
		p, err := r.Load(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		config := "{}"
		if spec.Config != nil && n == 3 {
			config = string(spec.Config)
		}
		for _, prompt := range spec.Prompts {
			config += "|p=" + prompt.Text
		}
		if got, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, "config"); err != nil || strings.ReplaceAll(got, " ", "") != config {
			t.Errorf("load %d is configured with %q, %v; want %q", n, got, err, config)
		}
	}
	if n := plugin.Compiled(r) - before; n != 1 {
		t.Errorf("compiled %d modules", n)
	}
	if n := plugin.Images(r); n != 4 {
		t.Errorf("%d images", n)
	}
}

// FAULTS P14: every instance has the configuration that was accepted, and one
// that is refused changes nothing.
func TestConfigurationIsAllOrNothing(t *testing.T) {
	r := newRuntime(t)
	wasm := Build(t, "host/plugin/testdata/probe")
	load := func(config string) (*plugin.Plugin, error) {
		return r.Load(context.Background(), plugin.Spec{Name: "p", Wasm: wasm, Config: abi.Raw(config),
			Limits: plugin.Limits{Instances: 8, Timeout: time.Minute}})
	}
	old, err := load(`{"version":1}`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 40 {
				what := "config"
				if n%10 == 9 {
					what = "panic" // so that there are new instances
				}
				got, err := probe(t, old, abi.Call{Now: 1, Seed: "1"}, what)
				if what == "config" && (err != nil || got != `{"version":1}`) {
					t.Errorf("configured with %q, %v", got, err)
				}
			}
		})
	}
	for range 5 {
		if _, err := load(`{"refuse":true}`); err == nil {
			t.Error("loaded")
		}
		if p, err := load(`{"version":2}`); err != nil {
			t.Error(err)
		} else if got, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, "config"); err != nil || got != `{"version":2}` {
			t.Errorf("the new one is configured with %q, %v", got, err)
		}
	}
	wg.Wait()
}

func TestUnknownReset(t *testing.T) {
	if _, err := plugin.NewRuntime(context.Background(), plugin.RuntimeOptions{Reset: "magic"}); err == nil {
		t.Error("accepted")
	}
}
