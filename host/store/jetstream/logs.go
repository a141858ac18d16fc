package jetstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"weir/host/fault"
	"weir/host/store"
)

// attempts of an append or a change whose expected sequence is overtaken
// although what the caller expects is still so.
const attempts = 16

// Append implements store.Logs.
func (s *Store) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	if err := store.CheckAppend(log, expected, id, records); err != nil {
		return 0, err
	}
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	data := encodeRecords(records)
	for attempt := range attempts {
		at, err := s.expect(ctx, log, expected)
		if err != nil {
			return 0, err
		}
		m := newMsgAfter(at.seq, s.name.subject(s.name.ofLog(log), log), data)
		m.Header.Set(headerPosition, strconv.FormatInt(expected+1, 10))
		m.Header.Set(headerID, id)
		seq, err := s.publish(ctx, m)
		if err == nil {
			s.marks.set(log, mark{position: expected + 1, seq: seq})
			return expected + 1, nil
		}
		s.marks.set(log, mark{}) // the next look must ask
		if !errors.Is(err, errBehind) {
			return 0, err
		}
		if err := s.overtaken(ctx, attempt); err != nil {
			return 0, err
		}
	}
	return 0, fault.New(fault.Unavailable, "store: overtaken %d times", attempts)
}

// overtaken waits before the next attempt: in a cluster the message that was
// first may not be there yet.
func (s *Store) overtaken(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	return s.pause(ctx, rand.N(time.Duration(attempt)*5*time.Millisecond))
}

// expect returns where the log is, if that is the expected position. A log that
// is not known and expected to be empty is taken to be, because logs are begun
// more often than they are expected wrongly: the server knows better.
func (s *Store) expect(ctx context.Context, log string, expected int64) (mark, error) {
	at, known := s.marks.get(log)
	if !known && expected == 0 {
		return mark{}, nil
	}
	if !known || at.seq == 0 || at.ended || at.position != expected {
		var err error
		if at, err = s.look(ctx, log); err != nil {
			return mark{}, err
		}
	}
	switch {
	case at.ended:
		return mark{}, fault.New(fault.Gone, "store: the log has ended")
	case at.position != expected:
		return mark{}, fault.New(fault.Conflict, "store: expected the log at position %d, found %d", expected, at.position)
	}
	return at, nil
}

// look asks where a log is.
func (s *Store) look(ctx context.Context, log string) (mark, error) {
	last, found, err := s.last(ctx, log)
	if err != nil {
		return mark{}, err
	}
	if !found {
		s.marks.drop(log)
		return mark{}, nil
	}
	at := mark{position: last.Position, seq: last.seq, ended: last.end}
	s.marks.set(log, at)
	return at, nil
}

// last returns the last message of a log.
func (s *Store) last(ctx context.Context, log string) (entry, bool, error) {
	kind := s.name.ofLog(log)
	m, found, err := s.get(ctx, kind, getRequest{Last: s.name.subject(kind, log)})
	if err != nil || !found {
		return entry{}, false, err
	}
	e, err := decodeEntry(m)
	return e, err == nil, err
}

// End implements store.Logs. An ended log is dropped when its messages are older
// than [Options.MaxAge], each by its own age, as are those that never end.
func (s *Store) End(ctx context.Context, log string) error {
	if err := store.CheckName(log); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	at, err := s.look(ctx, log)
	if err != nil || at.ended || at.position == 0 {
		return err
	}
	// The end comes behind whatever is there by then, and is behind nobody's
	// expected sequence. Comparing would make it wait for those who append.
	m := newMsg(s.name.subject(s.name.ofLog(log), log), nil)
	m.Header.Set(headerPosition, strconv.FormatInt(at.position, 10))
	m.Header.Set(headerEnd, "1")
	s.marks.drop(log)
	_, err = s.publish(ctx, m)
	return err
}

// List implements store.Logs. It asks for all names with the prefix's leading
// words, which takes a while when these are hundreds of thousands.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var logs []string
	for _, kind := range s.name.ofLogs(prefix) {
		found, err := s.subjects(ctx, kind, prefix)
		if err != nil {
			return nil, err
		}
		logs = append(logs, found...)
	}
	slices.Sort(logs)
	return logs, nil
}
