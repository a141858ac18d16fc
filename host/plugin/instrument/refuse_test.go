package instrument

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/plugin/plugintest"
)

// TestRefusals shows each reason as its reader gets it. The positive control
// is the same module without the fault.
func TestRefusals(t *testing.T) {
	onlyLog := func(i Import) error {
		if i.Module == "weir" && i.Name == "log" && i.Params == "\x7f\x7f\x7f" && i.Results == "" {
			return nil
		}
		return errors.New("expected weir.log (i32, i32, i32)")
	}
	for _, c := range []struct {
		name string
		make func(a *plugintest.Asm)
		want string // nothing: accepted
	}{
		{"nothing", func(a *plugintest.Asm) {}, ""},
		{"allowed import", func(a *plugintest.Asm) { a.Import("weir", "log", "iii", "") }, ""},
		{"foreign import", func(a *plugintest.Asm) { a.Import("env", "system", "i", "") }, `imports "env.system": expected weir.log (i32, i32, i32)`},
		{"import of another type", func(a *plugintest.Asm) { a.Import("weir", "log", "i", "") }, `imports "weir.log": expected`},
		{"refuel", func(a *plugintest.Asm) { a.Import("weir", "refuel", "l", "l") }, `imports "weir.refuel", a name that is reserved for the host`},
		{"reserved import", func(a *plugintest.Asm) { a.Import("__weir_x", "y", "", "") }, `imports "__weir_x.y", a name that is reserved`},
		{"imported memory", func(a *plugintest.Asm) { a.ImportMemory("env", "memory") }, `imports the memory "env.memory", expected functions only`},
		{"reserved export", func(a *plugintest.Asm) { a.Export("__weir_fuel", plugintest.KindFunc, a.Func("", "", 0)) }, `exports "__weir_fuel", a name that is reserved`},
		{"start function", func(a *plugintest.Asm) { a.Start(a.Func("", "", 0)) }, "has a start function"},
		{"two memories", func(a *plugintest.Asm) { a.Memory(1, 1); a.Memory(1, 1) }, "has 2 memories, at most 1 are allowed"},
		{"large memory", func(a *plugintest.Asm) { a.Memory(17, -1) }, "needs 17 pages of memory to begin with, at most 16 are allowed"},
		{"impossible memory", func(a *plugintest.Asm) { a.Memory(1, 65537) }, "expected a memory of at most 65536 pages"},
		{"large table", func(a *plugintest.Asm) { a.Table(60, -1); a.Table(60, -1) }, "has tables of 120 elements, at most 100 are allowed"},
		{"many tables", func(a *plugintest.Asm) {
			for range 17 {
				a.Table(0, -1)
			}
		}, "has 17 tables, at most 16 are allowed"},
		{"unknown opcode", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0xfb)) }, "function 0: offset 23: unknown opcode 0xfb, expected an instruction of WebAssembly 2.0"},
		{"atomic", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0xfe, 0x03, 0)) }, "unknown opcode 0xfe"},
		{"tail call", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0x12, 0)) }, "unknown opcode 0x12"},
		{"long prefixed opcode", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0xfc, 0x8b, 0, 0)) }, "shortest form"},
		{"unknown function", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Call(1)) }, "names function 1, there are 1"},
		{"fuel by its number", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.I64(1), plugintest.GlobalSet(0)) }, "names global 0, there are 0"},
		{"helper's type by its number", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0x02, 1, 0x0b)) }, "names type 1, there are 1"},
		{"helper as export", func(a *plugintest.Asm) { a.Export("x", plugintest.KindFunc, 0) }, `export "x" names function 0, there are 0`},
		{"branch too far", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Br(1)) }, "branches out of 1 blocks, there are 1"},
		{"else without if", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0x02, 0x40, 0x05, 0x0b)) }, "has an else without an if"},
		{"code after the end", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0x0b)) }, "has code after its end"},
		{"code without an end", func(a *plugintest.Asm) { a.Func("", "", 0, plugintest.Op(0x02, 0x40)) }, "ends in the middle of an entry"},
		{"many locals", func(a *plugintest.Asm) { a.Func("", "", 50_001) }, "has more than 50000 locals"},
		{"many parameters", func(a *plugintest.Asm) { a.Func(strings.Repeat("i", 1001), "", 0) }, "has 1001 parameters, at most 1000 are allowed"},
		{"deep nesting", func(a *plugintest.Asm) {
			a.Func("", "", 0, bytes.Repeat([]byte{2, 0x40}, maxNesting), bytes.Repeat([]byte{0x0b}, maxNesting))
		}, "nests more than 65536 blocks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := new(plugintest.Asm)
			c.make(a)
			_, err := Rewrite(a.Bytes(), Options{MaxMemory: 16, MaxTable: 100, Allow: onlyLog})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.Of(err) != fault.Invalid {
				t.Errorf("got %v (%v), expected %q", err, fault.Of(err), c.want)
			}
		})
	}
}

