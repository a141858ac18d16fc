package plugin

import (
	"bytes"

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
func (r *resetter) restore(memory, image []byte) error {
	if r.pages == nil {
		restoreAll(memory, image)
		return nil
	}
	return r.pages.restore(memory, image)
}

// restoreAll copies what differs. Looking first is faster than writing
// everything, and a page that was not written stays one that all instances
// share.
func restoreAll(memory, image []byte) {
	const chunk = 4 << 10
	for at := 0; at < len(image); at += chunk {
		end := min(at+chunk, len(image))
		if m, want := memory[at:end], image[at:end]; !bytes.Equal(m, want) {
			copy(m, want)
		}
	}
}

func (r *resetter) close() {
	if r.pages != nil {
		r.pages.close()
	}
}
