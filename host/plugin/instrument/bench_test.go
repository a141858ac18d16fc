package instrument

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"weir/host/plugin/plugintest"
)

// BenchmarkMetering is what metering costs against plain wazero, and beside it
// what wazero's own way to end a guest costs. The three take turns, and the
// fastest call of each counts.
func BenchmarkMetering(b *testing.B) {
	guest := plugintest.Build(b, "host/plugin/instrument/testdata/work")
	for _, name := range []string{"decode", "search", "order", "hash"} {
		b.Run("go/"+name, func(b *testing.B) { compare(b, guest, name) })
	}
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

func compare(b *testing.B, wasm []byte, name string) {
	m, err := Rewrite(wasm, Options{Allow: anyImport})
	if err != nil {
		b.Fatal(err)
	}
	plain := prepare(b, wasm, name, wazero.NewRuntimeConfigCompiler())
	metered := prepare(b, m.Wasm, name, wazero.NewRuntimeConfigCompiler())
	closing := prepare(b, wasm, name, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(true))
	var times [3][]time.Duration
	for b.Loop() {
		for i, f := range []api.Function{plain, metered, closing} {
			start := time.Now()
			if _, err := f.Call(context.Background()); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	base := quick(times[0])
	b.ReportMetric(base/1e3, "plain-us")
	b.ReportMetric(quick(times[1])/base, "metered/plain")
	b.ReportMetric(quick(times[2])/base, "closeOnDone/plain")
	b.ReportMetric(0, "ns/op")
}

// quick is the tenth percentile: what a call takes when nothing disturbs it.
func quick(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/10])
}

func prepare(b *testing.B, wasm []byte, name string, config wazero.RuntimeConfig) api.Function {
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
	return mod.ExportedFunction(name)
}
