package server

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weir/host/fault"
)

// listener wraps every accepted connection and knows the open ones.
type listener struct {
	net.Listener
	stall time.Duration
	limit int

	mu   sync.Mutex
	open map[*conn]struct{}
}

func newListener(ln net.Listener, stall time.Duration, headLimit int) *listener {
	return &listener{Listener: ln, stall: stall, limit: headLimit, open: map[*conn]struct{}{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, owner: l, scan: scanner{limit: l.limit}}
	l.mu.Lock()
	l.open[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

// closeConns closes the open connections at once: all, or those that have
// never asked anything, for which the library would wait five seconds.
func (l *listener) closeConns(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if all || !c.used.Load() {
			_ = c.Conn.Close()
		}
	}
}

// conn is one client's connection. It looks at what the client sends before
// the HTTP library does, and bounds each write: a reader that does not read
// would otherwise hold its goroutine for ever.
type conn struct {
	net.Conn
	owner *listener
	used  atomic.Bool // something was read
	scan  scanner     // used by the goroutine that serves the connection
}

// errMalformed stands for the rest of a refused request.
var errMalformed = fault.New(fault.Invalid, "malformed request")

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.scan.bad {
		return 0, errMalformed // the library would wait for more of it
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.used.Store(true)
	}
	c.scan.feed(p[:n])
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.owner.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	if c.scan.inBody() {
		c.linger()
	}
	return c.Conn.Close()
}

// Bounds of linger.
const (
	lingerTime  = time.Second
	lingerBytes = 4 << 20
)

// linger reads what the client is still sending. Closing with unread bytes
// resets the connection, and a client that sends a body too large would lose
// the answer that says so.
func (c *conn) linger() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// SyscallConn implements syscall.Conn for whoever looks at the socket.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	inner, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return inner.SyscallConn()
}
