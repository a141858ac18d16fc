package instrument

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"weir/host/benchtest"
	"weir/host/plugin/plugintest"
)

// BenchmarkMetering is what metering costs against plain wazero, and beside it
// what wazero's own way to end a guest costs. The three take turns.
func BenchmarkMetering(b *testing.B) {
	guest := plugintest.Build(b, "host/plugin/instrument/testdata/work")
	work := []string{"decode", "search", "order", "hash"}
	for _, name := range work {
		b.Run("go/"+name, func(b *testing.B) { compare(b, guest, name) })
	}
	b.Run("go/all", func(b *testing.B) { compare(b, guest, work...) })
	b.Run("tight", func(b *testing.B) { compare(b, tightLoop(), "run") })
}

// tightLoop counts to 100,000.
func tightLoop() []byte {
	a := new(plugintest.Asm)
	count := plugintest.Loop(plugintest.Get(0), plugintest.I32(1), plugintest.Op(0x6a, 0x22, 0), // add, tee
		plugintest.I32(100_000), plugintest.Op(0x49, 0x0d, 0)) // lt_u, br_if
	f := a.Func("", "i", 1, count, plugintest.Get(0))
	a.Export("run", plugintest.KindFunc, f)
	return a.Bytes()
}

// compare runs functions of a module, one after the other.
func compare(b *testing.B, wasm []byte, names ...string) {
	m, err := Rewrite(wasm, Options{Allow: anyImport})
	if err != nil {
		b.Fatal(err)
	}
	config := wazero.NewRuntimeConfigCompiler()
	times := benchtest.InTurn(b,
		operation(b, wasm, names, config),
		operation(b, m.Wasm, names, config),
		operation(b, wasm, names, config.WithCloseOnContextDone(true)))
	b.ReportMetric(benchtest.Micro(times[0].Median()), "plain-µs")
	b.ReportMetric(benchtest.Ratio(times[1], times[0]), "x-metered")
	b.ReportMetric(benchtest.Ratio(times[2], times[0]), "x-close-on-done")
	b.ReportMetric(0, "ns/op")
}

func operation(b *testing.B, wasm []byte, names []string, config wazero.RuntimeConfig) func() {
	r := wazero.NewRuntimeWithConfig(b.Context(), config)
	b.Cleanup(func() { _ = r.Close(context.Background()) })
	new(meter).link(b, r)
	if _, err := wasi_snapshot_preview1.Instantiate(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	mod, err := r.InstantiateWithConfig(b.Context(), wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		b.Fatal(err)
	}
	var functions []api.Function
	for _, name := range names {
		functions = append(functions, mod.ExportedFunction(name))
	}
	return func() {
		for _, f := range functions {
			if _, err := f.Call(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
}
