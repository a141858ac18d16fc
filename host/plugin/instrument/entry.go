package instrument

func (r *reader) funcType() funcType {
	if form := r.byte(); r.err == nil && form != 0x60 {
		r.fail("expected a function type, got form 0x%02x", form)
	}
	params := r.valueTypes(r.count("parameters", maxParams))
	return funcType{string(params), string(r.valueTypes(r.count("results", maxParams)))}
}

func (r *reader) valueTypes(n int) []byte {
	types := r.bytes(uint32(n))
	for _, t := range types {
		if !isValueType(t) {
			r.fail("unknown value type 0x%02x", t)
		}
	}
	return types
}

func (r *reader) valueType() byte {
	if t := r.valueTypes(1); r.err == nil {
		return t[0]
	}
	return 0
}

func isValueType(t byte) bool { return t >= typeV128 && t <= typeI32 || isRefType(t) }

func isRefType(t byte) bool { return t == typeFuncref || t == typeExternref }

func (r *reader) refType() []byte {
	t := r.bytes(1)
	if r.err == nil && !isRefType(t[0]) {
		r.fail("expected a reference type, got 0x%02x", t[0])
	}
	return t
}

func (r *reader) table() table {
	t := r.refType()
	if r.err != nil {
		return table{}
	}
	return table{t[0], r.limits()}
}

func (r *reader) limits() (l limits) {
	switch flags := r.byte(); flags {
	case 0:
		l.min = r.u32()
	case 1:
		l.bounded = true
		l.min, l.max = r.u32(), r.u32()
		if r.err == nil && l.max < l.min {
			r.fail("has the maximum %d below the minimum %d", l.max, l.min)
		}
	default:
		r.fail("limits have the flags 0x%02x: shared and 64-bit memories are refused", flags)
	}
	return l
}

func (r *reader) memory() limits {
	l := r.limits()
	if r.err == nil && (l.min > maxPages || l.max > maxPages) {
		r.fail("expected a memory of at most %d pages", maxPages)
	}
	return l
}

func (m *module) typeIndex(r *reader) uint32 {
	t := r.u32()
	if r.err == nil && uint64(t) >= uint64(len(m.types)) {
		r.fail("names type %d, there are %d", t, len(m.types))
	}
	return t
}

func (m *module) readImport(r *reader) {
	e := importEntry{module: r.name(), name: r.name(), kind: Kind(r.byte())}
	switch e.kind {
	case KindFunc:
		e.typ = m.typeIndex(r)
		e.desc = appendU32(nil, e.typ)
		m.funcs = append(m.funcs, e.typ)
		m.importedFuncs++
	case KindTable:
		t := r.table()
		e.desc = t.append(nil)
		m.tables = append(m.tables, t)
		m.importedTables++
	case KindMemory:
		l := r.memory()
		e.desc = l.append(nil)
		m.memories = append(m.memories, l)
		m.importedMemories++
	case KindGlobal:
		g := global{typ: r.valueType(), mutable: r.mutable()}
		e.desc = []byte{g.typ, flag(g.mutable)}
		m.globals = append(m.globals, g)
		m.importedGlobals++
	default:
		r.fail("import %d has the unknown kind %d", len(m.imports), e.kind)
	}
	m.imports = append(m.imports, e)
}

func (r *reader) mutable() bool {
	b := r.byte()
	if r.err == nil && b > 1 {
		r.fail("expected the mutability 0 or 1, got %d", b)
	}
	return b == 1
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func (m *module) readGlobal(r *reader, ops *opTable) {
	m.globals = append(m.globals, global{r.valueType(), r.mutable(), r.constant(ops)})
}

// constant reads a constant expression: one instruction and its end.
func (r *reader) constant(ops *opTable) (in instr) {
	ops.next(r, &in)
	switch in.op {
	case opI32Const, opI64Const, 0x43, 0x44, opV128Const, opGlobalGet, opRefNull, opRefFunc:
	default:
		r.fail("expected a constant expression, got opcode 0x%02x", uint16(in.op))
	}
	if end := r.byte(); r.err == nil && opcode(end) != opEnd {
		r.fail("expected the end of a constant expression, got opcode 0x%02x", end)
	}
	return in
}

func (m *module) readElements(r *reader, ops *opTable) {
	entries := 0
	each(r, "element segments", maxElements, func() {
		e := r.element(ops)
		m.elements = append(m.elements, e)
		if entries += len(e.funcs) + len(e.exprs); entries > maxEntries {
			r.fail("has more than %d entries in its element segments", maxEntries)
		}
	})
}

func (r *reader) element(ops *opTable) (e element) {
	if e.flags = r.u32(); r.err == nil && e.flags > 7 {
		r.fail("an element segment has the unknown flags %d", e.flags)
	}
	active, indexed, exprs := e.flags&1 == 0, e.flags&2 != 0, e.flags&4 != 0
	if active && indexed {
		e.table = r.u32()
	}
	if active {
		e.offset = r.constant(ops)
	}
	if e.flags&3 != 0 {
		e.kind = r.byte()
		if r.err == nil && (exprs && !isRefType(e.kind) || !exprs && e.kind != 0) {
			r.fail("an element segment has the unknown kind 0x%02x", e.kind)
		}
	}
	if exprs {
		each(r, "elements", maxEntries, func() { e.exprs = append(e.exprs, r.constant(ops)) })
	} else {
		each(r, "elements", maxEntries, func() { e.funcs = append(e.funcs, r.u32()) })
	}
	return e
}

func (m *module) readData(r *reader, ops *opTable) {
	s := segment{flags: r.u32()}
	switch {
	case s.flags > 2:
		r.fail("a data segment has the unknown flags %d", s.flags)
	case s.flags == 2:
		if index := r.u32(); r.err == nil && index != 0 {
			r.fail("a data segment is for memory %d, expected memory 0", index)
		}
		s.flags = 0
	}
	if s.flags == 0 {
		s.offset = r.constant(ops)
	}
	s.bytes = r.bytes(r.u32())
	m.data = append(m.data, s)
}

// readBody reads the locals of a function and notes where its code is; code.go
// reads that.
func (m *module) readBody(r *reader) {
	b := r.sub(r.u32())
	if b.err != nil {
		r.err = b.err
		return
	}
	var locals []localGroup
	total := uint64(0)
	each(b, "groups of locals", maxLocals, func() {
		g := localGroup{b.u32(), b.valueType()}
		if total += uint64(g.n); total > maxLocals {
			b.fail("function %d has more than %d locals", m.importedFuncs+len(m.codes), maxLocals)
		}
		locals = append(locals, g)
	})
	if b.err != nil {
		r.err = b.err
		return
	}
	m.codes = append(m.codes, body{locals, b.at, len(b.data)})
}
