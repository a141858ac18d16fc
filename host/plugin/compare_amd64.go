package plugin

import (
	"bytes"
	"unsafe"
)

// compareStep is how many bytes the assembly looks at in a turn.
const compareStep = 128

// isZero tells whether block has nothing but zeros. It reads one stream of
// memory, where comparing with zeros reads two.
func isZero(block []byte) bool {
	if len(block) == 0 || len(block)%compareStep != 0 {
		return bytes.Count(block, []byte{0}) == len(block)
	}
	return allZero(unsafe.SliceData(block), len(block)/compareStep)
}

// isEqual is bytes.Equal for blocks of the same length that lie in memory
// behind one another: it asks for the block after this one.
func isEqual(a, b []byte) bool {
	if len(a) != len(b) || len(a) == 0 || len(a)%compareStep != 0 {
		return bytes.Equal(a, b)
	}
	return allEqual(unsafe.SliceData(a), unsafe.SliceData(b), len(a)/compareStep)
}

//go:noescape
func allZero(p *byte, blocks int) bool

//go:noescape
func allEqual(p, q *byte, blocks int) bool
