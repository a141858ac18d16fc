package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/benchtest"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// env are the functions of extism:host/env that the guests below import beside
// those of NewExtismGuest.
type env struct {
	alloc, store, output                      uint32 // of NewExtismGuest
	free, length, store8, load, load8, unsafe uint32
	errorSet, log, varGet, varSet, http, exit uint32
}

func extismEnv(g *Guest) env {
	return env{
		alloc: 2, store: 3, output: 4,
		free:     g.Import(abi.ImportExtism, "free", "l", ""),
		length:   g.Import(abi.ImportExtism, "length", "l", "l"),
		store8:   g.Import(abi.ImportExtism, "store_u8", "li", ""),
		load:     g.Import(abi.ImportExtism, "load_u64", "l", "l"),
		load8:    g.Import(abi.ImportExtism, "load_u8", "l", "i"),
		unsafe:   g.Import(abi.ImportExtism, "length_unsafe", "l", "l"),
		errorSet: g.Import(abi.ImportExtism, "error_set", "l", ""),
		log:      g.Import(abi.ImportExtism, "log_info", "l", ""),
		varGet:   g.Import(abi.ImportExtism, "var_get", "l", "l"),
		varSet:   g.Import(abi.ImportExtism, "var_set", "ll", ""),
		http:     g.Import(abi.ImportExtism, "http_request", "ll", "l"),
		exit:     g.Import(abi.ImportWASI, "proc_exit", "i", ""),
	}
}

// extismHostile is one way to misbehave, or not, on a poisoned request.
type extismHostile struct {
	name, code, text string // no code: it answers
	limits           plugin.Limits
	build            func(g *Guest, x env) []byte // leaves the packed reply, or nothing after an unreachable
}

