package instrument

import (
	"strconv"

	"weir/abi"
)

// encode writes the module with what is added to it. Custom sections are left
// out: the engine runs without them, and debug information would be wrong.
func (w *rewriter) encode(codes []byte) []byte {
	b := make([]byte, 0, len(w.wasm)+len(codes)/2)
	b = append(b, "\x00asm\x01\x00\x00\x00"...)
	types, funcs := w.helperTypes()
	b = w.appendTypes(b, types)
	b = w.appendImports(b)
	b = w.appendFuncs(b, funcs)
	b = w.appendTables(b)
	b = w.appendMemory(b)
	b = w.appendGlobals(b)
	b = w.appendExports(b)
	b = w.appendElements(b)
	if w.m.hasDataCount {
		b = appendSized(append(b, sectionDataCount), appendU32(nil, w.m.dataCount))
	}
	for _, h := range w.helpers {
		codes = appendSized(codes, h.body)
	}
	b = appendSection(b, sectionCode, len(w.m.codes)+len(w.helpers), codes)
	return w.appendData(b)
}

// helperTypes returns the types to append, that of refuel first, and the type
// index of each helper.
func (w *rewriter) helperTypes() (types []funcType, funcs []uint32) {
	types = []funcType{{string(typeI64Byte), string(typeI64Byte)}}
	index := map[funcType]uint32{}
	for _, h := range w.helpers {
		at, ok := index[h.typ]
		if !ok {
			at = uint32(len(w.m.types) + len(types))
			index[h.typ] = at
			types = append(types, h.typ)
		}
		funcs = append(funcs, at)
	}
	return types, funcs
}

const typeI64Byte = "\x7e"

func (w *rewriter) appendTypes(b []byte, more []funcType) []byte {
	var body []byte
	for _, list := range [][]funcType{w.m.types, more} {
		for _, t := range list {
			body = appendName(appendName(append(body, 0x60), t.params), t.results)
		}
	}
	return appendSection(b, sectionType, len(w.m.types)+len(more), body)
}

func (w *rewriter) appendImports(b []byte) []byte {
	var body []byte
	for _, e := range w.m.imports {
		body = append(appendName(appendName(body, e.module), e.name), byte(e.kind))
		body = append(body, e.desc...)
	}
	body = append(appendName(appendName(body, RefuelModule), RefuelName), byte(KindFunc))
	body = appendU32(body, uint32(len(w.m.types)))
	return appendSection(b, sectionImport, len(w.m.imports)+1, body)
}

func (w *rewriter) appendFuncs(b []byte, helpers []uint32) []byte {
	var body []byte
	defined := w.m.funcs[w.m.importedFuncs:]
	for _, list := range [][]uint32{defined, helpers} {
		for _, t := range list {
			body = appendU32(body, t)
		}
	}
	return appendSection(b, sectionFunction, len(defined)+len(helpers), body)
}

func (l limits) append(b []byte) []byte {
	b = appendU32(append(b, flag(l.bounded)), l.min)
	if l.bounded {
		b = appendU32(b, l.max)
	}
	return b
}

func (t table) append(b []byte) []byte { return t.limits.append(append(b, t.elem)) }

func (w *rewriter) appendTables(b []byte) []byte {
	var body []byte
	defined := w.m.tables[w.m.importedTables:]
	for _, t := range defined {
		body = t.append(body)
	}
	return appendSection(b, sectionTable, len(defined), body)
}

func (w *rewriter) appendMemory(b []byte) []byte {
	var body []byte
	defined := w.m.memories[w.m.importedMemories:]
	for _, l := range defined {
		body = l.append(body)
	}
	return appendSection(b, sectionMemory, len(defined), body)
}

func (w *rewriter) appendGlobals(b []byte) []byte {
	var body []byte
	defined := w.m.globals[w.m.importedGlobals:]
	for _, g := range defined {
		body = append(body, g.typ, flag(g.mutable))
		body = w.appendConst(body, g.init)
	}
	body = append(body, typeI64, 1)
	body = asm(body).i64(0).op(opEnd)
	return appendSection(b, sectionGlobal, len(defined)+1, body)
}

func (w *rewriter) appendConst(b []byte, in instr) []byte {
	if in.op == opRefFunc {
		in.a = w.funcIndex(in.a)
	}
	return append(in.append(b), byte(opEnd))
}

func (w *rewriter) appendExports(b []byte) []byte {
	var body []byte
	entry := func(name string, kind Kind, index uint32) {
		body = appendU32(append(appendName(body, name), byte(kind)), index)
	}
	for _, e := range w.m.exports {
		if e.kind == KindFunc {
			e.index = w.funcIndex(e.index)
		}
		entry(e.name, e.kind, e.index)
	}
	entry(FuelGlobal, KindGlobal, w.fuel)
	for _, g := range w.out.Globals {
		entry(g.Name, KindGlobal, g.Index)
	}
	return appendSection(b, sectionExport, len(w.m.exports)+1+len(w.out.Globals), body)
}

// mutableGlobals lists the globals that are state of an instance, with the
// names under which they are exported, and tells whether there are others that
// could not be read and set.
func (m *module) mutableGlobals() (list []Global, opaque bool) {
	for i, g := range m.globals {
		switch {
		case !g.mutable:
		case g.typ == typeV128 || isRefType(g.typ):
			opaque = true
		default:
			name := abi.ReservedPrefix + "global_" + strconv.Itoa(i)
			list = append(list, Global{Index: uint32(i), Name: name, Type: g.typ})
		}
	}
	return list, opaque
}

func (w *rewriter) appendElements(b []byte) []byte {
	var body []byte
	for i := range w.m.elements {
		body = w.appendElement(body, &w.m.elements[i])
	}
	return appendSection(b, sectionElement, len(w.m.elements), body)
}

func (w *rewriter) appendElement(b []byte, e *element) []byte {
	b = appendU32(b, e.flags)
	active, indexed, exprs := e.flags&1 == 0, e.flags&2 != 0, e.flags&4 != 0
	if active && indexed {
		b = appendU32(b, e.table)
	}
	if active {
		b = w.appendConst(b, e.offset)
	}
	if e.flags&3 != 0 {
		b = append(b, e.kind)
	}
	if exprs {
		b = appendU32(b, uint32(len(e.exprs)))
		for _, in := range e.exprs {
			b = w.appendConst(b, in)
		}
		return b
	}
	b = appendU32(b, uint32(len(e.funcs)))
	for _, f := range e.funcs {
		b = appendU32(b, w.funcIndex(f))
	}
	return b
}

func (w *rewriter) appendData(b []byte) []byte {
	size := 0
	for _, s := range w.m.data {
		size += len(s.bytes) + 16
	}
	body := make([]byte, 0, size)
	for _, s := range w.m.data {
		body = appendU32(body, s.flags)
		if s.flags == 0 {
			body = w.appendConst(body, s.offset)
		}
		body = appendSized(body, s.bytes)
	}
	return appendSection(b, sectionData, len(w.m.data), body)
}
