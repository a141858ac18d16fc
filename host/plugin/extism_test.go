package plugin_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// A request of any size reaches the guest, and its reply the host, byte by byte.
func TestExtismEcho(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: NewExtismGuest().Echo(abi.HookCheckInput).Build(), Limits: plugin.Limits{Timeout: time.Minute}})
	if p.Carrier() != plugin.CarrierExtism {
		t.Errorf("carrier %s", p.Carrier())
	}
	for _, size := range []int{1, 7, 8, 9, 1024, 60 << 10, 66 << 10, 440 << 10} {
		request := []byte(strings.Repeat("0123456789", size/10+1)[:size])
		for range 2 {
			reply, err := plugin.CallInto(p, context.Background(), abi.HookCheckInput, request, nil, anything)
			if err != nil || string(reply) != string(request) {
				t.Fatalf("%d bytes: %d bytes, %v", size, len(reply), err)
			}
		}
	}
}

// DECISIONS 1: what an Extism module may import and must export.
func TestExtismRefuses(t *testing.T) {
	guest := func(build func(g *Guest)) []byte {
		g := NewExtismGuest().Answer(abi.HookCheckInput, allow)
		build(g)
		return g.Build()
	}
	for _, c := range []struct {
		name string
		wasm []byte
		text string
	}{
		{"host function", guest(func(g *Guest) { g.Import("extism:host/user", "query", "l", "l") }), `imports "extism:host/user.query": a module of the Extism carrier may import`},
		{"direct import", guest(func(g *Guest) { g.Import("weir", "log", "iii", "") }), `imports "weir.log"`},
		{"refuel", guest(func(g *Guest) { g.Import("weir", "refuel", "l", "l") }), `imports "weir.refuel"`},
		{"renamed", guest(func(g *Guest) { g.Import("weir:extism", "alloc", "l", "l") }), `imports "weir:extism.alloc"`},
		{"the host's part", guest(func(g *Guest) { g.Import("extism:host/env", "reset", "", "") }), `imports "extism:host/env.reset"`},
		{"type", guest(func(g *Guest) { g.Import("extism:host/env", "free", "i", "") }), `imports "extism:host/env.free" as (i32) -> (), expected (i64) -> ()`},
		{"memory", guest(func(g *Guest) { g.ImportMemory("extism:host/env", "memory") }), `imports "extism:host/env.memory"`},
		{"no describe", guest(func(g *Guest) { g.Omit("describe") }), "does not export describe () -> (i32)"},
		{"reserved", guest(func(g *Guest) { g.Export("__weir_fuel", KindMemory, 0) }), `exports "__weir_fuel"`},
		{"start", guest(func(g *Guest) { g.Start(g.Func("", "", 0)) }), "has a start function"},
		{"memory to begin with", guest(func(g *Guest) { g.Pages = 1020 }), "needs 65 MiB of memory to begin with, 1 MiB of it for Extism's kernel, its limit is 64 MiB"},
	} {
		_, err := newRuntime(t).Load(context.Background(), plugin.Spec{Name: "x", Wasm: c.wasm})
		if fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %s", c.name, err, c.text)
		}
	}
}

