// Package agent reaches agents: over HTTP (with server-sent events as well), TCP,
// Unix sockets, and as a command over its standard streams. Every wait has a
// bound and every answer a greatest size; an agent that answers garbage, too
// much, late, or not at all is an error and nothing worse.
package agent

import (
	"context"
	"errors"
	"net/http"
	"time"

	"weir/host/fault"
)

// Options say how an agent is driven. The zero value is useful.
type Options struct {
	// Timeout bounds one request and its answer; default 30 s, AgentV's.
	Timeout time.Duration
	// Connect bounds the connecting within that; default 5 s.
	Connect time.Duration
	// MaxReply is the greatest answer in bytes; default 4 MiB, and over a socket
	// 65,536 with the line's end, above which AgentV's harness fails.
	MaxReply int
	// MaxStderr is how much of a command's stderr is kept for one request, in
	// bytes; default 64 KiB.
	MaxStderr int
	// Persistent keeps one process or one connection for a session and sends
	// lines. Without it each request has its own, as AgentV's harness does.
	Persistent bool
	// Newline ends a request to a command of its own with a line's end, as the
	// document says; AgentV's harness sends none.
	Newline bool
	// Header is sent with every HTTP request; it may hold credentials.
	Header http.Header
}

func (o Options) withDefaults(protocol string) Options {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Connect <= 0 {
		o.Connect = 5 * time.Second
	}
	if o.MaxReply <= 0 {
		o.MaxReply = 4 << 20
		if protocol == Socket {
			o.MaxReply = 65536
		}
	}
	if o.MaxStderr <= 0 {
		o.MaxStderr = 64 << 10
	}
	return o
}

// An Answer is what came back. It is bytes: package reply reads them.
type Answer struct {
	Body   []byte
	Stderr string // of a command, as far as it was kept; also there with an error
}

// A Session is one attempt's way to an agent. It is not safe for concurrent use.
// Close may be called twice.
type Session interface {
	// Ask sends one request, a JSON object, and waits for the answer. The
	// traceparent may be empty.
	Ask(ctx context.Context, request []byte, traceparent string) (Answer, error)
	Close() error
}

// Codes of errors, beside their kinds.
const (
	CodeTimeout   = "timeout"
	CodeTooLarge  = "too_large"
	CodeNoAnswer  = "no_answer"
	CodeConnect   = "connect"
	CodeStatus    = "status"
	CodeForm      = "form"
	CodeCancelled = "cancelled"
)

// Open begins a session. It fails if the options do not fit the address; the
// agent is reached by the first Ask.
func Open(a Address, opts Options) (Session, error) {
	opts = opts.withDefaults(a.Protocol)
	switch a.Protocol {
	case HTTP, SSE:
		return newHTTP(a, opts), nil
	case Socket:
		return &socketSession{address: a, opts: opts}, nil
	case Local:
		if opts.Persistent {
			return &process{command: a.Command, opts: opts}, nil
		}
		return &processes{command: a.Command, opts: opts}, nil
	}
	return nil, fault.New(fault.Invalid, "agent: expected an address")
}

// errTimeout is the cause with which a request's context ends.
var errTimeout = errors.New("time-out")

// bounded is the context of one request.
func bounded(ctx context.Context, opts Options) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, opts.Timeout, errTimeout)
}

// ended says why a request's context ended, or returns the error that was met
// otherwise.
func ended(ctx context.Context, opts Options, otherwise error) error {
	if ctx.Err() == nil {
		return otherwise
	}
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fault.Coded(fault.Limit, CodeTimeout, "agent: expected an answer within %v", opts.Timeout)
	}
	return fault.Coded(fault.Unavailable, CodeCancelled, "agent: the run was cancelled")
}

func tooLarge(opts Options) error {
	return fault.Coded(fault.Limit, CodeTooLarge, "agent: expected an answer of at most %d bytes", opts.MaxReply)
}

func noAnswer(format string, args ...any) error {
	return fault.Coded(fault.Unavailable, CodeNoAnswer, "agent: expected an answer, "+format, args...)
}
