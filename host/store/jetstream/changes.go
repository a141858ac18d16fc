package jetstream

import (
	"context"
	"iter"
	"strings"
	"sync"

	"weir/host/fault"
	"weir/host/store"
)

// listener is one iteration of Changes.
type listener struct {
	prefix string
	wake   chan struct{} // holds one token when there is something

	mu   sync.Mutex
	logs map[string]int64 // appended to and not taken yet
	lost bool             // notes were
}

// Changes implements store.Changer. It ends with Unavailable when notes may
// have been lost.
func (s *Store) Changes(ctx context.Context, prefix string) iter.Seq2[store.Change, error] {
	return func(yield func(store.Change, error) bool) {
		l := &listener{prefix: prefix, wake: make(chan struct{}, 1), logs: map[string]int64{}}
		s.notes.listen(l)
		defer s.notes.mute(l)
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
			logs, lost := l.take()
			for log, position := range logs {
				if !yield(store.Change{Log: log, Position: position}, nil) {
					return
				}
			}
			if lost {
				yield(store.Change{}, fault.New(fault.Unavailable, "store: notes of changes were lost"))
				return
			}
		}
	}
}

func (l *listener) hear(log string, position int64) {
	if !strings.HasPrefix(log, l.prefix) {
		return
	}
	l.mu.Lock()
	l.logs[log] = max(l.logs[log], position)
	l.mu.Unlock()
	l.signal()
}

func (l *listener) lose() {
	l.mu.Lock()
	l.lost = true
	l.mu.Unlock()
	l.signal()
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *listener) take() (logs map[string]int64, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	logs, lost = l.logs, l.lost
	l.logs, l.lost = map[string]int64{}, false
	return logs, lost
}

func (n *notes) listen(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[l] = struct{}{}
}

func (n *notes) mute(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.listeners, l)
}
