package tool

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/host/fault"
)

// stateless is the first revision without initialize and sessions.
const stateless = "2026-07-28"

// farewell bounds what the end of a session may cost: its DELETE and the
// cancellations that are still on their way.
const farewell = 2 * time.Second

// session is one connection of the SDK and what was added to it.
type session struct {
	cs      *mcp.ClientSession
	tap     *tap
	courier *courier
	carrier *http.Transport
	kill    context.CancelFunc
	dead    atomic.Bool // the server forgot it, or cannot be reached
}

// dial opens a session in the newest era that the server speaks.
func (c *Client) dial(ctx context.Context) (*session, *exchange, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ConnectTimeout)
	defer cancel()
	ctx, x := watch(ctx)
	life, kill := context.WithCancel(context.Background())
	carrier := newCarrier(c.opts.ConnectTimeout)
	r := &courier{base: c.opts.Tracer.Transport(carrier), key: c.opts.Key, limit: c.opts.MaxResponse, life: life}
	t := &tapTransport{courier: r, StreamableClientTransport: mcp.StreamableClientTransport{
		Endpoint:             c.opts.URL,
		HTTPClient:           r.client(),
		MaxRetries:           -1,
		DisableStandaloneSSE: true, // nothing that a server says unasked is used
		MaxEventSize:         int(c.opts.MaxResponse),
	}}
	client := mcp.NewClient(&mcp.Implementation{Name: "weir", Version: c.opts.Version}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	cs, err := client.Connect(ctx, t, nil)
	if err != nil {
		kill()
		carrier.CloseIdleConnections()
		return nil, x, err
	}
	return &session{cs: cs, tap: t.tap, courier: r, carrier: carrier, kill: kill}, x, nil
}

// dialPatiently repeats dial while the server does not answer.
func (c *Client) dialPatiently(ctx context.Context) (*session, error) {
	for attempt := 1; ; attempt++ {
		s, x, err := c.dial(ctx)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, fault.New(fault.Unavailable, "tool: connect: %w", context.Cause(ctx))
		}
		if !silent(err, x) || attempt >= c.opts.Attempts {
			return nil, fault.New(fault.Unavailable, "tool: connect: %s", c.explain(err, x))
		}
		if err := wait(ctx, c.opts.RetryDelay); err != nil {
			return nil, fault.New(fault.Unavailable, "tool: connect: %w", err)
		}
	}
}

// silent tells a server that does not answer yet from one that said no.
func silent(err error, x *exchange) bool {
	if rpcError(err, x) != nil {
		return false
	}
	_, status, _, _ := x.snapshot()
	return status == 0 || status == http.StatusTooManyRequests || status >= 500 || status < 300
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewal is one attempt to replace a dead session, shared by all who wait.
type renewal struct {
	done    chan struct{}
	session *session // set before done closes; nil when it failed
	why     string
}

// fresh returns a session other than failed, opening it if nobody has.
func (c *Client) fresh(ctx context.Context, failed *session) (*session, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	if c.current != failed {
		defer c.mu.Unlock()
		return c.current, nil
	}
	r := c.renewLocked(failed)
	c.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.session == nil {
		return nil, errors.New(r.why)
	}
	return r.session, nil
}

// renewLocked starts a renewal or joins the one under way. It belongs to the
// client and not to a caller, so a caller that leaves takes nothing away from
// the others.
func (c *Client) renewLocked(failed *session) *renewal {
	if c.renewal != nil {
		return c.renewal
	}
	r := &renewal{done: make(chan struct{})}
	c.renewal, c.tried = r, time.Now()
	failed.dead.Store(true)
	c.work.Go(func() { c.renew(r, failed) })
	return r
}

func (c *Client) renew(r *renewal, failed *session) {
	s, why := c.reopen()
	c.mu.Lock()
	c.renewal = nil
	if s != nil {
		c.current = s
	}
	r.session, r.why = s, why
	c.mu.Unlock()
	close(r.done)
	if s != nil {
		failed.closeWith(c.life)
	}
}

// reopen opens a session and looks at its tools before anybody calls them.
func (c *Client) reopen() (*session, string) {
	s, x, err := c.dial(c.life)
	if err != nil {
		return nil, c.explain(err, x)
	}
	if err := c.compare(c.life, s); err != nil {
		s.close()
		return nil, err.Error()
	}
	return s, ""
}

// probeLocked looks whether a server that was not heard of is still there.
func (c *Client) probeLocked(s *session) {
	c.probing = true
	c.work.Go(func() {
		ctx, cancel := context.WithTimeout(c.life, c.opts.ConnectTimeout)
		defer cancel()
		gone := s.probe(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.probing = false
		if gone && !c.closed && c.current == s {
			c.renewLocked(s)
		}
	})
}

// probe reports whether the session is of no use any more.
func (s *session) probe(ctx context.Context) (gone bool) {
	ctx, x := tapped(ctx)
	defer s.tap.drop(x)
	var err error
	if s.cs.InitializeResult().ProtocolVersion >= stateless { // has no ping
		_, err = s.cs.ListTools(ctx, &mcp.ListToolsParams{})
	} else {
		err = s.cs.Ping(ctx, nil)
	}
	return err != nil && (expired(x) || rpcError(err, x) == nil)
}

// idle is how long the server has not been heard.
func (s *session) idle() time.Duration {
	return time.Since(time.Unix(0, s.courier.heard.Load()))
}

// close says goodbye, within farewell.
func (s *session) close() {
	timer := time.AfterFunc(farewell, s.kill)
	defer timer.Stop()
	_ = s.cs.Close() // a server that is gone cannot hear it; nothing to report
	s.kill()
	s.carrier.CloseIdleConnections()
}

// closeWith closes a replaced session without hurrying the calls that are
// still on it, until life ends.
func (s *session) closeWith(life context.Context) {
	stop := context.AfterFunc(life, func() { time.AfterFunc(farewell, s.kill) })
	defer stop()
	_ = s.cs.Close()
	s.kill()
	s.carrier.CloseIdleConnections()
}

// rpcError returns the error object that the server answered, if it did. The
// SDK's own errors are of the same type.
func rpcError(err error, x *exchange) *jsonrpc.Error {
	if answered := x.refusal(); answered != nil {
		return answered
	}
	var e *jsonrpc.Error
	if errors.As(err, &e) && e.Message != "rejected by transport" &&
		e.Message != "client is closing" && e.Message != "server is closing" {
		return e
	}
	return nil
}

// expired is a 404 to a request that named a session, with whatever body.
func expired(x *exchange) bool {
	_, status, hadSession, _ := x.snapshot()
	return status == http.StatusNotFound && hadSession
}

// lost reports whether the session has failed and not just this request, and
// whether the request may have better luck on a new one. It has failed without
// that hope where the SDK gives a connection up over an HTTP status.
func lost(err error, x *exchange) (gone, again bool) {
	if expired(x) {
		return true, true
	}
	if rpcError(err, x) != nil {
		return false, false
	}
	_, status, _, cause := x.snapshot()
	if status < 300 {
		return true, !errors.Is(cause, errTooLarge)
	}
	return status < 500 && status != http.StatusTooManyRequests, false
}
