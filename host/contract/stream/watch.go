package stream

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// look is how often the sockets of open streams are looked at.
const look = 50 * time.Millisecond

// watcher finds clients that left. The HTTP library notices that only when it
// writes, and a stream may be silent for minutes. One goroutine looks at all
// sockets; it exists only while there are any. The zero value is ready.
type watcher struct {
	mu    sync.Mutex
	socks map[*sock]struct{}
	quit  chan struct{} // ends the goroutine; nil without one
}

// sock is one watched connection.
type sock struct {
	raw  syscall.RawConn
	gone func()
}

// add calls gone once the client of conn has left or has closed its half, as
// often as that is seen. Look looks at once; remove ends the watch, and gone may
// still be in progress then. Connections that cannot be looked at are not
// watched.
func (w *watcher) add(conn net.Conn, gone func()) (look, remove func()) {
	sc, ok := conn.(syscall.Conn)
	if !ok || !canLook {
		return func() {}, func() {}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return func() {}, func() {}
	}
	s := &sock{raw: raw, gone: gone}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quit == nil {
		w.quit, w.socks = make(chan struct{}), map[*sock]struct{}{}
		go w.run(w.quit)
	}
	w.socks[s] = struct{}{}
	return s.look, func() { w.remove(s) }
}

func (s *sock) look() {
	if hungUp(s.raw) {
		s.gone()
	}
}

func (w *watcher) remove(s *sock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.socks, s)
	if len(w.socks) == 0 && w.quit != nil {
		close(w.quit)
		w.quit = nil
	}
}

func (w *watcher) run(quit <-chan struct{}) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			w.lookAtAll()
		}
	}
}

func (w *watcher) lookAtAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.socks {
		s.look()
	}
}