func extismHostiles() []extismHostile {
	set := func(local byte) []byte { return Op(0x21, local) } // local.set
	wrap := Op(0xa7)                                          // i32.wrap_i64
	always := func(code ...[]byte) func(*Guest, env) []byte {
		return func(*Guest, env) []byte { return line(code...) }
	}
	stop := Op(OpUnreachable)
	out := func(at, size int64) func(*Guest, env) []byte {
		return func(_ *Guest, x env) []byte { return line(I64(at), I64(size), Call(x.output), I64(0)) }
	}
	return []extismHostile{
		{name: "exit 0", code: plugin.CodeExit, text: "proc_exit(0)", build: func(_ *Guest, x env) []byte { return line(I32(0), Call(x.exit), stop) }},
		{name: "exit as deadline", code: plugin.CodeExit, text: "proc_exit(4026531839)",
			build: func(_ *Guest, x env) []byte { return line(I32(-268435457), Call(x.exit), stop) }},
		{name: "unreachable", code: plugin.CodeTrap, text: "trap: unreachable", build: always(stop)},
		{name: "recursion", code: plugin.CodeTrap, text: "trap: stack overflow", limits: plugin.Limits{Timeout: time.Minute},
			build: func(g *Guest, x env) []byte {
				self := x.exit + 1
				return Call(g.Func("", "l", 0, Call(self), I64(1), Op(OpI64Add)))
			}},
		{name: "nothing set", code: plugin.CodeBadReply, text: "empty reply", build: always(I64(0))},
		{name: "output out of range", code: plugin.CodeBadReply, text: "reply of 8 bytes at 4294967280, outside of the memory", build: out(0xfffffff0, 8)},
		{name: "output over the end", code: plugin.CodeBadReply, text: "outside of the memory", build: out(16<<16-4, 8)},
		{name: "output wraps", code: plugin.CodeBadReply, text: "outside of the memory", build: out(-8, 16)},
		{name: "output of 64 bits", code: plugin.CodeBadReply, text: "outside of the memory", build: out(1<<32|100, 8)},
		{name: "output too large", code: plugin.CodeTooLarge, text: "reply of 5000 bytes, at most 4096", limits: plugin.Limits{Reply: 4096}, build: out(100, 5000)},
		{name: "output set to nothing", code: plugin.CodeBadReply, text: "empty reply", build: out(30_000, 64)},
		{name: "reply too large", code: plugin.CodeTooLarge, text: "reply of 5000 bytes", limits: plugin.Limits{Reply: 4096}, build: always(packed(0, 5000))},
		{name: "no JSON", code: plugin.CodeBadReply, text: "reply:", build: func(g *Guest, _ env) []byte { return g.Reply("allow") }},
		{name: "twice", code: plugin.CodeBadReply, text: "reply:", build: func(g *Guest, _ env) []byte { return g.Reply(`{"verdict":"block","verdict":"allow"}`) }},
		{name: "error without a code", code: plugin.CodeTrap, text: "set an error and returned 0", build: func(g *Guest, x env) []byte {
			return line(I64(8), Call(x.alloc), Call(x.errorSet), g.Reply(allow))
		}},
		{name: "http_request", code: plugin.CodeTrap, text: "http_request: a plugin has no access to any host", build: func(_ *Guest, x env) []byte {
			return line(I64(0), I64(0), Call(x.http), stop)
		}},
		{name: "writes over the kernel", code: plugin.CodeTrap, text: "writes 8 bytes at 9, outside of its blocks", build: func(_ *Guest, x env) []byte {
			return line(I64(9), I64(-1), Call(x.store), stop)
		}},
		{name: "writes over a block's size", code: plugin.CodeTrap, text: "outside of its blocks", build: func(_ *Guest, x env) []byte {
			return line(I64(64), Call(x.alloc), I64(8), Op(0x7d), I64(-12), Call(x.store), // i64.sub
				I64(64), Call(x.alloc), stop)
		}},
		{name: "writes over the end of a block", code: plugin.CodeTrap, text: "outside of its blocks", build: func(_ *Guest, x env) []byte {
			return line(I64(64), Call(x.alloc), I64(60), Op(OpI64Add), I64(-1), Call(x.store), stop)
		}},
		{name: "writes into a freed block", code: plugin.CodeTrap, text: "writes 1 bytes", build: func(_ *Guest, x env) []byte {
			return line(I64(64), Call(x.alloc), wrap, set(2), Get(2), Op(OpExtend), Call(x.free),
				Get(2), Op(OpExtend), I32(1), Call(x.store8), stop)
		}},
		{name: "reads out of range", code: plugin.CodeTrap, text: "reads at", build: func(_ *Guest, x env) []byte {
			return line(I64(-4), Call(x.load), stop)
		}},
		{name: "reads past 32 bits", code: plugin.CodeTrap, text: "reads at 4294967396", build: func(_ *Guest, x env) []byte {
			return line(I64(1<<32|100), Call(x.load8), stop)
		}},
		{name: "size that overflows", code: plugin.CodeMemory, text: "out of memory", build: func(_ *Guest, x env) []byte {
			return line(I64(-12), Call(x.alloc), Op(OpDrop), I64(8), Call(x.alloc), Op(OpDrop), stop)
		}},
		{name: "kernel's memory", code: plugin.CodeMemory, text: "out of memory: the limit is 4 MiB", limits: plugin.Limits{Memory: 4 << 20},
			build: func(_ *Guest, x env) []byte {
				return line(Loop(I64(64<<10), Call(x.alloc), Op(0x50, 0x45, 0x0d, 0)), stop) // i64.eqz; i32.eqz; br_if
			}},
		{name: "both memories", code: plugin.CodeMemory, text: "out of memory", limits: plugin.Limits{Memory: 4 << 20},
			build: func(_ *Guest, x env) []byte {
				return line(I32(30), MemoryGrow, Op(OpDrop), I64(1<<20), Call(x.alloc), Op(0x50), If(stop), I64(0))
			}},
		{name: "variables", code: plugin.CodeMemory, text: "variables have more than 1048576 bytes", limits: plugin.Limits{Timeout: time.Minute},
			build: func(_ *Guest, x env) []byte {
				return line(I64(64<<10), Call(x.alloc), wrap, set(2),
					Loop(I64(8), Call(x.alloc), wrap, set(3), Get(3), Op(OpExtend), Get(3), Op(OpExtend), Call(x.store),
						Get(3), Op(OpExtend), Get(2), Op(OpExtend), Call(x.varSet), Br(0)), stop)
			}},
		{name: "long name", code: plugin.CodeTrap, text: "names a variable with 8192 bytes", build: func(_ *Guest, x env) []byte {
			return line(I64(8192), Call(x.alloc), Call(x.varGet), stop)
		}},
		// What looks odd and is none of our business.
		{name: "frees what it has not", build: func(g *Guest, x env) []byte {
			return line(I64(77), Call(x.free), I64(-1), Call(x.free), g.Reply(allow))
		}},
		{name: "lengths of nothing", build: func(g *Guest, x env) []byte {
			return line(I64(-1), Call(x.length), I64(9), Call(x.unsafe), Op(OpI64Or), Op(0x50, 0x45), If(stop), g.Reply(allow))
		}},
		{name: "logs nothing", build: func(g *Guest, x env) []byte { return line(I64(12345), Call(x.log), g.Reply(allow)) }},
		{name: "sets a variable and unsets it", build: func(g *Guest, x env) []byte {
			return line(I64(8), Call(x.alloc), wrap, set(2), Get(2), Op(OpExtend), Get(2), Op(OpExtend), Call(x.varSet),
				Get(2), Op(OpExtend), I64(0), Call(x.varSet), Get(2), Op(OpExtend), Call(x.varGet), Op(0x50, 0x45), If(stop), g.Reply(allow))
		}},
	}
}

