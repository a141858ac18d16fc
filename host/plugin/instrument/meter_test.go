package instrument

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	pt "weir/host/plugin/plugintest"
)

// TestFuel pins what a program costs, counted by hand: every instruction that
// is run counts one; block, loop, else and end are none.
func TestFuel(t *testing.T) {
	nop := func(n int) []byte { return bytes.Repeat([]byte{0x01}, n) }
	block := func(code ...[]byte) []byte {
		return append(append([]byte{0x02, 0x40}, bytes.Join(code, nil)...), 0x0b)
	}
	brIf := func(l byte) []byte { return []byte{0x0d, l} }
	for _, c := range []struct {
		name string
		code [][]byte
		want map[int32]int64 // by argument
	}{
		{"empty", nil, map[int32]int64{0: 0}},
		{"straight", [][]byte{nop(5)}, map[int32]int64{0: 5}},
		{"long straight", [][]byte{nop(25_000)}, map[int32]int64{0: 25_000}},
		{"if", [][]byte{pt.Get(0), pt.If(nop(3)), nop(1)}, map[int32]int64{0: 3, 1: 6}},
		{"else", [][]byte{pt.Get(0), pt.Op(0x04, 0x40), nop(3), pt.Op(0x05), nop(10), pt.Op(0x0b)}, map[int32]int64{0: 12, 1: 5}},
		{"block left early", [][]byte{block(pt.Get(0), brIf(0), nop(7)), nop(2)}, map[int32]int64{0: 11, 1: 4}},
		{"function left early", [][]byte{block(pt.Get(0), brIf(1), nop(7)), nop(2)}, map[int32]int64{0: 11, 1: 2}},
		{"return in if", [][]byte{pt.Get(0), pt.If(nop(1), pt.Op(0x0f)), nop(9)}, map[int32]int64{0: 11, 1: 4}},
		{"loop", [][]byte{pt.Loop(pt.Get(0), pt.I32(1), pt.Op(0x6b, 0x22, 0), brIf(0)), nop(4)}, map[int32]int64{1: 9, 10: 54}},
		{"switch", [][]byte{block(block(block(pt.Get(0), pt.Op(0x0e, 2, 0, 1, 2)), nop(10)), nop(100)), nop(1000)},
			map[int32]int64{0: 1112, 1: 1102, 2: 1002, 9: 1002}},
		{"call", [][]byte{pt.Get(0), pt.If(pt.I32(0), pt.Call(1)), nop(2)}, map[int32]int64{0: 4, 1: 10}},
		{"fill", [][]byte{pt.I32(0), pt.I32(1), pt.Get(0), pt.Op(0xfc, 11, 0)},
			map[int32]int64{0: 4, 15: 4, 16: 5, 65536: 4100, 65537: 4100, 131_072: 8196}},
		{"grow", [][]byte{pt.Get(0), pt.Op(0x40, 0, 0x1a)}, map[int32]int64{0: 3, 2: 3 + 2*4096, 4: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := new(pt.Asm)
			a.Memory(2, 5)
			self := a.Func("i", "", 0, c.code...)
			a.Func("i", "", 0, pt.Get(0), pt.If(pt.Get(0), pt.Call(self)), pt.Op(0x01, 0x01)) // costs 4 with 0
			a.Export("run", pt.KindFunc, self)
			code := rewrite(t, a.Bytes(), Options{})
			for arg, want := range c.want {
				w := instantiate(t, code, 0)
				if _, err := w.mod.ExportedFunction("run").Call(t.Context(), api.EncodeI32(arg)); err != nil {
					t.Fatal(err)
				}
				if got := w.meter.used(w.mod); got != want {
					t.Errorf("%d: used %d, expected %d", arg, got, want)
				}
			}
		})
	}
}

func rewrite(t testing.TB, wasm []byte, o Options) []byte {
	t.Helper()
	o.Allow = anyImport
	m, err := Rewrite(wasm, o)
	if err != nil {
		t.Fatal(err)
	}
	return m.Wasm
}

