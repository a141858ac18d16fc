package host

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"weir/host/contract/turn"
	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/memory"
)

// sessions keeps what callers' sessions hold beside the logs of their runs, which
// is text that no guard has seen. What a value was stays in the files of a
// backend that has some, so the value names a blob: sealed with a key of the
// session's own while it counts, and unreadable when it does not any more.
//
//	turn.session.<name>        digest of the blob; expires
//	blob in space raw.<key>    the session
//	kept.turn.session.<name>   since when there is such a space
type sessions struct{ logs }

// keptPrefix begins the keys that say whose spaces there are.
const keptPrefix = "kept."

// keptAge is when a space without a value belongs to nobody: before, its value
// may be on the way.
const keptAge = time.Minute

// newSessions returns where sessions are kept. A backend without files forgets
// what has expired.
func newSessions(s store.Store) turn.Values {
	if _, inMemory := s.(*memory.Store); inMemory {
		return logs{s}
	}
	return sessions{logs{s}}
}

func rawSpace(key string) string { return "raw." + key }

// Get implements turn.Values, and so do the next ones.
func (s sessions) Get(ctx context.Context, key string) ([]byte, error) {
	digest, err := s.logs.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.Blob(ctx, rawSpace(key), string(digest))
}

func (s sessions) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	before, err := s.logs.Get(ctx, key)
	if fault.Of(err) == fault.NotFound {
		now := strconv.FormatInt(time.Now().UnixMilli(), 10)
		err = s.logs.Put(ctx, keptPrefix+key, []byte(now), 0)
	}
	if err != nil {
		return err
	}
	digest, err := s.PutBlob(ctx, rawSpace(key), data)
	if err != nil {
		return err
	}
	if err := s.logs.Put(ctx, key, []byte(digest), ttl); err != nil {
		return err
	}
	if len(before) == 0 || string(before) == digest {
		return nil
	}
	return s.DeleteBlob(ctx, rawSpace(key), string(before))
}

func (s sessions) Delete(ctx context.Context, key string) error {
	return errors.Join(s.logs.Delete(ctx, key), s.DropSpace(ctx, rawSpace(key)), s.logs.Delete(ctx, keptPrefix+key))
}

// sweep erases the sessions that have expired while no process had them, as of
// now.
func (s sessions) sweep(ctx context.Context, now time.Time) error {
	keys, err := s.Keys(ctx, keptPrefix)
	for _, kept := range keys {
		since, missing := s.logs.Get(ctx, kept)
		at, _ := strconv.ParseInt(string(since), 10, 64)
		if missing != nil || now.Sub(time.UnixMilli(at)) < keptAge {
			continue
		}
		key := strings.TrimPrefix(kept, keptPrefix)
		if _, gone := s.logs.Get(ctx, key); fault.Of(gone) == fault.NotFound {
			err = errors.Join(err, s.Delete(ctx, key))
		}
	}
	return err
}

// sweepSessions erases what is left of sessions, now and from time to time until
// the host stops.
func (h *Host) sweepSessions() {
	s, ok := newSessions(h.store).(sessions)
	if !ok {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(h.cfg.Contract.Turn.SessionTimeout)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := s.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
				h.log.Warn("what is left of sessions is not erased yet", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	h.onStop(func(context.Context) error { end(); <-done; return nil })
}
