package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/abi"
	. "weir/host/plugin/plugintest"
)

// shape is code that runs for ever, or as good as, in one form of control flow.
// FAULTS P1 and P2 are tried with each of them.
type shape struct {
	name  string
	build func(g *Guest) [][]byte
	pages int  // of memory
	fuel  bool // it costs so much that fuel may end it first
}

// shapes lists them; depth is that of the call tree, whose work doubles with
// each level, and lines is how many there are in a straight line.
func shapes(depth, lines int) []shape {
	return []shape{
		{name: "loop", build: func(*Guest) [][]byte { return [][]byte{Loop(Br(0))} }},
		{name: "call tree without loops", build: func(g *Guest) [][]byte { return [][]byte{Call(callTree(g, depth))} }},
		{name: "straight line of memory.fill", pages: 512, build: func(*Guest) [][]byte {
			return [][]byte{bytes.Repeat(line(I32(0), I32(7), I32(512*pageSize), MemoryFill), lines)}
		}},
		{name: "straight line of memory.copy", pages: 512, build: func(*Guest) [][]byte {
			return [][]byte{bytes.Repeat(line(I32(1), I32(0), I32(512*pageSize-1), MemoryCopy), lines)}
		}},
		{name: "straight line of table.fill", build: func(g *Guest) [][]byte {
			g.Table(100_000, 100_000)
			return [][]byte{bytes.Repeat(line(I32(0), Op(0xd0, 0x70), I32(100_000), Op(0xfc, 17, 0)), 10*lines)}
		}},
		{name: "calls of a function with many locals", build: func(g *Guest) [][]byte {
			return [][]byte{Loop(Call(manyLocals(g)), Op(OpDrop), Br(0))}
		}},
		{name: "divisions", build: func(*Guest) [][]byte {
			return [][]byte{Loop(bytes.Repeat(line(I64(-3), Get(2), Op(0xad), I64(7), Op(OpI64Or), Op(0x7f), Op(OpDrop)), 500), Br(0))}
		}},
		{name: "memory touched page by page", pages: 8, build: func(*Guest) [][]byte {
			return [][]byte{I32(900), MemoryGrow, Op(OpDrop), Loop(
				Get(2), I32(1), Op(0x36, 2, 0), // i32.store
				Get(2), I32(4096), Op(OpI32Add), I32(900*pageSize-1), Op(0x71, 0x21, 2), // i32.and; local.set
				Br(0))}
		}},
		{name: "memory.grow that fails", fuel: true, build: func(*Guest) [][]byte {
			return [][]byte{Loop(I32(2000), MemoryGrow, Op(OpDrop), Br(0))}
		}},
		{name: "random_get", build: func(g *Guest) [][]byte {
			f := g.Import(abi.ImportWASI, "random_get", "ii", "i")
			return [][]byte{Loop(I32(0x10000), I32(448<<10), Call(f), Op(OpDrop), Br(0))}
		}},
		{name: "fd_write of many parts", build: func(g *Guest) [][]byte {
			f := g.Import(abi.ImportWASI, "fd_write", "iiii", "i")
			return [][]byte{Loop(I32(1), I32(0x20000), I32(40_000), I32(0), Call(f), Op(OpDrop), Br(0))}
		}},
		{name: "weir.log", build: func(g *Guest) [][]byte {
			f := g.Import(abi.ImportModule, abi.ImportLog, "iii", "")
			return [][]byte{Loop(I32(0), I32(0x20000), I32(256<<10), Call(f), Br(0))}
		}},
	}
}

const pageSize = 64 << 10

func line(code ...[]byte) []byte { return bytes.Join(code, nil) }

// wasm makes check_input run the shape.
func (s shape) wasm() []byte {
	g := NewGuest()
	g.Pages = s.pages
	code := s.build(g)
	return g.Hook(abi.HookCheckInput, append(code, Op(OpUnreachable))...).Build()
}

// callTree adds functions of which each calls the next one twice.
func callTree(g *Guest, depth int) uint32 {
	f := g.Func("", "", 0)
	for range depth {
		f = g.Func("", "", 0, Call(f), Call(f))
	}
	return f
}

// manyLocals adds a function that has to clear and read thousands of locals.
func manyLocals(g *Guest) uint32 {
	const n = 20_000
	code := I32(0)
	for local := range uint32(n) {
		if local%100 == 0 {
			code = append(append(code, Get(local)...), OpI32Add)
		}
	}
	return g.Func("", "i", n, Loop(Get(0), Op(0x0d, 0)), code)
}

// stall runs a 1 ms ticker and collections beside f and returns the longest
// time in which the ticker did not come.
func stall(f func()) time.Duration {
	done, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		longest, last := time.Duration(0), time.Now()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				longest = max(longest, time.Since(last))
				last = time.Now()
			case <-done:
				worst <- max(longest, time.Since(last))
				return
			}
		}
	}()
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				runtime.GC()
			}
		}
	}()
	f()
	close(done)
	return <-worst
}

// elapsed is how long f takes: by the clock, or by the processor time of this
// process if that is less, because then others had the processors.
func elapsed(f func()) time.Duration {
	begun, used := time.Now(), processorTime()
	f()
	wall := time.Since(begun)
	if used == 0 {
		return wall
	}
	return min(wall, processorTime()-used)
}

// tableBomb grows its table as far as it is let, by 4 million elements at
// once, when it is poisoned.
func tableBomb() []byte {
	g := NewGuest()
	g.Table(1, -1)
	ok := g.Reply(allow)
	return g.Hook(abi.HookCheckInput, onPoison(bytes.Repeat(line(Op(0xd0, 0x70), I32(4<<20), TableGrow, Op(OpDrop)), 8)), ok).Build()
}

func onPoison(code ...[]byte) []byte {
	return line(Get(1), I32(int32(len(poison))), Op(OpI32Eq), If(code...))
}

// memoryBomb grows its memory as far as it is let, page by page, and writes it,
// when it is poisoned.
func memoryBomb() []byte {
	g := NewGuest()
	ok := g.Reply(allow)
	return g.Hook(abi.HookCheckInput,
		onPoison(Loop(I32(1), MemoryGrow, Op(0x22, 2), I32(-1), Op(0x47), // local.tee; i32.ne
			If(Get(2), I32(pageSize), Op(0x6c), I32(1), Op(0x36, 2, 0), Br(1)))),
		ok).Build()
}

// peakKiB runs f and returns by how much the process grew meanwhile.
func peakKiB(t testing.TB, f func()) int {
	t.Helper()
	runtime.GC()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets the peak
		t.Skip(err)
	}
	before := status(t, "VmRSS:")
	f()
	return status(t, "VmHWM:") - before
}

func status(t testing.TB, field string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), field)
	var n int
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Skip(err)
	}
	return n
}

func background() context.Context { return context.Background() }
