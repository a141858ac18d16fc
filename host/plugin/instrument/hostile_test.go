package instrument

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	pt "weir/host/plugin/plugintest"
)

// hostile are guests that outlive every deadline of plain wazero, or keep a
// collection of the host's garbage waiting (faults P1 and P2).
func hostile() map[string]func(a *pt.Asm) uint32 {
	fill := func(size int32) []byte {
		return bytes.Join([][]byte{pt.I32(0), pt.I32(1), pt.I32(size), {0xfc, 11, 0}}, nil)
	}
	move := func(to, from, size int32) []byte {
		return bytes.Join([][]byte{pt.I32(to), pt.I32(from), pt.I32(size), {0xfc, 10, 0, 0}}, nil)
	}
	nops := bytes.Repeat(pt.Op(0x20, 0, 0x41, 1, 0x6a, 0x21, 0), 2400) // 9,600 instructions
	return map[string]func(a *pt.Asm) uint32{
		"doubling call tree": func(a *pt.Asm) uint32 {
			f := a.Func("", "", 0)
			for range 60 {
				f = a.Func("", "", 0, pt.Call(f), pt.Call(f))
			}
			return f
		},
		"line of memory.fill": func(a *pt.Asm) uint32 {
			return a.Func("", "", 0, bytes.Repeat(fill(64<<20), 20_000))
		},
		"line of memory.copy": func(a *pt.Asm) uint32 {
			return a.Func("", "", 0, bytes.Repeat(move(1, 0, 64<<20-1), 10_000), bytes.Repeat(move(0, 1, 64<<20-1), 10_000))
		},
		"line of table.fill": func(a *pt.Asm) uint32 {
			return a.Func("", "", 0, bytes.Repeat(bytes.Join([][]byte{pt.I32(0), {0xd0, 0x70}, pt.I32(100_000), {0xfc, 17, 0}}, nil), 20_000))
		},
		"empty loop": func(a *pt.Asm) uint32 {
			return a.Func("", "", 0, pt.Loop(pt.Br(0)))
		},
		"loop left through its inside": func(a *pt.Asm) uint32 {
			return a.Func("", "", 0, pt.Loop(pt.Loop(pt.I32(0), pt.Op(0x0d, 0), pt.Br(1))))
		},
		"loop at whose head another begins": func(a *pt.Asm) uint32 {
			return a.Func("", "", 0, pt.Loop(pt.Loop(pt.Br(1))))
		},
		"loop with a switch": func(a *pt.Asm) uint32 {
			return a.Func("", "", 1, pt.Loop(pt.Op(0x02, 0x40, 0x02, 0x40), pt.Get(0), pt.Op(0x0e, 2, 0, 1, 2, 0x0b, 0x0b), pt.Br(0)))
		},
		"recursion in a loop": func(a *pt.Asm) uint32 {
			f := a.Func("i", "", 0, pt.Get(0), pt.If(pt.Get(0), pt.I32(1), pt.Op(0x6b), pt.Call(0)))
			return a.Func("", "", 0, pt.Loop(pt.I32(10_000), pt.Call(f), pt.Br(0)))
		},
		// Each caller has work left for its return; nothing may be paid ahead.
		"deep recursion that works on its way back": func(a *pt.Asm) uint32 {
			f := a.Func("i", "", 0, pt.Get(0), pt.If(pt.Get(0), pt.I32(1), pt.Op(0x6b), pt.Call(0)), nops)
			return a.Func("", "", 0, pt.Loop(pt.I32(100_000), pt.Call(f), pt.Br(0)))
		},
	}
}

func hostileModule(t *testing.T, shape func(a *pt.Asm) uint32) []byte {
	a := new(pt.Asm)
	a.Memory(1024, 1024)
	a.Table(100_000, -1)
	a.Export("run", pt.KindFunc, shape(a))
	return rewrite(t, a.Bytes(), Options{})
}

