package instrument

import (
	"fmt"
	"testing"

	pt "weir/host/plugin/plugintest"
)

// bulkModule has every bulk operation as an export with the operands of the
// instruction, a table and segments that are several pieces long, and digest,
// which says what the table holds.
func bulkModule() []byte {
	const elements, bytes = 20_000, 300_000
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = appendSection(b, sectionType, 3, []byte{0x60, 3, typeI32, typeI32, typeI32, 0, 0x60, 0, 1, typeI32, 0x60, 0, 0})
	names := []string{"memory.fill", "memory.copy", "memory.init", "table.fill", "table.copy", "table.init", "data.drop", "elem.drop", "digest"}
	three := asm{0}.get(0).get(1).get(2)
	bodies := []asm{
		three.op(opMemoryFill, 0), three.op(opMemoryCopy, 0, 0), append(three.op(opMemoryInit), 0, 0),
		asm{0}.get(0).u(opRefFunc, 9).get(2).u(opTableFill, 0), append(three.op(opTableCopy), 0, 0), append(three.op(opTableInit), 0, 0),
		asm{0}.u(opDataDrop, 0), asm{0}.u(opElemDrop, 0),
		digestTable(), asm{0}.i32(1), asm{0}.i32(2),
	}
	var funcs, exports, codes []byte
	for i, body := range bodies {
		typ := byte(0)
		switch {
		case i >= 8:
			typ = 1
		case i >= 6:
			typ = 2
		}
		funcs = append(funcs, typ)
		codes = appendSized(codes, append(body[:len(body):len(body)], byte(opEnd)))
	}
	for i, name := range names {
		exports = append(appendName(exports, name), byte(KindFunc), byte(i))
	}
	exports = append(appendName(exports, "memory"), byte(KindMemory), 0)
	b = appendSection(b, sectionFunction, len(bodies), funcs)
	b = appendSection(b, sectionTable, 1, appendU32([]byte{typeFuncref, 0}, elements))
	b = appendSection(b, sectionMemory, 1, []byte{0, 8})
	b = appendSection(b, sectionExport, len(names)+1, exports)
	funcsOf := func(n int) []byte {
		list := appendU32(nil, uint32(n))
		for i := range n {
			list = append(list, byte(9+i*i%7%2))
		}
		return list
	}
	segments := append([]byte{1, 0}, funcsOf(15_000)...)
	segments = append(segments, 0, byte(opI32Const), 0, byte(opEnd))
	segments = append(segments, funcsOf(elements)...)
	b = appendSection(b, sectionElement, 2, segments)
	b = appendSized(append(b, sectionDataCount), []byte{1})
	b = appendSection(b, sectionCode, len(bodies), codes)
	data := make([]byte, bytes)
	for i := range data {
		data[i] = byte(i % 251)
	}
	return appendSection(b, sectionData, 1, appendSized([]byte{1}, data))
}

// digestTable folds what the table's functions answer into one number.
func digestTable() asm {
	c := append(asm{1, 2, typeI32}.op(opLoop, blockEmpty).get(1).i32(31).op(0x6c).get(0).op(opCallIndirect), 1, 0)
	c = c.op(opI32Add).set(1).get(0).i32(1).op(opI32Add).u(opLocalTee, 0).u(opTableSize, 0).op(0x49).u(opBrIf, 0)
	return c.op(opEnd).get(1)
}

