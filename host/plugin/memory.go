package plugin

import "github.com/tetratelabs/wazero/experimental"

// A linearMemory is the memory of one instance. wazero's own limit belongs to a
// whole runtime; an allocator of our own gives each plugin its limit, knows
// when it was hit, which tells "out of memory" from any other trap, and can
// begin with an image. How it is stored depends on the system:
//
//	Linux    a range of addresses as large as the limit, the image mapped at
//	         its beginning: what nobody has written is the image itself
//	others   a buffer with a copy of the image
//
// A snapshot is the memory of an image.
type linearMemory struct {
	memoryStore
	limit   uint64
	refused bool // a growth was refused in this call
	grown   bool // it is larger than the image
}

// newMemory makes a memory of at least size bytes; image may be nil.
func newMemory(limit, size uint64, image *snapshot) (*linearMemory, error) {
	m := &linearMemory{limit: limit}
	if image != nil {
		size = max(size, image.size())
	}
	if size > limit {
		return nil, failed(CodeMemory, "a memory of %d bytes is above the limit of %d MiB", size, limit>>20)
	}
	if err := m.open(limit, size, image); err != nil {
		return nil, failed(CodeMemory, "no memory of %d bytes is to be had: %v", size, err)
	}
	return m, nil
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
	buf, grown := m.extend(size)
	m.refused = m.refused || buf == nil
	m.grown = m.grown || grown
	return buf
}
