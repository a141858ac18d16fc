package turn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/host/fault"
)

// maxLine bounds a request on one line, in bytes.
const maxLine = 2 << 20

// Lines answers the requests of one reader, a line each, the last of which need
// not end, with a line each. Nothing else is written. It returns when the reader
// has ended, and its error when it could not be read or written.
func (h *Handler) Lines(ctx context.Context, in io.Reader, out io.Writer, c Caller) error {
	return h.lines(ctx, in, out, c, 0)
}

func (h *Handler) lines(ctx context.Context, in io.Reader, out io.Writer, c Caller, limit int) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for ctx.Err() == nil && lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if _, err := out.Write(h.line(ctx, bytes.Clone(line), c, limit)); err != nil {
			return fault.New(fault.Unavailable, "turn: the answer could not be written: %w", err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		_, _ = out.Write(h.errorLine(fault.New(fault.Invalid, "invalid request: expected at most %d bytes", maxLine)))
	}
	return lines.Err()
}

func (h *Handler) line(ctx context.Context, line []byte, c Caller, limit int) []byte {
	c.Request.RequestID = uuid.NewString()
	r, err := h.answer(ctx, c, line)
	if err != nil {
		return h.errorLine(err)
	}
	if limit > 0 {
		limit--
	}
	return append(h.encode(r, limit), '\n')
}

// errorLine is a refusal where there is no status: an action object too.
func (h *Handler) errorLine(err error) []byte {
	if status(err) == 500 {
		h.opts.Logger.Error("a request could not be answered", "kind", fault.Of(err).String(), "error", err)
	}
	return append(h.build(&reply{action: actionError, text: refusalText(err)}, true), '\n')
}

// Listen opens a socket at "tcp:HOST:PORT" on loopback or "unix:PATH"; also with
// two slashes, and with socket:// before it or in its place. Nobody is
// authenticated there, so every other address is refused. A socket's file that
// nobody serves is replaced.
func Listen(address string) (net.Listener, error) {
	network, target := transport(address)
	switch {
	case network == "tcp" && loopback(target):
	case network == "unix" && target != "":
		if err := free(target); err != nil {
			return nil, err
		}
	default:
		return nil, fault.New(fault.Invalid, "socket: expected tcp:HOST:PORT on loopback or unix:PATH, because nobody is authenticated there, got %.100q", address)
	}
	ln, err := net.Listen(network, target)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "socket: %w", err)
	}
	if network == "unix" {
		if err := os.Chmod(target, 0o600); err != nil {
			_ = ln.Close()
			return nil, fault.New(fault.Unavailable, "socket: %w", err)
		}
	}
	return ln, nil
}

// transport reads a socket's address, as callers may write that of an agent.
func transport(address string) (network, target string) {
	rest, alias := strings.CutPrefix(address, "socket://")
	network, target, _ = strings.Cut(rest, ":")
	switch {
	case network == "tcp" || network == "unix":
		return network, strings.TrimPrefix(target, "//")
	case alias && strings.HasPrefix(rest, "/"):
		return "unix", rest
	case alias:
		return "tcp", rest
	}
	return "", ""
}

func loopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && port != "" && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// free removes a socket's file that nobody serves any more.
func free(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // there is none, or listening says what is wrong
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fault.New(fault.Invalid, "socket: %s is there and is no socket", path)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		return fault.New(fault.Unavailable, "socket: somebody serves %s", path)
	}
	return os.Remove(path)
}

// maxConnections bounds the connections of one listener.
const maxConnections = 256

// writeTimeout is the time for a client to take an answer.
const writeTimeout = 30 * time.Second

// stopTimeout is the time for an answer to be read after the end has begun.
const stopTimeout = 2 * time.Second

// ServeLines answers the connections of a listener until ctx ends: many requests
// on each, or one, after which the client closes. It closes the listener and
// waits for all of them.
func (h *Handler) ServeLines(ctx context.Context, ln net.Listener, c Caller) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	room := make(chan struct{}, maxConnections)
	for {
		room <- struct{}{}
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fault.New(fault.Unavailable, "socket: accept: %w", err)
		}
		open.Go(func() {
			defer func() { <-room }()
			h.connection(ctx, conn, c)
		})
	}
}

func (h *Handler) connection(ctx context.Context, conn net.Conn, c Caller) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { // what is being answered is answered
		if c, ok := conn.(interface{ CloseRead() error }); ok {
			_ = c.CloseRead()
		}
		_ = conn.SetWriteDeadline(time.Now().Add(stopTimeout))
	})()
	c.Connection = uuid.NewString()
	err := h.lines(ctx, idle{conn, h.opts.SessionTimeout}, patient{conn, ctx.Err}, c, lineLimit)
	if err != nil && ctx.Err() == nil {
		h.opts.Logger.Debug("a connection ended", "error", err)
	}
}

// idle ends a connection that asks nothing for so long.
type idle struct {
	net.Conn
	limit time.Duration
}

func (i idle) Read(p []byte) (int, error) {
	_ = i.SetReadDeadline(time.Now().Add(i.limit))
	return i.Conn.Read(p)
}

// patient ends a connection whose client does not take an answer.
type patient struct {
	net.Conn
	stopping func() error // not nil: little patience
}

func (p patient) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(writeTimeout))
	if p.stopping() != nil { // looked at afterwards: it may come between the two
		_ = p.SetWriteDeadline(time.Now().Add(stopTimeout))
	}
	return p.Conn.Write(b)
}
