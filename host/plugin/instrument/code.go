package instrument

// scan reads the code of one function, checks it and plans its regions.
func (w *rewriter) scan(b *body) error {
	r := &reader{data: w.wasm[:b.to], at: b.from}
	p, in := &w.plan, &w.in
	p.begin()
	for len(p.frames) > 0 {
		at := r.at
		w.ops.next(r, in)
		p.pos++
		if r.err == nil {
			w.step(r, in, at)
		}
		if r.err != nil {
			return r.err
		}
	}
	if !r.done() {
		r.fail("has code after its end")
	}
	p.finish()
	return r.err
}

func (w *rewriter) step(r *reader, in *instr, at int) {
	p := &w.plan
	if why := w.wrong(in); why != nil {
		r.at = at
		r.fail("%w", why)
		return
	}
	switch in.op {
	case opBlock, opLoop:
		p.open(in.op)
	case opIf:
		p.count()
		p.open(in.op)
	case opElse:
		if !p.otherwise() {
			r.fail("has an else without an if")
		}
	case opEnd:
		p.close()
	default:
		p.count()
		p.flow(in)
	}
}

// flow follows what an instruction does to the order of execution.
func (p *planner) flow(in *instr) {
	switch in.op {
	case opBr:
		p.again(in.a, true)
		p.jump(int(in.a))
	case opBrIf:
		p.again(in.a, false)
		p.jumpIf(int(in.a))
	case opBrTable:
		label := uint32(0)
		for _, l := range in.labels {
			p.again(l, false)
			label = max(label, l)
		}
		p.jump(int(label))
	case opReturn:
		p.jump(len(p.frames) - 1)
	case opUnreachable:
		p.cur = dead
	case opCall, opCallIndirect:
		p.call()
	}
}

// wrong says what an instruction names that does not exist. It is not a whole
// validation: it covers labels, and indices that could meet something the
// rewriter appends.
func (w *rewriter) wrong(in *instr) error {
	m := w.m
	switch in.imm {
	case immBlock:
		return m.checkBlock(in.val, len(w.plan.frames))
	case immFunc:
		return m.checkFunc(in.a)
	case immGlobal:
		if uint64(in.a) >= uint64(len(m.globals)) {
			return errorf("names global %d, there are %d", in.a, len(m.globals))
		}
	case immIndirect:
		if uint64(in.a) >= uint64(len(m.types)) {
			return errorf("names type %d, there are %d", in.a, len(m.types))
		}
	case immTable, immTwo:
		return m.checkTable(in)
	case immLabels:
		for _, l := range in.labels {
			if err := w.checkLabel(l); err != nil {
				return err
			}
		}
	case immIndex:
		if in.op == opBr || in.op == opBrIf {
			return w.checkLabel(in.a)
		}
	}
	return nil
}

func (w *rewriter) checkLabel(label uint32) error {
	if uint64(label) >= uint64(len(w.plan.frames)) {
		return errorf("branches out of %d blocks, there are %d", label, len(w.plan.frames))
	}
	return nil
}

func (m *module) checkBlock(typ int64, depth int) error {
	if depth >= maxNesting {
		return errorf("nests more than %d blocks", maxNesting)
	}
	if typ >= 0 && typ >= int64(len(m.types)) {
		return errorf("names type %d, there are %d", typ, len(m.types))
	}
	if typ < 0 && typ != -0x40 && (typ < -0x40 || !isValueType(byte(typ&0x7f))) {
		return errorf("has the unknown block type %d", typ)
	}
	return nil
}

func (m *module) checkTable(in *instr) error {
	last := in.a
	switch in.op {
	case opTableInit:
		last = in.b
	case opTableCopy:
		last = max(in.a, in.b)
	}
	if uint64(last) >= uint64(len(m.tables)) {
		return errorf("names table %d, there are %d", last, len(m.tables))
	}
	return nil
}
