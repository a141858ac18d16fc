package instrument

import (
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestOpcodes compares the table with what the engine takes for an
// instruction, for every number. Operands need not fit: behind unreachable,
// every operand does.
func TestOpcodes(t *testing.T) {
	engine := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer engine.Close(t.Context())
	ops := newOpTable()
	known := 0
	for _, prefix := range []opcode{0, prefixMisc, prefixSIMD} {
		for n := range opcode(256) {
			op := prefix<<8 | n
			if op == prefixMisc || op == prefixSIMD || op == opElse || op == opEnd {
				continue
			}
			imm := *ops.entry(op)
			_, err := engine.CompileModule(t.Context(), oneInstruction(op, imm))
			if (err == nil) != (imm != immUnknown) {
				t.Errorf("opcode 0x%02x: the engine says %v", uint16(op), err)
			}
			if imm != immUnknown {
				known++
			}
		}
	}
	if known < 430 {
		t.Errorf("only %d instructions are known", known)
	}
}

// oneInstruction is a module with everything that an instruction can name.
func oneInstruction(op opcode, imm immediate) []byte {
	in := instr{op: op, imm: imm, raw: make([]byte, 16), labels: []uint32{0, 0}}
	switch imm {
	case immBlock:
		in.val = -0x40
	case immBytes4, immByte, immMemargLane:
		in.raw = in.raw[:4]
		if imm != immBytes4 {
			in.raw = in.raw[:1]
		}
	case immBytes8:
		in.raw = in.raw[:8]
	case immSelect:
		in.raw = []byte{typeI32}
	case immRef:
		in.raw = []byte{typeFuncref}
	}
	code := in.append(asm{0}.op(opUnreachable))
	if imm == immBlock {
		code = append(code, byte(opUnreachable), byte(opEnd))
	}
	code = append(code, byte(opUnreachable), byte(opEnd))
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = appendSection(b, sectionType, 1, []byte{0x60, 0, 0})
	b = appendSection(b, sectionFunction, 1, []byte{0})
	b = appendSection(b, sectionTable, 1, []byte{typeFuncref, 0, 1})
	b = appendSection(b, sectionMemory, 1, []byte{0, 1})
	b = appendSection(b, sectionGlobal, 1, []byte{typeI32, 1, byte(opI32Const), 0, byte(opEnd)})
	b = appendSection(b, sectionElement, 1, []byte{3, 0, 1, 0})
	b = appendSized(append(b, sectionDataCount), []byte{1})
	b = appendSection(b, sectionCode, 1, appendSized(nil, withLocal(code)))
	return appendSection(b, sectionData, 1, []byte{1, 0})
}

// withLocal puts one i32 local before code that begins with no locals.
func withLocal(code []byte) []byte { return append([]byte{1, 1, typeI32}, code[1:]...) }

// TestRoundTrip decodes and encodes each instruction.
func TestRoundTrip(t *testing.T) {
	ops := newOpTable()
	for _, r := range opcodes() {
		for op := r.first; op <= r.last; op++ {
			want := instr{op: op, imm: r.imm, a: 3, b: 300, val: -1, labels: []uint32{7, 8, 9}, raw: []byte{1}}
			switch r.imm {
			case immBytes4:
				want.raw = []byte{1, 2, 3, 4}
			case immBytes8:
				want.raw = make([]byte, 8)
			case immBytes16:
				want.raw = make([]byte, 16)
			case immSelect, immRef:
				want.raw = []byte{typeExternref}
			}
			first := want.append(nil)
			var got instr
			rd := &reader{data: first}
			ops.next(rd, &got)
			if rd.err != nil || !rd.done() {
				t.Fatalf("0x%x: %v at %d of %x", op, rd.err, rd.at, first)
			}
			if second := got.append(nil); string(second) != string(first) {
				t.Errorf("0x%x: %x became %x", op, first, second)
			}
		}
	}
}
