package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"weir/abi"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// The guests of the benchmarks: a hand-written one and a Go one.
func benchGuests(b testing.TB) map[string][]byte {
	small := NewGuest()
	small.Pages = 4
	return map[string][]byte{
		"small": small.Echo(abi.HookCheckInput).Build(),
		"go":    Build(b, "host/plugin/testdata/echo"),
	}
}

func echo() []byte { return []byte(strings.Repeat("x", 1024)) }

func anything([]byte) error { return nil }

func eachGuest(b *testing.B, bench func(b *testing.B, p *plugin.Plugin)) {
	for _, name := range []string{"small", "go"} {
		b.Run(name, func(b *testing.B) {
			p, err := newRuntime(b).Load(context.Background(), plugin.Spec{Name: "guest", Wasm: benchGuests(b)[name]})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			bench(b, p)
		})
	}
}

// BenchmarkEcho is a whole call: fuel, time limit, fresh state. The reply is
// put into a buffer that is used again, so what is allocated is the host's own.
func BenchmarkEcho(b *testing.B) {
	eachGuest(b, func(b *testing.B, p *plugin.Plugin) {
		request, reply := echo(), make([]byte, 0, 4096)
		var times plugin.Times
		for b.Loop() {
			begun := time.Now()
			if _, err := plugin.CallInto(p, context.Background(), abi.HookCheckInput, request, reply[:0], anything); err != nil {
				b.Fatal(err)
			}
			times.Add(time.Since(begun))
		}
		times.Report(b)
		b.ReportMetric(float64(plugin.Discarded(p)), "discarded")
	})
}

// BenchmarkReset is the reset alone, after a call that is not counted.
func BenchmarkReset(b *testing.B) {
	eachGuest(b, func(b *testing.B, p *plugin.Plugin) {
		plugin.BenchReset(b, p, abi.HookCheckInput, echo())
	})
}

// BenchmarkResetMethods compares the methods by the size of the image, after a
// call that writes a few pages.
func BenchmarkResetMethods(b *testing.B) {
	for _, pages := range []int{1, 2, 4, 8, 16, 64, 256} {
		for _, method := range methods() {
			b.Run(fmt.Sprintf("%dKiB/%s", 64*pages, method), func(b *testing.B) {
				g := NewGuest()
				g.Pages = pages
				if pages == 1 {
					g.Replace(abi.ExportAlloc, "i", "i", I32(0x8000))
				}
				p := withReset(b, method, plugin.Spec{Wasm: g.Echo(abi.HookCheckInput).Build()})
				plugin.BenchReset(b, p, abi.HookCheckInput, echo())
			})
		}
	}
}

// BenchmarkInstance makes an instance from the image and closes it.
func BenchmarkInstance(b *testing.B) {
	eachGuest(b, func(b *testing.B, p *plugin.Plugin) {
		var times plugin.Times
		for b.Loop() {
			begun := time.Now()
			if err := plugin.NewInstance(p); err != nil {
				b.Fatal(err)
			}
			times.Add(time.Since(begun))
		}
		times.Report(b)
	})
}

// BenchmarkBirth makes an instance from the module, initialises, configures and
// closes it: what a new instance costs without an image.
func BenchmarkBirth(b *testing.B) {
	for name, wasm := range benchGuests(b) {
		b.Run(name, func(b *testing.B) {
			p := load(b, plugin.Spec{Wasm: wasm})
			for b.Loop() {
				if err := plugin.Birth(p, wasm); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkIdle is the memory that an idle instance has for itself, when it is
// new and after calls: proportional set size of its mapping, and what it holds
// of the host's heap.
func BenchmarkIdle(b *testing.B) {
	if _, err := os.Stat("/proc/self/smaps"); err != nil {
		b.Skip(err)
	}
	eachGuest(b, func(b *testing.B, p *plugin.Plugin) {
		const instances = 50
		for b.Loop() {
		}
		size := func(calls int) float64 {
			before := heap()
			addresses, free := plugin.Instances(p, instances, calls, abi.HookCheckInput, echo())
			defer free()
			return (float64(pss(b, addresses)) + float64(heap()-before)/1024) / instances
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(size(0), "KiB-new")
		b.ReportMetric(size(1), "KiB-called")
		b.ReportMetric(size(20), "KiB-called-20")
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// pss sums the proportional set size, in KiB, of the mappings that begin in
// one of the ranges.
func pss(t testing.TB, ranges [][2]uintptr) (sum int) {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range bytes.Lines(text) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(string(line), "%x-%x ", &from, &to); n == 2 {
			inside = false
			for _, r := range ranges {
				inside = inside || from >= r[0] && from < r[1]
			}
		} else if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok && inside {
			n, _ := strconv.Atoi(strings.Fields(string(rest))[0])
			sum += n
		}
	}
	return sum
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

// FAULTS P4: what limits cost, against wazero without any and with its own
// deadline. The ratios are those of medians in one run.
func BenchmarkMetering(b *testing.B) {
	text := strings.Repeat("some text ", 100)
	request := (&abi.CheckInputRequest{Call: abi.Call{Now: 1, Seed: "1"}, Text: text}).AppendJSON(nil)
	for name, wasm := range map[string][]byte{
		"loop": counting(1_000_000),
		"go":   Build(b, "host/plugin/testdata/probe"),
	} {
		b.Run(name, func(b *testing.B) {
			metered := load(b, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Timeout: time.Minute}})
			bare := newPlain(b, wasm, wazero.NewRuntimeConfig(), wazero.NewModuleConfig())
			closing := newPlain(b, wasm, wazero.NewRuntimeConfig().WithCloseOnContextDone(true), wazero.NewModuleConfig())
			deadline, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			var times [3]plugin.Times
			for b.Loop() {
				for n, call := range []func() error{
					func() error {
						return plugin.CallAgain(metered, abi.HookCheckInput, request)
					},
					func() error { _, err := bare.call(context.Background(), abi.HookCheckInput, request); return err },
					func() error { _, err := closing.call(deadline, abi.HookCheckInput, request); return err },
				} {
					begun := time.Now()
					if err := call(); err != nil {
						b.Fatal(err)
					}
					times[n].Add(time.Since(begun))
				}
			}
			base := float64(times[1].Median())
			b.ReportMetric(float64(times[0].Median())/base, "x-metered")
			b.ReportMetric(float64(times[2].Median())/base, "x-close-on-done")
		})
	}
}
