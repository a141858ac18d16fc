package memory

import (
	"context"
	"iter"

	"weir/host/fault"
	"weir/host/store"
)

// Read implements store.Logs.
func (s *Store) Read(ctx context.Context, name string, from int64) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		if err := s.readable(ctx, name, from); err != nil {
			yield(store.Message{}, err)
			return
		}
		s.mu.Lock()
		messages := s.logs[name].after(from)
		s.mu.Unlock()
		s.yield(ctx, messages, yield)
	}
}

// Watch implements store.Logs.
func (s *Store) Watch(ctx context.Context, name string, from int64) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		if err := s.readable(ctx, name, from); err != nil {
			yield(store.Message{}, err)
			return
		}
		l := s.watch(name)
		defer s.unwatch(name, l)
		for {
			s.mu.Lock()
			messages, ended, changed := l.after(from), l.ended, l.changed
			s.mu.Unlock()
			if !s.yield(ctx, messages, yield) || ended {
				return
			}
			from += int64(len(messages))
			select {
			case <-changed:
			case <-s.closed:
				yield(store.Message{}, fault.New(fault.Unavailable, "store: closed"))
				return
			case <-ctx.Done():
				yield(store.Message{}, ctx.Err())
				return
			}
		}
	}
}

// Changes implements store.Changer.
func (s *Store) Changes(ctx context.Context, prefix string) iter.Seq2[store.Change, error] {
	return s.listeners.Changes(ctx, s.closed, prefix)
}

func (s *Store) readable(ctx context.Context, name string, from int64) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	if from < 0 {
		return fault.New(fault.Invalid, "store: expected a position from 0 on, found %d", from)
	}
	return s.usable(ctx)
}

// yield passes messages on and says whether the receiver wants more.
func (s *Store) yield(ctx context.Context, messages []store.Message, yield func(store.Message, error) bool) bool {
	for _, m := range messages {
		if err := s.usable(ctx); err != nil {
			yield(store.Message{}, err)
			return false
		}
		if !yield(m, nil) {
			return false
		}
	}
	return true
}

func (l *log) after(from int64) []store.Message {
	if from >= l.position() {
		return nil
	}
	return l.messages[from:len(l.messages):len(l.messages)]
}

// watch returns the log, which exists from now on as long as it is watched.
func (s *Store) watch(name string) *log {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	if l == nil {
		l = s.create(name)
	}
	l.watchers++
	return l
}

func (s *Store) unwatch(name string, l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.watchers--
	if l.watchers == 0 && len(l.messages) == 0 && s.logs[name] == l {
		delete(s.logs, name)
	}
}
