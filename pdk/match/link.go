//go:build !wasm

package match

import "sync/atomic"

// A link leads from a state to another. Many may follow it while one sets it.
type link = atomic.Pointer[state]
