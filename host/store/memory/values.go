package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/host/fault"
	"weir/host/store"
)

// values holds entries until they are found to have expired, at the latest
// when as many have been put as there are.
type values struct {
	entries  map[string]entry
	revision int64 // of the latest change of any key
	puts     int   // since the last sweep
}

type entry struct {
	data     []byte
	revision int64
	expires  time.Time // zero: never
}

func (e entry) live(now time.Time) bool { return e.expires.IsZero() || now.Before(e.expires) }

// live returns the entry of a key; its revision is 0 when it is absent.
func (v *values) live(key string) entry {
	e, ok := v.entries[key]
	if !ok || e.live(time.Now()) {
		return e
	}
	delete(v.entries, key)
	return entry{}
}

func (v *values) sweep() {
	if v.puts++; v.puts < max(len(v.entries), 64) {
		return
	}
	v.puts = 0
	now := time.Now()
	for key, e := range v.entries {
		if !e.live(now) {
			delete(v.entries, key)
		}
	}
}

// Get implements store.Values.
func (s *Store) Get(ctx context.Context, key string) (store.Value, error) {
	if err := s.key(ctx, key); err != nil {
		return store.Value{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.values.live(key)
	if e.revision == 0 {
		return store.Value{}, fault.New(fault.NotFound, "store: no such value")
	}
	return store.Value{Data: slices.Clone(e.data), Revision: e.revision}, nil
}

// Put implements store.Values.
func (s *Store) Put(ctx context.Context, key string, data []byte, expected int64, ttl time.Duration) (int64, error) {
	if err := s.key(ctx, key); err != nil {
		return 0, err
	}
	if err := store.CheckSize("a value", len(data), store.MaxValue); err != nil {
		return 0, err
	}
	if ttl < 0 {
		return 0, fault.New(fault.Invalid, "store: expected a time to live from 0 on")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.values.expect(key, expected); err != nil {
		return 0, err
	}
	s.values.sweep()
	s.values.revision++
	e := entry{data: slices.Clone(data), revision: s.values.revision}
	if ttl > 0 {
		e.expires = time.Now().Add(ttl)
	}
	s.values.entries[key] = e
	return e.revision, nil
}

// Delete implements store.Values.
func (s *Store) Delete(ctx context.Context, key string, expected int64) error {
	if err := s.key(ctx, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.values.expect(key, expected); err != nil {
		return err
	}
	delete(s.values.entries, key)
	return nil
}

// Keys implements store.Values.
func (s *Store) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key := range s.values.entries {
		if strings.HasPrefix(key, prefix) && s.values.live(key).revision > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (s *Store) key(ctx context.Context, key string) error {
	if err := store.CheckName(key); err != nil {
		return err
	}
	return s.usable(ctx)
}

func (v *values) expect(key string, expected int64) error {
	if found := v.live(key).revision; expected != store.Any && expected != found {
		return fault.New(fault.Conflict, "store: expected the value at revision %d, found %d", expected, found)
	}
	return nil
}
