package jetstream

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir/host/fault"
)

// maxPayload is what the server takes in one message: an append of the greatest
// size, its header and the lengths of its records.
const maxPayload = 1 << 20

// lateSync is how long late logs may stay with the operating system.
const lateSync = time.Second

// embedded is a server inside this process with its directory. A nil one stands
// for a server elsewhere, which others look after.
type embedded struct {
	opts  Options
	dir   *directory
	state state // as it was found
	srv   *server.Server
	login Login // of this process's own connection
	log   *serverLog
}

// start returns a running server. It is stopped with stop.
func start(ctx context.Context, opts Options) (*embedded, error) {
	dir, err := openDirectory(opts.Dir)
	if err != nil {
		return nil, err
	}
	e := &embedded{opts: opts, dir: dir, log: &serverLog{log: opts.Log}}
	if err := e.run(ctx); err != nil {
		return nil, joinStop(err, e.stop(nil))
	}
	return e, nil
}

func (e *embedded) run(ctx context.Context) error {
	var err error
	if e.state, err = e.dir.read(); err != nil {
		return err
	}
	if err := e.usable(); err != nil {
		return err
	}
	o, err := serverOptions(e.opts)
	if err != nil {
		return err
	}
	if e.srv, err = server.NewServer(o); err != nil {
		return fault.New(fault.Invalid, "make the server: %w", err)
	}
	e.login = Login{User: o.Username, Password: o.Password}
	e.srv.SetLoggerV2(e.log, false, false, false)
	return e.await(ctx)
}

// usable refuses a directory that this program must not touch.
func (e *embedded) usable() error {
	if e.state.Damaged != "" {
		return fault.New(fault.Internal, "%s: %s; restore a copy, or take the line \"damaged\" out of %s to go on with what is left",
			e.dir.path, e.state.Damaged, stateFile)
	}
	if found := e.state.Cluster; e.state.Format != 0 && found != e.opts.Cluster.Name {
		return fault.New(fault.Internal, "%s belongs to the cluster %q, expected %q", e.dir.path, found, e.opts.Cluster.Name)
	}
	return nil
}

// await waits until the server has read its files.
func (e *embedded) await(ctx context.Context) error {
	started := make(chan struct{})
	go func() {
		e.srv.Start()
		close(started)
	}()
	select {
	case <-started:
	case <-ctx.Done():
		e.srv.Shutdown()
		<-started
		return fault.New(fault.Unavailable, "the server has not started in time: %w", ctx.Err())
	}
	if !e.srv.ReadyForConnections(time.Second) || !e.srv.JetStreamEnabled() {
		return fault.New(fault.Internal, "the server in %s has not started: %s", e.dir.path, e.log.said())
	}
	return nil
}

func serverOptions(opts Options) (*server.Options, error) {
	o := &server.Options{
		ServerName:             "weir",
		DontListen:             true,
		NoSigs:                 true,
		MaxPayload:             maxPayload,
		JetStream:              true,
		StoreDir:               opts.Dir,
		JetStreamMaxMemory:     16 << 20, // nothing is kept in memory alone
		JetStreamMaxStore:      opts.MaxBytes,
		SyncAlways:             opts.SyncEvery == 0,
		SyncInterval:           opts.SyncEvery,
		DisableJetStreamBanner: true,
	}
	if opts.lateLogs() != "" {
		o.SyncInterval = cmp.Or(opts.SyncEvery, lateSync)
	}
	if opts.Cluster.Name == "" {
		return o, nil
	}
	return o, clusterOptions(o, opts.Cluster)
}

