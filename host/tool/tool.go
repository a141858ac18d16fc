// Package tool is the host's side of the Model Context Protocol: it connects to
// one MCP server over streamable HTTP, offers the tools that the operator
// listed and no others, holds proposed arguments against their schemas and
// performs the calls.
//
// JSON stays what it was on the whole way: arguments reach the server with the
// order of their keys and the text of their numbers, and schemas and results
// are read from the bytes that the server sent. No call carries an identity.
//
//	model's text ─ Parse ─ Validate ─ Call ─► session ─ tap ─ courier ─► server
//	                                  text ◄─ result ◄──┘ raw bytes
//
// Both eras of the protocol are spoken: sessions (2024-11-05 to 2025-11-25) and
// the stateless revision 2026-07-28. A session that ended is begun again once,
// by one goroutine for all calls that noticed it; the tools are then listed
// again, and calls of one that is not what was admitted are refused.
package tool

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir/host/fault"
)

// Client is the shared session to a server, and the set of tools that it was
// connected for. All methods may be called concurrently.
type Client struct {
	*Set
	opts Options

	life context.Context // ends with Close; its cause is errClosed
	end  context.CancelCauseFunc
	work sync.WaitGroup // calls, renewals and probes
	gone chan struct{}  // closed when Close has finished

	mu      sync.Mutex
	closed  bool
	current *session
	renewal *renewal  // not nil while one is under way
	tried   time.Time // when the last renewal began
	probing bool
	// Digests of the tools of all sets, as they were listed last ("" is gone)
	// and as the newest set admitted them.
	offered, admitted map[string]string
}

// Tool is one tool that models may call.
type Tool struct {
	Name        string
	StepName    string // <function_group>__<name>, as steps show it
	Description string // for the model: the override, else Published
	Published   string // the server's own description
	Schema      []byte // JSON Schema of the arguments, the server's bytes; read-only
	ReadOnly    bool   // the server says so explicitly; such a call may be repeated
}

var errClosed = errors.New("the tool client is closed")

// Connect opens the session, lists every page of tools and checks them against
// the options (5.1, 5.3 and 5.4 of the contract). It blocks until that is done,
// at most for the configured attempts; a server that does not answer is tried
// again, everything else fails at once. The caller closes the client.
func Connect(ctx context.Context, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	c := &Client{opts: opts, offered: map[string]string{}, admitted: map[string]string{}, gone: make(chan struct{})}
	c.life, c.end = context.WithCancelCause(context.Background())
	if err := c.start(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) start(ctx context.Context) error {
	s, err := c.dialPatiently(ctx)
	if err != nil {
		return err
	}
	c.current = s
	c.Set, err = c.choose(ctx, s, c.opts.Include, c.opts.Overrides)
	return err
}

// Ready is nil while the session is open, or in the stateless era while the
// server answered last time. It never blocks: when nothing was heard of the
// server for a while, or the session is closed, a look or a new session is
// started in the background, so that readiness follows the server.
func (c *Client) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fault.New(fault.Unavailable, "mcp session closed")
	case c.current.dead.Load():
		if time.Since(c.tried) >= c.opts.RetryDelay {
			c.renewLocked(c.current)
		}
		return fault.New(fault.Unavailable, "mcp session closed")
	case !c.probing && c.current.idle() >= c.opts.ProbeAfter:
		c.probeLocked(c.current)
	}
	return nil
}

// Close ends calls in flight, the session and everything that the client
// started, and waits for it. It may be called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.gone
		return nil
	}
	c.closed = true
	c.mu.Unlock()

	c.end(errClosed)
	c.work.Wait() // from here on nobody else touches current
	if c.current != nil {
		c.current.close()
	}
	close(c.gone)
	return nil
}

// enter counts a piece of work that Close waits for; false once closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Add(1)
	return true
}