func TestRefusedFiles(t *testing.T) {
	good := new(plugintest.Asm).Bytes()
	for name, c := range map[string]struct {
		wasm []byte
		want string
	}{
		"empty":          {nil, "does not begin with"},
		"component":      {[]byte("\x00asm\x0d\x00\x01\x00"), "components are not supported"},
		"too large":      {make([]byte, 101), "has 101 bytes, at most 100 are allowed"},
		"section twice":  {append(good, 1, 1, 0, 1, 1, 0), "section 1 is unknown, repeated or out of order"},
		"section order":  {append(good, 3, 1, 0, 1, 1, 0), "out of order"},
		"tag section":    {append(good, 13, 1, 0), "section 13 is unknown"},
		"short section":  {append(good, 1, 9, 0), "expected 9 bytes, 1 are left"},
		"rest":           {append(good, 1, 2, 0, 0), "has bytes after its last entry"},
		"announcement":   {append(good, 1, 5, 0xff, 0xff, 3, 0x60, 0), "announces 65535 types in 2 bytes"},
		"too many":       {append(good, 1, 5, 0xff, 0xff, 0xff, 0x7f, 0), "has 268435455 types, at most 65536 are allowed"},
		"shared memory":  {append(good, 5, 4, 1, 3, 1, 1), "shared and 64-bit memories are refused"},
		"no code":        {append(good, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0), "announces 1 functions and has the code of 0"},
		"no data":        {append(good, 12, 1, 1), "announces 1 data segments and has 0"},
		"bad name":       {append(good, 0, 2, 1, 0xff), "expected a name in UTF-8"},
		"extended const": {append(good, 6, 9, 1, 0x7f, 0, 0x41, 0, 0x41, 0, 0x6a, 0x0b), "expected the end of a constant expression"},
	} {
		_, err := Rewrite(bytes.Clone(c.wasm), Options{MaxModule: 100})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, expected %q", name, err, c.want)
		}
	}
}

func TestTwiceIsRefused(t *testing.T) {
	once, err := Rewrite(plugintest.NewGuest().Build(), Options{Allow: anyImport})
	if err != nil {
		t.Fatal(err)
	}
	for name, wasm := range map[string][]byte{"rewritten": once.Wasm, "bare": once.Bare()} {
		if _, err := Rewrite(wasm, Options{Allow: anyImport}); err == nil || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoImportsByDefault(t *testing.T) {
	a := new(plugintest.Asm)
	a.Import("weir", "log", "iii", "")
	if _, err := Rewrite(a.Bytes(), Options{}); err == nil || !strings.Contains(err.Error(), `imports "weir.log", expected no imports`) {
		t.Error(err)
	}
}

// Charges make code longer; a module cannot use that to fill the host's memory.
func TestGrowth(t *testing.T) {
	a := new(plugintest.Asm)
	a.Func("", "", 0, bytes.Repeat(plugintest.Call(0), 10_000))
	wasm := a.Bytes()
	if _, err := Rewrite(wasm, Options{MaxModule: len(wasm)}); err == nil || !strings.Contains(err.Error(), "bytes of code with its charges") {
		t.Errorf("got %v", err)
	}
	if _, err := Rewrite(wasm, Options{}); err != nil {
		t.Error(err)
	}
}

// Reading a module takes time in proportion to its size, also if its blocks
// are nested as deep as allowed and every branch leaves all of them.
func TestTime(t *testing.T) {
	const depth = 60_000
	far := append(appendU32([]byte{0x20, 0, 0x0d}, depth-1), append(appendU32([]byte{0x20, 0, 0x0d}, depth/2), 0x20, 0, 0x0d, 0)...)
	a := new(plugintest.Asm)
	a.Func("i", "", 0, bytes.Repeat([]byte{2, 0x40}, depth), bytes.Repeat(far, 300_000), bytes.Repeat([]byte{0x0b}, depth))
	start := time.Now()
	if _, err := Rewrite(a.Bytes(), Options{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Minute { // looking at every level took minutes
		t.Errorf("took %v", took)
	}
}
