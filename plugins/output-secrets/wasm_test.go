package main

import (
	"context"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/plugin/twintest"
)

// loadWasm loads the module and configures the native plugin alike.
func loadWasm(t testing.TB, config abi.Raw, prompts ...abi.Prompt) *twintest.Twin {
	t.Helper()
	t.Cleanup(func() { current = nil })
	return twintest.Load(t, pluginName, config, prompts...)
}

// stamp is any clock and seed.
var stamp = abi.Call{Now: 1, Seed: "2"}

// overWasm is a stream that the module guards and the native plugin repeats.
func overWasm(t *testing.T, p *twintest.Twin, g *guard) *driver {
	d := g.stream(t)
	d.ask = func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
		q.Call = stamp
		r := new(abi.CheckOutputReply)
		if err := r.DecodeJSON(p.Same(t, abi.HookCheckOutput, q.AppendJSON(nil))); err != nil {
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
	for _, s := range samples {
		texts = append(texts, s.text, lead+s.text+" and so on")
	}
	q := abi.CheckOutputRequest{Call: stamp, Use: abi.UseDisplay, Texts: texts}
	p.Same(t, abi.HookCheckOutput, q.AppendJSON(nil))
	for i, text := range texts {
		d := overWasm(t, p, g)
		for _, piece := range pieces(text, uint64(i)) {
			d.push(piece, false)
		}
		d.push("", true)
		if want, _ := g.all(t, text); d.released.String() != want {
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
