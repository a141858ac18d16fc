// Package stream is the agent-service contract: one request with a
// conversation, answered by a stream of server-sent events, and answers to what
// a run asks a person (sections 1, 2, 3.2 and 7 of the contract). It only
// translates; the engine behind [Runner] runs.
//
//	body ─ decode ─► Runner ─ Observer calls ─ emitter ─ encode
//	                                                       │ 64 blocks
//	client ◄─ chunk, flush ◄──────── body.Read ◄───────────┘
//
// Two goroutines serve a stream: the run, and the connection's own, which
// pulls blocks and writes them; only the latter stays while a run waits for a
// person. One more looks at the sockets of all streams.
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
	PathWorkflow = "/v1/workflow/full"                                               // POST
	PathVersion  = "/version"                                                        // GET
	PathResponse = "/executions/:execution_id/interactions/:interaction_id/response" // POST
	PathEvents   = "/executions/:execution_id/events"                                // GET
)

// Runner is the engine.
type Runner interface {
	// Run shows the run to out and returns when it has ended or waits for a
	// person. Over is called once, when nothing more is shown, which is then or
	// at any time later. The request's history is whole: how much of it counts
	// is policy. When ctx ends nobody listens any more (code [CodeClientGone])
	// or the host stops (code [CodeDrain]); over follows soon.
	Run(ctx context.Context, req run.Request, out run.Observer, over func())
	// Follow shows a run of this user's again, after the place that a client
	// names, and what follows.
	Follow(ctx context.Context, user, execution, after string) (show func(context.Context, run.Follower), err error)
	// Respond gives the body of a person's answer to a run, as section 3.2 has
	// it. Errors: Invalid, with a code "wrong_kind" or "not_offered" where the
	// prompt does not take the answer, NotFound, Denied and Gone.
	Respond(ctx context.Context, user, execution, interaction string, body []byte) error
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
	// MaxPerUser bounds the concurrent streams of one user, MaxRuns by default.
	MaxPerUser int
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
	if o.MaxPerUser == 0 {
		o.MaxPerUser = o.MaxRuns
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
	if o.MaxRuns < 1 || o.MaxPerUser < 1 || o.KeepAlive < 0 {
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
	users    map[string]int // streams by user
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
	return &Handler{runner: runner, opts: opts, open: map[*stream]struct{}{}, users: map[string]int{}}, nil
}

// Refuse refuses requests as at capacity from now on.
func (h *Handler) Refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Drain ends every open stream: its run's context ends, and unless the run
// shows another end the client gets the error block and WORKFLOW_END. From
// then on requests are refused as at capacity. It does not wait.
func (h *Handler) Drain() {
	h.Refuse()
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.open {
		s.interrupt(errDrain)
	}
}

// Wait waits until no stream is open, or ctx ends.
func (h *Handler) Wait(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for h.Open() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Open returns the number of open streams.
func (h *Handler) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

// stream is one open response.
type stream struct {
	body      *body
	user      string
	interrupt context.CancelCauseFunc // ends the run, not the response
}

// begin starts a response that show fills in a goroutine of its own. When
// nothing more is to come over has to be called, show may have returned long
// before. It returns nil at capacity.
func (h *Handler) begin(user string, conn net.Conn, blocks func(context.Context) *emitter,
	show func(ctx context.Context, out *emitter, over func())) *stream {

	client, leave := context.WithCancelCause(context.Background())
	ctx, interrupt := context.WithCancelCause(client)
	out := blocks(client)
	s := &stream{user: user, interrupt: interrupt}
	if !h.admit(s) {
		leave(nil)
		return nil
	}
	look, unwatch := h.watch.add(conn, func() {
		leave(errClientGone)
		_ = conn.SetWriteDeadline(time.Now()) // a write in progress would wait for the stall limit
	})
	s.body = newBody(client, out.blocks, h.opts.KeepAlive, func() {
		unwatch()
		leave(errClientGone)
	})
	over := sync.OnceFunc(func() {
		out.close()
		interrupt(nil)
		h.forget(s)
		close(s.body.done)
	})
	go func() {
		defer func() {
			if p := recover(); p != nil {
				// The value may hold text of a request; its type does not.
				h.opts.Logger.Error("a run panicked", "class", fmt.Sprintf("%T", p))
				over()
			}
		}()
		show(asked{ctx, look}, out, over)
	}()
	return s
}

// asked is the context of a stream's client that looks at the socket when it is
// asked: who has left and then answers elsewhere is gone by then, and not at the
// watcher's next round.
type asked struct {
	context.Context
	look func()
}

func (c asked) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.look()
	return c.Context.Err()
}

func (h *Handler) admit(s *stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining || len(h.open) >= h.opts.MaxRuns || h.users[s.user] >= h.opts.MaxPerUser {
		return false
	}
	h.open[s] = struct{}{}
	h.users[s.user]++
	return true
}

func (h *Handler) forget(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, s)
	if h.users[s.user]--; h.users[s.user] == 0 {
		delete(h.users, s.user)
	}
}
