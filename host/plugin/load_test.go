package plugin_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

func checker() *Guest { return NewGuest().Answer(abi.HookCheckInput, allow) }

// Each refusal names what was expected; the first row is the positive control.
func TestLoadRefuses(t *testing.T) {
	with := func(change func(g *Guest)) []byte {
		g := NewGuest()
		change(g)
		if g.Description.Kind != abi.KindWorkflow {
			g.Answer(abi.HookCheckInput, allow)
		}
		return g.Build()
	}
	for _, c := range []struct {
		name string
		wasm []byte
		text string // empty: loads
	}{
		{"a proper guest", with(func(*Guest) {}), ""},
		{"the host's imports", with(func(g *Guest) {
			g.Import("weir", "log", "iii", "")
			g.Import(abi.ImportWASI, "path_open", "iiiiillii", "i")
		}), ""},
		{"an empty file", nil, `expected a WebAssembly module`},
		{"text", []byte("#!/bin/sh\nexit 0"), `expected a WebAssembly module`},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), `components are not supported`},
		{"cut short", with(func(*Guest) {})[:100], `the file ends too early`},
		{"no marker", with(func(g *Guest) { g.Omit(abi.ExportMarker) }), `no export weir_abi_1: not a weir plugin`},
		{"another version", with(func(g *Guest) { g.Omit(abi.ExportMarker).Replace("weir_abi_2", "", "") }),
			`the module speaks ABI version 2, this host speaks version 1`},
		{"marker with a result", with(func(g *Guest) { g.Replace(abi.ExportMarker, "", "i", I32(1)) }),
			`exports weir_abi_1 as () -> (i32), expected () -> ()`},
		{"no allocator", with(func(g *Guest) { g.Omit(abi.ExportAlloc) }), `does not export weir_alloc (i32) -> (i32)`},
		{"allocator of i64", with(func(g *Guest) { g.Replace(abi.ExportAlloc, "l", "i", I32(0)) }),
			`exports weir_alloc as (i64) -> (i32), expected (i32) -> (i32)`},
		{"no describe", with(func(g *Guest) { g.Omit("describe") }), `does not export describe (i32, i32) -> (i64)`},
		{"hook of another type", with(func(g *Guest) { g.Replace("check_output", "ii", "i", I32(0)) }),
			`exports check_output as (i32, i32) -> (i32), expected (i32, i32) -> (i64)`},
		{"hook that is a memory", with(func(g *Guest) { g.Export("step", KindMemory, 0) }),
			`exports step as something that is not a function`},
		{"no memory export", with(func(g *Guest) { g.Omit(abi.ExportMemory) }), `does not export its memory as "memory"`},
		{"two memories", with(func(g *Guest) { g.Memory(8, -1); g.Memory(1, 1) }), `has 2 memories, expected exactly one`},
		{"imported memory", with(func(g *Guest) { g.ImportMemory("env", "memory") }), `imports "env.memory": a module may import weir.log`},
		{"foreign import", with(func(g *Guest) { g.Import("env", "abort", "i", "") }), `imports "env.abort": a module may import weir.log`},
		{"extism import", with(func(g *Guest) { g.Import("extism:host/env", "input_length", "", "l") }),
			`exports describe as (i32, i32) -> (i64), expected () -> (i32)`},
		{"unknown WASI function", with(func(g *Guest) { g.Import(abi.ImportWASI, "sock_open", "i", "i") }),
			`imports "wasi_snapshot_preview1.sock_open"`},
		{"import of another type", with(func(g *Guest) { g.Import("weir", "log", "ii", "") }),
			`imports "weir.log" as (i32, i32) -> (), expected (i32, i32, i32) -> ()`},
		{"reserved import", with(func(g *Guest) { g.Import("weir", "refuel", "", "l") }), `imports "weir.refuel", a name that is reserved`},
		{"reserved prefix", with(func(g *Guest) { g.Import("weir", "__weir_x", "", "") }), `a name that is reserved`},
		{"reserved export", with(func(g *Guest) { g.Replace("__weir_fuel", "", "") }), `exports "__weir_fuel", a name that is reserved`},
		{"start function", with(func(g *Guest) { g.Start(g.Func("", "", 0)) }), `has a start function`},
		{"a command", with(func(g *Guest) { g.Replace("_start", "", "") }), `exports _start: it was built as a command`},
		{"_initialize with a result", with(func(g *Guest) { g.Replace("_initialize", "", "i", I32(0)) }), `exports _initialize as`},
		{"exported twice", with(func(g *Guest) { g.Export("memory", KindMemory, 0) }), `exports "memory" twice`},
		{"too much memory", with(func(g *Guest) { g.Pages = 1025 }), `needs 65 MiB of memory to begin with, its limit is 64 MiB`},
		{"a large table", with(func(g *Guest) { g.Table(1<<20, -1) }), `has tables of 1048576 elements`},
		{"many tables", with(func(g *Guest) {
			for range 17 {
				g.Table(0, -1)
			}
		}), `has 17 tables`},
		{"a body that does not validate", with(func(g *Guest) { g.Replace("check_output", "ii", "l") }), `is not valid WebAssembly`},
		{"a workflow without step", with(func(g *Guest) {
			g.Description = abi.Description{Name: "x", Version: "1.0.0", ABI: 1, Kind: abi.KindWorkflow}
		}),
			`describe: is a workflow but does not export step`},
		{"a description of another ABI", with(func(g *Guest) {
			g.Description = abi.Description{Name: "x", Version: "1.0.0", ABI: 2, Kind: abi.KindGuardrail}
		}), `describe: reply: abi 2`},
		{"a case of a hook it lacks", with(func(g *Guest) {
			g.Description = abi.Description{Name: "x", Version: "1.0.0", ABI: 1, Kind: abi.KindGuardrail,
				Cases: []abi.Case{{Name: "c", Hook: abi.HookCheckOutput, Request: abi.Raw("{}"), Expect: abi.Raw("{}")}}}
		}), `describe: cases[0]: the module does not export check_output`},
		{"a prompt it was not given", with(func(g *Guest) {
			g.Description = abi.Description{Name: "x", Version: "1.0.0", ABI: 1, Kind: abi.KindGuardrail, Prompts: []string{"system"}}
		}), `describe: needs the prompt "system", which it was not given`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newRuntime(t).Load(context.Background(), plugin.Spec{Name: "x", Wasm: c.wasm})
			if c.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "plugin x: ") || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("error %v, want %q", err, c.text)
			}
			if k := fault.Of(err); k != fault.Invalid && k != fault.Plugin {
				t.Errorf("kind %v", k)
			}
		})
	}
}

