package plugin

import (
	"context"
	"sync"
)

// shared holds values that several plugins use at once. The first who asks for
// one makes it, the others wait for that; the last who gives it back frees it.
type shared[K comparable, V any] struct {
	free func(V)

	mu      sync.Mutex
	entries map[K]*entry[V]
}

type entry[V any] struct {
	refs  int           // under shared.mu
	ready chan struct{} // closed when value or err is set
	value V
	err   error
}

// get returns the value of a key; every value that is returned needs one put.
// make runs at most once at a time for a key, and its error is everybody's
// who waited for it.
func (s *shared[K, V]) get(ctx context.Context, key K, make func() (V, error)) (V, error) {
	e, first := s.claim(key)
	if first {
		e.value, e.err = make()
		close(e.ready)
	}
	var none V
	select {
	case <-e.ready:
	case <-ctx.Done():
		s.put(key)
		return none, failed(CodeCancelled, "%v", context.Cause(ctx))
	}
	if e.err != nil {
		err := e.err
		s.put(key)
		return none, err
	}
	return e.value, nil
}

func (s *shared[K, V]) claim(key K) (e *entry[V], first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		e = &entry[V]{ready: make(chan struct{})}
		if s.entries == nil {
			s.entries = map[K]*entry[V]{}
		}
		s.entries[key] = e
	}
	e.refs++
	return e, !ok
}

// put gives a value back.
func (s *shared[K, V]) put(key K) {
	s.mu.Lock()
	e := s.entries[key]
	e.refs--
	last := e.refs == 0
	if last {
		delete(s.entries, key)
	}
	s.mu.Unlock()
	if !last {
		return
	}
	<-e.ready
	if e.err == nil {
		s.free(e.value)
	}
}

func (s *shared[K, V]) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}