func (h extismHostile) wasm() []byte {
	g := NewExtismGuest()
	bad := h.build(g, extismEnv(g))
	good := g.Reply(allow)
	return g.Hook(abi.HookCheckInput, Get(1), I32(int32(len(poison))), Op(OpI32Eq, 0x04, 0x7e), bad, Op(0x05), good, Op(0x0b)).Build()
}

// FAULTS P10, P12, P6 for the Extism carrier: each outcome has its own code,
// three times in a row; no outcome passes for an answer; calls after it succeed.
func TestExtismHostileCalls(t *testing.T) {
	for _, h := range extismHostiles() {
		t.Run(h.name, func(t *testing.T) {
			h.limits.Instances = 2
			p := load(t, plugin.Spec{Name: "bad", Wasm: h.wasm(), Limits: h.limits})
			for range 3 {
				reply, _, err := p.Call(context.Background(), abi.HookCheckInput, poison)
				switch {
				case h.code == "" && (err != nil || string(reply) != allow):
					t.Fatalf("%q, %v", reply, err)
				case h.code != "" && (fault.Of(err) != fault.Plugin || fault.CodeOf(err) != h.code):
					t.Fatalf("reply %q, error %v (code %q), want code %q", reply, err, fault.CodeOf(err), h.code)
				case h.code != "" && (!strings.HasPrefix(err.Error(), "plugin bad: check_input: ") || !strings.Contains(err.Error(), h.text)):
					t.Fatalf("error text %q", err)
				}
			}
			for n := range 50 {
				reply, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
				if err != nil || string(reply) != allow {
					t.Fatalf("call %d after it: %q, %v", n, reply, err)
				}
			}
		})
	}
}

// A status that is not zero is failure, whatever was set; an error's text is
// the plugin's own words.
func TestExtismStatus(t *testing.T) {
	g := NewExtismGuest()
	x := extismEnv(g)
	g.Data(0x2000, []byte("own word"))
	wasm := g.Status(abi.HookCheckToolCall,
		I64(8), Call(x.alloc), Op(0xa7, 0x21, 0), Get(0), Op(OpExtend), I32(0x2000), Op(0x29, 0, 0), Call(x.store),
		Get(0), Op(OpExtend), Call(x.errorSet), Get(0), Op(OpExtend), I64(8), Call(x.output), I32(7)).
		Answer(abi.HookCheckInput, allow).Build()
	out := new(lines)
	for _, logs := range []bool{false, true} {
		p, err := newRuntimeWith(t, plugin.RuntimeOptions{Logger: out.logger()}).Load(context.Background(),
			plugin.Spec{Name: "bad", Wasm: wasm, Log: logs})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = p.CheckToolCall(context.Background(), &abi.CheckToolCallRequest{Call: abi.Call{Now: 1, Seed: "1"}, Tool: "t", Arguments: abi.Raw("{}")})
		if fault.CodeOf(err) != plugin.CodeTrap || !strings.Contains(err.Error(), "returned 7, which is failure") ||
			strings.Contains(err.Error(), "own word") != logs {
			t.Errorf("log=%v: %v", logs, err)
		}
	}
	if !strings.Contains(out.String(), `level=ERROR msg=plugin name=bad text="own word"`) {
		t.Errorf("log %q", out)
	}
}