// FAULTS P8: modules that differ in their data alone have the same code once
// that is stripped, and wazero does not allow for two compilations of the same
// code at once where its cache has it.
func TestSameCodeOtherData(t *testing.T) {
	dir := t.TempDir()
	specs := make([]plugin.Spec, 6)
	for i := range specs {
		name := string(rune('a' + i))
		reply := `{"verdict":"block","message":"` + name + `"}`
		specs[i] = plugin.Spec{Name: name, Wasm: NewGuest().Answer(abi.HookCheckInput, reply).Build()}
	}
	for range 10 { // the first fills the cache
		r := newRuntimeWith(t, plugin.RuntimeOptions{CacheDir: dir})
		var loading sync.WaitGroup
		for _, spec := range specs {
			loading.Go(func() {
				p, err := r.Load(t.Context(), spec)
				if err != nil {
					t.Error(err)
					return
				}
				if v, _, err := p.CheckInput(t.Context(), &abi.CheckInputRequest{Call: abi.Call{Seed: "1"}}); err != nil || v.Message != spec.Name {
					t.Errorf("%s: %+v, %v", spec.Name, v, err)
				}
			})
		}
		loading.Wait()
	}
}

func cased(expect string) *Guest {
	g := checker()
	g.Description = abi.Description{Name: "x", Version: "1.0.0", ABI: 1, Kind: abi.KindGuardrail, Cases: []abi.Case{
		{Name: "a greeting", Hook: abi.HookCheckInput, Request: abi.Raw(ordinary), Expect: abi.Raw(expect)},
	}}
	return g
}

func TestSelfCheck(t *testing.T) {
	r := newRuntime(t)
	for expect, text := range map[string]string{
		`{}`:                                  "",
		`{ "verdict" : "allow" }`:             "",
		`{"verdict":"block"}`:                 `expected "verdict" to be "\"block\"", got "\"allow\""`,
		`{"verdict":"allow","message":"hi"}`:  `expected "message"`,
		`{"verdict":"\u0061llow"}`:            "",
		`{"verdict":"allow","decision":null}`: `expected "decision"`,
	} {
		_, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: cased(expect).Build()})
		if (text == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), `plugin x: self-check "a greeting": `+text) {
			t.Errorf("%s: %v, want %q", expect, err, text)
		}
	}
}

// A module without configure takes none, and says so.
func TestNoConfigure(t *testing.T) {
	r := newRuntime(t)
	wasm := checker().Omit("configure").Build()
	if _, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm}); err != nil {
		t.Error(err)
	}
	_, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm, Config: abi.Raw(`{"a":1}`)})
	if err == nil || !strings.Contains(err.Error(), "the module takes no configuration") {
		t.Errorf("error %v", err)
	}
}

