// Package admin is the listener for operators: it has another policy read,
// goes back to the previous one, and says which is active. It has an address
// and a key of its own, and nothing of the service behind it.
//
//	POST /reload     read the files of the policy and make it current
//	POST /rollback   make the previous policy current again
//	GET  /status     what is active, what is wanted, and the last error
//	GET  /log?run=ID a run's log, verified, without what people may not read
//	GET  /logs?since=24h&most=N  the newest runs that have a log
//
// POST /reload?replay=24h&gate=RULES makes the policy current only if replaying
// the runs of that time through it passes the gate.
//
// It is net/http and not the service's own server: a handful of requests from
// people who hold the key need no fast path, and the standard library listens on
// sockets, bounds heads, bodies and times, and gives strings that stay valid.
//
// Wire form and client stand in this package too, so that the two sides of the
// command line cannot differ.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"weir/host/fault"
)

// Paths of the routes.
const (
	PathReload   = "/reload"
	PathRollback = "/rollback"
	PathStatus   = "/status"
	PathLog      = "/log"
	PathLogs     = "/logs"
)

// MinKey is the least length of a key, in bytes.
const MinKey = 24

const (
	maxHead     = 16 << 10
	maxBody     = 1 << 10 // nothing in a body is read; a client may send {}
	headTimeout = 5 * time.Second
	readTimeout = 10 * time.Second
	idleTimeout = 60 * time.Second
	// workTimeout is how long an answer may wait for a policy to be built,
	// which takes seconds where modules have to be compiled first.
	workTimeout = 2 * time.Minute
	grace       = 2 * time.Second
)

// Controller is what the listener controls. Reload and Rollback return one of
// the host's outcomes; an error says why the active policy stays. They return
// when ctx ends, and what they began goes on.
type Controller interface {
	Reload(ctx context.Context) (outcome string, err error)
	// ReloadIf reloads if replaying the runs of the last while passes a gate.
	// The summary, a JSON object, is there whenever there was a replay.
	ReloadIf(ctx context.Context, since time.Duration, gate string) (outcome string, summary json.RawMessage, err error)
	Rollback(ctx context.Context) (outcome string, err error)
	Status() Status
	// Log is a run's log as one JSON object.
	Log(ctx context.Context, run string) (json.RawMessage, error)
	// Logs lists the runs that began at or after a time, newest first, at most
	// so many, as a JSON array.
	Logs(ctx context.Context, since time.Time, most int) (json.RawMessage, error)
}

// Options are the listener's settings. All but Logger are required.
type Options struct {
	Network string // "tcp" or "unix"
	Address string // host:port, or the path of the socket
	Key     string // at least MinKey bytes
	Logger  *slog.Logger
}

// Server is a running admin listener.
type Server struct {
	control Controller
	opts    Options
	want    [sha256.Size]byte // digest of the whole header value
	http    *http.Server
	addr    net.Addr
	served  chan struct{}
}

// Start listens and serves until Stop.
func Start(control Controller, opts Options) (*Server, error) {
	if len(opts.Key) < MinKey {
		return nil, fault.New(fault.Invalid, "admin: expected a key of at least %d characters", MinKey)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	l, err := listen(opts.Network, opts.Address)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "admin: listen: %w", err)
	}
	s := &Server{control: control, opts: opts, want: sha256.Sum256([]byte("Bearer " + opts.Key)),
		addr: l.Addr(), served: make(chan struct{})}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug),
		MaxHeaderBytes: maxHead, ReadHeaderTimeout: headTimeout, ReadTimeout: readTimeout,
		IdleTimeout: idleTimeout, WriteTimeout: workTimeout + readTimeout,
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			opts.Logger.Error("the admin listener failed", "error", err)
		}
	}()
	return s, nil
}