// Clock and randomness are those of the request, as for the direct carrier, and
// there is no configuration but that of configure.
func TestExtismGuestSeesOnlyItsRequest(t *testing.T) {
	g := NewExtismGuest()
	clock := g.Import(abi.ImportWASI, "clock_time_get", "ili", "i")
	random := g.Import(abi.ImportWASI, "random_get", "ii", "i")
	env := g.Import(abi.ImportWASI, "environ_sizes_get", "ii", "i")
	open := g.Import(abi.ImportWASI, "path_open", "iiiiillii", "i")
	config := g.Import(abi.ImportExtism, "config_get", "l", "l")
	headers := g.Import(abi.ImportExtism, "http_headers", "", "l")
	status := g.Import(abi.ImportExtism, "http_status_code", "", "i")
	const out = 0x30000
	p := load(t, plugin.Spec{Wasm: g.Hook(abi.HookCheckInput,
		I32(0), I64(0), I32(out), Call(clock), Op(OpDrop),
		I32(out+8), I32(8), Call(random), Op(OpDrop),
		I32(out+16), I32(out+20), Call(env), Op(OpDrop),
		I32(out+24), I32(3), I32(0), I32(0), I32(1), I32(0), I64(0), I64(0), I32(0), I32(out+32), Call(open), Op(0x36, 2, 0),
		I32(out+32), I64(4), Call(1+1), Call(config), Call(headers), Op(OpI64Or), Call(status), Op(OpExtend, OpI64Or, 0x37, 0, 0), // input_load_u64
		I64(out<<32|40)).Build()})
	seen := map[string]bool{}
	for range 3 {
		for _, call := range []string{`{"now":5,"seed":"1"}`, `{"now":5,"seed":"2"}`} {
			reply, err := plugin.CallStamped(p, context.Background(), abi.HookCheckInput, []byte(call))
			if err != nil || len(reply) != 40 || string(reply[:8]) != "\x40\x4b\x4c\x00\x00\x00\x00\x00" ||
				strings.Trim(string(reply[16:24]), "\x00") != "" || reply[24] == 0 || strings.Trim(string(reply[32:]), "\x00") != "" {
				t.Fatalf("%q, %v", reply, err)
			}
			seen[string(reply[8:16])] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d random numbers for two seeds", len(seen))
	}
}

// A unit of fuel is the same as for the direct carrier.
func TestExtismFuelIsCounted(t *testing.T) {
	fuel := func(g *Guest, n int32) uint64 {
		ok := g.Reply(allow)
		p := load(t, plugin.Spec{Wasm: g.Hook(abi.HookCheckInput,
			Loop(Get(2), I32(1), Op(OpI32Add), Op(0x22, 2), I32(n), Op(0x49, 0x0d, 0)), ok).Build()})
		_, first, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
		if err != nil {
			t.Fatal(err)
		}
		if _, again, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil || again != first {
			t.Errorf("%d, then %d, %v", first, again, err)
		}
		return first
	}
	direct := fuel(NewGuest(), 1_001_000) - fuel(NewGuest(), 1000)
	carried := fuel(NewExtismGuest(), 1_001_000) - fuel(NewExtismGuest(), 1000)
	if direct != carried {
		t.Errorf("direct %d, carried %d", direct, carried)
	}
}

// FAULTS P8, P9: many use one plugin at once while its queue is filled, and
// closing waits for all of them.
func TestExtismQueueUnderLoad(t *testing.T) {
	r := newRuntimeWith(t, plugin.RuntimeOptions{})
	for range 3 {
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: extismKeeper(),
			Limits: plugin.Limits{Instances: 3, Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for range 16 {
			callers.Go(func() {
				for n := range 30 {
					_, err := plugin.CallInto(p, context.Background(), abi.HookCheckInput, []byte(secretOf(n)), nil, anything)
					if err != nil && fault.CodeOf(err) != plugin.CodeUnavailable {
						t.Error(err)
					}
				}
			})
		}
		if err := p.Close(context.Background()); err != nil { // while they call
			t.Error(err)
		}
		callers.Wait()
		if n := plugin.Idle(p); n != 0 {
			t.Errorf("%d instances outlive the plugin", n)
		}
	}
	if plugin.Loaded(r) != 0 || plugin.Codes(r) != 0 || plugin.MemoryHeld(r) != 0 {
		t.Errorf("%d plugins, %d modules and %d bytes are left", plugin.Loaded(r), plugin.Codes(r), plugin.MemoryHeld(r))
	}
}

// The queue is filled without a call, bounded, and filled again after calls.
func TestExtismQueueFills(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: extismKeeper(), Limits: plugin.Limits{Instances: 3}})
	for range 3 {
		plugin.AwaitQueue(p)
		if n := plugin.Idle(p); n != 3 {
			t.Fatalf("%d instances are prepared", n)
		}
		for range 5 {
			if _, err := plugin.CallInto(p, context.Background(), abi.HookCheckInput, ordinary, nil, anything); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := plugin.Discarded(p); n != 15 {
		t.Errorf("%d instances were closed after 15 calls", n)
	}
}

// Prepared instances give way to calls of other plugins, and are not made while
// these wait for memory.
func TestExtismQueueGivesWay(t *testing.T) {
	r := newRuntimeWith(t, plugin.RuntimeOptions{TotalMemory: 16 << 20})
	var all []*plugin.Plugin
	for n, wasm := range [][]byte{extismKeeper(), checker().Build(), NewExtismGuest().Answer(abi.HookCheckInput, allow).Build()} {
		p, err := r.Load(context.Background(), plugin.Spec{Name: string(rune('a' + n)), Wasm: wasm,
			Limits: plugin.Limits{Memory: 8 << 20, Instances: 8, Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	var callers sync.WaitGroup
	for n := range 24 {
		callers.Go(func() {
			for range 20 {
				_, err := plugin.CallInto(all[n%3], context.Background(), abi.HookCheckInput, ordinary, nil, anything)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if held := plugin.MemoryHeld(r); held > 16<<20 {
		t.Errorf("%d bytes are held", held)
	}
}

// FAULTS P5: reloads and calls, with failures among them, leave nothing: the
// SDK keeps what it compiled until the process ends.
func TestExtismIsFlat(t *testing.T) {
	r := newRuntimeWith(t, plugin.RuntimeOptions{})
	reloads := 60
	if os.Getenv("WEIR_SOAK") != "" {
		reloads = 2000
	}
	var half held
	for n := range reloads {
		if n == reloads/2 {
			half = holding(t)
		}
		g := NewExtismGuest().Answer(abi.HookCheckInput, allow)
		g.Data(0x40000, []byte(secretOf(n))) // another module
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: g.Build(), Limits: plugin.Limits{Instances: 2}})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		bad := NewExtismGuest()
		switch n % 4 {
		case 0:
			bad.Hook(abi.HookDescribe, Op(OpUnreachable))
		case 1:
			bad.Replace("_initialize", "", "", Loop(Br(0)))
		case 2:
			bad.Data(0x7fffff00, []byte("outside of the memory"))
		case 3:
			bad.Func("", "i", 0, I64(1)) // not valid
		}
		if _, err := r.Load(context.Background(), plugin.Spec{Name: "y", Wasm: bad.Answer(abi.HookCheckInput, allow).Build(),
			Limits: plugin.Limits{Setup: 5 * time.Millisecond}}); err == nil {
			t.Fatal("loaded")
		}
	}
	holding(t).flat(t, half)
	if plugin.Loaded(r) != 0 || plugin.Codes(r) != 0 || plugin.MemoryHeld(r) != 0 {
		t.Errorf("%d plugins, %d modules and %d bytes are left", plugin.Loaded(r), plugin.Codes(r), plugin.MemoryHeld(r))
	}
}
