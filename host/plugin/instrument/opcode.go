package instrument

// opcode is an instruction: its byte, or its prefix and the number after it.
type opcode uint16

const (
	prefixMisc = 0xfc
	prefixSIMD = 0xfd
)

const (
	opUnreachable  opcode = 0x00
	opBlock        opcode = 0x02
	opLoop         opcode = 0x03
	opIf           opcode = 0x04
	opElse         opcode = 0x05
	opEnd          opcode = 0x0b
	opBr           opcode = 0x0c
	opBrIf         opcode = 0x0d
	opBrTable      opcode = 0x0e
	opReturn       opcode = 0x0f
	opCall         opcode = 0x10
	opCallIndirect opcode = 0x11
	opLocalGet     opcode = 0x20
	opLocalSet     opcode = 0x21
	opLocalTee     opcode = 0x22
	opGlobalGet    opcode = 0x23
	opGlobalSet    opcode = 0x24
	opTableSet     opcode = 0x26
	opMemorySize   opcode = 0x3f
	opMemoryGrow   opcode = 0x40
	opI32Const     opcode = 0x41
	opI64Const     opcode = 0x42
	opI32Eqz       opcode = 0x45
	opI32GtU       opcode = 0x4b
	opI32LeU       opcode = 0x4d
	opI64LtS       opcode = 0x53
	opI64GtU       opcode = 0x56
	opI32Add       opcode = 0x6a
	opI32Sub       opcode = 0x6b
	opI32ShrU      opcode = 0x76
	opI64Add       opcode = 0x7c
	opI64Sub       opcode = 0x7d
	opI64Mul       opcode = 0x7e
	opI64Shl       opcode = 0x86
	opI64ExtendU   opcode = 0xad
	opRefNull      opcode = 0xd0
	opRefFunc      opcode = 0xd2
	opMemoryInit   opcode = prefixMisc<<8 | 8
	opDataDrop     opcode = prefixMisc<<8 | 9
	opMemoryCopy   opcode = prefixMisc<<8 | 10
	opMemoryFill   opcode = prefixMisc<<8 | 11
	opTableInit    opcode = prefixMisc<<8 | 12
	opElemDrop     opcode = prefixMisc<<8 | 13
	opTableCopy    opcode = prefixMisc<<8 | 14
	opTableGrow    opcode = prefixMisc<<8 | 15
	opTableSize    opcode = prefixMisc<<8 | 16
	opTableFill    opcode = prefixMisc<<8 | 17
	opV128Const    opcode = prefixSIMD<<8 | 12
)

// immediate says what follows an opcode. The zero value is an opcode that does
// not exist.
type immediate uint8

const (
	immUnknown     immediate = iota
	immNone                  // nothing
	immBlock                 // block type
	immIndex                 // one index of a label, local, table, data or element segment
	immFunc                  // function index
	immGlobal                // global index
	immTable                 // table index
	immLabels                // labels and a default
	immIndirect              // type and table index
	immTwo                   // two indices
	immMemarg                // alignment and offset
	immMemargLane            // alignment, offset and lane
	immMemory                // a zero byte
	immIndexMemory           // an index and a zero byte
	immMemories              // two zero bytes
	immI32                   // signed 32 bits
	immI64                   // signed 64 bits
	immBytes4                // 4 bytes
	immBytes8                // 8 bytes
	immBytes16               // 16 bytes
	immByte                  // 1 byte
	immSelect                // value types
	immRef                   // reference type
)

// opRange gives all opcodes from first to last the same immediate.
type opRange struct {
	first, last opcode
	imm         immediate
}

// opcodes returns the instructions of WebAssembly 2.0, and nothing later.
func opcodes() []opRange {
	return []opRange{
		{0x00, 0x01, immNone}, {opBlock, opIf, immBlock}, {opElse, opElse, immNone}, {opEnd, opEnd, immNone},
		{opBr, opBrIf, immIndex}, {opBrTable, opBrTable, immLabels}, {opReturn, opReturn, immNone},
		{opCall, opCall, immFunc}, {opCallIndirect, opCallIndirect, immIndirect},
		{0x1a, 0x1b, immNone}, {0x1c, 0x1c, immSelect},
		{opLocalGet, opLocalTee, immIndex}, {opGlobalGet, opGlobalSet, immGlobal}, {0x25, opTableSet, immTable},
		{0x28, 0x3e, immMemarg}, {opMemorySize, opMemoryGrow, immMemory},
		{opI32Const, opI32Const, immI32}, {opI64Const, opI64Const, immI64}, {0x43, 0x43, immBytes4}, {0x44, 0x44, immBytes8},
		{opI32Eqz, 0xc4, immNone},
		{opRefNull, opRefNull, immRef}, {0xd1, 0xd1, immNone}, {opRefFunc, opRefFunc, immFunc},
		{0xfc00, 0xfc07, immNone}, // saturating conversions
		{opMemoryInit, opMemoryInit, immIndexMemory}, {opDataDrop, opDataDrop, immIndex},
		{opMemoryCopy, opMemoryCopy, immMemories}, {opMemoryFill, opMemoryFill, immMemory},
		{opTableInit, opTableInit, immTwo}, {opElemDrop, opElemDrop, immIndex},
		{opTableCopy, opTableCopy, immTwo}, {opTableGrow, opTableFill, immTable},
		{0xfd00, 0xfd0b, immMemarg}, {opV128Const, 0xfd0d, immBytes16}, {0xfd0e, 0xfd14, immNone},
		{0xfd15, 0xfd22, immByte}, {0xfd23, 0xfd53, immNone}, {0xfd54, 0xfd5b, immMemargLane},
		{0xfd5c, 0xfd5d, immMemarg}, {0xfd5e, 0xfd99, immNone}, {0xfd9b, 0xfda1, immNone}, {0xfda3, 0xfda4, immNone},
		{0xfda7, 0xfdae, immNone}, {0xfdb1, 0xfdb1, immNone}, {0xfdb5, 0xfdba, immNone}, {0xfdbc, 0xfdc1, immNone},
		{0xfdc3, 0xfdc4, immNone}, {0xfdc7, 0xfdce, immNone}, {0xfdd1, 0xfdd1, immNone}, {0xfdd5, 0xfde1, immNone},
		{0xfde3, 0xfded, immNone}, {0xfdef, 0xfdff, immNone},
	}
}

// opTable is opcodes by number: plain ones, then those after each prefix.
type opTable struct{ plain, misc, simd [256]immediate }

func newOpTable() *opTable {
	t := new(opTable)
	for _, r := range opcodes() {
		for op := r.first; ; op++ {
			*t.entry(op) = r.imm
			if op == r.last {
				break
			}
		}
	}
	return t
}

func (t *opTable) entry(op opcode) *immediate {
	switch op >> 8 {
	case prefixMisc:
		return &t.misc[op&0xff]
	case prefixSIMD:
		return &t.simd[op&0xff]
	}
	return &t.plain[op&0xff]
}
