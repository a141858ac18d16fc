package plugin

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadNow asks for the thread's name on both sides of its time, because a
// goroutine may change threads in between.
func threadNow() threadTime {
	var t unix.Timespec
	thread := unix.Gettid()
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil || unix.Gettid() != thread {
		return threadTime{}
	}
	return threadTime{thread: thread, used: time.Duration(t.Nano()), ok: true}
}
