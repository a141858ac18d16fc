package main

import (
	"context"
	"strings"
	"testing"
	"time"

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
	p, err := rt.Load(ctx, plugin.Spec{Name: pluginName, Wasm: plugintest.Build(t, "plugins/"+pluginName), Config: config, Prompts: prompts,
		Limits: plugin.Limits{Timeout: 10 * time.Second}}) // machines that test are busy
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

// overWasm is a stream that the module guards and the native plugin repeats.
func overWasm(t *testing.T, p *plugin.Plugin, g *guard) *driver {
	d := g.stream(t)
	d.ask = func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
		q.Call = stamp
		r := new(abi.CheckOutputReply)
		if err := r.DecodeJSON(same(t, p, abi.HookCheckOutput, q.AppendJSON(nil))); err != nil {
			t.Fatal(err)
		}
		return r
	}
	return d
}

func TestWasmAnswersEqual(t *testing.T) {
	p := loadWasm(t, shipped(t))
	g := load(t, shipped(t))
	var texts []string
	lead := strings.Repeat("Zoë wrote a line. ", 18)
	for _, s := range masked {
		texts = append(texts, s.text, lead+s.text+" and so on")
	}
	q := abi.CheckOutputRequest{Call: stamp, Use: abi.UseDisplay, Texts: texts}
	same(t, p, abi.HookCheckOutput, q.AppendJSON(nil))
	for i, text := range texts {
		d := overWasm(t, p, g)
		for _, piece := range pieces(text, uint64(i)) {
			d.push(piece, false)
		}
		d.push("", true)
		if want := g.mask(t, text); d.released.String() != want {
			t.Errorf("%q: released %q, want %q", text, d.released.String(), want)
		}
	}
}

func BenchmarkWasmAnswer(b *testing.B) {
	p := loadWasm(b, shipped(b))
	prose := strings.Repeat("My parcel has not arrived yet, and I was told to show the order number. ", 20)
	q := abi.CheckOutputRequest{Call: stamp, StreamPos: 5000, Before: prose[:512], Text: prose[512:864]}
	b.SetBytes(512 + 352)
	for b.Loop() {
		if _, _, err := p.CheckOutput(context.Background(), &q); err != nil {
			b.Fatal(err)
		}
	}
}
