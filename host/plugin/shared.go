package plugin

import (
	"context"
	"sync"
)

// Shared holds values that several users have at once, such as plugins the code
// of one module. The first who asks for one makes it, the others wait for that;
// the last who gives it back frees it. Its methods may be called concurrently.
type Shared[K comparable, V any] struct {
	// Free is called with a value that nobody has any more. Required.
	Free func(V)

	mu      sync.Mutex
	entries map[K]*entry[V]
}

type entry[V any] struct {
	refs  int           // under Shared.mu
	ready chan struct{} // closed when value or err is set
	value V
	err   error
}

// Get returns the value of a key; every value that is returned needs one Put.
// make runs at most once at a time for a key, and its error is everybody's
// who waited for it. Who does not wait any more gets [CodeCancelled].
func (s *Shared[K, V]) Get(ctx context.Context, key K, make func() (V, error)) (V, error) {
	e, first := s.claim(key)
	if first {
		e.value, e.err = make()
		close(e.ready)
	}
	var none V
	select {
	case <-e.ready:
	case <-ctx.Done():
		s.Put(key)
		return none, failed(CodeCancelled, "%v", context.Cause(ctx))
	}
	if e.err != nil {
		err := e.err
		s.Put(key)
		return none, err
	}
	return e.value, nil
}

func (s *Shared[K, V]) claim(key K) (e *entry[V], first bool) {
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

// Put gives a value back.
func (s *Shared[K, V]) Put(key K) {
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
		s.Free(e.value)
	}
}

func (s *Shared[K, V]) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}
