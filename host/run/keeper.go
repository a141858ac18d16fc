package run

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/host/fault"
	"weir/host/telemetry"
)

// Keeper keeps the runs that wait for a person, at all replicas of one store,
// and takes a run on when its answer is there:
//
//	engine parks ─► waiting ─┬─ answered  ─► claim ─► resume ─► waits again, or has ended
//	   (log)                 ├─ expired   ─►
//	                         └─ client left: cancelled, or kept without a listener
//
// Of everybody who answers at the same place of a log one wins, by appending
// first; of all replicas that would go on with the run one does, by claiming
// it. Between these two the replica with the client's stream has a head start.
type Keeper struct {
	engines Engines
	log     Log
	index   Index
	opts    KeeperOptions

	life context.Context
	end  context.CancelCauseFunc
	work sync.WaitGroup
	due  chan struct{} // a token for each log that is written later

	mu       sync.Mutex
	waiting  map[string]*waiting // by run
	running  map[string]*live    // by run
	going    map[string]struct{} // runs that go on here, until they wait again or have ended
	bells    map[string]*bell
	indexed  map[string]bool // runs that stand in the index as ours
	stopped  bool
	draining bool
}

// Engines are the engines of all generations that a run may have begun with.
type Engines interface {
	// Begin returns the engine that a request gets, what its variant is called,
	// "" where there are none, and what to call when the engine is not needed
	// any more.
	Begin(req *Request) (engine *Engine, variant string, release func(), err error)
	// Engine returns the engine of a generation, and what to call when it is not
	// needed any more. Gone means that what the generation was made of does not
	// exist any more.
	Engine(ctx context.Context, generation string) (*Engine, func(), error)
	// Kept reports whether Engine would find the generation.
	Kept(ctx context.Context, generation string) (bool, error)
}

// KeeperOptions are a keeper's settings.
type KeeperOptions struct {
	// Replica names this process; never used again by another. Default: a
	// random name.
	Replica string
	// Alone says that no other process uses the store, so whoever else is named
	// there has died.
	Alone bool
	// Park keeps a waiting run whose client leaves; else it is cancelled.
	Park bool
	// MaxPending bounds the questions that wait here, 1024 by default, and
	// MaxPerUser those of one user, MaxPending by default.
	MaxPending, MaxPerUser int
	// KeepEvents is how long the events of an ended run are shown, 15 m by default.
	KeepEvents time.Duration
	// Preference is the head start of the replica with the stream, 200 ms by
	// default.
	Preference time.Duration
	// Lease is how long a replica counts as alive that says nothing, 6 s by
	// default. Too short, and a busy replica loses its runs.
	Lease time.Duration
	// Note is what the replica's lease says; default an empty object.
	Note func() []byte
	// Digests is [Options].Digests for the records that a keeper appends.
	Digests bool
	// Reached is [Options].Reached for the records that a keeper appends: what
	// became of a question, and the end of a run that waited.
	Reached func(record string)
	// Tracer counts what became of questions; nil counts nothing.
	Tracer *telemetry.Tracer
	// Logger receives what went wrong, without any text of a request.
	Logger *slog.Logger
	// Now and NewID are the clock and the source of ids, for tests.
	Now   func() time.Time
	NewID func() string
}

