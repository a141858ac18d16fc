package plugin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// counting makes a guest whose check_input counts to n and allows.
func counting(n int32) []byte {
	g := NewGuest()
	ok := g.Reply(allow)
	return g.Hook(abi.HookCheckInput,
		Loop(Get(2), I32(1), Op(OpI32Add), Op(0x22, 2), I32(n), Op(0x49, 0x0d, 0)), // local.tee; i32.lt_u; br_if
		ok).Build()
}

// DECISIONS 3: a unit is an instruction of the original module. The same call
// uses the same fuel each time, and more work uses more.
func TestFuelIsCounted(t *testing.T) {
	fuel := func(n int32) uint64 {
		p := load(t, plugin.Spec{Wasm: counting(n)})
		_, first, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, again, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil || again != first {
				t.Errorf("%d, then %d, %v", first, again, err)
			}
		}
		return first
	}
	few, many := fuel(1000), fuel(1_001_000)
	if each := float64(many-few) / 1e6; each < 6 || each > 7.5 {
		t.Errorf("%v units for an iteration of 7 instructions", each)
	}
}

// The budget ends a call at the same instruction whatever the slices are, with
// a code of its own, three times in a row.
func TestFuelRunsOut(t *testing.T) {
	wasm := counting(1_000_000)
	_, used, err := load(t, plugin.Spec{Wasm: wasm}).Call(context.Background(), abi.HookCheckInput, ordinary)
	if err != nil {
		t.Fatal(err)
	}
	enough := load(t, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Fuel: used}})
	if _, _, err := enough.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
		t.Errorf("with what it uses: %v", err)
	}
	for _, budget := range []uint64{used - 1, used / 2, 100_000} {
		p := load(t, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Fuel: budget}})
		for range 3 {
			_, spent, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
			if fault.CodeOf(err) != plugin.CodeFuel || !strings.Contains(err.Error(), "units of fuel") {
				t.Fatalf("budget %d of %d: %v (code %q)", budget, used, err, fault.CodeOf(err))
			}
			if spent < budget || spent > budget+10_100 {
				t.Errorf("budget %d, spent %d", budget, spent)
			}
		}
	}
}

// Each import charges for what the host does.
func TestHostWorkIsCharged(t *testing.T) {
	for name, c := range map[string]struct {
		call func(g *Guest) []byte
		want uint64
	}{
		"random_get": {func(g *Guest) []byte {
			f := g.Import(abi.ImportWASI, "random_get", "ii", "i")
			return append(append(append(I32(0x10000), I32(320<<10)...), Call(f)...), OpDrop)
		}, 320 << 10 / 16},
		"fd_write": {func(g *Guest) []byte {
			f := g.Import(abi.ImportWASI, "fd_write", "iiii", "i")
			return append(append(append(append(append(I32(1), I32(0x20000)...), I32(1000)...), I32(0)...), Call(f)...), OpDrop)
		}, 1000},
		"poll_oneoff": {func(g *Guest) []byte {
			f := g.Import(abi.ImportWASI, "poll_oneoff", "iiii", "i")
			return append(append(append(append(append(I32(0x20000), I32(0x40000)...), I32(100)...), I32(0)...), Call(f)...), OpDrop)
		}, 100},
	} {
		g := NewGuest()
		call := c.call(g)
		ok := g.Reply(allow)
		p := load(t, plugin.Spec{Wasm: g.Hook(abi.HookCheckInput, call, ok).Build()})
		_, fuel, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
		if err != nil || fuel < c.want {
			t.Errorf("%s: %d units, %v; want more than %d", name, fuel, err, c.want)
		}
	}
}

// A budget holds for what the host does, too: a guest that makes the host do
// all its work ends.
func TestHostWorkRunsOut(t *testing.T) {
	g := NewGuest()
	f := g.Import(abi.ImportWASI, "random_get", "ii", "i")
	wasm := g.Hook(abi.HookCheckInput, Loop(I32(0), I32(448<<10), Call(f), Op(OpDrop), Br(0)), Op(OpUnreachable)).Build()
	p := load(t, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Fuel: 10_000_000, Timeout: time.Minute}})
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeFuel {
		t.Errorf("fuel: %v", err)
	}
	p = load(t, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Timeout: 20 * time.Millisecond}})
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeTimeout {
		t.Errorf("time: %v", err)
	}
}