// extismShapes are the shapes of the direct carrier, and those that have the
// kernel work.
func extismShapes() []shape {
	const block = 512 << 10
	var all []shape
	for _, s := range shapes(60, 4000) {
		if s.name != "weir.log" {
			all = append(all, s)
		}
	}
	kernel := func(name string, build func(x env) [][]byte) {
		all = append(all, shape{name: name, fuel: true, build: func(g *Guest) [][]byte { return build(extismEnv(g)) }})
	}
	kernel("walks along many blocks", func(x env) [][]byte {
		return [][]byte{Loop(I64(1), Call(x.alloc), Op(OpDrop), Br(0))}
	})
	kernel("frees behind many blocks", func(x env) [][]byte {
		return [][]byte{
			Loop(I64(1), Call(x.alloc), Op(OpDrop), Get(2), I32(1), Op(OpI32Add, 0x22, 2), I32(3000), Op(0x49, 0x0d, 0)),
			Loop(I64(64), Call(x.alloc), Call(x.free), Br(0))}
	})
	kernel("logs a large block", func(x env) [][]byte {
		return [][]byte{I64(block), Call(x.alloc), Op(0xa7, 0x21, 2), Loop(Get(2), Op(OpExtend), Call(x.log), Br(0))}
	})
	kernel("sets a large error", func(x env) [][]byte {
		return [][]byte{I64(block), Call(x.alloc), Op(0xa7, 0x21, 2), Loop(Get(2), Op(OpExtend), Call(x.errorSet), Br(0))}
	})
	kernel("sets a large variable", func(x env) [][]byte {
		return [][]byte{I64(block), Call(x.alloc), Op(0xa7, 0x21, 2), I64(1), Call(x.alloc), Op(0xa7, 0x21, 3),
			Loop(Get(3), Op(OpExtend), Get(2), Op(OpExtend), Call(x.varSet), Br(0))}
	})
	kernel("gets a large variable", func(x env) [][]byte {
		return [][]byte{I64(block), Call(x.alloc), Op(0xa7, 0x21, 2), I64(1), Call(x.alloc), Op(0xa7, 0x21, 3),
			Get(3), Op(OpExtend), Get(2), Op(OpExtend), Call(x.varSet),
			Loop(Get(3), Op(OpExtend), Call(x.varGet), Call(x.free), Br(0))}
	})
	kernel("loads and stores", func(x env) [][]byte {
		return [][]byte{I64(64), Call(x.alloc), Op(0xa7, 0x21, 2),
			Loop(Get(2), Op(OpExtend), Get(2), Op(OpExtend), Call(x.load), Call(x.store), Br(0))}
	})
	return all
}

func loadExtismShape(t *testing.T, s shape) *plugin.Plugin {
	t.Helper()
	g := NewExtismGuest()
	g.Pages = s.pages
	code := s.build(g)
	p := load(t, plugin.Spec{Name: "shape", Wasm: g.Hook(abi.HookCheckInput, append(code, Op(OpUnreachable))...).Build(),
		Limits: plugin.Limits{Timeout: p1Limit, TimeoutPerKiB: 1, Fuel: 1e12, Instances: 1}})
	plugin.AwaitQueue(p)
	return p
}

