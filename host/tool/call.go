package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/abi"
	"weir/host/fault"
)

// ErrorPrefix begins the text of every call that the tool, the server or the
// way to it made fail; what follows is the message.
const ErrorPrefix = "Error: "

// refusedPrefix begins the text of a call that was not made.
const refusedPrefix = "Tool call refused: "

const errChanged = "the server has changed this tool since it was approved; it is not called until an operator has approved it again"

// maxMessage bounds the message of a failed call, in characters.
const maxMessage = 600

var errTimeout = errors.New("the tool call timed out")

// Call performs one call and returns its text for the model: on success the
// text of the result, at most MaxResult bytes of it. With failed set it is
//
//	Error: <message>              what the tool or the server answered
//	Error: MCP tool '<name>' timed out after 30s
//	Error: MCP tool '<name>' request failed: <what happened>
//	Tool call refused: <reason>   the arguments do not match the schema, or the
//	                              tool is not the one that was admitted
//
// where a message has at most 600 characters, "…" standing for the rest, and
// never the address or the key. The error is not for the model: it is ctx's
// cause when ctx ended, promptly, or a name that Tools does not list.
//
// A session that ended under the call is renewed once; only a call of a
// read-only tool is then made again. A tool that the server has changed since
// it was admitted is not called.
func (s *Set) Call(ctx context.Context, name string, arguments abi.Raw) (text string, failed bool, err error) {
	e, ok := s.byName[name]
	if !ok {
		return "", false, unavailable(name)
	}
	c := s.client
	if c == nil {
		return refusedPrefix + "the host does not perform this tool", true, nil
	}
	if c.differs(e) {
		return refusedPrefix + errChanged, true, nil
	}
	if len(arguments) == 0 {
		arguments = abi.Raw("{}")
	}
	if err := e.schema.check(arguments); err != nil {
		return refusedPrefix + err.Error(), true, nil
	}
	if !c.enter() {
		return c.failure(name, errClosed.Error()), true, nil
	}
	defer c.work.Done()

	limited, cancel := context.WithTimeoutCause(ctx, c.opts.CallTimeout, errTimeout)
	defer cancel()
	result, why := c.perform(limited, e, arguments)
	switch {
	case why == "":
		text, failed = c.render(result)
		return text, failed, nil
	case ctx.Err() != nil:
		return "", false, context.Cause(ctx)
	case context.Cause(limited) == errTimeout:
		return ErrorPrefix + fmt.Sprintf("MCP tool '%s' timed out after %s", name, seconds(c.opts.CallTimeout)), true, nil
	}
	return why, true, nil
}

// perform returns the raw result or, if there is none, the text for the model.
func (c *Client) perform(ctx context.Context, e *entry, arguments abi.Raw) (json.RawMessage, string) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(errClosed) })()

	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s.dead.Load() {
		var err error
		if s, err = c.fresh(ctx, s); err != nil {
			return nil, c.failure(e.Name, err.Error())
		}
		if c.differs(e) {
			return nil, refusedPrefix + errChanged
		}
		result, _, why := c.attempt(ctx, s, e, arguments)
		return result, why
	}
	result, again, why := c.attempt(ctx, s, e, arguments)
	if !again || ctx.Err() != nil {
		return result, why
	}
	s, err := c.fresh(ctx, s)
	if err != nil {
		return nil, c.failure(e.Name, err.Error())
	}
	if !e.ReadOnly {
		return nil, c.failure(e.Name, "the session to the server was lost and renewed; the call was not repeated")
	}
	if c.differs(e) {
		return nil, refusedPrefix + errChanged
	}
	result, _, why = c.attempt(ctx, s, e, arguments)
	return result, why
}

// attempt makes the call on s. again says that a new session may help.
func (c *Client) attempt(ctx context.Context, s *session, e *entry, arguments abi.Raw) (result json.RawMessage, again bool, why string) {
	ctx, x := tapped(ctx)
	defer s.tap.drop(x)
	_, err := s.cs.CallTool(ctx, &mcp.CallToolParams{Name: e.Name, Arguments: json.RawMessage(arguments)})
	result, _, _, _ = x.snapshot()
	if result != nil {
		return result, false, ""
	}
	if err == nil {
		err = io.ErrUnexpectedEOF // cannot happen; an answer without a result
	}
	if ctx.Err() != nil {
		return nil, false, c.failure(e.Name, context.Cause(ctx).Error())
	}
	gone, again := lost(err, x)
	if gone {
		s.dead.Store(true)
	} else if answered := rpcError(err, x); answered != nil {
		return nil, false, c.message(answered.Message)
	}
	return nil, again, c.failure(e.Name, c.explain(err, x))
}

func (c *Client) failure(name, what string) string {
	return c.message(fmt.Sprintf("MCP tool '%s' request failed: %s", name, what))
}

// message is the text of a failed call for the model.
func (c *Client) message(text string) string {
	return ErrorPrefix + capRunes(c.scrub(strings.TrimSpace(text)), maxMessage)
}

// scrub takes the key and the address out of what the server said.
func (c *Client) scrub(text string) string {
	for _, secret := range c.secrets() {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}

// explain says in our own words what went wrong below the protocol, because
// the library's errors quote the address.
func (c *Client) explain(err error, x *exchange) string {
	if answered := rpcError(err, x); answered != nil {
		return capRunes(c.scrub(answered.Message), maxMessage)
	}
	_, status, _, cause := x.snapshot()
	if cause != nil {
		err = cause
	}
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("the response is larger than %d bytes", c.opts.MaxResponse)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Sprintf("the server answered %d and does not accept the key", status)
	case status == http.StatusNotFound && expired(x):
		return "the session has expired"
	case status >= 300:
		return fmt.Sprintf("the server answered %d", status)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.As(err, &dns):
		return "the server's name was not found"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the server did not answer in time"
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled):
		return "the connection was closed"
	case status != 0:
		return "the server's answer was not understood"
	}
	return "the server could not be reached"
}

func unavailable(name string) error {
	return fault.New(fault.Invalid, "tool %s is not available", quote(name))
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%gs", d.Seconds())
}
