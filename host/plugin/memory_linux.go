package plugin

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

var osPage = uint64(unix.Getpagesize())

// memoryStore is a range of reserved addresses. It never moves, so growing
// copies nothing.
type memoryStore struct {
	all  []byte // the whole range
	used uint64 // of which this much can be read and written
}

func (m *memoryStore) open(limit, size uint64, image *snapshot) error {
	limit = (limit + osPage - 1) &^ (osPage - 1)
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(limit), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	m.all = unsafe.Slice((*byte)(at), limit)
	if image != nil {
		if err := image.mapAt(at); err != nil {
			m.Free()
			return err
		}
		m.used = image.size()
	}
	if buf, _ := m.extend(size); buf == nil {
		m.Free()
		return errors.New("the system has none left")
	}
	return nil
}

// extend makes the memory at least so large. What is new is asked for here and
// not page by page as the guest touches it: the collector has to wait while
// guest code waits for a page.
func (m *memoryStore) extend(size uint64) (buf []byte, grown bool) {
	if size > m.used {
		more := m.all[m.used:size]
		if unix.Mprotect(more, unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil, false
		}
		_ = unix.Madvise(more, unix.MADV_POPULATE_WRITE) // since Linux 5.14; only faster
		m.used, grown = size, true
	}
	return m.all[:size:size], grown
}

func (m *memoryStore) bytes() []byte { return m.all[:m.used:m.used] }

// Free implements experimental.LinearMemory. Whoever closes an instance is the
// only one who has it: a later reader would read unmapped addresses.
func (m *memoryStore) Free() {
	if m.all != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(m.all)), uintptr(len(m.all)))
		m.all, m.used = nil, 0
	}
}

// snapshot is a sealed file in memory. All instances map the same pages.
type snapshot struct {
	fd   int
	view []byte // for reading
}

func newSnapshot(content []byte) (*snapshot, error) {
	fd, err := unix.MemfdCreate("weir-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	s := &snapshot{fd: fd}
	if err := s.write(content); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

func (s *snapshot) write(content []byte) (err error) {
	if err := unix.Ftruncate(s.fd, int64(len(content))); err != nil {
		return err
	}
	for at := 0; at < len(content); {
		n, err := unix.Pwrite(s.fd, content[at:], int64(at))
		if err != nil {
			return err
		}
		at += n
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(s.fd), unix.F_ADD_SEALS, seals); err != nil {
		return err
	}
	if len(content) == 0 { // a module may begin without memory
		return nil
	}
	s.view, err = unix.Mmap(s.fd, 0, len(content), unix.PROT_READ, unix.MAP_PRIVATE)
	return err
}

// mapAt maps the image over reserved addresses, for writing: pages are copied
// when they are first written.
func (s *snapshot) mapAt(at unsafe.Pointer) error {
	if len(s.view) == 0 {
		return nil
	}
	_, err := unix.MmapPtr(s.fd, 0, at, uintptr(len(s.view)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}

func (s *snapshot) size() uint64  { return uint64(len(s.view)) }
func (s *snapshot) bytes() []byte { return s.view }

func (s *snapshot) free() {
	if s.view != nil {
		_ = unix.Munmap(s.view)
		s.view = nil
	}
	_ = unix.Close(s.fd)
}
