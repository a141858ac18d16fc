package instrument

// A bulk operation is replaced by a call of a helper function that charges for
// its length and runs a long one in pieces:
//
//	length ≤ piece:        charge, operation
//	out of bounds:         the operation as it was, which traps without effect
//	else, from the end:    charge, operation on the last piece; shorter by it
//
// A copy to a lower address runs from the start instead, so that overlapping
// ranges are read before they are written.

const (
	piece        = 64 << 10 // bytes
	pieceUnits   = 4096     // what a piece costs
	bytesShift   = 4        // a unit is 16 bytes of memory
	pageUnits    = pageSize >> bytesShift
	elementPiece = pieceUnits // elements: a unit each
)

// helperKey names a helper by the operation that it replaces and the indices
// of that. The zero value is the helper that asks for fuel.
type helperKey struct {
	op   opcode
	a, b uint32
}

type helper struct {
	typ  funcType
	body []byte
}

// helper returns the index of a helper function, which is appended to the
// module when it is used first.
func (w *rewriter) helper(key helperKey) uint32 {
	index, ok := w.helperIndex[key]
	if !ok {
		index = uint32(len(w.m.funcs)+1) + uint32(len(w.helpers))
		w.helperIndex[key] = index
		w.helpers = append(w.helpers, w.build(key))
	}
	return index
}

const i32x3 = "\x7f\x7f\x7f"

func (w *rewriter) build(key helperKey) helper {
	switch key.op {
	case opMemoryGrow:
		return helper{funcType{"\x7f", "\x7f"}, w.growMemory()}
	case opTableGrow:
		return helper{funcType{string([]byte{w.m.tables[key.a].elem, typeI32}), "\x7f"}, w.growTable(key.a)}
	case opTableFill:
		return helper{funcType{string([]byte{typeI32, w.m.tables[key.a].elem, typeI32}), ""}, w.pieces(key)}
	case opMemoryFill, opMemoryCopy, opMemoryInit, opTableCopy, opTableInit:
		return helper{funcType{i32x3, ""}, w.pieces(key)}
	}
	body := asm{0}.u(opGlobalGet, w.fuel).u(opCall, w.refuel).u(opGlobalSet, w.fuel)
	return helper{funcType{}, body.op(opEnd)}
}

// take charges the number of units that the code pushes.
func (w *rewriter) take(c, units asm) asm {
	c = append(c.u(opGlobalGet, w.fuel), units...).op(opI64Sub).u(opGlobalSet, w.fuel)
	return w.refuelIfEmpty(c)
}

// growMemory pays for growing by a number of pages that is possible.
func (w *rewriter) growMemory() []byte {
	const delta = 0
	most := int32(maxPages)
	if len(w.m.memories) > w.m.importedMemories {
		most = int32(w.m.memories[0].max)
	}
	c := asm{0}.get(delta).i32(most).op(opMemorySize, 0, opI32Sub, opI32LeU)
	c = c.when(w.take(nil, asm(nil).wide(delta).i64(pageUnits).op(opI64Mul)))
	return c.get(delta).op(opMemoryGrow, 0, opEnd)
}

// growTable pays for growing by a number of elements that is possible.
func (w *rewriter) growTable(table uint32) []byte {
	const value, delta = 0, 1
	most := int32(w.m.tables[table].max)
	if int(table) < w.m.importedTables {
		most = -1
	}
	c := asm{0}.get(delta).i32(most).u(opTableSize, table).op(opI32Sub, opI32LeU)
	c = c.when(w.take(nil, asm(nil).wide(delta)))
	return c.get(value).get(delta).u(opTableGrow, table).op(opEnd)
}

// span is one operation in pieces. Its locals are the three operands; source is
// a value for fills.
type span struct {
	key   helperKey
	shift int32
	piece int32
}

const to, from, length = 0, 1, 2