// A look finds an empty tank; the fuel that refuel hands out is used, and
// asked for once in every slice.
func TestSlices(t *testing.T) {
	w := instantiate(t, rewrite(t, tightLoop(), Options{}), 0)
	if _, err := w.mod.ExportedFunction("run").Call(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = 100_000*7 + 1 // seven instructions a round, and the result
	if got := w.meter.used(w.mod); got != want {
		t.Errorf("used %d, expected %d", got, want)
	}
	if w.meter.slices != want/slice+1 {
		t.Errorf("asked %d times for %d units", w.meter.slices, want)
	}
}

// Same input, same bytes; and the input stays as it is.
func TestDeterminism(t *testing.T) {
	for _, wasm := range [][]byte{pt.NewGuest().Build(), newProgram(3).bytes(), pt.Build(t, "plugins/react")} {
		before := bytes.Clone(wasm)
		first, second := rewrite(t, wasm, Options{}), rewrite(t, wasm, Options{})
		if !bytes.Equal(first, second) || !bytes.Equal(before, wasm) {
			t.Error("two runs differ, or the input was changed")
		}
	}
}

// TestOutline pins what a host is told about a module.
func TestOutline(t *testing.T) {
	m, err := Rewrite(newProgram(1).bytes(), Options{MaxMemory: 4, MaxTable: 100})
	if err != nil {
		t.Fatal(err)
	}
	if m.MemoryMin != 3 || m.MemoryMax != 4 || m.TableMax != 20+48 {
		t.Errorf("memory %d to %d, tables %d", m.MemoryMin, m.MemoryMax, m.TableMax)
	}
	if len(m.Globals) != 4 || m.Globals[3] != (Global{3, "__weir_global_3", typeF64}) || !m.OpaqueGlobals {
		t.Errorf("globals %+v, opaque %v", m.Globals, m.OpaqueGlobals)
	}
	plain, err := Rewrite(pt.NewGuest().Build(), Options{Allow: anyImport})
	if err != nil {
		t.Fatal(err)
	}
	if !plain.Resettable() || m.Resettable() {
		t.Error("a module with a vector as global cannot be reset, one with numbers can")
	}
	for name, code := range map[string][]byte{
		"table.set":  pt.Op(0x41, 0, 0xd0, 0x70, 0x26, 0),
		"table.grow": pt.Op(0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a),
		"table.fill": pt.Op(0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0),
		"table.copy": pt.Op(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 0),
		"table.init": pt.Op(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 12, 0, 0),
		"elem.drop":  pt.Op(0xfc, 13, 0),
		"data.drop":  pt.Op(0xfc, 9, 0),
	} {
		a := new(pt.Asm)
		a.Table(1, 1)
		a.Func("", "", 0, code)
		m, err := Rewrite(a.Bytes(), Options{})
		if err != nil || m.WritesTables != strings.HasPrefix(name, "table") || m.DropsSegments != strings.HasSuffix(name, "drop") {
			t.Errorf("%s: %v, writes tables %v, drops segments %v", name, err, m.WritesTables, m.DropsSegments)
		}
	}
}

// Bare differs in active segments only, and code that reads segments sees the
// same in both.
func TestBare(t *testing.T) {
	m, err := Rewrite(newProgram(1).bytes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	full, bare := instantiate(t, m.Wasm, 0), instantiate(t, m.Bare(), 0)
	for i, w := range []twin{full, bare} {
		got, _ := w.mod.Memory().Read(8, 5)
		if want := []string{"hello", "\x00\x00\x00\x00\x00"}[i]; string(got) != want {
			t.Errorf("memory begins with %q, expected %q", got, want)
		}
	}
	a := new(pt.Asm)
	a.Memory(1, 1)
	a.Data(0, []byte("secret"))
	a.Func("", "", 0, pt.Op(0x41, 0, 0x41, 0, 0x41, 1, 0xfc, 8, 0, 0)) // memory.init of an active segment
	a.Export("run", pt.KindFunc, 0)
	wasm := a.Bytes()
	at := bytes.Index(wasm, []byte{sectionCode, 14}) // the assembler has no data count
	wasm = bytes.Join([][]byte{wasm[:at], {sectionDataCount, 1, 1}, wasm[at:]}, nil)
	m, err = Rewrite(wasm, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range [][]byte{wasm, m.Wasm, m.Bare()} {
		w := instantiate(t, code, 0)
		if _, err := w.mod.ExportedFunction("run").Call(context.Background()); err != nil {
			t.Errorf("this engine keeps active segments: %v", err)
		}
		if got, _ := w.mod.Memory().Read(0, 6); got[0] != 's' {
			t.Errorf("memory begins with %q", got)
		}
	}
}

// Growth ends at the bounds although the modules declare none (fault P3).
func TestBounds(t *testing.T) {
	a := new(pt.Asm)
	a.Memory(1, -1)
	a.Table(10, -1)
	a.Table(0, 1<<30)
	grow := func(table byte) uint32 {
		return a.Func("i", "i", 0, pt.Op(0xd0, 0x70, 0x20, 0, 0xfc, 15, table))
	}
	a.Export("memory.grow", pt.KindFunc, a.Func("i", "i", 0, pt.Get(0), pt.Op(0x40, 0)))
	a.Export("table.grow 0", pt.KindFunc, grow(0))
	a.Export("table.grow 1", pt.KindFunc, grow(1))
	plain := instantiate(t, a.Bytes(), 0)
	if r, err := plain.mod.ExportedFunction("table.grow 1").Call(t.Context(), 1<<24); err != nil || api.DecodeI32(r[0]) == -1 {
		t.Errorf("control: a plain module grows: %v %v", r, err)
	}
	w := instantiate(t, rewrite(t, a.Bytes(), Options{MaxMemory: 16, MaxTable: 1000}), 0)
	for _, c := range []struct {
		name    string
		n, want int32
	}{
		{"memory.grow", 16, -1}, {"memory.grow", -1, -1}, {"memory.grow", 15, 1}, {"memory.grow", 1, -1},
		{"table.grow 0", 496, -1}, {"table.grow 0", -1, -1}, {"table.grow 0", 495, 10}, {"table.grow 0", 1, -1},
		{"table.grow 1", 1 << 29, -1}, {"table.grow 1", 495, 0}, {"table.grow 1", 1, -1},
	} {
		before := w.meter.used(w.mod)
		got, err := w.mod.ExportedFunction(c.name).Call(t.Context(), api.EncodeI32(c.n))
		if err != nil || api.DecodeI32(got[0]) != c.want {
			t.Errorf("%s by %d: %v %v, expected %d", c.name, c.n, got, err, c.want)
		}
		if used := w.meter.used(w.mod) - before; c.want == -1 && used > 3 {
			t.Errorf("%s by %d cost %d although nothing grew", c.name, c.n, used)
		}
	}
	if size := w.mod.Memory().Size(); size != 16*pageSize {
		t.Errorf("the memory has %d bytes", size)
	}
}
