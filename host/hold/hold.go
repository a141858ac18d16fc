// Package hold is for files that one process at a time may hold: the lock of a
// state directory, and of what several processes of one caller keep. A lock goes
// with its process, also when that is killed.
package hold

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrHeld says that another process holds a file.
var ErrHeld = errors.New("another process holds it")

// poll is how often somebody looks whether a file is free.
const poll = 20 * time.Millisecond

// Wait takes a file that one process at a time may hold, and waits for it until
// ctx ends; then the error wraps ErrHeld. [Release] gives it back.
func Wait(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := Open(path)
		switch {
		case err == nil && isAt(f, path):
			return f, nil
		case err == nil: // its holder has removed it meanwhile
			_ = f.Close()
			continue
		case !errors.Is(err, ErrHeld):
			return nil, err
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return nil, ErrHeld
		}
	}
}

func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

// Release gives a file back that nobody needs afterwards. It removes it first: whoever has opened it sees that and opens
// another.
func Release(f *os.File) {
	_ = os.Remove(f.Name()) // on Windows after it is closed; there it stays and holds nobody up
	_ = f.Close()
}
