package run

import (
	"strings"
	"sync"

	"weir/host/telemetry"
)

// shown is what a run shows to its client and writes to its log, in one order.
// Text comes from the sink's goroutine, everything else from the run's; the
// engine syncs the sink before it shows anything else, so the two never mix.
type shown struct {
	out  Observer
	span *telemetry.RunSpan
	opts Options

	mu       sync.Mutex
	journal  *journal
	released strings.Builder
	recorded int           // bytes of released that have a record
	replayed string        // what the client has from before the park and the sink has not released again
	diverged bool          // the sink released something else
	changed  chan struct{} // closed and replaced at each change, for followers
}

// newShown begins what a run shows, or the replay of one that has released this
// before.
func newShown(out Observer, span *telemetry.RunSpan, j *journal, opts Options, released string) *shown {
	s := &shown{out: out, span: span, opts: opts, journal: j, changed: make(chan struct{}),
		recorded: len(released), replayed: released}
	s.released.WriteString(released)
	return s
}

func (s *shown) Started(i Info)   { s.out.Started(i) }
func (s *shown) Failed(f Failure) { s.out.Failed(f) }
func (s *shown) Ended(i Info)     { s.out.Ended(i) }

// Step shows a step and records it.
func (s *shown) Step(st Step) {
	s.record(RecordStep, recordedStep(st), true)
	s.out.Step(st)
}

// Text shows released text. What the client has from before a park is dropped;
// it must be the same again, or nothing more can be shown.
func (s *shown) Text(text string) {
	s.mu.Lock()
	if n := min(len(s.replayed), len(text)); n > 0 {
		s.diverged = s.diverged || text[:n] != s.replayed[:n]
		s.replayed, text = s.replayed[n:], text[n:]
	}
	if text == "" || s.diverged {
		s.mu.Unlock()
		return
	}
	s.released.WriteString(text)
	s.tell()
	s.mu.Unlock()
	s.span.Released(text)
	s.out.Text(text)
}

// hasDiverged tells whether the sink released something else than before.
func (s *shown) hasDiverged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.diverged
}

// decide shows the end of a decision and records it.
func (s *shown) decide(st Step) {
	s.record(RecordDecision, recordedStep(st), true)
	s.out.Step(st)
}

// record adds a record, and before it one of the text released since the last.
func (s *shown) record(kind string, payload any, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.released.Len(); n > s.recorded {
		s.add(RecordReleased, releasedPayload{From: s.recorded, To: n, Text: s.released.String()[s.recorded:]}, true)
		s.recorded = n
	}
	s.add(kind, payload, kept)
	s.tell()
}

func (s *shown) add(kind string, payload any, kept bool) {
	if err := s.journal.add(kind, payload, kept); err != nil {
		// Only a payload that is not JSON gets here: a plugin's raw value that
		// escaped its validation.
		s.opts.Logger.Error("record left out", "run", s.journal.run, "kind", kind, "error", err)
	}
}

// tell wakes the followers; the caller holds mu.
func (s *shown) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}
