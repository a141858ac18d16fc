package plugin

import (
	"weir/host/fault"
)

// Reset is a way to put an instance's memory back to its image. All of them
// leave the same bytes; they differ in speed.
type Reset string

const (
	// ResetAuto takes the first of the following that works here.
	ResetAuto Reset = ""
	// ResetScan asks the kernel for the pages that were written, by the
	// PAGEMAP_SCAN ioctl (Linux 6.7), and copies these back.
	ResetScan Reset = "scan"
	// ResetPagemap does the same by reading /proc/self/pagemap.
	ResetPagemap Reset = "pagemap"
	// ResetCopy looks at the whole memory and copies back what differs. It works
	// everywhere, and is slower from the smallest image on.
	ResetCopy Reset = "copy"
)

// manyPages is how many written pages an instance may keep for itself. With
// more of them it gives them back to the system, and the next call pays again
// for those that it writes.
const manyPages = 256

// resetter restores memories by one method.
type resetter struct {
	method Reset
	pages  *pageFinder // nil: ResetCopy
}

func newResetter(want Reset) (*resetter, error) {
	switch want {
	case ResetCopy:
		return &resetter{method: ResetCopy}, nil
	case ResetAuto, ResetScan, ResetPagemap:
	default:
		return nil, fault.New(fault.Invalid, "plugin: unknown reset method %s", quote(string(want)))
	}
	for _, method := range []Reset{ResetScan, ResetPagemap} {
		if want != ResetAuto && want != method {
			continue
		}
		if pages, err := openPages(method); err == nil {
			return &resetter{method: method, pages: pages}, nil
		} else if want != ResetAuto {
			return nil, fault.New(fault.Invalid, "plugin: reset by %s does not work here: %w", method, err)
		}
	}
	return &resetter{method: ResetCopy}, nil
}

// restore makes memory, which began as a mapping of the image, equal to it.
func (r *resetter) restore(memory []byte, image *image) error {
	if r.pages == nil {
		restoreAll(memory, image.memory.bytes(), image.blank)
		return nil
	}
	return r.pages.restore(memory, image.memory.bytes())
}

// copyBlock is what restoreAll compares at once.
const copyBlock = 4 << 10

// blanks tells of each block of an image whether it has nothing but zeros; half
// of a Go guest's do.
func blanks(image []byte) []bool {
	blank := make([]bool, 0, (len(image)+copyBlock-1)/copyBlock)
	for at := 0; at < len(image); at += copyBlock {
		blank = append(blank, isZero(image[at:min(at+copyBlock, len(image))], 0))
	}
	return blank
}

// restoreAll looks at all of memory and writes what differs: looking is faster
// than writing, and a page that was not written stays one that all instances
// share. Where the image is blank it need not be read.
func restoreAll(memory, image []byte, blank []bool) {
	for n, at := 0, 0; at < len(image); n, at = n+1, at+copyBlock {
		end := min(at+copyBlock, len(image))
		m := memory[at:end]
		ahead := 0
		if end < len(image) {
			ahead = copyBlock
		}
		if blank[n] {
			if !isZero(m, ahead) {
				clear(m)
			}
		} else if want := image[at:end]; !isEqual(m, want, ahead) {
			copy(m, want)
		}
	}
}

func (r *resetter) close() {
	if r.pages != nil {
		r.pages.close()
	}
}
