// Package turn is the action-object contract: a caller, such as AgentV's
// harness, gives an agent one message after another and performs its tool calls
// itself; each answer is one JSON object that says what the agent wants next.
//
//	message ─ decode ─ identity ─ place ─► session ─┬─ no run: a new user turn
//	                                                ├─ calls wait: their results
//	                                                ├─ a pause waits: a person's word
//	                                                └─ still at work: the same step
//	action object ◄─ encode ◄─ released text, calls, question, end
//
// It only translates: the engine behind [Runner] judges every call and result
// with the same policy and the same workflow as for every other contract, and
// the text that leaves here has passed its guards. HTTP, stdio and sockets
// differ in how bytes arrive (http.go, lines.go) and in what tells one session
// from another (session.go).
package turn

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/host/fault"
	"weir/host/run"
)

// Name is how this contract is named in a run's log.
const Name = "turn"

// PathTask is the contract's one route; POST.
const PathTask = "/execute_task"

// Runner is the engine. It keeps runs that wait, in its log and beyond a
// restart.
type Runner interface {
	// Run shows a new run to out and returns when it has ended or waits. Over is
	// called once, when nothing more is shown.
	Run(ctx context.Context, req run.Request, out run.Observer, over func())
	// Attach listens to a run of this user's that waits without a listener, and
	// returns what for. NotFound stands for every reason why not.
	Attach(ctx context.Context, user, run string, out run.Observer, over func()) (run.Interaction, error)
	// Abandon cancels a run of this user's that waits.
	Abandon(user, run string)
}

// Answers take what a waiting run waits for. Neither waits for the run. Errors:
// NotFound when nothing of that id waits, Gone when the run cannot go on.
type Answers interface {
	// Perform gives the results of the calls that a run has proposed.
	Perform(ctx context.Context, user, run, interaction string, results []run.CallResult) error
	// Say gives a person's word. Agreed tells whether it consents, where a
	// question takes nothing but consent.
	Say(ctx context.Context, user, run, interaction, text string, agreed bool) error
}

// Values keep what is said of a session beside the runs that it names.
type Values interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
	Delete(ctx context.Context, key string) error
}

// Deps are what a handler works with; all are required.
type Deps struct {
	Runner  Runner
	Answers Answers
	// Values are by what a request names its session, Sessions what it holds,
	// which is text: what was deleted, replaced or has expired there is not
	// readable anywhere.
	Values, Sessions Values
}

// Options are the contract's settings.
type Options struct {
	// Name and Version are the agent's, Model what answers for it.
	Name, Version, Model string
	// Tools are all that a caller performs, as models see them.
	Tools []run.Tool
	// Aliases are other members that may hold the task's text.
	Aliases []string
	// AcceptAuto takes "Auto-approved …" for consent. Default false: whoever
	// approves says so.
	AcceptAuto bool
	// InferSingle gives a request of a listener without a key that names no
	// session to the one run that waits there. Default false.
	InferSingle bool
	// Identity is what is done about identity_binding; the zero value ignores it.
	Identity Identity
	// AnswerTimeout is the longest wait for an answer, 25 s by default; then it
	// is "processing". Longer than the caller's own limit, and every slow model
	// is a failure.
	AnswerTimeout time.Duration
	// SessionTimeout ends a session that nobody continues, after 10 m by default.
	SessionTimeout time.Duration
	// MaxSessions bounds the sessions at once, 256 by default; beyond it
	// requests that begin one are refused. MaxPerUser, by default as many, is
	// the bound of one user.
	MaxSessions, MaxPerUser int
	// Logger receives what went wrong, never text of a request.
	Logger *slog.Logger
	// NewID is the source of ids, for tests.
	NewID func() string
}

