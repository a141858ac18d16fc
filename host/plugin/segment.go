package plugin

import (
	"bytes"
	"errors"
	"fmt"
)

// segment is an active data segment: bytes that stand in a new memory.
type segment struct {
	at    uint32
	bytes []byte
}

// segment reads one entry of the data section; it is false for passive ones,
// which only the guest copies. No global can be imported, so the place is a
// constant.
func (r *reader) segment() (s segment, active bool) {
	switch flags := r.u32(); flags {
	case 1:
		r.bytes(r.u32())
		return s, false
	case 0:
	case 2:
		if r.u32() != 0 {
			r.fail(errors.New("a data segment is for another memory than the first"))
		}
	default:
		r.fail(fmt.Errorf("a data segment has the unknown flags %d", flags))
	}
	const i32Const, end = 0x41, 0x0b
	if op := r.byte(); r.err == nil && op != i32Const {
		r.fail(fmt.Errorf("a data segment's place begins with opcode 0x%02x, expected a constant", op))
	}
	s.at = r.i32()
	if op := r.byte(); r.err == nil && op != end {
		r.fail(fmt.Errorf("a data segment's place goes on with opcode 0x%02x, expected its end", op))
	}
	s.bytes = r.bytes(r.u32())
	return s, true
}

// i32 reads a signed LEB128 number of at most 5 bytes, as the 32 bits it is.
func (r *reader) i32() uint32 {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if b&0x40 != 0 {
			v |= -1 << (shift + 7)
		}
		if v != int64(int32(v)) {
			break
		}
		return uint32(v)
	}
	r.fail(errors.New("a number is larger than 32 bits"))
	return 0
}

// fill puts segments into a new memory, as instantiation does.
func fill(memory []byte, segments []segment) error {
	for _, s := range segments {
		if uint64(s.at)+uint64(len(s.bytes)) > uint64(len(memory)) {
			return failed(CodeTrap, "trap: a data segment of %d bytes at %d, outside of the memory of %d",
				len(s.bytes), s.at, len(memory))
		}
		copy(memory[s.at:], s.bytes)
	}
	return nil
}

// cloned returns segments that do not share the module's bytes.
func cloned(segments []segment) []segment {
	own := make([]segment, len(segments))
	for n, s := range segments {
		own[n] = segment{s.at, bytes.Clone(s.bytes)}
	}
	return own
}