func (o KeeperOptions) withDefaults() KeeperOptions {
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Replica == "" {
		o.Replica = uuid.NewString()
	}
	if o.MaxPending == 0 {
		o.MaxPending = 1024
	}
	if o.MaxPerUser == 0 {
		o.MaxPerUser = o.MaxPending
	}
	if o.KeepEvents == 0 {
		o.KeepEvents = 15 * time.Minute
	}
	if o.Preference == 0 {
		o.Preference = 200 * time.Millisecond
	}
	if o.Lease == 0 {
		o.Lease = 6 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Note == nil {
		o.Note = func() []byte { return []byte("{}") }
	}
	if o.Reached == nil {
		o.Reached = func(string) {}
	}
	return o
}

// waiting is a run that waits at this replica. Whoever takes it out of the map
// decides its fate.
type waiting struct {
	parked Parked
	ctx    context.Context // of the client; nil without one
	out    Observer
	over   func() // nothing more is shown to the client

	unfollow func() bool
	timer    *time.Timer
	again    func() // what the timer does instead, after the store did not answer
	dead     string // the replica that had gone on with it
}

// NewKeeper returns a keeper that [Keeper.Start] sets to work.
func NewKeeper(engines Engines, log Log, index Index, opts KeeperOptions) *Keeper {
	k := &Keeper{engines: engines, log: log, index: index, opts: opts.withDefaults(),
		waiting: map[string]*waiting{}, running: map[string]*live{}, going: map[string]struct{}{},
		bells: map[string]*bell{}, indexed: map[string]bool{}, due: make(chan struct{}, maxDue)}
	k.life, k.end = context.WithCancelCause(context.Background())
	return k
}

// maxDue bounds the logs that are written behind their clients' backs. Beyond
// it a run's stream ends when its log is written.
const maxDue = 256

// later writes the log of a run that has ended and that nobody will resume, so
// its client need not wait for the disk.
func (k *Keeper) later(write func()) {
	if k == nil {
		write()
		return
	}
	select {
	case k.due <- struct{}{}:
	default:
		write()
		return
	}
	if !k.do(func() { defer func() { <-k.due }(); write() }) {
		<-k.due
		write()
	}
}

// Settled waits until the log of a run that has ended here is written, for
// those that read it from the store.
func (k *Keeper) Settled(ctx context.Context, run string) {
	b, leave := k.listenTo(run)
	defer leave()
	for {
		rings := k.next(b)
		l := k.shows(run)
		if l == nil || !l.view(nil).ended() {
			return
		}
		select {
		case <-rings:
		case <-ctx.Done():
			return
		}
	}
}

// AllSettled waits until the logs of all runs that have ended here by now, as
// their clients may know, are written, or ctx ends.
func (k *Keeper) AllSettled(ctx context.Context) {
	k.mu.Lock()
	all := maps.Clone(k.running)
	k.mu.Unlock()
	for run, l := range all {
		if l.view(nil).ended() {
			k.Settled(ctx, run)
		}
	}
}

// shows returns the run of this name that followers read here, nil if there is
// none.
func (k *Keeper) shows(run string) *live {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running[run]
}

// Pending is the number of questions that wait at this replica.
func (k *Keeper) Pending() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.waiting)
}

