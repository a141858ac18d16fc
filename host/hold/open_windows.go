package hold

import (
	"errors"
	"os"
	"syscall"
)

const sharingViolation = syscall.Errno(32)

// Open opens a file that one process at a time may hold, because it is
// opened without sharing; ErrHeld: another one does. The lock goes with the
// process, also when it is killed.
func Open(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}
