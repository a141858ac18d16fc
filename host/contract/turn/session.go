package turn

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/run"
)

// session is one conversation with a caller. All but the first fields belong to
// the request that holds busy's token.
type session struct {
	id       string // what our replies call it
	user     string
	scope    string        // who may name it, see [Caller.scope]
	busy     chan struct{} // holds one token while nobody is answered
	waiting  atomic.Bool   // its run waits for the caller, who was told
	answered atomic.Int64  // replies so far

	life  atomic.Pointer[context.CancelCauseFunc] // ends its run
	timer *time.Timer                             // forgets it; set before anybody else sees it
	at    time.Time                               // it was answered; under the handler's lock

	gone  bool       // forgotten
	names []string   // under which requests find it
	reply string     // id of the last one
	last  *reply     // that; nil if another process gave it
	asked message    // what it answers
	turns []abi.Turn // the conversation; while a run is there, its question is the last
	run   *ongoing   // nil: the last one has ended, and its end was told
	told  bool       // what the run waits for was told
	// variant is the one in which it has begun, which it keeps; empty: none yet.
	variant string
	task    int // user turns so far
	round   int // replies to the latest
}

var errForgotten = fault.Coded(fault.Gone, "session_gone", "nobody continues the session")

func (s *session) used() bool { return s.task > 0 }

// interrupt ends a run that is at work, because the host stops.
func (s *session) interrupt() {
	if !s.waiting.Load() {
		s.cancel(fault.Coded(fault.Unavailable, run.CodeDrain, "the host is stopping"))
	}
}

// lives gives the session's run its context.
func (s *session) lives() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.life.Store(&cancel)
	return ctx
}

func (s *session) cancel(cause error) {
	if cancel := s.life.Load(); cancel != nil {
		(*cancel)(cause)
	}
}

// place finds the request's session, or makes one, and takes its token. Late
// tells that the session has given a reply since the request came, which so
// cannot have known it.
func (h *Handler) place(ctx context.Context, c Caller, q *request) (_ *session, late bool, _ error) {
	fresh := false
	for {
		s, held, err := h.find(ctx, c, q, fresh)
		if err != nil {
			return nil, false, err
		}
		seen := s.answered.Load()
		if !held {
			select {
			case <-s.busy:
			case <-ctx.Done():
				return nil, false, errBusy
			}
		}
		late := s.answered.Load() != seen
		switch {
		case s.gone:
			s.busy <- struct{}{}
		case !fresh && s.stranger(c, q) && (!late || s.asked != q.message()):
			// Not the history that this session has had: another conversation.
			h.leave(s)
			fresh = true
		default:
			return s, late, nil
		}
	}
}

// errBusy refuses what has waited for its turn too long.
var errBusy = fault.Coded(fault.Unavailable, "busy", "other requests of the session are being answered")

// stranger tells that a request has found the session by a history that is not
// the session's.
func (s *session) stranger(c Caller, q *request) bool {
	return s.used() && q.session != "" && s.reply != q.reply && (q.run == "" || !slices.Contains(s.names, nameOf(c, q)))
}

// leave gives the token back; the session waits for its next request. One in
// which nothing has begun is forgotten.
func (h *Handler) leave(s *session) {
	h.mu.Lock()
	s.at = time.Now()
	switch {
	case !s.used():
		h.forget(s)
	case !h.draining:
		s.timer.Reset(h.opts.SessionTimeout)
	}
	h.mu.Unlock()
	s.busy <- struct{}{}
}

// find returns the session that a request names, as the decisions have it: by
// run id, else by history, else, where nobody is authenticated, by trace,
// process or connection, else the only one that waits, else a new one. Held
// tells that the token is the caller's already.
func (h *Handler) find(ctx context.Context, c Caller, q *request, fresh bool) (_ *session, held bool, _ error) {
	name := nameOf(c, q)
	id := ""
	if !fresh {
		id = h.idOf(ctx, c, q, name)
	}
	if id != "" {
		s, held, err := h.known(ctx, c, id)
		if s != nil || err != nil {
			return s, held, err
		}
	}
	return h.create(ctx, c, q, name)
}

// nameOf is what a request says of its session beside its history; empty: it
// says nothing that counts.
func nameOf(c Caller, q *request) string {
	scope := c.scope()
	trace := traceID(c.Request.Traceparent)
	switch {
	case q.run != "":
		return hashed(scope, "run", q.run)
	case !c.Local:
	case trace != "" && !q.past():
		return hashed(scope, "trace", trace)
	case c.Process:
		return hashed(scope, "process", "")
	case c.Connection != "":
		return connectionPrefix + hashed(scope, "connection", c.Connection)
	}
	return ""
}

// connectionPrefix marks names that mean nothing to another process.
const connectionPrefix = "connection."

func (h *Handler) idOf(ctx context.Context, c Caller, q *request, name string) string {
	if q.run != "" {
		if id := h.named(ctx, name); id != "" {
			return id
		}
	}
	if q.session != "" {
		return q.session
	}
	if !c.Local || q.past() {
		return ""
	}
	if id := h.named(ctx, name); id != "" {
		return id
	}
	if h.opts.InferSingle && q.run == "" {
		return h.single(c.scope())
	}
	return ""
}

// named is the id that a name stands for.
func (h *Handler) named(ctx context.Context, name string) string {
	if name == "" {
		return ""
	}
	h.mu.Lock()
	id := h.names[name]
	h.mu.Unlock()
	if id != "" || strings.HasPrefix(name, connectionPrefix) {
		return id
	}
	data, err := h.deps.Values.Get(ctx, nameKey(name))
	if err != nil {
		return ""
	}
	return string(data)
}

