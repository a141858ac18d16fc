package jetstream

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir/host/fault"
	"weir/host/store"
)

// markerLife is how long the server keeps the note of a deletion. It is there
// to be compared with, and who comes later finds nothing, which is the same.
const markerLife = time.Minute

// value is what stands at a key: at sequence 0 nothing ever did, and what is
// not live was deleted or has expired.
type value struct {
	stored
	live bool
}

func (s *Store) value(ctx context.Context, key string) (value, error) {
	m, found, err := s.get(ctx, kindValue, getRequest{Last: s.name.subject(kindValue, key)})
	if err != nil || !found {
		return value{}, err
	}
	if err := m.checkVersion(); err != nil {
		return value{}, err
	}
	if m.header.Get(headerDeleted) != "" {
		return value{stored: m}, nil
	}
	life := m.header.Get(headerLife)
	if life == "" {
		return value{stored: m, live: true}, nil
	}
	ms, err := strconv.ParseInt(life, 10, 64)
	if err != nil {
		return value{}, unreadable(m.subject, m.seq, "its life is no number")
	}
	return value{stored: m, live: time.Since(m.at) < time.Duration(ms)*time.Millisecond}, nil
}

// revision is 0 for what is not there.
func (v value) revision() int64 {
	if !v.live {
		return 0
	}
	return int64(v.seq)
}

// Get implements store.Values. Whether a value has expired is measured from the
// server's time of writing to this process's time of reading: clocks must agree.
func (s *Store) Get(ctx context.Context, key string) (store.Value, error) {
	if err := s.key(ctx, key); err != nil {
		return store.Value{}, err
	}
	v, err := s.value(ctx, key)
	if err != nil {
		return store.Value{}, err
	}
	if !v.live {
		return store.Value{}, fault.New(fault.NotFound, "store: no such value")
	}
	return store.Value{Data: v.data, Revision: int64(v.seq)}, nil
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
	revision, err := s.change(ctx, key, expected, func(seq uint64) (int64, error) {
		m := newMsgAfter(seq, s.name.subject(kindValue, key), data)
		if ttl > 0 {
			ms := max(ttl.Milliseconds(), 1)
			m.Header.Set(headerLife, strconv.FormatInt(ms, 10))
			m.Header.Set(headerTTL, strconv.FormatInt(ms/1000+2, 10)) // a little later, and no earlier
		}
		at, err := s.publish(ctx, m)
		return int64(at), err
	})
	return revision, err
}

// Delete implements store.Values. It leaves the note of a deletion, so that it
// can be a comparison, too.
func (s *Store) Delete(ctx context.Context, key string, expected int64) error {
	if err := s.key(ctx, key); err != nil {
		return err
	}
	_, err := s.change(ctx, key, expected, func(seq uint64) (int64, error) {
		v, err := s.value(ctx, key)
		if err != nil || !v.live {
			return 0, err
		}
		if v.seq != seq {
			return 0, errBehind
		}
		m := newMsgAfter(seq, s.name.subject(kindValue, key), nil)
		m.Header.Set(headerDeleted, "1")
		m.Header.Set(headerTTL, strconv.Itoa(int(markerLife/time.Second)))
		at, err := s.publish(ctx, m)
		return int64(at), err
	})
	return err
}

// change calls write with the sequence to compare with while the key is at the
// expected revision.
func (s *Store) change(ctx context.Context, key string, expected int64, write func(seq uint64) (int64, error)) (int64, error) {
	for attempt := range attempts {
		v, err := s.value(ctx, key)
		if err != nil {
			return 0, err
		}
		if found := v.revision(); expected != store.Any && found != expected {
			return 0, fault.New(fault.Conflict, "store: expected the value at revision %d, found %d", expected, found)
		}
		revision, err := write(v.seq)
		if !errors.Is(err, errBehind) {
			return revision, err
		}
		if err := s.overtaken(ctx, attempt); err != nil {
			return 0, err
		}
	}
	return 0, fault.New(fault.Unavailable, "store: overtaken %d times", attempts)
}

// Keys implements store.Values.
func (s *Store) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	found, err := s.subjects(ctx, kindValue, prefix)
	if err != nil {
		return nil, err
	}
	live, err := s.live(ctx, found)
	slices.Sort(live)
	return live, err
}

// live returns the keys that have a value.
func (s *Store) live(ctx context.Context, keys []string) ([]string, error) {
	const lookers = 8
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		live  []string
		first error
		todo  = make(chan string)
	)
	for range min(lookers, len(keys)) {
		wg.Go(func() {
			for key := range todo {
				v, err := s.value(ctx, key)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				if v.live {
					live = append(live, key)
				}
				mu.Unlock()
			}
		})
	}
	for _, key := range keys {
		todo <- key
	}
	close(todo)
	wg.Wait()
	if first != nil {
		return nil, first
	}
	return live, nil
}

func (s *Store) key(ctx context.Context, key string) error {
	if err := store.CheckName(key); err != nil {
		return err
	}
	return s.usable(ctx)
}
