package plugin

import "time"

// stopwatch measures how long a guest runs. Waiting for a processor is not
// running: a call must not fail because its host was busy, held back by a
// quota, or moved. What runs between start and stop is counted with the
// processor's clock where the system has one for threads, and the goroutine
// stayed on its thread; else with the wall's.
type stopwatch struct {
	ran   time.Duration
	begun time.Time // of the call
	now   time.Time // when running was asked last
	wall  time.Time // what runs now
	began threadTime
}

const longSlice = 5 * time.Millisecond

// begin starts for a new call. It does not ask for the thread's time, which
// costs as much as a short call: the first slice is counted by the wall, but
// with no more than a slice can take when it has a processor.
func (s *stopwatch) begin() {
	s.begun = time.Now()
	s.ran, s.wall, s.began = 0, s.begun, threadTime{}
}

func (s *stopwatch) start() { s.wall, s.began = time.Now(), threadNow() }

// running is how long the guest runs since start, by the wall.
func (s *stopwatch) running() time.Duration {
	s.now = time.Now()
	return s.now.Sub(s.wall)
}

// stop counts what ran until running was asked last.
func (s *stopwatch) stop() {
	d := s.now.Sub(s.wall)
	if s.began.ok {
		if now := threadNow(); now.ok && now.thread == s.began.thread {
			d = min(d, now.used-s.began.used)
		}
	} else if s.ran == 0 {
		d = min(d, longSlice)
	}
	s.ran += d
}

// taken is how long the call took by the wall.
func (s *stopwatch) taken() time.Duration { return s.now.Sub(s.begun) }

// threadTime is what a thread has used of its processor.
type threadTime struct {
	thread int
	used   time.Duration
	ok     bool
}
