package plugin

import "time"

// stopwatch measures how long a guest runs. Waiting for a processor is not
// running: a call must not fail because its host was busy, held back by a
// quota, or moved. What runs between start and stop is counted with the
// processor's clock where the system has one for threads, and the goroutine
// stayed on its thread; else with the wall's.
type stopwatch struct {
	ran   time.Duration
	wall  time.Time
	began threadTime
}

// begin starts for a new call. It does not ask for the thread's time, which
// costs as much as a short call: the first slice is counted by the wall.
func (s *stopwatch) begin() { s.ran, s.wall, s.began = 0, time.Now(), threadTime{} }

func (s *stopwatch) start() { s.wall, s.began = time.Now(), threadNow() }

func (s *stopwatch) stop() {
	d := time.Since(s.wall)
	if s.began.ok {
		if now := threadNow(); now.ok && now.thread == s.began.thread {
			d = min(d, now.used-s.began.used)
		}
	}
	s.ran += d
}

// threadTime is what a thread has used of its processor.
type threadTime struct {
	thread int
	used   time.Duration
	ok     bool
}
