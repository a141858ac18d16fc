package stream

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const canLook = true

// hungUp reports whether the other side has closed the connection or its half
// of it, without reading a byte and without waiting. Unlike a peek it also
// sees an end that stands behind unread bytes.
func hungUp(raw syscall.RawConn) bool {
	gone := false
	err := raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			gone = fds[0].Revents != 0
		}
	})
	return gone || err != nil
}