// FAULTS P1 and P2 for the Extism carrier: a guest ends soon after its
// limit, and nobody stalls meanwhile, whether it works itself or
// has the kernel work.
func TestExtismDeadlineHoldsForEveryShape(t *testing.T) {
	for _, s := range extismShapes() {
		t.Run(s.name, func(t *testing.T) {
			p := loadExtismShape(t, s)
			var took, worst time.Duration
			benchtest.Best(5, p2Stall, func() time.Duration {
				plugin.AwaitQueue(p) // or it works beside the call
				worst = stall(func() {
					took = elapsed(func() {
						_, _, err := p.Call(background(), abi.HookCheckInput, ordinary)
						code := fault.CodeOf(err)
						if code != plugin.CodeTimeout && !(s.fuel && (code == plugin.CodeFuel || code == plugin.CodeMemory)) {
							t.Errorf("%v (code %q)", err, code)
						}
					})
				})
				return max(worst, took-p1Ended+p2Stall)
			})
			if took > p1Ended || worst > p2Stall {
				t.Errorf("ended after %v, the ticker was late by %v", took, worst)
			}
			t.Log(took, worst)
		})
	}
}

// FAULTS P3: the guest and its kernel together stay within the limit.
func TestExtismGrowthIsBounded(t *testing.T) {
	const limit = 32 << 20
	g := NewExtismGuest()
	x := extismEnv(g)
	ok := g.Reply(allow)
	g.Table(1, -1)
	wasm := g.Hook(abi.HookCheckInput, onPoison(
		Loop(I64(1<<20), Call(x.alloc), Op(0x50, 0x45, 0x0d, 0)),
		Loop(I32(1), MemoryGrow, Op(0x22, 2), I32(-1), Op(0x47),
			If(Get(2), I32(pageSize), Op(0x6c), I32(1), Op(0x36, 2, 0), Br(1))),
		bytes.Repeat(line(Op(0xd0, 0x70), I32(4<<20), TableGrow, Op(OpDrop)), 8)), ok).Build()
	p := load(t, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Memory: limit, Timeout: time.Minute, Instances: 1}})
	most := peakKiB(t, func() {
		for range 20 {
			if _, _, err := p.Call(background(), abi.HookCheckInput, poison); err != nil {
				t.Fatal(err)
			}
		}
	})
	if most > limit*11/10>>10 {
		t.Errorf("the host grew by %d KiB", most)
	}
	t.Logf("%d KiB", most)
}

// FAULTS P10: cancelling works every time and is not a time-out, also while an
// instance is prepared.
func TestExtismCancelled(t *testing.T) {
	g := NewExtismGuest()
	x := extismEnv(g)
	ok := g.Reply(allow)
	wasm := g.Hook(abi.HookCheckInput, onPoison(I64(8), Call(x.alloc), Op(0xa7, 0x21, 2), Get(2), Op(OpExtend), I64('!'), Call(x.store),
		Get(2), Op(OpExtend), Call(x.log), Loop(Br(0))), ok).Build()
	var cancel context.CancelFunc
	p, err := newRuntimeWith(t, plugin.RuntimeOptions{Logger: onLineLogger(func() { cancel() })}).Load(context.Background(),
		plugin.Spec{Name: "spin", Wasm: wasm, Log: true, Limits: plugin.Limits{Timeout: time.Minute, Instances: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.Background())
		if _, _, err := p.Call(ctx, abi.HookCheckInput, poison); fault.CodeOf(err) != plugin.CodeCancelled {
			t.Fatalf("error %v, code %q", err, fault.CodeOf(err))
		}
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
			t.Fatal(err)
		}
	}
	cancel = func() {}
	for range 3 {
		ctx, done := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_, _, err := p.Call(ctx, abi.HookCheckInput, poison)
		done()
		if fault.CodeOf(err) != plugin.CodeTimeout {
			t.Fatalf("error %v, code %q", err, fault.CodeOf(err))
		}
	}
}

