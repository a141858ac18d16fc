package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/host"
	"weir/host/benchtest"
	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
)

// BenchmarkStart is a start with the shipped agent.toml and its plugins, until
// the host listens and is connected: with an empty cache of compiled code, and
// with the one that this left.
func BenchmarkStart(b *testing.B) {
	w := hosttest.Prepare(b, hosttest.Options{Write: func(w *hosttest.World) { writeShipped(b, w) }})
	opts := w.Options(w.Env(), nil, nil)
	start := func() {
		h, err := host.Start(context.Background(), opts)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = h.Stop(context.Background()) })
	}
	var cold, cached, work benchtest.Times
	for b.Loop() {
		if err := os.RemoveAll(filepath.Join(w.Dir, "plugins", "dist", ".cache")); err != nil {
			b.Fatal(err)
		}
		cold.Time(start)
		for range 5 {
			before := benchtest.Processor()
			cached.Time(start)
			work = append(work, benchtest.Processor()-before)
		}
	}
	b.ReportMetric(cold.Median().Seconds(), "cold-s")
	b.ReportMetric(cached.Median().Seconds(), "cached-s")
	b.ReportMetric(work.Median().Seconds(), "cached-processor-s")
}

// writeShipped writes what is shipped: agent.toml, prompts and modules.
func writeShipped(b testing.TB, w *hosttest.World) {
	root := plugintest.Root(b)
	for _, pattern := range []string{"agent.toml", "prompts/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			b.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			name, _ := filepath.Rel(root, file)
			w.WriteFile(b, name, data)
		}
	}
	sources, err := filepath.Glob(filepath.Join(root, "plugins", "*", "plugin.go"))
	if err != nil || len(sources) == 0 {
		b.Fatalf("no plugin: %v", err)
	}
	for _, source := range sources {
		name := filepath.Base(filepath.Dir(source))
		w.WriteFile(b, "plugins/dist/"+name+".wasm", plugintest.Build(b, "plugins/"+name))
	}
}

// BenchmarkSwaps changes the policy 500 times while 300 requests a second come
// in over HTTP, and counts what failed and what was answered by parts of two
// generations. Memory and goroutines are those at the end against those after
// half of the swaps.
func BenchmarkSwaps(b *testing.B) {
	for b.Loop() {
		w := hosttest.Start(b, hosttest.Options{})
		r := hosttest.SwapUnderLoad(b, w, hosttest.SwapLoad{Swaps: 500, Rate: 300, Pause: 5 * time.Millisecond})
		if r.First != "" {
			b.Log(r.First)
		}
		b.ReportMetric(float64(r.Requests), "requests")
		b.ReportMetric(float64(r.Requests)/r.Took.Seconds(), "requests/s")
		b.ReportMetric(float64(r.Failed), "failed")
		b.ReportMetric(float64(r.Mixed), "mixed")
		b.ReportMetric(float64(r.HeapEnd)/float64(r.HeapHalf), "x-heap")
		b.ReportMetric(float64(r.RoutineEnd)/float64(r.RoutineHalf), "x-goroutines")
	}
}
