package instrument

import (
	"cmp"
	"errors"
)

// decode reads a whole module. It checks what rewriting depends on; whether
// the code is well typed is for the engine to say.
func decode(wasm []byte, ops *opTable) (*module, error) {
	if len(wasm) < 8 || string(wasm[:4]) != "\x00asm" {
		return nil, errors.New("expected a WebAssembly module: the file does not begin with \\0asm")
	}
	if string(wasm[4:8]) != "\x01\x00\x00\x00" {
		return nil, errors.New("expected the WebAssembly core format, version 1 (components are not supported)")
	}
	m, r, last := new(module), &reader{data: wasm, at: 8}, 0
	for !r.done() {
		from := r.at
		id := r.byte()
		size := r.u32()
		s := r.sub(size)
		if r.err != nil {
			return nil, r.err
		}
		rank := sectionRank(id)
		if rank == 0 || id != sectionCustom && rank <= last {
			r.at = from
			r.fail("section %d is unknown, repeated or out of order", id)
			return nil, r.err
		}
		if id != sectionCustom {
			last = rank
		}
		m.section(s, id, ops)
		if s.err == nil && s.at != len(s.data) {
			s.fail("section %d has bytes after its last entry", id)
		}
		if s.err != nil {
			return nil, s.err
		}
	}
	return m, cmp.Or(r.err, m.complete())
}

// sectionRank gives the order in which sections stand; 0 is unknown. The data
// count stands before the code although its number is larger.
func sectionRank(id byte) int {
	switch {
	case id == sectionCustom:
		return 1
	case id == sectionDataCount:
		return int(sectionCode) + 1
	case id == sectionCode, id == sectionData:
		return int(id) + 2
	case id > sectionDataCount:
		return 0
	}
	return int(id) + 1
}

func (m *module) section(r *reader, id byte, ops *opTable) {
	switch id {
	case sectionCustom:
		r.name()
		r.at = max(r.at, len(r.data))
	case sectionType:
		each(r, "types", maxTypes, func() { m.types = append(m.types, r.funcType()) })
	case sectionImport:
		each(r, "imports", maxImports, func() { m.readImport(r) })
	case sectionFunction:
		each(r, "functions", maxFuncs, func() { m.funcs = append(m.funcs, m.typeIndex(r)) })
	case sectionTable:
		each(r, "tables", maxTables, func() { m.tables = append(m.tables, r.table()) })
	case sectionMemory:
		each(r, "memories", 1, func() { m.memories = append(m.memories, r.memory()) })
	case sectionGlobal:
		each(r, "globals", maxGlobals, func() { m.readGlobal(r, ops) })
	case sectionExport:
		each(r, "exports", maxExports, func() { m.exports = append(m.exports, export{r.name(), Kind(r.byte()), r.u32()}) })
	case sectionStart:
		m.start = true
		r.u32()
	case sectionElement:
		m.readElements(r, ops)
	case sectionDataCount:
		m.hasDataCount, m.dataCount = true, r.u32()
	case sectionCode:
		each(r, "functions", maxFuncs, func() { m.readBody(r) })
	case sectionData:
		each(r, "data segments", maxSegments, func() { m.readData(r, ops) })
	}
}

// each reads a vector; entry reads one entry of it.
func each(r *reader, what string, most int, entry func()) {
	for range r.count(what, most) {
		if r.err != nil {
			return
		}
		entry()
	}
}

// complete checks what holds between sections and needs all of them.
func (m *module) complete() error {
	if defined := len(m.funcs) - m.importedFuncs; defined != len(m.codes) {
		return errorf("announces %d functions and has the code of %d", defined, len(m.codes))
	}
	if m.hasDataCount && uint64(m.dataCount) != uint64(len(m.data)) {
		return errorf("announces %d data segments and has %d", m.dataCount, len(m.data))
	}
	if len(m.memories) > 1 {
		return errorf("has %d memories, at most one is allowed", len(m.memories))
	}
	return m.checkIndices()
}

// checkIndices refuses references to what the rewriter is about to append: an
// index that is one too large must not become valid.
func (m *module) checkIndices() error {
	for _, e := range m.exports {
		most := [...]int{len(m.funcs), len(m.tables), len(m.memories), len(m.globals)}
		if int(e.kind) >= len(most) {
			return errorf("export %s has the unknown kind %d", quote(e.name), e.kind)
		}
		if uint64(e.index) >= uint64(most[e.kind]) {
			return errorf("export %s names %v %d, there are %d", quote(e.name), e.kind, e.index, most[e.kind])
		}
	}
	for i := range m.globals[m.importedGlobals:] {
		if err := m.checkConst(&m.globals[m.importedGlobals+i].init); err != nil {
			return err
		}
	}
	for i := range m.data {
		if err := m.checkConst(&m.data[i].offset); err != nil {
			return err
		}
	}
	return m.checkElements()
}

func (m *module) checkElements() error {
	for i := range m.elements {
		e := &m.elements[i]
		if err := m.checkConst(&e.offset); err != nil {
			return err
		}
		for _, f := range e.funcs {
			if err := m.checkFunc(f); err != nil {
				return err
			}
		}
		for j := range e.exprs {
			if err := m.checkConst(&e.exprs[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *module) checkConst(in *instr) error {
	switch {
	case in.op == opRefFunc:
		return m.checkFunc(in.a)
	case in.op == opGlobalGet && uint64(in.a) >= uint64(len(m.globals)):
		return errorf("a constant names global %d, there are %d", in.a, len(m.globals))
	}
	return nil
}

func (m *module) checkFunc(index uint32) error {
	if uint64(index) >= uint64(len(m.funcs)) {
		return errorf("names function %d, there are %d", index, len(m.funcs))
	}
	return nil
}
