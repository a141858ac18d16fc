package instrument

import (
	"fmt"
	"unicode/utf8"
)

// reader reads the binary format. After the first error it yields zeros, so
// callers check err once per entry. at is an offset into the whole module,
// also while a section or a function body is read.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) done() bool { return r.err != nil || r.at >= len(r.data) }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: "+format, append([]any{r.at}, args...)...)
	}
}

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.at >= len(r.data) {
		r.fail("ends in the middle of an entry")
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

func (r *reader) bytes(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(len(r.data)-r.at) {
		r.fail("expected %d bytes, %d are left", n, len(r.data)-r.at)
		return nil
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

// sub returns a reader of the next n bytes and moves past them.
func (r *reader) sub(n uint32) *reader {
	from := r.at
	r.bytes(n)
	return &reader{data: r.data[:r.at], at: min(from, r.at), err: r.err}
}

// u32 reads an unsigned number of at most 32 bits in at most 5 bytes.
func (r *reader) u32() uint32 {
	if b := r.byte(); b < 0x80 {
		return uint32(b)
	} else if r.err == nil {
		r.at--
	}
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			break
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail("expected a number of at most 32 bits in at most 5 bytes")
	return 0
}

// signed reads a two's complement number of that many bits in the fewest
// bytes that always suffice, or fewer.
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if left := bits - shift; left <= 7 {
			// The last byte has bits that are not part of the number; they
			// must repeat its sign.
			unused := byte(0x7f) << (left - 1) & 0x7f
			if b >= 0x80 || b&unused != 0 && b&unused != unused {
				break
			}
			return v << (64 - bits) >> (64 - bits)
		}
		if b < 0x80 {
			return v << (57 - shift) >> (57 - shift)
		}
	}
	r.fail("expected a signed number of %d bits", bits)
	return 0
}

func (r *reader) name() string {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail("expected a name in UTF-8")
		return ""
	}
	return string(b)
}

// count reads the number of entries that follow. Every entry takes a byte at
// least, so a number that the file cannot hold is refused before anything is
// allocated for it.
func (r *reader) count(what string, most int) int {
	n := r.u32()
	if r.err == nil && uint64(n) > uint64(most) {
		r.fail("has %d %s, at most %d are allowed", n, what, most)
	}
	if r.err == nil && uint64(n) > uint64(len(r.data)-r.at) {
		r.fail("announces %d %s in %d bytes", n, what, len(r.data)-r.at)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}
