//go:build !linux

package plugin

import "errors"

// pageFinder is for Linux only.
type pageFinder struct{}

func openPages(Reset) (*pageFinder, error) { return nil, errors.New("it needs Linux") }

func (*pageFinder) restore(memory, image []byte) error { return errors.ErrUnsupported }
func (*pageFinder) close()                             {}
