package memory

import (
	"context"
	"iter"
	"strings"

	"weir/host/fault"
	"weir/host/store"
)

// listener waits for appends to logs with its prefix. Its fields are under the
// store's lock.
type listener struct {
	prefix string
	logs   map[string]int64 // changed and not taken yet
	wake   chan struct{}    // holds one token when there are some
}

// Changes implements store.Changer.
func (s *Store) Changes(ctx context.Context, prefix string) iter.Seq2[store.Change, error] {
	return func(yield func(store.Change, error) bool) {
		l := &listener{prefix: prefix, logs: map[string]int64{}, wake: make(chan struct{}, 1)}
		s.mu.Lock()
		s.listeners[l] = struct{}{}
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.listeners, l)
		}()
		if !yield(store.Change{}, nil) {
			return
		}
		for {
			select {
			case <-l.wake:
			case <-s.closed:
				yield(store.Change{}, fault.New(fault.Unavailable, "store: closed"))
				return
			case <-ctx.Done():
				yield(store.Change{}, ctx.Err())
				return
			}
			for log, position := range s.changed(l) {
				if !yield(store.Change{Log: log, Position: position}, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) changed(l *listener) map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs := l.logs
	l.logs = map[string]int64{}
	return logs
}

// announce tells the listeners; the caller holds the lock.
func (s *Store) announce(log string, position int64) {
	for l := range s.listeners {
		if strings.HasPrefix(log, l.prefix) {
			l.logs[log] = position
			select {
			case l.wake <- struct{}{}:
			default:
			}
		}
	}
}
