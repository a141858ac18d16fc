package host

import (
	"context"
	"errors"
	"os"
	"time"
)

// errHeld says that another process holds a file.
var errHeld = errors.New("another process holds it")

// holdPoll is how often somebody looks whether a file is free.
const holdPoll = 20 * time.Millisecond

// hold takes a file that one process at a time may hold, and waits for it until
// ctx ends; then the error wraps errHeld. [release] gives it back.
func hold(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := openHeld(path)
		switch {
		case err == nil && isAt(f, path):
			return f, nil
		case err == nil: // its holder has removed it meanwhile
			_ = f.Close()
			continue
		case !errors.Is(err, errHeld):
			return nil, err
		}
		select {
		case <-time.After(holdPoll):
		case <-ctx.Done():
			return nil, errHeld
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

// release removes the file first: whoever has opened it sees that and opens
// another.
func release(f *os.File) {
	_ = os.Remove(f.Name()) // on Windows after it is closed; there it stays and holds nobody up
	_ = f.Close()
}
