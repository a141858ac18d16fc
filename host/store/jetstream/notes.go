package jetstream

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"weir/host/fault"
	"weir/host/store"
)

// notes wakes watches when something was committed to their log. One
// subscription serves all of them. A note may get lost: a gap in the stream's
// sequences, a new connection, and a look at the stream from time to time wake
// everybody, and who wakes in vain waits again.
type notes struct {
	s    *Store
	head string // of the subjects
	sub  *nats.Subscription
	quit context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{}
	seq      map[string]uint64 // of the latest note, by stream

	listeners store.Listeners
}

// watcher is one watch that waits.
type watcher struct{ wake chan struct{} }

func listen(s *Store) (*notes, error) {
	n := &notes{
		s:        s,
		head:     s.name.subject(kindNote, ""),
		done:     make(chan struct{}),
		watchers: make(map[string]map[*watcher]struct{}),
		seq:      make(map[string]uint64),
	}
	var err error
	if n.sub, err = s.conn.Subscribe(n.head+">", n.note); err != nil {
		return nil, fault.New(fault.Unavailable, "listen to notes: %w", err)
	}
	s.conn.SetReconnectHandler(func(*nats.Conn) { n.wakeAll() })
	if err := s.conn.FlushTimeout(s.opts.Timeout); err != nil { // from now on no note is missed
		return nil, fault.New(fault.Unavailable, "listen to notes: %w", err)
	}
	var ctx context.Context
	ctx, n.quit = context.WithCancel(context.Background())
	go n.probe(ctx)
	return n, nil
}

func (n *notes) stop() {
	n.quit()
	<-n.done
}

func (n *notes) watch(log string) *watcher {
	w := &watcher{wake: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watchers[log] == nil {
		n.watchers[log] = make(map[*watcher]struct{})
	}
	n.watchers[log][w] = struct{}{}
	return w
}

func (n *notes) leave(log string, w *watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.watchers[log], w)
	if len(n.watchers[log]) == 0 {
		delete(n.watchers, log)
	}
}

// note handles one note.
func (n *notes) note(m *nats.Msg) {
	stream := m.Header.Get("Nats-Stream")
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	n.mu.Lock()
	gap := err != nil || n.seq[stream] != 0 && seq != n.seq[stream]+1
	n.seq[stream] = max(n.seq[stream], seq)
	log := strings.TrimPrefix(m.Subject, n.head)
	for w := range n.watchers[log] {
		w.signal()
	}
	if position, err := strconv.ParseInt(m.Header.Get(headerPosition), 10, 64); err == nil && m.Header.Get(headerEnd) == "" {
		n.listeners.Tell(log, position)
	}
	n.mu.Unlock()
	if gap {
		n.wakeAll()
	}
}

func (n *notes) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners.Lose()
	for _, ws := range n.watchers {
		for w := range ws {
			w.signal()
		}
	}
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // it has not looked yet
	}
}

// probe wakes everybody when no note has come of what was in the stream at the
// look before.
func (n *notes) probe(ctx context.Context) {
	defer close(n.done)
	ticker := time.NewTicker(n.s.opts.probeEvery)
	defer ticker.Stop()
	before := map[string]uint64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n.mu.Lock()
		idle, behind := len(n.watchers)+n.listeners.Len() == 0, false
		for stream, seq := range before {
			behind = behind || n.seq[stream] < seq
			n.seq[stream] = max(n.seq[stream], seq)
		}
		n.mu.Unlock()
		if behind {
			n.wakeAll()
		}
		clear(before)
		if idle {
			continue
		}
		for _, kind := range n.s.name.ofLogs("") {
			stream := n.s.name.stream(kind)
			before[stream] = n.lastSeq(ctx, stream)
		}
	}
}

// lastSeq returns 0 if nobody answers: somebody will, later.
func (n *notes) lastSeq(ctx context.Context, stream string) uint64 {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	info, _, err := n.s.info(ctx, stream)
	if err != nil {
		return 0
	}
	return info.State.LastSeq
}
