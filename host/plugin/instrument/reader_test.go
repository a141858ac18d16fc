package instrument

import (
	"math"
	"testing"
)

// The binary format, section 5.2.2: numbers have at most ceil(N/7) bytes, and
// the unused bits of the last one repeat the sign.
func TestNumbers(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, math.MaxInt32, math.MinInt32} {
		r := &reader{data: appendSigned(nil, v)}
		if got := r.signed(32); got != v || r.err != nil || !r.done() {
			t.Errorf("%d was read as %d, %v", v, got, r.err)
		}
	}
	for _, v := range []int64{math.MaxInt64, math.MinInt64, 1 << 40, -1 << 40} {
		r := &reader{data: appendSigned(nil, v)}
		if got := r.signed(64); got != v || r.err != nil || !r.done() {
			t.Errorf("%d was read as %d, %v", v, got, r.err)
		}
	}
	for _, c := range []struct {
		bits int
		data string
		ok   bool
	}{
		{32, "\x80\x80\x80\x80\x00", true}, {32, "\xff\xff\xff\xff\x7f", true},
		{32, "\xff\xff\xff\xff\x0f", false}, {32, "\x80\x80\x80\x80\x70", false}, {32, "\x80\x80\x80\x80\x80\x00", false},
		{33, "\xff\xff\xff\xff\x0f", true}, {33, "\xff\xff\xff\xff\x1f", false}, {33, "\x80\x80\x80\x80\x70", true},
		{64, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", true}, {64, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", false},
		{0, "\xff\xff\xff\xff\x0f", true}, {0, "\xff\xff\xff\xff\x1f", false}, {0, "\x80\x80\x80\x80\x80\x00", false},
		{0, "\x80\x00", true}, {0, "\x80", false}, {0, "", false}, {32, "\xff", false},
	} {
		r := &reader{data: []byte(c.data)}
		if c.bits == 0 {
			r.u32()
		} else {
			r.signed(c.bits)
		}
		if (r.err == nil) != c.ok {
			t.Errorf("%d bits, % x: %v", c.bits, c.data, r.err)
		}
	}
}
