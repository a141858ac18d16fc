package plugin

import (
	"bytes"
	"unsafe"
)

// compareStep is how many bytes the assembly looks at in a turn.
const compareStep = 128

// isZero tells whether block has nothing but zeros. It reads one stream of
// memory, where comparing with zeros reads two. Ahead is how far from here
// memory is that will be read next; 0 is none. It must be mapped: looking in
// vain for a page takes longer than reading one.
func isZero(block []byte, ahead int) bool {
	if len(block) == 0 || len(block)%compareStep != 0 {
		return bytes.Count(block, []byte{0}) == len(block)
	}
	return allZero(unsafe.SliceData(block), len(block)/compareStep, ahead)
}

// isEqual is bytes.Equal; ahead is as above, for a.
func isEqual(a, b []byte, ahead int) bool {
	if len(a) != len(b) || len(a) == 0 || len(a)%compareStep != 0 {
		return bytes.Equal(a, b)
	}
	return allEqual(unsafe.SliceData(a), unsafe.SliceData(b), len(a)/compareStep, ahead)
}

//go:noescape
func allZero(p *byte, blocks, ahead int) bool

//go:noescape
func allEqual(p, q *byte, blocks, ahead int) bool
