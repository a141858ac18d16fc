// Package memory is the store that lives and ends with the process: for tests,
// and for hosts that need no memory beyond a restart.
//
// Of ended logs it keeps the newest [Options.KeepEnded] and drops the others,
// with the blobs in the spaces of their names. A log that was dropped is an
// empty one again.
package memory

import (
	"context"
	"slices"
	"strings"
	"sync"

	"weir/host/fault"
	"weir/host/store"
)

// Options of a store. The zero value is useful.
type Options struct {
	// KeepEnded is how many ended logs are kept; default 100, below 0 none.
	KeepEnded int
}

// Store implements [store.Store].
type Store struct {
	keep   int
	closed chan struct{}

	mu        sync.Mutex
	logs      map[string]*log
	ended     []string // in the order of their ends
	values    values
	blobs     map[string]map[string][]byte // by space and digest
	listeners store.Listeners
	closeOnce sync.Once
}

// log is one log. Messages are only ever appended, so a reader may keep the
// slice that it saw under the lock.
type log struct {
	messages []store.Message
	ended    bool
	changed  chan struct{} // closed and replaced by every change
	watchers int
}

// New returns an empty store.
func New(opts Options) *Store {
	if opts.KeepEnded == 0 {
		opts.KeepEnded = 100
	}
	return &Store{
		keep:   max(opts.KeepEnded, 0),
		closed: make(chan struct{}),
		logs:   make(map[string]*log),
		values: values{entries: make(map[string]entry)},
		blobs:  make(map[string]map[string][]byte),
	}
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { close(s.closed) })
	return nil
}

// usable says why a call cannot be answered.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closed:
		return fault.New(fault.Unavailable, "store: closed")
	default:
		return ctx.Err()
	}
}

// Append implements store.Logs.
func (s *Store) Append(ctx context.Context, name string, expected int64, id string, records [][]byte) (int64, error) {
	if err := store.CheckAppend(name, expected, id, records); err != nil {
		return 0, err
	}
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	m := store.Message{Position: expected + 1, ID: id, Records: clone(records)}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	position := l.position()
	switch {
	case l != nil && l.ended:
		return 0, fault.New(fault.Gone, "store: the log has ended")
	case position != expected:
		return 0, fault.New(fault.Conflict, "store: expected the log at position %d, found %d", expected, position)
	case l == nil:
		l = s.create(name)
	}
	l.messages = append(l.messages, m)
	l.notify()
	s.listeners.Tell(name, m.Position)
	return m.Position, nil
}

// List implements store.Logs.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, l := range s.logs {
		if len(l.messages) > 0 && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// End implements store.Logs.
func (s *Store) End(ctx context.Context, name string) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	if l == nil || l.ended || len(l.messages) == 0 {
		return nil
	}
	l.ended = true
	l.notify()
	s.ended = append(s.ended, name)
	for len(s.ended) > s.keep {
		delete(s.logs, s.ended[0])
		delete(s.blobs, s.ended[0])
		s.ended = slices.Delete(s.ended, 0, 1)
	}
	return nil
}

func (s *Store) create(name string) *log {
	l := &log{changed: make(chan struct{})}
	s.logs[name] = l
	return l
}

func (l *log) position() int64 {
	if l == nil {
		return 0
	}
	return int64(len(l.messages))
}

func (l *log) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func clone(records [][]byte) [][]byte {
	out := make([][]byte, len(records))
	for i, r := range records {
		out[i] = slices.Clone(r)
	}
	return out
}
