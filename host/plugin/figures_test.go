package plugin_test

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/benchtest"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// BenchmarkFreshState compares the ways to give a call of a Go guest a fresh
// state: the reset that is chosen here, a copy of the whole image, and a new
// instance that is initialised and configured.
func BenchmarkFreshState(b *testing.B) {
	wasm := Build(b, "host/plugin/testdata/echo")
	dirty := withReset(b, plugin.ResetAuto, plugin.Spec{Wasm: wasm})
	whole := withReset(b, plugin.ResetCopy, plugin.Spec{Wasm: wasm})
	born, err := plugin.Births(dirty, wasm)
	if err != nil {
		b.Fatal(err)
	}
	var pages, copies, births benchtest.Times
	for b.Loop() {
		pages = append(pages, resetTime(b, dirty))
		copies = append(copies, resetTime(b, whole))
		births.Time(func() {
			if err := born(); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.ReportMetric(benchtest.Micro(pages.Median()), "dirty-µs")
	b.ReportMetric(benchtest.Micro(copies.Median()), "copy-µs")
	b.ReportMetric(benchtest.Micro(births.Median()), "new-µs")
	b.ReportMetric(benchtest.Ratio(births, pages), "x-dirty")
	b.ReportMetric(benchtest.Ratio(births, copies), "x-copy")
}

// resetTime is that of the second of two calls: a new instance pays once for
// the pages that it writes.
func resetTime(b *testing.B, p *plugin.Plugin) (took time.Duration) {
	for range 2 {
		var ok bool
		if took, ok = plugin.ResetTime(p, abi.HookCheckInput, echo()); !ok {
			b.Fatal("the instance was not reset")
		}
	}
	return took
}

// BenchmarkIdleMemory is what an instance of a Go guest adds to the process
// once it has been called: its share of everything, from 100 of them.
func BenchmarkIdleMemory(b *testing.B) {
	const instances = 100
	p := withReset(b, plugin.ResetAuto, plugin.Spec{Wasm: Build(b, "host/plugin/testdata/echo")})
	var sizes []float64
	for b.Loop() {
		before := share(b)
		_, free := plugin.Instances(p, instances, 3, abi.HookCheckInput, echo())
		sizes = append(sizes, (share(b)-before)/instances)
		free()
	}
	b.ReportMetric(benchtest.Quantile(sizes, 0.5), "KiB-instance")
}

// share is the proportional set size of the process in KiB.
func share(b *testing.B) float64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		b.Skip(err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			kib, err := strconv.ParseFloat(strings.Fields(string(rest))[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib
		}
	}
	b.Skip("the system tells no share")
	return 0
}