// FAULTS P11: limits are visible, resolved, and each plugin's own although
// two share a module and its code.
func TestLimitsArePerPlugin(t *testing.T) {
	g := NewGuest() // answers when memory grows by 8 MiB
	ok := g.Reply(allow)
	wasm := g.Hook(abi.HookCheckInput, I32(128), MemoryGrow, I32(-1), Op(OpI32Eq),
		Op(0x04, 0x7e), Op(OpUnreachable), Op(0x05), ok, Op(0x0b)).Build()
	r := newRuntime(t)
	for limit, code := range map[int]string{4 << 20: plugin.CodeMemory, 16 << 20: "", 64 << 20: ""} {
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm, Limits: plugin.Limits{Memory: limit}})
		if err != nil {
			t.Fatal(err)
		}
		if l := p.Limits(); l.Memory != limit || l.Reply != 4<<20 || l.Fuel != 4_000_000_000 || l.Setup.Seconds() != 10 || l.Instances < 2 {
			t.Errorf("limits %+v", l)
		}
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); fault.CodeOf(err) != code {
			t.Errorf("limit %d: %v, want code %q", limit, err, code)
		}
	}
	for _, l := range []plugin.Limits{{Memory: -1}, {Memory: 100}, {Timeout: -1},
		{Reply: 65 << 20}, {Timeout: time.Hour}, {Setup: time.Hour}, {TimeoutPerKiB: time.Minute}, {Fuel: 1 << 50}, {Instances: 2000}} {
		if _, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm, Limits: l}); fault.Of(err) != fault.Invalid {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func TestRawCallErrors(t *testing.T) {
	p := load(t, plugin.Spec{Name: "x", Wasm: checker().Build()})
	for request, text := range map[string]string{
		`{"text":"x"}`:               `plugin x: check_input: request: `,
		`{"now":1,"seed":"x"}`:       `seed: expected 64 bits in decimal, got "x"`,
		`{"now":1,"seed":1}`:         `expected a string`,
		`[]`:                         `expected an object`,
		`{"now":1,"seed":"1"} extra`: `request: `,
	} {
		_, _, err := p.Call(context.Background(), abi.HookCheckInput, []byte(request))
		if fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", request, err, text)
		}
	}
	if _, _, err := p.Call(context.Background(), "check_all", ordinary); fault.Of(err) != fault.Invalid {
		t.Errorf("unknown hook: %v", err)
	}
	if _, _, err := p.Call(context.Background(), abi.HookStep, ordinary); fault.Of(err) != fault.NotFound {
		t.Errorf("missing hook: %v", err)
	}
}

// The identity of a generation names the versions of wazero and of the Extism
// SDK; a binary cannot always know them, so they are constants.
func TestEngineVersion(t *testing.T) {
	mod, err := os.ReadFile(Root(t) + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{"tetratelabs/wazero": plugin.EngineVersion, "extism/go-sdk": plugin.ExtismVersion} {
		m := regexp.MustCompile(`github\.com/` + name + ` v(\S+)`).FindSubmatch(mod)
		if m == nil || string(m[1]) != version {
			t.Errorf("go.mod has %q, the constant is %q", m, version)
		}
	}
}

// DECISIONS 10: how long each hook may run; a number of the operator's holds
// for all of them.
func TestCallTime(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		limits  plugin.Limits
		hook    abi.Hook
		request int
		want    time.Duration
	}{
		{plugin.Limits{}, abi.HookCheckInput, 0, 50 * ms},
		{plugin.Limits{}, abi.HookCheckInput, 1, 51 * ms},
		{plugin.Limits{}, abi.HookCheckToolCall, 1024, 51 * ms},
		{plugin.Limits{}, abi.HookCheckToolResult, 1025, 52 * ms},
		{plugin.Limits{}, abi.HookCheckOutput, 1 << 20, 50 * ms},
		{plugin.Limits{}, abi.HookStep, 10 << 10, 210 * ms},
		{plugin.Limits{}, abi.HookDescribe, 1 << 20, 10 * time.Second},
		{plugin.Limits{Setup: time.Second}, abi.HookConfigure, 1 << 20, time.Second},
		{plugin.Limits{Timeout: 5 * ms}, abi.HookStep, 1024, 6 * ms},
		{plugin.Limits{Timeout: 5 * ms, TimeoutPerKiB: 2 * ms}, abi.HookCheckOutput, 1024, 7 * ms},
		{plugin.Limits{TimeoutPerKiB: 2 * ms}, abi.HookStep, 1024, 202 * ms},
	} {
		l := load(t, plugin.Spec{Wasm: checker().Build(), Limits: c.limits}).Limits()
		if got := l.Call(c.hook, c.request); got != c.want {
			t.Errorf("%+v, %s, %d bytes: %v, want %v", c.limits, c.hook, c.request, got, c.want)
		}
	}
}

func TestWantedLimits(t *testing.T) {
	g := checker()
	g.Description = abi.Description{Name: "x", Version: "1.0.0", ABI: 1, Kind: abi.KindGuardrail,
		Limits: &abi.Limits{MemoryMiB: 128, TimeoutMS: 6000}}
	out := new(lines)
	_, err := newRuntimeWith(t, plugin.RuntimeOptions{Logger: out.logger()}).Load(context.Background(),
		plugin.Spec{Name: "x", Wasm: g.Build()})
	if err != nil {
		t.Fatal(err)
	}
	want := `level=WARN msg="plugin wants more memory than its limit" name=x wanted_mib=128 limit_mib=64
level=WARN msg="plugin wants more time than its limit" name=x wanted_ms=6000 limit_ms=50
`
	if got := out.String(); got != want {
		t.Errorf("log:\n%s", got)
	}
}

func TestClosedRuntime(t *testing.T) {
	r, err := plugin.NewRuntime(context.Background(), plugin.RuntimeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: checker().Build()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("call: %v", err)
	}
	if _, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: checker().Build()}); fault.Of(err) != fault.Unavailable {
		t.Errorf("load: %v", err)
	}
}
