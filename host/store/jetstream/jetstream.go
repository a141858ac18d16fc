// Package jetstream is the store on NATS JetStream: on a server inside this
// process, with its files under a state directory, or on a NATS that runs
// elsewhere. What is above sees no difference.
//
// Four streams, or five, hold everything. Their names and subjects begin with
// [Options.Prefix] and the version of what is in them:
//
//	stream        subjects                                        allows
//	weir_1_log    weir.1.log.<log>                                appending, ageing
//	weir_1_late   weir.1.late.<log>                               the same, for [Options.LateLogs]
//	weir_1_value  weir.1.value.<key>                              the latest of each key
//	weir_1_key    weir.1.key.<space>                              erasing
//	weir_1_blob   weir.1.blob.<space>.<key>.<digest>.<part>       erasing
//
// The streams of logs are the audit streams: the server refuses to delete or
// purge anything in them, only age takes messages away ([Options.MaxAge]). A log
// whose messages are gone is an empty one again; names of logs are therefore
// not to be used twice.
//
// The server publishes the header of each message that was committed to a log
// under weir.1.note.<log>. Watches wait for these notes and read when one
// comes, so a watch that waits costs the server nothing.
//
// # Blobs that are gone
//
// A blob is encrypted with a random key of its space. DropSpace overwrites the
// key, which is small, on the disk; so all blobs of the space are unreadable at
// the cost of one short write. DeleteBlob overwrites the encrypted parts, for
// which the server writes the file anew that they are in, up to 8 MiB a part:
// what goes together should stand in a space of its own. With several replicas
// every one of them does so, but what was written also passed through the
// servers' own journals, which forget it when they are compacted: every two
// minutes or so.
package jetstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"weir/host/fault"
	"weir/host/store"
)

// Store implements [store.Store].
type Store struct {
	opts   Options
	name   names
	server *embedded // nil if it runs elsewhere
	conn   *nats.Conn
	notes  *notes
	marks  marks
	// patience is how long what may be repeated is repeated.
	patience time.Duration
	reads    chan struct{} // a slot for each read that the servers answer at a time

	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
}

var _ store.Store = (*Store)(nil)

// Open starts or connects to a server and makes or checks the streams. It
// returns when the store can be used, and waits for the servers of a cluster
// as long as the context and [Options.StartTimeout] allow. Errors are Invalid
// for options, Conflict when another process holds the state directory, Denied
// when the login is refused, Unavailable when no server answers, and Internal for a state that cannot be
// used: damaged, or of another version.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	s, err := openAll(bounded, opts)
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() == nil && bounded.Err() != nil:
		return nil, fault.New(fault.Unavailable, "store: not ready within %v: %w", opts.StartTimeout, err)
	}
	return nil, fmt.Errorf("store: %w", err)
}

func openAll(ctx context.Context, opts Options) (*Store, error) {
	var server *embedded
	if opts.Dir != "" {
		var err error
		if server, err = start(ctx, opts); err != nil {
			return nil, err
		}
	}
	s, err := open(ctx, opts, server)
	if err != nil {
		return nil, joinStop(err, server.stop(nil))
	}
	return s, nil
}

// open returns a store on a server; it owns the server if there is no error.
func open(ctx context.Context, opts Options, server *embedded) (*Store, error) {
	conn, err := connect(ctx, opts, server)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts:   opts,
		name:   names{prefix: opts.Prefix, late: opts.lateLogs()},
		server: server,
		conn:   conn,
		reads:  make(chan struct{}, maxReads),
		closed: make(chan struct{}),

		patience: opts.StartTimeout,
	}
	if err := s.prepare(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	if s.notes, err = listen(s); err != nil {
		conn.Close()
		return nil, err
	}
	s.patience = opts.Timeout
	return s, nil
}

// prepare checks what is there and makes what is not.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.checkVersions(ctx); err != nil {
		return err
	}
	if err := s.server.check(ctx, s); err != nil {
		return err
	}
	if err := s.makeStreams(ctx); err != nil {
		return err
	}
	return s.server.opened(s)
}

// Close implements store.Store. It stops the server if it is inside this
// process, and returns Unavailable if that did not stop within
// [Options.StopTimeout].
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		s.notes.stop()
		last := s.server.last(s)
		s.conn.Close()
		s.closeErr = s.server.stop(last)
	})
	return s.closeErr
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
