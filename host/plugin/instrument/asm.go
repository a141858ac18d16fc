package instrument

// asm is code under construction. Its methods return the longer code.
type asm []byte

const (
	blockEmpty opcode = 0x40 // the block type without parameters and results
)

func (c asm) op(ops ...opcode) asm {
	for _, op := range ops {
		c = appendOp(c, op)
	}
	return c
}

// u is an instruction with one index.
func (c asm) u(op opcode, index uint32) asm { return appendU32(appendOp(c, op), index) }

func (c asm) get(local uint32) asm { return c.u(opLocalGet, local) }
func (c asm) set(local uint32) asm { return c.u(opLocalSet, local) }

func (c asm) i32(v int32) asm { return appendSigned(appendOp(c, opI32Const), int64(v)) }
func (c asm) i64(v int64) asm { return appendSigned(appendOp(c, opI64Const), v) }

// wide pushes an i32 local as an unsigned i64.
func (c asm) wide(local uint32) asm { return c.get(local).op(opI64ExtendU) }

// when runs then if the condition on the stack is not zero.
func (c asm) when(then asm) asm { return append(c.op(opIf, blockEmpty), then...).op(opEnd) }
