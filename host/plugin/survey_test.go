package plugin_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

func TestSurvey(t *testing.T) {
	g := checker()
	f, err := plugin.Survey(g.Build())
	if err != nil {
		t.Fatal(err)
	}
	if f.ABI != abi.Version || f.Carrier != plugin.CarrierDirect || len(f.Digest) != 64 || f.Size == 0 || len(f.Imports) > 0 || f.MemoryMin == 0 || f.MemoryMax != 0 ||
		!slices.Contains(f.Exports, "check_input (i32, i32) -> (i64)") || !slices.Contains(f.Exports, "memory memory") ||
		!slices.Equal(f.Hooks, []abi.Hook{abi.HookDescribe, abi.HookConfigure, abi.HookCheckInput}) {
		t.Errorf("%+v", f)
	}
	// What a host refuses can be looked at all the same.
	a := &Asm{}
	a.Import("env", "read\nfile", "i", "l")
	a.Memory(2, 3)
	f, err = plugin.Survey(a.Bytes())
	if err != nil || f.ABI != 0 || !slices.Equal(f.Imports, []string{`env.read\nfile (i32) -> (i64)`}) || f.MemoryMin != 2<<16 || f.MemoryMax != 3<<16 {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = plugin.Survey(NewExtismGuest().Answer(abi.HookCheckInput, allow).Build())
	if err != nil || f.Carrier != plugin.CarrierExtism || f.ABI != 0 || !slices.Contains(f.Exports, "check_input () -> (i32)") {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := plugin.Survey([]byte("text")); fault.Of(err) != fault.Invalid {
		t.Errorf("no module: %v", err)
	}
}

// A caller that runs the cases itself sees each outcome.
func TestCase(t *testing.T) {
	g := NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`)
	request := abi.Raw(`{"now":0,"seed":"0","text":"x","history":[]}`)
	g.Description = abi.Description{Name: "by-hand", Version: "1.0.0", ABI: abi.Version, Cases: []abi.Case{
		{Name: "it blocks", Hook: abi.HookCheckInput, Request: request, Expect: abi.Raw(`{"verdict":"block"}`)},
		{Name: "it allows", Hook: abi.HookCheckInput, Request: request, Expect: abi.Raw(`{"verdict":"allow"}`)},
	}}
	r, wasm := newRuntime(t), g.Build()
	if _, err := r.Load(context.Background(), plugin.Spec{Name: "g", Wasm: wasm}); err == nil || !strings.Contains(err.Error(), `self-check "it blocks"`) {
		t.Errorf("control: %v", err)
	}
	p, err := r.Load(context.Background(), plugin.Spec{Name: "g", Wasm: wasm, Unchecked: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Case(context.Background(), 0); fault.CodeOf(err) != plugin.CodeBadReply {
		t.Errorf("the first: %v", err)
	}
	if err := p.Case(context.Background(), 1); err != nil {
		t.Errorf("the second: %v", err)
	}
	if err := p.Case(context.Background(), 2); fault.Of(err) != fault.Invalid {
		t.Errorf("none: %v", err)
	}
}
