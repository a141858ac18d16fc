package instrument

// instr is one decoded instruction. labels and raw are valid until the next
// one is read.
type instr struct {
	op     opcode
	imm    immediate
	a, b   uint32   // indices, alignment and offset, label, lane
	val    int64    // constants; the block type
	raw    []byte   // constants that are kept as they are
	labels []uint32 // br_table: the default comes last
}

// next decodes one instruction into in. The opcode and every number are read
// strictly and written again in the shortest form, so a decoder that is less
// strict cannot see another program than this one.
func (t *opTable) next(r *reader, in *instr) {
	start := r.at
	op := opcode(r.byte())
	if op == prefixMisc || op == prefixSIMD {
		op = op<<8 | opcode(r.prefixed())
	}
	in.op, in.imm = op, *t.entry(op)
	if r.err == nil && in.imm == immUnknown {
		r.at = start
		r.fail("unknown opcode 0x%02x, expected an instruction of WebAssembly 2.0", uint16(op))
		return
	}
	r.immediate(in)
}

// prefixed reads the number after a prefix. A longer form than needed is
// refused, because engines are known to look at its first byte only.
func (r *reader) prefixed() uint32 {
	from := r.at
	n := r.u32()
	if r.err == nil && (n > 0xff || r.at-from > 1 && n < 0x80 || r.at-from > 2) {
		r.fail("expected an opcode in its shortest form after the prefix")
		return 0
	}
	return n
}

func (r *reader) immediate(in *instr) {
	switch in.imm {
	case immBlock:
		in.val = r.signed(33)
	case immIndex, immFunc, immGlobal, immTable:
		in.a = r.u32()
	case immLabels:
		r.readLabels(in)
	case immIndirect, immTwo:
		in.a, in.b = r.u32(), r.u32()
	case immMemarg:
		r.memarg(in)
	case immMemargLane:
		r.memarg(in)
		in.raw = r.bytes(1)
	case immMemory:
		r.zero()
	case immIndexMemory:
		in.a = r.u32()
		r.zero()
	case immMemories:
		r.zero()
		r.zero()
	case immI32:
		in.val = r.signed(32)
	case immI64:
		in.val = r.signed(64)
	case immBytes4:
		in.raw = r.bytes(4)
	case immBytes8:
		in.raw = r.bytes(8)
	case immBytes16:
		in.raw = r.bytes(16)
	case immByte:
		in.raw = r.bytes(1)
	case immSelect:
		if n := r.u32(); r.err == nil && n != 1 {
			r.fail("expected one type for select, got %d", n)
		}
		in.raw = r.valueTypes(1)
	case immRef:
		in.raw = r.refType()
	}
}

func (r *reader) readLabels(in *instr) {
	n := r.count("labels", maxLabels)
	in.labels = in.labels[:0]
	for range n + 1 {
		in.labels = append(in.labels, r.u32())
	}
}

func (r *reader) memarg(in *instr) {
	in.a, in.b = r.u32(), r.u32()
	if r.err == nil && in.a > 4 {
		r.fail("expected an alignment of at most 16 bytes, got 2 to the power of %d", in.a)
	}
}

func (r *reader) zero() {
	if b := r.byte(); r.err == nil && b != 0 {
		r.fail("expected memory 0, got %d", b)
	}
}

// append appends the instruction in its shortest form.
func (in *instr) append(b []byte) []byte {
	b = appendOp(b, in.op)
	switch in.imm {
	case immBlock, immI32, immI64:
		b = appendSigned(b, in.val)
	case immIndex, immFunc, immGlobal, immTable:
		b = appendU32(b, in.a)
	case immLabels:
		b = appendU32(b, uint32(len(in.labels)-1))
		for _, l := range in.labels {
			b = appendU32(b, l)
		}
	case immIndirect, immTwo:
		b = appendU32(appendU32(b, in.a), in.b)
	case immMemarg:
		b = appendU32(appendU32(b, in.a), in.b)
	case immMemargLane:
		b = append(appendU32(appendU32(b, in.a), in.b), in.raw...)
	case immMemory:
		b = append(b, 0)
	case immIndexMemory:
		b = append(appendU32(b, in.a), 0)
	case immMemories:
		b = append(b, 0, 0)
	case immBytes4, immBytes8, immBytes16, immByte, immRef:
		b = append(b, in.raw...)
	case immSelect:
		b = append(append(b, 1), in.raw...)
	}
	return b
}

func appendOp(b []byte, op opcode) []byte {
	if op > 0xff {
		return appendU32(append(b, byte(op>>8)), uint32(op&0xff))
	}
	return append(b, byte(op))
}