// single is the one session of a listener that waits, or none.
func (h *Handler) single(scope string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := ""
	for _, s := range h.sessions {
		if s.scope != scope || !s.waiting.Load() {
			continue
		}
		if id != "" {
			return ""
		}
		id = s.id
	}
	return id
}

// known returns a session that the caller may name, from memory or from the
// store; nil when there is none.
func (h *Handler) known(ctx context.Context, c Caller, id string) (_ *session, held bool, _ error) {
	scope := c.scope()
	h.mu.Lock()
	s := h.sessions[sessionKey(scope, id)]
	h.mu.Unlock()
	if s != nil {
		return s, false, nil
	}
	v := h.read(ctx, scope, id)
	if v == nil {
		return nil, false, nil
	}
	s = newSession(id, c)
	s.names = v.Names
	if other, err := h.admit(ctx, s, false); other != s {
		return other, false, err
	}
	// Only now: of all who look for the session, one goes on with its run, and
	// nobody does for whom there is no room.
	if !h.attach(s, v) {
		h.mu.Lock()
		h.forget(s)
		h.mu.Unlock()
		s.busy <- struct{}{}
		return nil, false, nil
	}
	return s, true, nil
}

// create makes a session, or returns the one that another request with the same
// name has made meanwhile.
func (h *Handler) create(ctx context.Context, c Caller, q *request, name string) (_ *session, held bool, _ error) {
	s := newSession(h.opts.NewID(), c)
	if name != "" {
		s.names = []string{name}
	}
	// A history is another conversation, whatever its connection was before.
	other, err := h.admit(ctx, s, q.run != "" || !q.past())
	return other, other == s, err
}

// newSession returns a session whose token is the caller's.
func newSession(id string, c Caller) *session {
	return &session{id: id, user: c.Request.Principal.UserID, scope: c.scope(), busy: make(chan struct{}, 1)}
}

// admit adds a session, or returns the one that somebody has added before, under
// its id or, to join, under a name of it.
func (h *Handler) admit(ctx context.Context, s *session, join bool) (*session, error) {
	h.mu.Lock()
	other := h.sessions[s.key()]
	for _, name := range s.names {
		if id := h.names[name]; join && other == nil && id != "" {
			other = h.sessions[sessionKey(s.scope, id)]
		}
	}
	if other != nil {
		h.mu.Unlock()
		return other, nil
	}
	evicted, ok := h.room(s.user)
	ok = ok && !h.draining
	if ok {
		h.sessions[s.key()] = s
		for _, name := range s.names {
			h.names[name] = s.id
		}
		s.timer = time.AfterFunc(h.opts.SessionTimeout, func() { h.expire(s) })
	}
	h.mu.Unlock()
	h.drop(ctx, evicted)
	if !ok {
		return nil, errCapacity
	}
	return s, nil
}

func (s *session) key() string { return sessionKey(s.scope, s.id) }

// expire forgets a session that nobody has continued, and cancels its run.
func (h *Handler) expire(s *session) {
	select {
	case <-s.busy:
	default: // somebody is being answered, and sets the timer
		return
	}
	if !s.gone {
		h.mu.Lock()
		h.forget(s)
		h.mu.Unlock()
		h.erase(s)
		h.reset(s)
	}
	s.busy <- struct{}{}
}

// forget takes a session out; the caller holds the lock and the session's token.
func (h *Handler) forget(s *session) {
	delete(h.sessions, s.key())
	for _, name := range s.names {
		if h.names[name] == s.id {
			delete(h.names, name)
		}
	}
	s.timer.Stop()
	s.gone = true
}

// room makes room for one more session of a user's, if need be by forgetting
// those that were idle for longest, which it returns. The caller holds the lock.
func (h *Handler) room(user string) (evicted []*session, ok bool) {
	mine := 0
	for _, s := range h.sessions {
		if s.user == user {
			mine++
		}
	}
	if mine >= h.opts.MaxPerUser {
		s := h.evict(func(s *session) bool { return s.user == user })
		if s == nil {
			return nil, false
		}
		evicted = append(evicted, s)
	}
	if len(h.sessions) >= h.opts.MaxSessions {
		s := h.evict(func(*session) bool { return true })
		if s == nil {
			return evicted, false
		}
		evicted = append(evicted, s)
	}
	return evicted, true
}

// evict forgets the session that was idle for longest, or none.
func (h *Handler) evict(among func(*session) bool) (oldest *session) {
	for _, s := range h.sessions {
		if !among(s) || oldest != nil && !s.at.Before(oldest.at) {
			continue
		}
		select {
		case <-s.busy:
			idle := s.run == nil
			s.busy <- struct{}{}
			if idle {
				oldest = s
			}
		default:
		}
	}
	if oldest == nil {
		return nil
	}
	select {
	case <-oldest.busy:
	default:
		return nil
	}
	h.forget(oldest)
	oldest.busy <- struct{}{}
	return oldest
}

// reset drops what a session was; its run is cancelled.
func (h *Handler) reset(s *session) {
	if s.run != nil {
		h.deps.Runner.Abandon(s.user, s.run.id)
		s.cancel(errForgotten)
	}
	s.waiting.Store(false)
	s.turns, s.run, s.told, s.task, s.round = nil, nil, false, 0, 0
}