// Every shape ends when its budget does, and comes back to the host in short
// intervals until then. That they would not end otherwise is a test of the
// carrier, since it costs a process.
func TestHostileEnds(t *testing.T) {
	const budget = 50 * slice
	for name, shape := range hostile() {
		t.Run(name, func(t *testing.T) {
			w := instantiate(t, hostileModule(t, shape), 0)
			w.meter.budget = budget
			last, longest := time.Now(), time.Duration(0)
			w.meter.each = func() {
				longest = max(longest, time.Since(last))
				last = time.Now()
			}
			_, err := w.mod.ExportedFunction("run").Call(t.Context())
			if err == nil || !strings.Contains(err.Error(), "budget of 10000000 spent") {
				t.Fatalf("expected the end of the budget, got %v", err)
			}
			// The last grant is not used up; a long charge may be below zero.
			if used := w.meter.used(w.mod); used > budget+slice+2*maxDebt+piece {
				t.Errorf("used %d units with a budget of %d", used, budget)
			}
			if w.meter.slices < budget/slice-5 {
				t.Errorf("came back %d times only", w.meter.slices)
			}
			if longest > time.Second {
				t.Errorf("did not come back for %v", longest)
			}
			t.Logf("%d slices, longest interval %v", w.meter.slices, longest)
		})
	}
}

// A collection does not wait for a guest (fault P2): it returns while the
// guest runs, which goes on until then.
func TestCollection(t *testing.T) {
	for name, shape := range hostile() {
		t.Run(name, func(t *testing.T) {
			w := instantiate(t, hostileModule(t, shape), 0)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var running, done atomic.Bool
			w.meter.each = func() {
				running.Store(true)
				if done.Load() || ctx.Err() != nil {
					panic(errEnough)
				}
			}
			ended := goRun(w)
			for !running.Load() {
				runtime.Gosched()
			}
			start := time.Now()
			runtime.GC()
			took := time.Since(start)
			done.Store(true)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), errEnough.Error()) || ctx.Err() != nil {
				t.Errorf("the guest ended with %v", err)
			}
			if took > 5*time.Second {
				t.Errorf("the collection took %v", took)
			}
			t.Logf("the collection took %v", took)
		})
	}
}

type enough struct{}

func (enough) Error() string { return "enough" }

var errEnough enough

func goRun(w twin) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := w.mod.ExportedFunction("run").Call(context.Background())
		ended <- err
	}()
	return ended
}

// Without a budget nothing ends a recursion but the engine's own limit.
func TestStackOverflow(t *testing.T) {
	a := new(pt.Asm)
	a.Export("run", pt.KindFunc, a.Func("", "", 0, pt.Call(0)))
	w := instantiate(t, rewrite(t, a.Bytes(), Options{}), 0)
	if _, err := w.mod.ExportedFunction("run").Call(t.Context()); !strings.Contains(trap(err), "stack overflow") {
		t.Errorf("ended with %v", err)
	}
}

// Work that a deep recursion does on its way down or as it unwinds is not paid
// ahead, and is looked at: between two slices not more than a slice of it is
// done.
func TestUnwinding(t *testing.T) {
	const tail = 9000
	less := pt.Op(0x20, 0, 0x41, 1, 0x6b, 0x10, 0) // call of itself with one less
	work := bytes.Join([][]byte{bytes.Repeat([]byte{1}, tail), pt.GlobalGet(0), pt.I32(1), pt.Op(0x6a), pt.GlobalSet(0)}, nil)
	for name, code := range map[string][]byte{
		"call in an if":       append(append(pt.Get(0), pt.If(less)...), work...),
		"call in the open":    append(append(append(pt.Get(0), pt.Op(0x45, 0x04, 0x40, 0x0f, 0x0b)...), less...), work...),
		"call in three loops": append(append(pt.Get(0), pt.If(pt.Loop(pt.Loop(pt.Loop(less))))...), work...),
		"on the way down":     append(append(work, pt.Get(0)...), pt.If(less)...),
		"in a loop without a branch, on the way down": pt.Loop(work, pt.Get(0), pt.If(less)),
		"in two such loops":                           pt.Loop(pt.Loop(work, pt.Get(0), pt.If(less))),
	} {
		t.Run(name, func(t *testing.T) {
			a := new(pt.Asm)
			work := a.Global()
			a.Export("run", pt.KindFunc, a.Func("i", "", 0, code))
			a.Export("work", pt.KindGlobal, work)
			w := instantiate(t, rewrite(t, a.Bytes(), Options{}), 0)
			last, most := int64(0), int64(0)
			w.meter.each = func() {
				now := int64(w.mod.ExportedGlobal("work").Get())
				most, last = max(most, now-last), now
			}
			if _, err := w.mod.ExportedFunction("run").Call(t.Context(), api.EncodeI32(20_000)); err != nil {
				t.Fatal(err)
			}
			if most == 0 || most*tail > slice+2*reach {
				t.Errorf("did the work of %d callers between two slices", most)
			}
		})
	}
}
