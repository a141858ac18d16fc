package instrument

import "encoding/binary"

// shape is the type of some instructions without effects.
type shape struct {
	first, last opcode
	params      string
	result      byte
}

const (
	tI, tL, tF, tD, tV = string(rune(typeI32)), string(rune(typeI64)), string(rune(typeF32)), string(rune(typeF64)), string(rune(typeV128))
)

// shapes leaves out conversions and divisions of floats that trap on nearly
// every operand.
func shapes() []shape {
	return []shape{
		{0x45, 0x45, tI, typeI32}, {0x46, 0x4f, tI + tI, typeI32}, {0x50, 0x50, tL, typeI32}, {0x51, 0x5a, tL + tL, typeI32},
		{0x5b, 0x60, tF + tF, typeI32}, {0x61, 0x66, tD + tD, typeI32},
		{0x67, 0x69, tI, typeI32}, {0x6a, 0x6c, tI + tI, typeI32}, {0x71, 0x78, tI + tI, typeI32},
		{0x79, 0x7b, tL, typeI64}, {0x7c, 0x7e, tL + tL, typeI64}, {0x83, 0x8a, tL + tL, typeI64},
		{0x8b, 0x91, tF, typeF32}, {0x92, 0x98, tF + tF, typeF32}, {0x99, 0x9f, tD, typeF64}, {0xa0, 0xa6, tD + tD, typeF64},
		{0xa7, 0xa7, tL, typeI32}, {0xac, 0xad, tI, typeI64}, {0xb2, 0xb3, tI, typeF32}, {0xb4, 0xb5, tL, typeF32},
		{0xb6, 0xb6, tD, typeF32}, {0xb7, 0xb8, tI, typeF64}, {0xb9, 0xba, tL, typeF64}, {0xbb, 0xbb, tF, typeF64},
		{0xbc, 0xbc, tF, typeI32}, {0xbd, 0xbd, tD, typeI64}, {0xbe, 0xbe, tI, typeF32}, {0xbf, 0xbf, tL, typeF64},
		{0xc0, 0xc1, tI, typeI32}, {0xc2, 0xc4, tL, typeI64},
		{0xfc00, 0xfc01, tF, typeI32}, {0xfc02, 0xfc03, tD, typeI32}, {0xfc04, 0xfc05, tF, typeI64}, {0xfc06, 0xfc07, tD, typeI64},
		{0xfd0e, 0xfd0e, tV + tV, typeV128}, {0xfd0f, 0xfd11, tI, typeV128}, {0xfd12, 0xfd12, tL, typeV128},
		{0xfd13, 0xfd13, tF, typeV128}, {0xfd14, 0xfd14, tD, typeV128}, {0xfd23, 0xfd4c, tV + tV, typeV128},
		{0xfd4d, 0xfd4d, tV, typeV128}, {0xfd4e, 0xfd51, tV + tV, typeV128}, {0xfd52, 0xfd52, tV + tV + tV, typeV128},
		{0xfd53, 0xfd53, tV, typeI32}, {0xfd60, 0xfd62, tV, typeV128}, {0xfd63, 0xfd64, tV, typeI32},
		{0xfd65, 0xfd66, tV + tV, typeV128}, {0xfd6b, 0xfd6d, tV + tI, typeV128}, {0xfd6e, 0xfd73, tV + tV, typeV128},
		{0xfd80, 0xfd81, tV, typeV128}, {0xfd8e, 0xfd93, tV + tV, typeV128}, {0xfdbc, 0xfdbf, tV + tV, typeV128},
		{0xfde4, 0xfdeb, tV + tV, typeV128}, {0xfdf0, 0xfdf7, tV + tV, typeV128}, {0xfdf8, 0xfdff, tV, typeV128},
		// These trap on some operands.
		{0x6d, 0x70, tI + tI, typeI32}, {0x7f, 0x82, tL + tL, typeI64}, {0xa8, 0xa8, tF, typeI32}, {0xb1, 0xb1, tD, typeI64},
	}
}

const trapping = 4 // the last shapes

// value pushes a random value of a type.
func (p *program) value(typ byte) {
	p.valueOf(typ, p.IntN(4))
}

func (p *program) valueOf(typ byte, depth int) {
	switch n := p.IntN(10); {
	case depth > 0 && n < 5:
		p.operation(typ, depth-1)
	case n < 6:
		p.load(typ, depth)
	case n == 6 && depth > 0:
		p.valueOf(typ, depth-1)
		p.valueOf(typ, depth-1)
		p.valueOf(typeI32, depth-1)
		p.code = append(p.code.op(0x1c), 1, typ)
	case n < 9 && p.variable(typ):
	default:
		p.constant(typ)
	}
}

func (p *program) operation(typ byte, depth int) {
	all := shapes()
	for range 100 {
		s := all[p.IntN(len(all)-trapping)]
		if p.IntN(400) == 0 {
			s = all[len(all)-1-p.IntN(trapping)]
		}
		if s.result != typ {
			continue
		}
		for _, t := range []byte(s.params) {
			p.valueOf(t, depth)
		}
		p.code = p.code.op(s.first + opcode(p.IntN(int(s.last-s.first)+1)))
		return
	}
	p.constant(typ)
}

func (p *program) load(typ byte, depth int) {
	op := map[byte]opcode{typeI32: 0x28, typeI64: 0x29, typeF32: 0x2a, typeF64: 0x2b, typeV128: 0xfd00}[typ]
	if depth > 0 {
		p.valueOf(typeI32, depth-1)
	} else {
		p.constant(typeI32)
	}
	p.code = p.code.i32(0xffff).op(0x71) // and
	p.code = append(p.code.op(op), 0, byte(p.IntN(100)))
}

// variable pushes a local or a global of that type.
func (p *program) variable(typ byte) bool {
	from := p.IntN(len(p.locals))
	for i := range p.locals {
		if at := (from + i) % len(p.locals); p.locals[at] == typ {
			p.code = p.code.get(uint32(at))
			return true
		}
	}
	return false
}

func (p *program) constant(typ byte) {
	switch typ {
	case typeI32:
		p.code = p.code.i32(int32(p.Uint32()) >> p.IntN(32))
	case typeI64:
		p.code = p.code.i64(int64(p.Uint64()) >> p.IntN(64))
	case typeF32:
		p.code = binary.LittleEndian.AppendUint32(p.code.op(0x43), 0x3f800000+p.Uint32N(0x1000000))
	case typeF64:
		p.code = binary.LittleEndian.AppendUint64(p.code.op(0x44), 0x3ff0000000000000+p.Uint64N(1<<56))
	case typeV128:
		p.code = binary.LittleEndian.AppendUint64(p.code.op(opV128Const), p.Uint64())
		p.code = binary.LittleEndian.AppendUint64(p.code, p.Uint64())
	}
}
