//go:build unix

package host

import (
	"errors"
	"os"
	"syscall"
)

// openHeld opens a file that one process at a time may hold; errHeld: another
// one does. The lock goes with the process, also when it is killed.
func openHeld(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, err
	}
	return f, nil
}