func (w *rewriter) pieces(key helperKey) []byte {
	s := span{key: key, shift: bytesShift, piece: piece}
	if s.tables() {
		s.shift, s.piece = 0, elementPiece
	}
	whole := s.do(nil, asm(nil).get(to), asm(nil).get(from), asm(nil).get(length))
	last := append(w.take(nil, s.units()), whole...)
	c := asm{0}.get(length).i32(s.piece).op(opI32LeU).when(append(last, byte(opReturn)))
	for _, outside := range s.bounds() {
		c = append(c, outside...).when(append(whole, byte(opReturn)))
	}
	forward := s.loop(w, s.forward())
	backward := s.loop(w, s.backward())
	if key.op == opMemoryCopy || key.op == opTableCopy {
		c = c.get(to).get(from).op(opI32LeU, opIf, blockEmpty)
		c = append(append(append(c, forward...), byte(opElse)), backward...).op(opEnd)
	} else {
		c = append(c, backward...)
	}
	return append(c, last...).op(opEnd)
}

func (s span) tables() bool {
	return s.key.op == opTableInit || s.key.op == opTableCopy || s.key.op == opTableFill
}

// units pushes the cost of what is left.
func (s span) units() asm {
	return asm(nil).get(length).i32(s.shift).op(opI32ShrU, opI64ExtendU)
}

// do is the operation itself.
func (s span) do(c, to, from, length asm) asm {
	c = append(append(append(c, to...), from...), length...)
	in := instr{op: s.key.op, a: s.key.a, b: s.key.b}
	switch s.key.op {
	case opMemoryFill:
		in.imm = immMemory
	case opMemoryCopy:
		in.imm = immMemories
	case opMemoryInit:
		in.imm = immIndexMemory
	case opTableFill:
		in.imm = immTable
	case opTableCopy, opTableInit:
		in.imm = immTwo
	}
	return in.append(c)
}

// bounds are conditions under which the operation is out of bounds. How long a
// segment is cannot be asked, only that none is longer than 32 bits; the rest
// is found by the first piece, which is the end of the range.
func (s span) bounds() []asm {
	memory := asm(nil).op(opMemorySize, 0, opI64ExtendU).i64(16).op(opI64Shl)
	end := func(start uint32, size asm) asm {
		return append(asm(nil).wide(start).wide(length).op(opI64Add), size...).op(opI64GtU)
	}
	table := func(index uint32) asm { return asm(nil).u(opTableSize, index).op(opI64ExtendU) }
	longest := asm(nil).i64(1<<32 - 1)
	switch s.key.op {
	case opMemoryFill:
		return []asm{end(to, memory)}
	case opMemoryCopy:
		return []asm{end(to, memory), end(from, memory)}
	case opMemoryInit:
		return []asm{end(to, memory), end(from, longest)}
	case opTableFill:
		return []asm{end(to, table(s.key.a))}
	case opTableCopy:
		return []asm{end(to, table(s.key.a)), end(from, table(s.key.b))}
	}
	return []asm{end(to, table(s.key.b)), end(from, longest)}
}

// loop runs step until no more than a piece is left.
func (s span) loop(w *rewriter, step asm) asm {
	c := w.take(asm(nil).op(opLoop, blockEmpty), asm(nil).i64(pieceUnits))
	c = append(c, step...)
	return c.get(length).i32(s.piece).op(opI32GtU).u(opBrIf, 0).op(opEnd)
}

func (s span) forward() asm {
	c := s.do(nil, asm(nil).get(to), asm(nil).get(from), asm(nil).i32(s.piece))
	c = c.get(to).i32(s.piece).op(opI32Add).set(to)
	c = c.get(from).i32(s.piece).op(opI32Add).set(from)
	return c.get(length).i32(s.piece).op(opI32Sub).set(length)
}

func (s span) backward() asm {
	c := asm(nil).get(length).i32(s.piece).op(opI32Sub).set(length)
	end := func(local uint32) asm { return asm(nil).get(local).get(length).op(opI32Add) }
	source := end(from)
	if s.key.op == opMemoryFill || s.key.op == opTableFill {
		source = asm(nil).get(from)
	}
	return s.do(c, end(to), source, asm(nil).i32(s.piece))
}