func clusterOptions(o *server.Options, c Cluster) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fault.New(fault.Invalid, "the cluster's address: %w", err)
	}
	// A server with routes insists on a port for clients as well. Nobody but
	// this process knows what it takes to log in there.
	o.DontListen, o.Host, o.Port = false, "127.0.0.1", server.RANDOM_PORT
	o.Username, o.Password = "weir", rand.Text()
	o.ServerName = c.Server
	o.Cluster = server.ClusterOpts{Name: c.Name, Host: host, Username: c.User, Password: c.Password}
	if o.Cluster.Port, err = strconv.Atoi(port); err != nil {
		return fault.New(fault.Invalid, "the cluster's port: expected a number, found %q", port)
	}
	if o.Cluster.Port == 0 {
		o.Cluster.Port = server.RANDOM_PORT
	}
	for _, route := range c.Routes {
		u, err := url.Parse(route)
		if err != nil || u.Host == "" {
			return fault.New(fault.Invalid, "expected the address of a route such as nats-route://10.0.0.2:6222")
		}
		if c.User != "" {
			u.User = url.UserPassword(c.User, c.Password)
		}
		o.Routes = append(o.Routes, u)
	}
	if c.TLS == (TLS{}) {
		return nil
	}
	o.Cluster.TLSTimeout = 5
	o.Cluster.TLSConfig, err = c.TLS.config()
	return err
}

// check holds the streams of a lone server against what the directory says
// there are. A cluster's servers look after each other.
func (e *embedded) check(ctx context.Context, s *Store) error {
	if e == nil || e.opts.Cluster.Name != "" {
		return nil
	}
	for _, stream := range e.state.Streams {
		info, found, err := s.info(ctx, stream)
		if err != nil {
			return err
		}
		switch lost := info.State.Lost; {
		case !found:
			return fault.New(fault.Internal, "%s: the stream %s is missing or damaged: %s", e.dir.path, stream, e.log.said())
		case len(lost.Messages) > 0:
			return e.damaged("the stream %s has lost %d messages, the first is %d", stream, len(lost.Messages), slices.Min(lost.Messages))
		case (stream == s.name.stream(kindLog) || stream == s.name.stream(kindLate)) && info.State.Deleted > 0: // nobody can have deleted them
			return e.damaged("the stream %s misses %d messages", stream, info.State.Deleted)
		case info.State.LastSeq < e.state.Last[stream]:
			return e.damaged("the stream %s ends at message %d, expected %d", stream, info.State.LastSeq, e.state.Last[stream])
		case lost.Bytes > 0:
			e.opts.Log.Warn("a message that was not acknowledged was cut off a stream", "stream", stream, "bytes", lost.Bytes)
		}
	}
	return nil
}

// damaged keeps the finding, because the server mends its files and will not
// report it again.
func (e *embedded) damaged(format string, args ...any) error {
	err := fault.New(fault.Internal, format, args...)
	st := e.state
	st.Damaged, st.Last = err.Error(), nil
	if writeErr := e.dir.write(st); writeErr != nil {
		return joinStop(err, writeErr)
	}
	return fault.New(fault.Internal, "%s: %w; restore a copy", e.dir.path, err)
}

// opened says in the directory what is in it.
func (e *embedded) opened(s *Store) error {
	if e == nil {
		return nil
	}
	if s.name.late != "" { // the server syncs the description of every stream but this one
		if err := e.dir.syncStream(s.name.stream(kindLate)); err != nil {
			return err
		}
	}
	e.state = state{Cluster: e.opts.Cluster.Name, Streams: s.name.streams()}
	return e.dir.write(e.state)
}

// last returns the last sequence of each stream, nil if they are not known or
// others may change them.
func (e *embedded) last(s *Store) map[string]uint64 {
	if e == nil || e.opts.Cluster.Name != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	last := make(map[string]uint64)
	for _, stream := range e.state.Streams {
		info, found, err := s.info(ctx, stream)
		if err != nil || !found {
			return nil
		}
		last[stream] = info.State.LastSeq
	}
	return last
}

// stop stops the server and lets go of the directory.
func (e *embedded) stop(last map[string]uint64) error {
	if e == nil {
		return nil
	}
	if e.srv != nil && !e.shutdown() {
		// The directory stays locked: something may still be writing.
		return fault.New(fault.Unavailable, "store: the server has not stopped within %v", e.opts.StopTimeout)
	}
	defer e.dir.release()
	if last == nil {
		return nil
	}
	if err := e.dir.sync(); err != nil { // what the server has not synced yet, before it is said to be there
		return err
	}
	e.state.Last = last
	return e.dir.write(e.state)
}

func (e *embedded) shutdown() bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	}()
	timer := time.NewTimer(e.opts.StopTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
