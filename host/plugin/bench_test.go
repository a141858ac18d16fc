package plugin_test

import (
	"context"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// BenchmarkEcho is a call with a request and a reply of about 1 KiB, whose
// reply is not decoded.
func BenchmarkEcho(b *testing.B) {
	p := load(b, plugin.Spec{Wasm: NewGuest().Echo(abi.HookCheckInput).Build()})
	request := []byte(strings.Repeat("x", 1024))
	b.ReportAllocs()
	for b.Loop() {
		err := plugin.CallDecoding(p, context.Background(), abi.HookCheckInput, request, func([]byte) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck is a typed call of a Go guest with a request of about 1 KiB.
func BenchmarkCheck(b *testing.B) {
	p := load(b, plugin.Spec{Wasm: Build(b, "host/plugin/testdata/probe")})
	req := &abi.CheckInputRequest{Call: abi.Call{Now: 1, Seed: "1"}, Text: strings.Repeat("some text ", 100)}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.CheckInput(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInstance makes, configures and closes an instance.
func BenchmarkInstance(b *testing.B) {
	for name, wasm := range map[string][]byte{"small": checker().Build(), "go": Build(b, "host/plugin/testdata/probe")} {
		b.Run(name, func(b *testing.B) {
			p := load(b, plugin.Spec{Wasm: wasm})
			for b.Loop() {
				if err := plugin.NewInstance(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
