package plugin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageFinder finds the pages of a private mapping that were written: the
// kernel has replaced each by an anonymous page, and the others are still
// pages of the file. This is exact, not a guess, and needs no privilege.
type pageFinder struct {
	method  Reset
	pagemap int       // file descriptor of /proc/self/pagemap
	scratch sync.Pool // *scratch
}

// scratch is what one search needs; it is too large for a stack.
type scratch struct {
	arg     scanArg
	regions [128]pageRegion
	entries [8 * 1024]byte // of pagemap, 8 bytes for each page
}

// openPages fails where the method does not work, which it finds out by trying.
func openPages(method Reset) (*pageFinder, error) {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &pageFinder{method: method, pagemap: fd}
	p.scratch.New = func() any { return new(scratch) }
	if err := p.try(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// close may be called twice.
func (p *pageFinder) close() {
	if p.pagemap >= 0 {
		_ = unix.Close(p.pagemap)
		p.pagemap = -1
	}
}

// try restores a small memory whose written pages are known.
func (p *pageFinder) try() error {
	const pages = 16
	content := bytes.Repeat([]byte("image "), pages*int(osPage)/6+1)[:pages*osPage]
	image, err := newSnapshot(content)
	if err != nil {
		return err
	}
	defer image.free()
	m, err := newMemory(uint64(len(content)), 0, image)
	if err != nil {
		return err
	}
	defer m.Free()
	memory, found := m.bytes(), 0
	_ = bytes.Count(memory, []byte("x")) // pages that are only read are there, too
	for _, page := range []uint64{0, 3, 4, 15} {
		memory[page*osPage+7] = 'x'
	}
	s := p.scratch.Get().(*scratch)
	defer p.scratch.Put(s)
	err = p.find(s, memory, func(from, to uint64) { found += int((to - from) / osPage) })
	switch {
	case err != nil:
		return err
	case found != 4:
		return errors.New("the kernel reports other pages than those that were written")
	}
	if err := p.restore(memory, image.bytes()); err != nil || !bytes.Equal(memory, content) {
		return errors.New("what was written is still there")
	}
	return nil
}

// restore copies the written pages back and leaves them with the instance: the
// next call likely writes the same ones, and then nothing has to be mapped.
func (p *pageFinder) restore(memory, image []byte) error {
	s := p.scratch.Get().(*scratch)
	written := uint64(0)
	err := p.find(s, memory[:len(image)], func(from, to uint64) {
		copy(memory[from:to], image[from:to])
		written += (to - from) / osPage
	})
	p.scratch.Put(s)
	if err == nil && written > manyPages {
		err = unix.Madvise(memory[:len(image)], unix.MADV_DONTNEED) // back to the file's pages
	}
	return err
}

// find gives the ranges of memory that were written.
func (p *pageFinder) find(s *scratch, memory []byte, visit func(from, to uint64)) error {
	if p.method == ResetScan {
		return p.scan(s, memory, visit)
	}
	return p.read(s, memory, visit)
}

// scanArg and pageRegion are the kernel's struct pm_scan_arg and page_region.
type scanArg struct {
	size, flags                     uint64
	start, end, walkEnd             uint64
	vec, vecLen, maxPages           uint64
	inverted, mask, anyOf, returned uint64
}

type pageRegion struct{ start, end, _ uint64 } // the last: what kind of pages

const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

func (p *pageFinder) scan(s *scratch, memory []byte, visit func(from, to uint64)) error {
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	end := base + uint64(len(memory))
	for start := base; start < end; start = s.arg.walkEnd {
		s.arg = scanArg{
			size: uint64(unsafe.Sizeof(s.arg)), start: start, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&s.regions))), vecLen: uint64(len(s.regions)),
			inverted: pageIsFile, mask: pageIsFile, anyOf: pageIsPresent | pageIsSwapped, returned: pageIsFile,
		}
		n, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(p.pagemap), pagemapScan, uintptr(unsafe.Pointer(&s.arg)))
		if errno != 0 {
			return errno
		}
		for _, r := range s.regions[:n] {
			visit(r.start-base, r.end-base)
		}
		if s.arg.walkEnd <= start {
			return errors.New("the kernel's search does not advance")
		}
	}
	return nil
}

// Bits of an entry of /proc/<pid>/pagemap.
const (
	entryFile    = 1 << 61
	entrySwapped = 1 << 62
	entryPresent = 1 << 63
)

func (p *pageFinder) read(s *scratch, memory []byte, visit func(from, to uint64)) error {
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	pages := uint64(len(memory)) / osPage
	for page := uint64(0); page < pages; {
		want := s.entries[:min(uint64(len(s.entries)), 8*(pages-page))]
		n, err := unix.Pread(p.pagemap, want, int64((base/osPage+page)*8))
		if n < len(want) {
			return errors.Join(errors.New("the pagemap ends early"), err)
		}
		for ; len(want) > 0; want, page = want[8:], page+1 {
			e := binary.NativeEndian.Uint64(want)
			if e&entryFile == 0 && e&(entryPresent|entrySwapped) != 0 {
				visit(page*osPage, (page+1)*osPage)
			}
		}
	}
	return nil
}
