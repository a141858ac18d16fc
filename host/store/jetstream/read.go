package jetstream

import (
	"context"
	"fmt"
	"iter"
	"time"

	"weir/host/fault"
	"weir/host/store"
)

// Read implements store.Logs.
func (s *Store) Read(ctx context.Context, log string, from int64) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		if err := s.readable(ctx, log, from); err != nil {
			yield(store.Message{}, err)
			return
		}
		r := s.reader(log, from)
		if _, err := r.read(ctx, yield); err != nil {
			yield(store.Message{}, err)
		}
	}
}

// watchPause is how long a watch waits before it asks again whoever did not
// answer.
const watchPause = 500 * time.Millisecond

// Watch implements store.Logs. While no server answers it waits for one.
func (s *Store) Watch(ctx context.Context, log string, from int64) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		if err := s.readable(ctx, log, from); err != nil {
			yield(store.Message{}, err)
			return
		}
		w := s.notes.watch(log)
		defer s.notes.leave(log, w)
		r := s.reader(log, from)
		for {
			done, err := r.read(ctx, yield)
			switch {
			case err == nil && !done:
				err = s.await(ctx, w)
			case fault.Of(err) == fault.Unavailable:
				err = s.pause(ctx, watchPause)
			}
			if err != nil {
				yield(store.Message{}, err)
				return
			}
			if done {
				return
			}
		}
	}
}

// Changes implements store.Changer. It ends with Unavailable when notes may
// have been lost.
func (s *Store) Changes(ctx context.Context, prefix string) iter.Seq2[store.Change, error] {
	return s.notes.listeners.Changes(ctx, s.closed, prefix)
}

// await waits for a note.
func (s *Store) await(ctx context.Context, w *watcher) error {
	select {
	case <-w.wake:
		return nil
	case <-s.closed:
		return fault.New(fault.Unavailable, "store: closed")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) readable(ctx context.Context, log string, from int64) error {
	if err := store.CheckName(log); err != nil {
		return err
	}
	if from < 0 {
		return fault.New(fault.Invalid, "store: expected a position from 0 on, found %d", from)
	}
	return s.usable(ctx)
}

// reader reads a log in stretches. It asks the leader what the last message is,
// takes the bulk from whoever is near, and asks the leader again for what is
// missing there.
type reader struct {
	s        *Store
	log      string
	kind     string // of its stream
	subject  string
	position int64  // of the last message that was read
	seq      uint64 // of the last message that was seen
}

func (s *Store) reader(log string, from int64) *reader {
	kind := s.name.ofLog(log)
	r := &reader{s: s, log: log, kind: kind, subject: s.name.subject(kind, log), position: from}
	if at, ok := s.marks.get(log); ok && at.position <= from && !at.ended {
		r.seq = at.seq // all that is wanted lies behind it
	}
	return r
}

// read yields what there is and tells whether nothing more will come, because
// the log has ended or the receiver wants no more.
func (r *reader) read(ctx context.Context, yield func(store.Message, error) bool) (done bool, err error) {
	last, found, err := r.s.last(ctx, r.log)
	if err != nil || !found {
		return false, err
	}
	if !last.end && last.Position == r.position+1 { // the usual case of a watch
		return !r.pass(last, yield), r.s.usable(ctx)
	}
	for (last.end || r.position < last.Position) && r.seq < last.seq {
		entries, err := r.next(ctx, last)
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if err := r.s.usable(ctx); err != nil {
				return false, err
			}
			if !r.pass(e, yield) {
				return true, nil
			}
		}
	}
	return last.end, nil
}

// pass yields a message that is wanted, and tells whether more are.
func (r *reader) pass(e entry, yield func(store.Message, error) bool) bool {
	r.seq = e.seq
	if e.end || e.Position <= r.position {
		return true
	}
	r.position = e.Position
	return yield(e.Message, nil)
}

// next returns some of the messages up to the last one, at least one.
func (r *reader) next(ctx context.Context, last entry) ([]entry, error) {
	found, err := r.s.batch(ctx, r.kind, r.subject, r.seq+1)
	if err != nil {
		return nil, err
	}
	entries, err := r.decode(found, last)
	if err != nil || len(entries) > 0 {
		return entries, err
	}
	m, ok, err := r.s.get(ctx, r.kind, getRequest{Seq: r.seq + 1, Next: r.subject})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.Gone, "store: log %s: the messages after %d were dropped", r.log, r.position)
	}
	e, err := decodeEntry(m)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", r.log, err)
	}
	if !e.skips(r.position) {
		return []entry{e}, nil
	}
	return nil, r.missing(ctx, e)
}

// decode returns the messages that follow without a gap.
func (r *reader) decode(found []stored, last entry) ([]entry, error) {
	var entries []entry
	position := r.position
	for _, m := range found {
		if m.seq > last.seq {
			break
		}
		e, err := decodeEntry(m)
		if err != nil {
			return nil, fmt.Errorf("log %s: %w", r.log, err)
		}
		if e.skips(position) {
			break
		}
		entries = append(entries, e)
		position = max(position, e.Position)
	}
	return entries, nil
}

// skips tells whether a message is missing between a position and this one.
func (e entry) skips(position int64) bool {
	if e.end {
		return e.Position > position
	}
	return e.Position > position+1
}

// missing says why the message after the reader's position is not there: it was
// dropped because of its age if nothing is before the one that was found, and
// lost otherwise.
func (r *reader) missing(ctx context.Context, found entry) error {
	first, ok, err := r.s.get(ctx, r.kind, getRequest{Seq: 1, Next: r.subject})
	if err != nil {
		return err
	}
	if r.s.opts.MaxAge > 0 && (!ok || first.seq >= found.seq) {
		return fault.New(fault.Gone, "store: log %s: the messages after %d were dropped because of their age", r.log, r.position)
	}
	return fault.New(fault.Internal, "store: log %s: message %d is missing before the sequence %d", r.log, r.position+1, found.seq)
}
