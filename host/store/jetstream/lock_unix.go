//go:build unix

package jetstream

import (
	"os"
	"syscall"
)

// openLocked opens a file that one process at a time may hold. The lock goes
// with the process, also when it is killed.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errHeld
	}
	return f, nil
}