// room tells whether one more question of a user's may wait here.
func (k *Keeper) room(user string) bool {
	if k == nil {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	own := 0
	for _, w := range k.waiting {
		if w.parked.Owner == user {
			own++
		}
	}
	return len(k.waiting) < k.opts.MaxPending && own < k.opts.MaxPerUser
}

// Run begins a run with the current policy, or that of the user's variant. It
// returns when the run has ended or waits for a person; over is called once, when
// nothing more is shown to out, which is then or after any number of further
// questions.
func (k *Keeper) Run(ctx context.Context, req Request, out Observer, over func()) {
	engine, variant, release, err := k.engines.Begin(&req)
	if err != nil {
		k.opts.Logger.Error("no run can begin", "run", req.RunID, "error", err)
		over()
		return
	}
	req.Variant = variant
	k.begin(req.RunID)
	var o Outcome
	defer func() {
		if o.Parked == nil { // else it waits
			k.began(req.RunID)
		}
	}()
	o = engine.Run(ctx, req, out)
	release()
	k.settle(ctx, req.RunID, o, out, over)
}

// settle sees to what becomes of a run that an engine has left.
func (k *Keeper) settle(ctx context.Context, id string, o Outcome, out Observer, over func()) {
	switch {
	case o.Parked != nil:
		k.keep(ctx, *o.Parked, out, over)
		return
	case o.unwritten != nil:
		over()
		w := &waiting{parked: Parked{Interaction: Interaction{Run: id}}}
		k.retry(w, func() { k.write(w, o.unwritten, endedPayload{State: o.State}) })
		return
	case !o.Lost:
		k.forget(id)
	}
	over()
	k.ring(id)
}

// keep lets a run wait here. The question is shown when it can be answered.
func (k *Keeper) keep(ctx context.Context, p Parked, out Observer, over func()) {
	w := &waiting{parked: p, ctx: ctx, out: out, over: over}
	k.add(w)
	out.Asked(p.Interaction)
	w.follow(ctx, k)
}

func (k *Keeper) add(w *waiting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting[w.parked.Run] = w
	delete(k.going, w.parked.Run)
	w.timer = time.AfterFunc(w.parked.Expires.Sub(k.opts.Now()), func() { k.expire(w) })
	k.ringLocked(w.parked.Run)
}

// retry lets a run wait once more, because the store did not answer when it
// should have gone on. Whose client leaves then goes on without one.
func (k *Keeper) retry(w *waiting, again func()) {
	k.mu.Lock()
	there := k.stopped || k.waiting[w.parked.Run] != nil
	if !there {
		k.waiting[w.parked.Run] = w
		w.again = again
		w.timer = time.AfterFunc(k.opts.Lease, func() {
			k.do(func() {
				if k.take(w) {
					w.again()
				}
			})
		})
	}
	ctx, out := w.ctx, w.out
	k.mu.Unlock()
	switch {
	case there && out != nil: // another replica goes on, or somebody here
		out.Ended(w.parked.Info)
		w.over()
	case !there && out != nil:
		w.follow(ctx, k)
	}
}

// decided tells whether it is known what becomes of a waiting run, and only the
// store is waited for.
func (k *Keeper) decided(w *waiting) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return w.again != nil
}

// passing tells an error that may be another one, or none, later.
func passing(err error) bool {
	kind := fault.Of(err)
	return kind == fault.Unavailable || kind == fault.Limit || errors.Is(err, context.DeadlineExceeded)
}

// follow notices when the client leaves, from when it has the question on.
func (w *waiting) follow(ctx context.Context, k *Keeper) {
	stop := context.AfterFunc(ctx, func() { k.left(w, context.Cause(ctx)) })
	k.mu.Lock()
	w.unfollow = stop
	draining := k.draining
	k.mu.Unlock()
	if draining {
		k.detach(w, true)
	}
}

// take takes a run out, once. It reports whether it was there.
func (k *Keeper) take(w *waiting) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.takeLocked(w)
}

// takeOn takes out a run that goes on here, so that it is here all the time. Who
// gets true calls goesOn or began.
func (k *Keeper) takeOn(w *waiting) bool {
	k.mu.Lock()
	taken := k.takeLocked(w)
	_, already := k.going[w.parked.Run]
	if taken {
		k.going[w.parked.Run] = struct{}{}
	}
	k.mu.Unlock()
	if taken && already {
		k.turnAway(w)
	}
	return taken && !already
}

func (k *Keeper) takeLocked(w *waiting) bool {
	if k.waiting[w.parked.Run] != w {
		return false
	}
	delete(k.waiting, w.parked.Run)
	w.timer.Stop()
	if w.unfollow != nil {
		w.unfollow()
	}
	return true
}

// find returns the run that waits here under this name.
func (k *Keeper) find(run string) *waiting {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting[run]
}

// do runs work that Stop waits for; after Stop it does nothing.
func (k *Keeper) do(f func()) (done bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.work.Go(f)
	}
	return !k.stopped
}

// Drain ends the streams of waiting runs, which wait on without them, and those
// of runs that begin to wait from now on.
func (k *Keeper) Drain() {
	k.mu.Lock()
	k.draining = true
	var all []*waiting
	for _, w := range k.waiting {
		all = append(all, w)
	}
	k.mu.Unlock()
	for _, w := range all {
		k.detach(w, true)
	}
}

