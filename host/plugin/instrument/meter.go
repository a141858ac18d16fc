package instrument

// emit writes the code of one function with the charges of its plan. It stops
// when the code becomes too long, which the caller refuses.
func (w *rewriter) emit(b []byte, f *body) []byte {
	r := &reader{data: w.wasm[:f.to], at: f.from}
	b = appendLocals(b, f.locals)
	w.debt.begin()
	regions := w.plan.regions
	for pos := 0; !r.done() && len(b) <= w.most; pos++ {
		cost, look := 0, false
		for len(regions) > 0 && regions[0].start == pos {
			cost += regions[0].cost
			look = look || regions[0].look
			regions = regions[1:]
		}
		b = w.charge(b, cost, w.debt.pay(cost, look))
		w.ops.next(r, &w.in)
		w.debt.after(&w.in)
		b = w.translate(b, &w.in)
	}
	return b
}

func appendLocals(b []byte, groups []localGroup) []byte {
	b = appendU32(b, uint32(len(groups)))
	for _, g := range groups {
		b = append(appendU32(b, g.n), g.typ)
	}
	return b
}

// charge takes a cost from the fuel and, if it has to look, asks for more when
// the fuel is used up. The engine keeps a global's value in a register from its
// set to the next get, so this is a load, a subtraction, a store, and with a
// look a branch that is almost never taken.
func (w *rewriter) charge(b []byte, cost int, look bool) []byte {
	c := asm(b)
	if cost > 0 {
		c = c.u(opGlobalGet, w.fuel).i64(int64(cost)).op(opI64Sub).u(opGlobalSet, w.fuel)
	}
	if !look {
		return c
	}
	return w.refuelIfEmpty(c)
}

func (w *rewriter) refuelIfEmpty(c asm) asm {
	return c.u(opGlobalGet, w.fuel).i64(0).op(opI64LtS).op(opIf).op(blockEmpty).u(opCall, w.helper(helperKey{})).op(opEnd)
}

// translate writes an instruction of the original with its new indices, bulk
// operations as calls of their helpers.
func (w *rewriter) translate(b []byte, in *instr) []byte {
	switch in.op {
	case opCall, opRefFunc:
		in.a = w.funcIndex(in.a)
	case opMemoryInit, opMemoryCopy, opMemoryFill, opMemoryGrow, opTableInit, opTableCopy, opTableFill, opTableGrow:
		w.note(in.op)
		return asm(b).u(opCall, w.helper(helperKey{in.op, in.a, in.b}))
	case opTableSet, opDataDrop, opElemDrop:
		w.note(in.op)
	}
	return in.append(b)
}

// note remembers what instances of the module do to state that is not in their
// memory and globals.
func (w *rewriter) note(op opcode) {
	switch op {
	case opTableSet, opTableInit, opTableCopy, opTableFill, opTableGrow:
		w.out.WritesTables = true
	case opDataDrop, opElemDrop:
		w.out.DropsSegments = true
	case opMemoryInit:
		w.out.ReadsSegments = true
	}
}

// funcIndex renumbers a function: refuel is imported after the module's own
// imports, so those keep their numbers and the rest moves up by one.
func (w *rewriter) funcIndex(index uint32) uint32 {
	if int(index) < w.m.importedFuncs {
		return index
	}
	return index + 1
}
