//go:build !linux

package plugin

import "bytes"

// memoryStore is a buffer on the heap.
type memoryStore struct{ buf []byte }

func (m *memoryStore) open(limit, size uint64, image *snapshot) error {
	m.buf = make([]byte, size)
	if image != nil {
		copy(m.buf, image.content)
	}
	return nil
}

// extend makes the memory at least so large. It grows to twice as much as is
// asked for, or a guest that grows page by page copies the square of its
// memory.
func (m *memoryStore) extend(size uint64) (buf []byte, grown bool) {
	if size > uint64(cap(m.buf)) {
		larger := make([]byte, size, 2*size)
		copy(larger, m.buf)
		m.buf = larger
		return m.buf, true
	}
	if grown = size > uint64(len(m.buf)); grown {
		m.buf = m.buf[:size]
	}
	return m.buf[:size:size], grown
}

func (m *memoryStore) bytes() []byte { return m.buf }

// Free implements experimental.LinearMemory.
func (m *memoryStore) Free() { m.buf = nil }

// snapshot is a copy of a memory.
type snapshot struct{ content []byte }

func newSnapshot(content []byte) (*snapshot, error) {
	return &snapshot{content: bytes.Clone(content)}, nil
}

func (s *snapshot) size() uint64  { return uint64(len(s.content)) }
func (s *snapshot) bytes() []byte { return s.content }
func (s *snapshot) free()         { s.content = nil }