// detach lets a run wait without its stream. With tell the client is told that
// nothing more comes.
func (k *Keeper) detach(w *waiting, tell bool) {
	k.mu.Lock()
	here := k.waiting[w.parked.Run] == w && w.out != nil
	out, over := w.out, w.over
	if here {
		w.out, w.over, w.ctx = nil, nil, nil
	}
	k.mu.Unlock()
	if !here {
		return
	}
	if tell {
		out.Ended(w.parked.Info)
	}
	over()
}

// goOn resumes a run that somebody has taken out.
func (k *Keeper) goOn(w *waiting) {
	if k.begin(w.parked.Run) {
		k.goesOn(w)
		return
	}
	k.turnAway(w)
}

// turnAway ends the stream of a run that goes on here already.
func (k *Keeper) turnAway(w *waiting) {
	_, out, over := k.audience(w)
	out.Ended(w.parked.Info)
	over()
}

// audience is who is shown a run that goes on.
func (k *Keeper) audience(w *waiting) (ctx context.Context, out Observer, over func()) {
	if w.out != nil && k.opts.Park && w.ctx.Err() != nil { // the client left a moment ago
		w.letGo()
	}
	if w.out == nil {
		return k.life, nobody{}, func() {}
	}
	return w.ctx, w.out, w.over
}

// goesOn is goOn for a run that was begun.
func (k *Keeper) goesOn(w *waiting) {
	ctx, out, over := k.audience(w)
	o, err := k.resume(ctx, w, out)
	if err != nil || o.Parked == nil { // else it is here until it waits
		k.began(w.parked.Run)
	}
	switch {
	case err != nil && k.life.Err() != nil: // another replica goes on, or the next start
		out.Ended(w.parked.Info)
		over()
		return
	case passing(err):
		k.opts.Logger.Error("a run cannot be resumed yet", "run", w.parked.Run, "error", err)
		k.retry(w, func() { k.goOn(w) })
		return
	case err != nil:
		k.opts.Logger.Error("a run cannot be resumed", "run", w.parked.Run, "error", err)
		k.lose(w)
		return
	case o.Lost: // its client finds it again under its events
		if !k.here(w.parked.Run) {
			k.forget(w.parked.Run)
		}
		out.Ended(w.parked.Info)
	}
	k.settle(ctx, w.parked.Run, o, out, over)
}

// begin reports whether a run goes on here only from now on, until began.
func (k *Keeper) begin(run string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.going[run]; ok {
		return false
	}
	k.going[run] = struct{}{}
	return true
}

func (k *Keeper) began(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.going, run)
}

// here tells whether a run waits or goes on here.
func (k *Keeper) here(run string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, going := k.going[run]
	return going || k.waiting[run] != nil || k.running[run] != nil
}

// resume lets the engine go on with a run. A panic is the run's failure, as it
// is of a run that begins.
func (k *Keeper) resume(ctx context.Context, w *waiting, out Observer) (o Outcome, err error) {
	defer func() {
		if p := recover(); p != nil { // the value may hold text of a request; its type does not
			o, err = Outcome{}, fault.New(fault.Internal, "a resumed run panicked: %T", p)
		}
	}()
	engine, release, err := k.engines.Engine(k.life, w.parked.Generation)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	if err := k.announce(k.life, w.parked.Run, w.parked.Generation, k.opts.Now()); err != nil {
		return Outcome{}, err
	}
	return engine.takeOver(ctx, w.parked.Run, k.opts.Replica, w.dead, out)
}

// nobody is where a run shows itself that no client listens to.
type nobody struct{}

func (nobody) Started(Info)      {}
func (nobody) Step(Step)         {}
func (nobody) Text(string)       {}
func (nobody) Asked(Interaction) {}
func (nobody) Failed(Failure)    {}
func (nobody) Ended(Info)        {}
