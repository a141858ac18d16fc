package store

import (
	"context"
	"iter"
	"strings"
	"sync"

	"weir/host/fault"
)

// Change says that a log has reached a position.
type Change struct {
	Log      string
	Position int64
}

// Changer tells of appends to many logs at once; every backend does.
type Changer interface {
	// Changes yields the zero Change when it listens, and from then on the logs
	// with the prefix that are appended to, whoever appends. Of several appends
	// to one log that nobody has taken yet it may leave out all but the last. It
	// ends with the context's error, or with Unavailable when the backend does
	// not answer; whoever begins again looks for what it missed.
	Changes(ctx context.Context, prefix string) iter.Seq2[Change, error]
}

// Listeners are everybody who listens to a backend's changes; a backend serves
// [Changer] by them. The zero value is ready. Its methods may be called
// concurrently, and never call back.
type Listeners struct {
	mu  sync.Mutex
	all map[*listener]struct{}
}

// listener is one iteration of Changes. Its fields are under Listeners.mu.
type listener struct {
	prefix string
	wake   chan struct{}    // holds one token when there is something
	logs   map[string]int64 // appended to and not taken yet
	lost   bool             // changes were
}

// Tell says that a log has reached a position.
func (s *Listeners) Tell(log string, position int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.all {
		if strings.HasPrefix(log, l.prefix) {
			l.logs[log] = max(l.logs[log], position)
			l.signal()
		}
	}
}

// Lose says that changes may not have been told. Whoever listens ends with
// Unavailable.
func (s *Listeners) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.all {
		l.lost = true
		l.signal()
	}
}

// Len is how many listen.
func (s *Listeners) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Changes is [Changer].Changes of a backend that closes closed when it ends.
func (s *Listeners) Changes(ctx context.Context, closed <-chan struct{}, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		l := &listener{prefix: prefix, wake: make(chan struct{}, 1), logs: map[string]int64{}}
		s.add(l)
		defer s.remove(l)
		if !yield(Change{}, nil) {
			return
		}
		for {
			select {
			case <-l.wake:
			case <-closed:
				yield(Change{}, fault.New(fault.Unavailable, "store: closed"))
				return
			case <-ctx.Done():
				yield(Change{}, ctx.Err())
				return
			}
			logs, lost := s.take(l)
			for log, position := range logs {
				if !yield(Change{Log: log, Position: position}, nil) {
					return
				}
			}
			if lost {
				yield(Change{}, fault.New(fault.Unavailable, "store: notes of changes were lost"))
				return
			}
		}
	}
}

func (s *Listeners) add(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*listener]struct{}{}
	}
	s.all[l] = struct{}{}
}

func (s *Listeners) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
}

// take returns what a listener has not been given yet.
func (s *Listeners) take(l *listener) (logs map[string]int64, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs, lost = l.logs, l.lost
	l.logs, l.lost = map[string]int64{}, false
	return logs, lost
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // it has not looked yet
	}
}
