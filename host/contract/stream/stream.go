// Package stream is the agent-service contract: one request with a
// conversation, answered by a stream of server-sent events (sections 1, 2 and
// 7 of the contract). It only translates; the engine behind [Runner] runs.
//
//	body ─ decode ─ trim ─► Runner ─ Observer calls ─ emitter ─ encode
//	                                                              │ 64 blocks
//	client ◄─ chunk, flush ◄──────────── body.Read ◄──────────────┘
//
// Two goroutines serve a stream: the run, and the connection's own, which
// pulls blocks and writes them. One more looks at the sockets of all streams.
package stream

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"weir/host/fault"
	"weir/host/run"
)

// Name is how this contract is named in a run's log.
const Name = "stream"

// Paths of the contract's routes.
const (
	PathWorkflow = "/v1/workflow/full" // POST
	PathVersion  = "/version"          // GET
)

// Runner is the engine. Run shows the run to out and returns when it has
// ended. The request's history is whole: how much of it counts is policy, so
// whoever knows the run's generation trims it with [Trim]. It must return soon
// after ctx ends. The cause says why it did: code
// [CodeClientGone] when nobody listens any more, code [CodeDrain] when the
// host stops.
type Runner interface {
	Run(ctx context.Context, req run.Request, out run.Observer) run.State
}

// Codes of the causes that end a run's context.
const (
	CodeClientGone = "client_gone"
	CodeDrain      = run.CodeDrain
)

var (
	errClientGone = fault.Coded(fault.Gone, CodeClientGone, "the client has left")
	errDrain      = fault.Coded(fault.Unavailable, CodeDrain, "the host is stopping")
)

// Options are the contract's settings.
type Options struct {
	// Workflow is the name of the workflow step. Required.
	Workflow string
	// Version tells the provenance of the current generation for /version.
	// Required.
	Version func() Version
	// MaxRuns bounds concurrent streams, 256 by default; beyond it clients get
	// 503. A stream costs about 30 KiB and two goroutines, besides its run.
	MaxRuns int
	// KeepAlive is the silence after which a comment is sent, 15 s by default.
	// Longer than a proxy's idle limit, and the proxy cuts waiting streams.
	KeepAlive time.Duration
	// Logger receives what went wrong, never text of a request.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxRuns == 0 {
		o.MaxRuns = 256
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	if o.Workflow == "" || o.Version == nil {
		return fault.New(fault.Internal, "stream: the workflow's name and the version are required")
	}
	if o.MaxRuns < 1 || o.KeepAlive < 0 {
		return fault.New(fault.Invalid, "stream: expected positive limits")
	}
	return nil
}

// Handler answers the contract's routes. It is safe for concurrent use.
type Handler struct {
	runner Runner
	opts   Options
	watch  watcher

	mu       sync.Mutex
	open     map[*stream]struct{}
	draining bool
}

// New returns a handler of runs by runner.
func New(runner Runner, opts Options) (*Handler, error) {
	opts = opts.withDefaults()
	if runner == nil {
		return nil, fault.New(fault.Internal, "stream: no runner")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Handler{runner: runner, opts: opts, open: map[*stream]struct{}{}}, nil
}

// Drain ends every open stream: its run's context ends, and unless the run
// shows another end the client gets the error block and WORKFLOW_END. From
// then on requests are refused as at capacity. It does not wait.
func (h *Handler) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	for s := range h.open {
		s.interrupt(errDrain)
	}
}

// Open returns the number of open streams.
func (h *Handler) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

// stream is one open response and its run.
type stream struct {
	body      *body
	out       *emitter
	interrupt context.CancelCauseFunc // ends the run, not the response
}

// begin starts the run of an admitted request. It returns nil at capacity.
func (h *Handler) begin(req run.Request, filter stepFilter, conn net.Conn) *stream {
	client, leave := context.WithCancelCause(context.Background())
	ctx, interrupt := context.WithCancelCause(client)
	out := newEmitter(client, filter, h.opts.Workflow)
	s := &stream{out: out, interrupt: interrupt}
	if !h.admit(s) {
		leave(nil)
		return nil
	}
	unwatch := h.watch.add(conn, func() {
		leave(errClientGone)
		_ = conn.SetWriteDeadline(time.Now()) // a write in progress would wait for the stall limit
	})
	s.body = newBody(client, out.blocks, h.opts.KeepAlive, func() {
		unwatch()
		leave(errClientGone)
	})
	go func() {
		defer close(s.body.done)
		defer h.forget(s)
		defer interrupt(nil)
		h.run(ctx, req, out)
	}()
	return s
}

func (h *Handler) admit(s *stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining || len(h.open) >= h.opts.MaxRuns {
		return false
	}
	h.open[s] = struct{}{}
	return true
}

func (h *Handler) forget(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, s)
}

// run runs to the end; whatever the runner does, the stream has one.
func (h *Handler) run(ctx context.Context, req run.Request, out *emitter) {
	defer out.close(req)
	defer func() {
		if p := recover(); p != nil {
			// The value may hold text of a request; its type does not.
			h.opts.Logger.Error("a run panicked", "run", req.RunID, "class", fmt.Sprintf("%T", p))
		}
	}()
	h.runner.Run(ctx, req, out)
}