func (o Options) withDefaults() Options {
	if o.AnswerTimeout == 0 {
		o.AnswerTimeout = 25 * time.Second
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 10 * time.Minute
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 256
	}
	if o.MaxPerUser == 0 {
		o.MaxPerUser = o.MaxSessions
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	return o
}

// Handler answers the contract's requests, of whatever transport. It is safe for
// concurrent use; the requests of one session are answered one after the other.
type Handler struct {
	deps Deps
	opts Options
	dna  string // tool_dna_hash
	runs sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session // by scope and id
	names    map[string]string   // what a request may say, to the id that it stands for
	draining bool                // no session begins
	drained  bool                // no run goes on
}

// New returns a handler.
func New(deps Deps, opts Options) (*Handler, error) {
	if deps.Runner == nil || deps.Answers == nil || deps.Values == nil || deps.Sessions == nil || opts.Name == "" {
		return nil, fault.New(fault.Internal, "turn: a runner, answers, values, sessions and a name are required")
	}
	dna, err := ToolDNA(opts.Tools)
	if err != nil {
		return nil, err
	}
	return &Handler{deps: deps, opts: opts.withDefaults(), dna: dna, sessions: map[string]*session{}, names: map[string]string{}}, nil
}

// ToolDNA is tool_dna_hash of the tools.
func (h *Handler) ToolDNA() string { return h.dna }

// Caller is who sends a request, and what tells its session from others where no
// key does.
type Caller struct {
	Request run.Request // principal, request id and its source
	// Local says that nobody was authenticated: then, and only then, a
	// connection, a process or a trace may stand for a session.
	Local      bool
	Connection string // unique in this process
	Process    bool   // one caller is all that this process serves
	// Traceparent is the transport's own, as it came.
	Traceparent string

	identity string // that a request has proved
}

// scope is whose sessions a request may name: the user's, as the identity that
// it has proved, or as none.
func (c Caller) scope() string {
	if c.identity == "" {
		return c.Request.Principal.UserID
	}
	return c.Request.Principal.UserID + "\x00" + c.identity
}

// maxTurns is how many turns a session remembers; a run sees fewer.
const maxTurns = 256

// errCapacity refuses a session that cannot be kept.
var errCapacity = fault.Coded(fault.Unavailable, "capacity", "the agent is at capacity")

// errLate refuses what cannot answer a question, because it was sent before
// that was told.
var errLate = fault.Coded(fault.Conflict, "late", "another request of the session was answered meanwhile")

// answer answers one request. Errors are of the kinds that [status] knows; what
// went wrong with a run is an answer too.
func (h *Handler) answer(ctx context.Context, c Caller, body []byte) (*reply, error) {
	q, err := decodeRequest(body, h.opts.Aliases)
	if err != nil {
		return nil, err
	}
	if c.identity, err = h.opts.Identity.check(q); err != nil {
		return nil, err
	}
	c.Request.Traceparent = joined(q.traceparent, c.Traceparent)
	within, cancel := context.WithTimeout(ctx, h.opts.AnswerTimeout) // of which waiting for others is a part
	defer cancel()
	s, late, err := h.place(within, c, q)
	if err != nil {
		return nil, err
	}
	defer h.leave(s)
	if late && s.asked == q.message() {
		return s.last, nil // the same message, sent while it was answered
	}
	if err := h.advance(ctx, s, c, q, late); err != nil {
		return nil, err
	}
	r := s.settle(wait(within, s), h.opts.NewID())
	s.asked, s.last = q.message(), r
	s.answered.Add(1)
	h.keep(ctx, s)
	return r, nil
}

// advance gives the request to what the session waits for, or begins a run. A
// late request was sent before the last reply was.
func (h *Handler) advance(ctx context.Context, s *session, c Caller, q *request, late bool) error {
	if q.turn == 1 && q.run != "" && !q.past() && s.used() {
		h.reset(s) // a new attempt
	}
	switch {
	case s.run == nil:
		return h.begin(s, c, q)
	case !s.told: // still at work, or what came of it has not been said
		return nil
	case q.newTask():
		h.reset(s)
		return h.begin(s, c, q)
	case late:
		return errLate
	}
	return h.resume(ctx, s, c, q)
}

// resume gives a waiting run its results, or a person's word. Where the run is
// no more the request is what it would be to a session that nobody knows: who
// asks learns nothing of what there was (FAULTS A2).
func (h *Handler) resume(ctx context.Context, s *session, c Caller, q *request) error {
	i, ok := s.run.expect() // before the answer: what comes of it may come at once
	s.waiting.Store(false)
	if !ok { // it has ended meanwhile
		h.reset(s)
		return h.begin(s, c, q)
	}
	var err error
	if i.Kind == run.KindCalls {
		err = h.deps.Answers.Perform(ctx, s.user, i.Run, i.ID, q.results(callCount(i)))
	} else { // the live message and nothing else: a history consents to nothing
		err = h.deps.Answers.Say(ctx, s.user, i.Run, i.ID, q.task, h.agrees(q.task))
	}
	switch kind := fault.Of(err); {
	case err == nil:
		s.told = false
		h.goesOn(s)
		return nil
	case kind == fault.NotFound || kind == fault.Gone || kind == fault.Denied:
		h.reset(s)
		return h.begin(s, c, q)
	}
	s.run.Asked(i) // it waits on
	s.waiting.Store(true)
	return err
}

// begin starts a run with the request as its latest user turn.
func (h *Handler) begin(s *session, c Caller, q *request) error {
	turns, past, err := s.conversation(q)
	if err != nil {
		return err
	}
	req := c.Request
	req.Contract, req.RunID, req.Turns, req.Variant = Name, h.opts.NewID(), turns, s.variant
	req.Caller = &run.Caller{Tools: h.opts.Tools, Past: past}
	ctx := s.lives()
	h.goesOn(s)
	s.turns, s.told = turns[max(0, len(turns)-maxTurns):], false
	s.task++
	s.round = 0
	o := newOngoing(req.RunID)
	s.run = o
	h.runs.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				// The value may hold text of a request; its type does not.
				h.opts.Logger.Error("a run panicked", "class", fmt.Sprintf("%T", p))
				o.Failed(run.FailureRun)
				o.over()
			}
		}()
		h.deps.Runner.Run(ctx, req, o, o.over)
	})
	return nil
}

// goesOn ends a run that would go on after a drain.
func (h *Handler) goesOn(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drained {
		s.interrupt()
	}
}

// wait waits until the session's run wants something, has ended, or ctx has.
func wait(ctx context.Context, s *session) outcome {
	for {
		now, changed := s.run.look()
		if now.settled() {
			return now
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now
		}
	}
}

// Refuse refuses requests that begin a session, as at capacity, from now on.
func (h *Handler) Refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Drain ends the runs that are at work, and those that would go on later; those
// that wait, wait on. It refuses what [Handler.Refuse] does.
func (h *Handler) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining, h.drained = true, true
	for _, s := range h.sessions {
		s.timer.Stop()
		s.interrupt()
	}
}

// Wait waits until no run is at work that was begun here, or ctx ends.
func (h *Handler) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() { defer close(done); h.runs.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