// TestBulk runs long, overlapping and impossible bulk operations. Memory and
// table are the same after each, and a trap has no effect.
func TestBulk(t *testing.T) {
	const memory, elements = 8 * pageSize, 20_000
	cases := []struct {
		name    string
		a, b, n uint32
		trap    bool
	}{
		{"memory.init", 0, 0, 300_000, false}, {"memory.init", 7, 3, 200_000, false},
		{"memory.init", 0, 1, 300_000, true}, {"memory.init", memory - 100_000, 0, 100_001, true}, {"memory.init", 0, 1 << 31, 1 << 31, true},
		{"memory.copy", 1000, 0, 250_000, false}, {"memory.copy", 0, 1000, 250_000, false}, {"memory.copy", 1, 0, memory - 1, false},
		{"memory.copy", 65_536, 0, 131_072, false}, {"memory.copy", 5, 5, 200_000, false}, {"memory.copy", 0, 1, memory - 1, false},
		{"memory.copy", 0, 1, memory, true}, {"memory.copy", 1, 0, memory, true}, {"memory.copy", 0, 1 << 31, 1 << 31, true}, {"memory.copy", 1, 0, 1<<32 - 1, true},
		{"memory.fill", 3, 0x155, 200_000, false}, {"memory.fill", 0, 9, 65_536, false}, {"memory.fill", 0, 9, 65_537, false},
		{"memory.fill", 1, 8, memory, true}, {"memory.fill", memory, 8, 0, false}, {"memory.fill", memory + 1, 8, 0, true}, {"memory.fill", 1 << 31, 8, 1 << 31, true},
		{"table.init", 100, 0, 15_000, false}, {"table.init", 3, 11, 9000, false}, {"table.init", 0, 1, 15_000, true}, {"table.init", 5001, 0, 15_000, true},
		{"table.copy", 10, 0, 15_000, false}, {"table.copy", 0, 10, 15_000, false}, {"table.copy", 1, 0, elements, true}, {"table.copy", 0, 1, elements, true},
		{"table.copy", 4096, 0, 8192, false}, {"table.fill", 5, 0, 9000, false}, {"table.fill", 1, 0, elements, true}, {"table.fill", 1, 0, 1<<32 - 1, true},
		{"data.drop", 0, 0, 0, false}, {"memory.init", 0, 0, 100_000, true}, {"memory.init", 0, 0, 0, false},
		{"elem.drop", 0, 0, 0, false}, {"table.init", 0, 0, 10_000, true},
	}
	wasm := bulkModule()
	twins := []twin{instantiate(t, wasm, 0), instantiate(t, rewrite(t, wasm, Options{}), 0)}
	for _, c := range cases {
		var ends [2]string
		for i, w := range twins {
			f := w.mod.ExportedFunction(c.name)
			args := []uint64{uint64(c.a), uint64(c.b), uint64(c.n)}[:len(f.Definition().ParamTypes())]
			_, err := f.Call(t.Context(), args...)
			if (err != nil) != c.trap {
				t.Fatalf("%+v: %v", c, err)
			}
			sum, e := w.mod.ExportedFunction("digest").Call(t.Context())
			ends[i] = fmt.Sprint(trap(err), sum, e)
		}
		if ends[0] != ends[1] {
			t.Errorf("%+v: plain %s, rewritten %s", c, ends[0], ends[1])
		}
		compareMemory(t, fmt.Sprintf("%+v", c), twins)
	}
	if twins[1].meter.slices == 0 {
		t.Error("nothing was charged")
	}
}

// A long operation comes back to the host between its pieces, and costs what
// its length says.
func TestBulkInPieces(t *testing.T) {
	a := new(pt.Asm)
	a.Memory(1000, 1000)
	a.Export("run", pt.KindFunc, a.Func("", "", 0, pt.I32(0), pt.I32(1), pt.I32(1000*pageSize), pt.Op(0xfc, 11, 0)))
	a.Export("memory", pt.KindMemory, 0)
	w := instantiate(t, rewrite(t, a.Bytes(), Options{}), 0)
	at := uint32(1000 * pageSize)
	w.meter.each = func() {
		// Fills run from the end.
		first := at
		for at > 0 {
			if b, _ := w.mod.Memory().ReadByte(at - 1); b == 0 {
				break
			}
			at -= piece
		}
		if first-at > slice*16+piece {
			t.Errorf("%d bytes were filled between two slices", first-at)
		}
	}
	if _, err := w.mod.ExportedFunction("run").Call(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.meter.used(w.mod), int64(4+1000*pageUnits); got != want {
		t.Errorf("used %d, expected %d", got, want)
	}
	if w.meter.slices < 20 {
		t.Errorf("came back %d times", w.meter.slices)
	}
}
