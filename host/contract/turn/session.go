package turn

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/run"
)

// session is one conversation with a caller. All but the first four fields
// belong to the request that holds busy's token.
type session struct {
	id      string // what our replies call it
	user    string
	busy    chan struct{} // holds one token while nobody is answered
	waiting atomic.Bool   // its run waits for the caller, who was told

	life  atomic.Pointer[context.CancelCauseFunc] // ends its run
	timer *time.Timer                             // forgets it; set before anybody else sees it
	last  time.Time                               // it was answered; under the handler's lock

	gone  bool       // forgotten
	names []string   // under which requests find it
	reply string     // id of the last one
	turns []abi.Turn // the conversation; while a run is there, its question is the last
	run   *ongoing   // nil: the last one has ended, and its end was told
	told  bool       // what the run waits for was told
	task  int        // user turns so far
	round int        // replies to the latest
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

// place finds the request's session, or makes one, and takes its token.
func (h *Handler) place(ctx context.Context, c Caller, q *request) (*session, error) {
	fresh := false
	for {
		s, err := h.find(ctx, c, q, fresh)
		if err != nil {
			return nil, err
		}
		select {
		case <-s.busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case s.gone:
			s.busy <- struct{}{}
		case !fresh && s.used() && q.run == "" && q.session != "" && s.reply != q.reply:
			// Not the history that this session has had: another conversation.
			h.leave(s)
			fresh = true
		default:
			return s, nil
		}
	}
}

// leave gives the token back; the session waits for its next request.
func (h *Handler) leave(s *session) {
	h.mu.Lock()
	s.last = time.Now()
	if !h.draining {
		s.timer.Reset(h.opts.SessionTimeout)
	}
	h.mu.Unlock()
	s.busy <- struct{}{}
}

// find returns the session that a request names, as the decisions have it: by
// run id, else by history, else, where nobody is authenticated, by trace,
// process or connection, else the only one that waits, else a new one.
func (h *Handler) find(ctx context.Context, c Caller, q *request, fresh bool) (*session, error) {
	name := nameOf(c, q)
	id := ""
	if !fresh {
		id = h.idOf(ctx, c, q, name)
	}
	if id != "" {
		s, err := h.known(ctx, c, id)
		if s != nil || err != nil {
			return s, err
		}
	}
	return h.create(ctx, c, name)
}

// nameOf is what a request says of its session beside its history; empty: it
// says nothing that counts.
func nameOf(c Caller, q *request) string {
	user := c.Request.Principal.UserID
	trace := traceID(c.Request.Traceparent)
	switch {
	case q.run != "":
		return hashed(user, "run", q.run)
	case !c.Local:
	case trace != "" && !q.past():
		return hashed(user, "trace", trace)
	case c.Process:
		return hashed(user, "process", "")
	case c.Connection != "":
		return connectionPrefix + hashed(user, c.Connection)
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
		return h.single(c.Request.Principal.UserID)
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
func (h *Handler) single(user string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := ""
	for _, s := range h.sessions {
		if s.user != user || !s.waiting.Load() {
			continue
		}
		if id != "" {
			return ""
		}
		id = s.id
	}
	return id
}

// known returns a session of this user's, from memory or from the store; nil
// when there is none.
func (h *Handler) known(ctx context.Context, c Caller, id string) (*session, error) {
	user := c.Request.Principal.UserID
	key := hashed(user, "session", id)
	h.mu.Lock()
	s := h.sessions[key]
	h.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s = h.load(ctx, user, id)
	if s == nil {
		return nil, nil
	}
	return h.admit(key, s)
}

func (h *Handler) create(ctx context.Context, c Caller, name string) (*session, error) {
	s := newSession(h.opts.NewID(), c.Request.Principal.UserID)
	if name != "" {
		s.names = []string{name}
	}
	s, err := h.admit(hashed(s.user, "session", s.id), s)
	if err == nil && name != "" {
		h.mu.Lock()
		h.names[name] = s.id
		h.mu.Unlock()
	}
	return s, err
}

func newSession(id, user string) *session {
	s := &session{id: id, user: user, busy: make(chan struct{}, 1)}
	s.busy <- struct{}{}
	return s
}

// admit adds a session, or returns the one that somebody has added before.
func (h *Handler) admit(key string, s *session) (*session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.sessions[key]; other != nil {
		return other, nil
	}
	if h.draining || !h.room(s.user) {
		return nil, errCapacity
	}
	h.sessions[key] = s
	for _, name := range s.names {
		h.names[name] = s.id
	}
	s.timer = time.AfterFunc(h.opts.SessionTimeout, func() { h.expire(key, s) })
	return s, nil
}

// expire forgets a session that nobody has continued, and cancels its run.
func (h *Handler) expire(key string, s *session) {
	select {
	case <-s.busy:
	default: // somebody is being answered, and sets the timer
		return
	}
	h.mu.Lock()
	h.forget(key, s)
	h.mu.Unlock()
	h.reset(s)
	s.busy <- struct{}{}
}

// forget takes a session out; the caller holds the lock and the session's token.
func (h *Handler) forget(key string, s *session) {
	delete(h.sessions, key)
	for _, name := range s.names {
		if h.names[name] == s.id {
			delete(h.names, name)
		}
	}
	s.timer.Stop()
	s.gone = true
}

// room makes room for one more session of a user's, if need be by forgetting
// the one that was idle for longest; the store still has it. The caller holds
// the lock.
func (h *Handler) room(user string) bool {
	mine := 0
	for _, s := range h.sessions {
		if s.user == user {
			mine++
		}
	}
	return (mine < h.opts.MaxPerUser || h.evict(func(s *session) bool { return s.user == user })) &&
		(len(h.sessions) < h.opts.MaxSessions || h.evict(func(*session) bool { return true }))
}

func (h *Handler) evict(among func(*session) bool) bool {
	var key string
	var oldest *session
	for k, s := range h.sessions {
		if !among(s) || oldest != nil && !s.last.Before(oldest.last) {
			continue
		}
		select {
		case <-s.busy:
			idle := s.run == nil && s.used()
			s.busy <- struct{}{}
			if idle {
				key, oldest = k, s
			}
		default:
		}
	}
	if oldest == nil {
		return false
	}
	select {
	case <-oldest.busy:
	default:
		return false
	}
	h.forget(key, oldest)
	oldest.busy <- struct{}{}
	return true
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
