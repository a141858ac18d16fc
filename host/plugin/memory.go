package plugin

import "github.com/tetratelabs/wazero/experimental"

// linearMemory is the memory of one instance. wazero's own limit belongs to a
// whole runtime; an allocator of our own gives each plugin its limit, and
// knows when it was hit, which tells "out of memory" from any other trap.
type linearMemory struct {
	limit   uint64
	buf     []byte
	refused bool // a growth was refused since the last reset
}

// Allocate implements experimental.MemoryAllocator. A module has one memory,
// so it is called once.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory; nil makes memory.grow
// answer -1.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if size > uint64(cap(m.buf)) {
		// Twice as large, or a guest that grows page by page copies the
		// square of its memory.
		grown := make([]byte, size, min(m.limit, max(size, 2*uint64(cap(m.buf)))))
		copy(grown, m.buf)
		m.buf = grown
	}
	m.buf = m.buf[:size]
	return m.buf
}

// Free implements experimental.LinearMemory. The collector takes the buffer
// once nobody reads it any more, so a reader that is late reads old bytes and
// not somebody else's memory.
func (m *linearMemory) Free() { m.buf = nil }
