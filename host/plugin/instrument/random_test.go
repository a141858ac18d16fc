package instrument

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestRandomPrograms runs random programs as they are and rewritten. Results,
// traps, memory and globals are the same, and the fuel used is what counting
// every single instruction gives.
func TestRandomPrograms(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 40
	}
	var total programStats
	for seed := range uint64(n) {
		total.add(checkProgram(t, seed))
	}
	t.Logf("%+v", total)
	if total.Calls < 4*n || total.Traps > total.Calls*2/3 || total.Fuel < int64(2000*n) {
		t.Errorf("the programs do too little: %+v", total)
	}
}

func FuzzPrograms(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(1000 + seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkProgram(t, seed) })
}

type programStats struct {
	Calls, Traps int
	Fuel         int64
}

func (s *programStats) add(o programStats) {
	s.Calls += o.Calls
	s.Traps += o.Traps
	s.Fuel += o.Fuel
}

// single gives every instruction a region of its own: the plainest way to
// count, which the planner is measured by.
func single(w *rewriter, f *body) {
	w.plan.regions = nil
	r := &reader{data: w.wasm[:f.to], at: f.from}
	for pos := 0; !r.done(); pos++ {
		var in instr
		w.ops.next(r, &in)
		switch in.op {
		case opBlock, opLoop, opElse, opEnd:
		default:
			w.plan.regions = append(w.plan.regions, region{start: pos, cost: 1})
		}
	}
}

// twin is the same program in one of the ways to run it.
type twin struct {
	mod   api.Module
	meter *meter
}

func checkProgram(t *testing.T, seed uint64) (stats programStats) {
	wasm := newProgram(seed).bytes()
	opts := Options{Allow: anyImport}
	m, err := Rewrite(wasm, opts)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	opts.replan = single
	counted, err := Rewrite(wasm, opts)
	if err != nil {
		t.Fatal(err)
	}
	var twins []twin
	for _, code := range [][]byte{wasm, m.Wasm, counted.Wasm} {
		twins = append(twins, instantiate(t, code, seed))
	}
	for round := range 2 {
		for i := range newProgram(seed).funcs {
			reset(twins)
			name := fmt.Sprintf("seed %d round %d %s", seed, round, funcName(i))
			stats.add(callAll(t, name, funcName(i), twins))
		}
	}
	return stats
}

func instantiate(t testing.TB, code []byte, seed uint64) twin {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigCompiler())
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	m := new(meter)
	m.link(t, r)
	mod, err := r.InstantiateWithConfig(context.Background(), code, wazero.NewModuleConfig())
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, hex.EncodeToString(code))
	}
	return twin{mod, m}
}

func reset(twins []twin) {
	for _, w := range twins {
		w.mod.ExportedGlobal("global f0").(api.MutableGlobal).Set(0)
	}
}

func callAll(t *testing.T, what, name string, twins []twin) (stats programStats) {
	var ends []string
	var used []int64
	for _, w := range twins {
		f := w.mod.ExportedFunction(name)
		var args []uint64
		for _, p := range f.Definition().ParamTypes() {
			args = append(args, 7)
			if p == api.ValueType(typeV128) {
				args = append(args, 9)
			}
		}
		before := int64(0)
		metered := w.mod.ExportedGlobal(FuelGlobal) != nil
		if metered {
			before = w.meter.used(w.mod)
		}
		results, err := f.Call(context.Background(), args...)
		ends = append(ends, fmt.Sprintf("%x %s", results, trap(err)))
		if metered {
			used = append(used, w.meter.used(w.mod)-before)
		}
	}
	if ends[0] != ends[1] || ends[0] != ends[2] {
		t.Fatalf("%s ends differently: %q", what, ends)
	}
	trapped := !strings.HasSuffix(ends[0], " ")
	if !trapped && used[0] != used[1] || used[0] < used[1] {
		t.Fatalf("%s: %d units are charged, %d instructions were run (%q)", what, used[0], used[1], ends[0])
	}
	stats.Calls, stats.Fuel = 1, used[0]
	if trapped {
		stats.Traps = 1
	}
	compareTwins(t, what, twins)
	return stats
}

func compareMemory(t *testing.T, what string, twins []twin) {
	want, _ := twins[0].mod.Memory().Read(0, twins[0].mod.Memory().Size())
	for _, w := range twins[1:] {
		if got, _ := w.mod.Memory().Read(0, w.mod.Memory().Size()); !bytes.Equal(got, want) {
			t.Fatalf("%s: memories differ", what)
		}
	}
}

func compareTwins(t *testing.T, what string, twins []twin) {
	compareMemory(t, what, twins)
	for _, w := range twins[1:] {
		for i := range 5 {
			name := "global " + funcName(i)
			if got, want := w.mod.ExportedGlobal(name).Get(), twins[0].mod.ExportedGlobal(name).Get(); got != want {
				t.Fatalf("%s: %s is %x, expected %x", what, name, got, want)
			}
		}
	}
}