// listen opens the address. A socket is its owner's only, and one that a
// process left behind when it was killed is taken over.
func listen(network, address string) (net.Listener, error) {
	if network != "unix" {
		return net.Listen(network, address)
	}
	if conn, err := net.DialTimeout(network, address, time.Second); err == nil {
		_ = conn.Close()
		return nil, errors.New(address + ": another process listens there")
	}
	if info, err := os.Lstat(address); err == nil && info.Mode()&os.ModeSocket != 0 {
		_ = os.Remove(address)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(address, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.addr }

// Stop refuses new requests, waits a moment for those in progress and closes.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.served
	return nil
}

// serve decides who is asking before it looks at what is asked.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !s.keyed(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		answer(w, http.StatusUnauthorized, Reply{Error: "invalid or missing admin key"})
		return
	}
	method := http.MethodPost
	switch r.URL.Path {
	case PathReload, PathRollback:
	case PathStatus, PathLog, PathLogs:
		method = http.MethodGet
	default:
		answer(w, http.StatusNotFound, Reply{Error: "not found"})
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		answer(w, http.StatusMethodNotAllowed, Reply{Error: "expected " + method})
		return
	}
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		answer(w, http.StatusRequestEntityTooLarge, Reply{Error: "expected no body"})
		return
	}
	s.route(w, r)
}

// keyed compares digests, so the time says nothing of the key or its length.
func (s *Server) keyed(r *http.Request) bool {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	got := sha256.Sum256([]byte(values[0]))
	return subtle.ConstantTimeCompare(got[:], s.want[:]) == 1
}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), workTimeout)
	defer cancel()
	var reply Reply
	var err error
	switch r.URL.Path {
	case PathReload:
		reply.Outcome, reply.Replay, err = s.reload(ctx, r.URL.Query())
	case PathRollback:
		reply.Outcome, err = s.control.Rollback(ctx)
	case PathLog:
		reply.Log, err = s.control.Log(ctx, r.URL.Query().Get("run"))
	case PathLogs:
		reply.Logs, err = s.logs(ctx, r.URL.Query())
	}
	if err != nil {
		reply.Error = err.Error()
	}
	if r.URL.Path == PathLog || r.URL.Path == PathLogs {
		answer(w, status(err), reply)
		return
	}
	if r.URL.Path != PathStatus {
		s.opts.Logger.Info("admin", "request", strings.TrimPrefix(r.URL.Path, "/"), "outcome", reply.Outcome)
	}
	reply.Status = s.control.Status()
	answer(w, status(err), reply)
}

// reload reloads, on the condition that the query names.
func (s *Server) reload(ctx context.Context, q url.Values) (string, json.RawMessage, error) {
	if !q.Has("replay") && !q.Has("gate") {
		outcome, err := s.control.Reload(ctx)
		return outcome, nil, err
	}
	since, err := time.ParseDuration(q.Get("replay"))
	if err != nil || since <= 0 {
		return "", nil, fault.New(fault.Invalid, "replay: expected how far back to look, such as 24h")
	}
	return s.control.ReloadIf(ctx, since, q.Get("gate"))
}

func (s *Server) logs(ctx context.Context, q url.Values) (json.RawMessage, error) {
	since, err := time.ParseDuration(q.Get("since"))
	if err != nil || since <= 0 {
		return nil, fault.New(fault.Invalid, "since: expected how far back to look, such as 24h")
	}
	most := 0
	if q.Has("most") {
		if most, err = strconv.Atoi(q.Get("most")); err != nil || most < 1 {
			return nil, fault.New(fault.Invalid, "most: expected a number of runs from 1")
		}
	}
	return s.control.Logs(ctx, time.Now().Add(-since), most)
}

// status maps kinds of error; whatever stands behind one, the policy that was
// active still is.
func status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	switch fault.Of(err) {
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Invalid, fault.Plugin, fault.Limit:
		return http.StatusUnprocessableEntity
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func answer(w http.ResponseWriter, code int, reply Reply) {
	data, err := json.Marshal(reply)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // a client that left needs no answer
}
