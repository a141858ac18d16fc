package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"weir/host/fault"
)

const (
	api = "$JS.API."
	// maxReads is how many reads wait for the servers at a time: they drop all
	// requests when too many queue up.
	maxReads = 64
	// tryTimeout is how long one attempt at a read waits before the next: an
	// answer gets lost when the server that would have given it dies.
	tryTimeout = 2 * time.Second
	retryPause = 100 * time.Millisecond
)

// errBehind is the server's refusal of an append whose expected sequence is not
// the last one of its subject.
var errBehind = errors.New("wrong last sequence")

// apiError is how the server says no.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// fault returns an error of the kind that the server's answer means.
func (e *apiError) fault() error {
	switch e.ErrCode {
	case 10071, 10164: // wrong last sequence
		return errBehind
	case 10002, 10023, 10028, 10047, 10077: // account, memory, storage, maximum exceeded
		return fault.New(fault.Limit, "store: nats: %s", e.Description)
	}
	if e.Code == 503 || e.Code == 500 && e.ErrCode == 0 {
		return fault.New(fault.Unavailable, "store: nats: %s", e.Description)
	}
	return fault.New(fault.Internal, "store: nats: %s", e.Description)
}

// Codes that mean that a thing is not there.
const (
	noMessage  = 10037
	noSequence = 10043
	noStream   = 10059
)

// wrapped gives an error of the client a kind. The context's own error wins, so
// that callers find it.
func wrapped(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case fault.Of(err) != fault.Internal:
		return fmt.Errorf("%s: %w", what, err)
	}
	var api interface{ APIError() *nats.APIError }
	if errors.As(err, &api) && api.APIError() != nil && api.APIError().Code < 500 {
		return fault.New(fault.Internal, "%s: %w", what, err)
	}
	return fault.New(fault.Unavailable, "%s: %w", what, err)
}

// insist repeats what may be repeated while the servers do not answer, until
// the context ends or the time-out of a call.
func (s *Store) insist(ctx context.Context, attempt func(context.Context) error) error {
	limit := time.Now().Add(s.patience)
	for {
		try, cancel := context.WithTimeout(ctx, tryTimeout)
		err := attempt(try)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("store: %w", ctx.Err())
		case errors.Is(err, context.DeadlineExceeded):
			err = fault.New(fault.Unavailable, "store: nats does not answer")
		}
		if fault.Of(err) != fault.Unavailable || time.Now().After(limit) {
			return err
		}
		if err := s.pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

// pause waits, and says if there is no point in going on.
func (s *Store) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("store: %w", ctx.Err())
	case <-s.closed:
		return fault.New(fault.Unavailable, "store: closed")
	}
}

// ask makes a request to the API that may be repeated. Into must have a field
// for the error, which is returned beside a nil error.
func (s *Store) ask(ctx context.Context, subject string, request any, into any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return fmt.Errorf("store: %w", ctx.Err())
	}
	return s.insist(ctx, func(ctx context.Context) error {
		m, err := s.conn.RequestWithContext(ctx, api+subject, body)
		if err != nil {
			return wrapped(ctx, "store: nats", err)
		}
		var failure struct {
			Error *apiError `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &failure); err != nil {
			return fault.New(fault.Internal, "store: nats: unreadable answer: %w", err)
		}
		if failure.Error != nil && failure.Error.Code == 503 {
			return failure.Error.fault()
		}
		return json.Unmarshal(m.Data, into)
	})
}

// send makes a request whose answers come to an inbox.
func (s *Store) send(subject, inbox string, request any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return s.conn.PublishRequest(api+subject, inbox, body)
}

// publish appends a message and returns its sequence. The error is errBehind if
// the message names an expected sequence that is not the subject's last. It is
// sent again only if nobody has received it.
func (s *Store) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	limit := time.Now().Add(s.opts.Timeout)
	try, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	for {
		answer, err := s.conn.RequestMsgWithContext(try, m)
		if err == nil {
			return acknowledged(answer)
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("store: %w", ctx.Err())
		}
		if !errors.Is(err, nats.ErrNoResponders) || time.Now().After(limit) {
			return 0, fault.New(fault.Unavailable, "store: nats: %w", err)
		}
		if err := s.pause(ctx, retryPause); err != nil { // a stream without a leader has nobody who listens
			return 0, err
		}
	}
}

func acknowledged(m *nats.Msg) (uint64, error) {
	var ack struct {
		Error    *apiError `json:"error"`
		Sequence uint64    `json:"seq"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil || ack.Error == nil && ack.Sequence == 0 {
		return 0, fault.New(fault.Unavailable, "store: nats: unreadable acknowledgement")
	}
	if ack.Error != nil {
		return 0, ack.Error.fault()
	}
	return ack.Sequence, nil
}