// What ends an initialisation keeps its code, although the SDK makes text of it.
func TestExtismInitialisationFails(t *testing.T) {
	for name, c := range map[string]struct {
		code []byte
		want string
		text string
	}{
		"trap": {Op(OpUnreachable), plugin.CodeTrap, "describe: trap: unreachable"},
		"loop": {Loop(Br(0)), plugin.CodeTimeout, "no reply within its time limit of 20ms"},
		"exit": {line(I32(0), Call(5)), plugin.CodeExit, "called proc_exit(0)"},
		"memory": {line(Loop(I32(1), MemoryGrow, I32(-1), Op(0x47, 0x0d, 0)), Op(OpUnreachable)),
			plugin.CodeMemory, "out of memory"},
	} {
		for range 3 {
			_, err := newRuntime(t).Load(context.Background(), plugin.Spec{Name: "x", Limits: plugin.Limits{Setup: 20 * time.Millisecond, Memory: 4 << 20},
				Wasm: initialising(c.code)})
			if fault.Of(err) != fault.Plugin || fault.CodeOf(err) != c.want || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v (code %q)", name, err, fault.CodeOf(err))
			}
		}
	}
}

func initialising(code []byte) []byte {
	g := NewExtismGuest().Answer(abi.HookCheckInput, allow)
	g.Import(abi.ImportWASI, "proc_exit", "i", "")
	return g.Replace("_initialize", "", "", code).Build()
}

// extismKeeper stores each request in its memory, in a global, in a block, in a
// variable and as its error, and answers what it found of all these.
func extismKeeper() []byte {
	const kept, found = 0x30000, 0x38000
	g := NewExtismGuest()
	x := extismEnv(g)
	global := g.Global()
	name := g.Func("", "l", 1, I64(1), Call(x.alloc), Op(0xa7, 0x22, 0, OpExtend), I32('n'), Call(x.store8), Get(0), Op(OpExtend)) // local.tee
	return g.Hook(abi.HookCheckInput,
		I32(found), I32(kept), I32(64), MemoryCopy,
		I32(found+64), GlobalGet(global), Op(0x36, 2, 0), // i32.store
		// Of the variable its length and beginning.
		Call(name), Call(x.varGet), Op(0xa7, 0x21, 2),
		I32(found+72), Get(2), Op(OpExtend), Call(x.length), Op(0x37, 0, 0), // i64.store
		Get(2), If(I32(found+80), Get(2), Op(OpExtend), Call(x.load), Op(0x37, 0, 0)),
		// Of a new block what stands in it.
		I64(64), Call(x.alloc), Op(0xa7, 0x21, 3),
		I32(found+88), Get(3), Op(OpExtend), Call(x.load), Op(0x37, 0, 0),
		I32(kept), Get(0), Get(1), MemoryCopy,
		Get(0), Op(0x28, 2, 0), GlobalSet(global), // i32.load
		Get(3), Op(OpExtend), Get(0), Op(0x29, 0, 0), Call(x.store),
		Call(name), Get(3), Op(OpExtend), Call(x.varSet),
		I64(found<<32|96)).Build()
}

// What one call leaves in memory, globals, the kernel's blocks and the SDK's
// variables, the next does not find.
func TestExtismFreshState(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: extismKeeper(), Limits: plugin.Limits{Instances: 2}})
	first := ""
	for n := range soak(t, 500) {
		err := plugin.CallDecoding(p, context.Background(), abi.HookCheckInput, []byte(secretOf(n)), func(reply []byte) error {
			if n == 0 {
				first = string(reply)
			}
			if string(reply) != first || strings.Trim(string(reply), "\x00") != "" {
				return fmt.Errorf("call %d found %q", n, reply)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The positive control: an instance that is used again does find it.
	for n, want := range []bool{false, true} {
		reply, err := plugin.CallPrepared(p, abi.HookCheckInput, []byte(secretOf(n)))
		if err != nil || strings.Count(string(reply), "secret") > 0 != want {
			t.Errorf("call %d: %q, %v", n, reply, err)
		}
		if want && (strings.Count(string(reply), "secret-") != 2 || reply[72] != 64) { // memory and variable
			t.Errorf("call %d: %q", n, reply)
		}
	}
}
