//go:build !amd64

package plugin

import "bytes"

// noBytes is never written. It stays in the processor's cache while blocks are
// compared with it.
var noBytes [copyBlock]byte

// isZero tells whether block, of at most copyBlock bytes, has nothing but zeros.
func isZero(block []byte, _ int) bool { return bytes.Equal(block, noBytes[:len(block)]) }

func isEqual(a, b []byte, _ int) bool { return bytes.Equal(a, b) }
