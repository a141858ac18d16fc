package run

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/abi"
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
	// Engine returns the engine of a generation, "" for the current one, and
	// what to call when it is not needed any more. Gone means that what the
	// generation was made of does not exist any more.
	Engine(ctx context.Context, generation string) (*Engine, func(), error)
	// Kept reports whether Engine would find the generation.
	Kept(ctx context.Context, generation string) (bool, error)
}

// Index is what a keeper shares with those of other replicas beside the logs.
type Index interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
	Delete(ctx context.Context, key string) error
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Changes yields the zero Change when it listens, and from then on the logs
	// with the prefix that are appended to, with their positions. It may leave out all but the last of a log.
	Changes(ctx context.Context, prefix string) iter.Seq2[Change, error]
}

// Change says that a log has reached a position.
type Change struct {
	Log      string
	Position int64
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
		k.mu.Lock()
		l := k.running[run]
		k.mu.Unlock()
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

// AllSettled waits until no log is due, or ctx ends.
func (k *Keeper) AllSettled(ctx context.Context) {
	for len(k.due) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
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

// Run begins a run with the current policy. It returns when the run has ended
// or waits for a person; over is called once, when nothing more is shown to
// out, which is then or after any number of further questions.
func (k *Keeper) Run(ctx context.Context, req Request, out Observer, over func()) {
	engine, release, err := k.engines.Engine(ctx, "")
	if err != nil {
		k.opts.Logger.Error("no run can begin", "run", req.RunID, "error", err)
		over()
		return
	}
	o := engine.Run(ctx, req, out)
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

// left is called when a waiting run's client has left, or the host drains.
func (k *Keeper) left(w *waiting, cause error) {
	k.mu.Lock()
	here, decided := w.out != nil, w.again != nil // else its stream was ended by us
	k.mu.Unlock()
	if !here {
		return
	}
	drain := fault.CodeOf(cause) == CodeDrain
	if !drain && !decided && !k.opts.Park && k.do(func() { k.cancel(w) }) {
		return
	}
	k.detach(w, drain)
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

// cancel ends a waiting run whose client has left.
func (k *Keeper) cancel(w *waiting) {
	if k.take(w) {
		k.cancelTaken(w)
	}
}

func (k *Keeper) cancelTaken(w *waiting) {
	j, p, err := k.open(k.life, w.parked.Run)
	if err == nil && p.opened.ID != w.parked.ID {
		err = errNoInteraction
	}
	if err == nil {
		err = k.finish(j, RecordInteractionCancelled, w.parked.ID, endedPayload{State: Cancelled})
	}
	switch {
	case err == nil:
		k.count(j, w.parked.Kind, RecordInteractionCancelled)
		k.forget(w.parked.Run)
		w.letGo()
		k.ring(w.parked.Run)
	case taken(err) || fault.Of(err) == fault.NotFound: // somebody has answered before
		k.goOn(w)
	default:
		k.opts.Logger.Error("a run whose client left is not cancelled in the log", "run", w.parked.Run, "error", err)
		w.letGo()
		k.retry(w, func() { k.cancelTaken(w) })
	}
}

// letGo ends the stream of a run that somebody has taken out.
func (w *waiting) letGo() {
	if w.out != nil {
		w.over()
	}
	w.ctx, w.out, w.over = nil, nil, nil
}

// write writes the end of a run that the store did not take when it ended. If
// the log says otherwise by now, it says at least that the run has ended.
func (k *Keeper) write(w *waiting, j *journal, end endedPayload) {
	err := j.close(k.life, k.log, k.opts.NewID)
	if err != nil && fault.Of(err) != fault.Unavailable { // for instance an attempt before was made, and its acknowledgement got lost
		err = k.conclude(w, end)
	}
	if passing(err) && k.life.Err() == nil {
		k.opts.Logger.Error("the end of a run is not in the log yet", "run", w.parked.Run, "error", err)
		k.retry(w, func() { k.write(w, j, end) })
		return
	}
	if err != nil {
		k.opts.Logger.Error("the end of a run is not in the log", "run", w.parked.Run, "error", err)
	}
	k.forget(w.parked.Run)
	k.ring(w.parked.Run)
}

// conclude ends a run in the log, unless it has ended or goes on elsewhere.
func (k *Keeper) conclude(w *waiting, end endedPayload) error {
	for {
		j, err := read(k.life, k.log, w.parked.Run)
		if fault.Of(err) == fault.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		if j.entries[len(j.entries)-1].Kind == RecordRunEnded {
			return j.close(k.life, k.log, k.opts.NewID)
		}
		if by, err := j.claimant(k.life, k.log); err != nil || by != "" && by != k.opts.Replica && by != w.dead {
			return err
		}
		kind, id := "", ""
		if p, err := j.question(k.life, k.log); err != nil {
			return err
		} else if p.open {
			kind, id = RecordInteractionCancelled, p.opened.ID
		}
		if err := k.finish(j, kind, id, end); !taken(err) {
			return err
		}
	}
}

// finish ends a run that waits: what became of its question, and its end.
func (k *Keeper) finish(j *journal, kind, interaction string, end endedPayload) error {
	j.now, j.reached = k.opts.Now, k.opts.Reached
	if kind != "" {
		if err := j.add(kind, resolvedPayload{ID: interaction}, true); err != nil {
			return err
		}
	}
	if err := j.add(RecordRunEnded, end, true); err != nil {
		return err
	}
	return j.close(k.life, k.log, k.opts.NewID)
}

// taken tells that somebody else has gone on with a log.
func taken(err error) bool {
	kind := fault.Of(err)
	return kind == fault.Conflict || kind == fault.Gone
}

// expire records that nobody answered in time, and lets the run go on.
func (k *Keeper) expire(w *waiting) {
	k.do(func() {
		if k.take(w) {
			k.expireTaken(w)
		}
	})
}

func (k *Keeper) expireTaken(w *waiting) {
	err := k.resolve(k.life, w.parked.Run, w.parked.ID, RecordInteractionExpired, nil)
	if err != nil && fault.Of(err) != fault.NotFound && k.life.Err() == nil {
		k.opts.Logger.Error("an expiry is not in the log yet", "run", w.parked.Run, "error", err)
		k.retry(w, func() { k.expireTaken(w) })
		return
	}
	k.goOn(w)
}

// resolve appends what became of a run's open question. NotFound means that it
// is not open any more.
func (k *Keeper) resolve(ctx context.Context, run, interaction, kind string, answer abi.Raw) error {
	for {
		j, p, err := k.open(ctx, run)
		if err != nil {
			return err
		}
		if p.opened.ID != interaction {
			return errNoInteraction
		}
		if err := j.add(kind, resolvedPayload{ID: interaction, Answer: answer}, answer == nil); err != nil {
			return err
		}
		err = j.flush(ctx, k.log, k.opts.NewID, false)
		if err == nil {
			k.count(j, p.opened.Kind, kind)
		}
		if !taken(err) {
			return err
		}
	}
}

// count tells what became of a person's question, and how long it was open.
func (k *Keeper) count(j *journal, of, kind string) {
	if of == KindCalls { // a caller's tools are no question
		return
	}
	for i := len(j.entries) - 1; i >= 0; i-- {
		if e := &j.entries[i]; e.Kind == RecordInteractionOpened {
			k.opts.Tracer.Approval(strings.TrimPrefix(kind, "interaction_"), k.opts.Now().Sub(time.UnixMilli(e.Time)))
			return
		}
	}
}

// errNoInteraction is the answer for everything that is not there.
var errNoInteraction = fault.New(fault.NotFound, "no pending interaction with that id")

// open reads a run that waits for an answer; NotFound when it does not.
func (k *Keeper) open(ctx context.Context, run string) (*journal, *past, error) {
	j, err := read(ctx, k.log, run)
	if fault.Of(err) == fault.NotFound || fault.Of(err) == fault.Invalid {
		return nil, nil, errNoInteraction
	}
	if err != nil {
		return nil, nil, err
	}
	j.now, j.reached, j.digests = k.opts.Now, k.opts.Reached, k.opts.Digests
	p, err := j.question(ctx, k.log)
	if err == nil && !p.open || fault.Of(err) == fault.Gone {
		err = errNoInteraction
	}
	if err != nil {
		return nil, nil, err
	}
	return j, p, nil
}

// question reads no more of a log than where its last question stands: a run that
// ends meanwhile drops the payloads of those before.
func (j *journal) question(ctx context.Context, log Log) (*past, error) {
	p := &past{}
	if j.entries[len(j.entries)-1].Kind == RecordRunEnded {
		p.ended = &endedPayload{}
		return p, nil
	}
	for i := len(j.entries) - 1; i >= 0; i-- {
		switch j.entries[i].Kind {
		case RecordInteractionOpened:
			return p, p.take(ctx, log, j, i)
		case RecordInteractionAnswered, RecordInteractionCancelled, RecordInteractionExpired:
			return p, nil
		}
	}
	return p, nil
}

// Answer gives a person's answer to a run. Accept holds it against the prompt
// and returns it as the log keeps it. Errors: NotFound when no such question is
// open, Denied when it is another one's, what accept says, Gone when the run
// cannot go on. It does not wait for the run.
func (k *Keeper) Answer(ctx context.Context, user, run, interaction string,
	accept func(kind string, prompt abi.Raw) (abi.Raw, error)) error {

	w := k.find(run)
	i, generation, err := k.asked(ctx, w, run)
	switch {
	case err != nil:
		return err
	case i.ID != interaction || !k.opts.Now().Before(i.Expires):
		return errNoInteraction
	case i.Owner != user:
		return fault.New(fault.Denied, "this approval was not addressed to the authenticated user")
	}
	answer, err := accept(i.Kind, i.Prompt)
	if err != nil {
		return err
	}
	if kept, err := k.engines.Kept(ctx, generation); err != nil {
		return err
	} else if !kept {
		k.do(func() {
			if w == nil {
				w = &waiting{parked: Parked{Interaction: Interaction{Run: run}}}
			} else if !k.take(w) {
				return
			}
			k.lose(w)
		})
		return fault.New(fault.Gone, "the run this interaction belonged to has ended")
	}
	if err := k.resolve(ctx, run, interaction, RecordInteractionAnswered, answer); err != nil {
		return err
	}
	k.deliver(run, w)
	return nil
}

// asked returns a run's open question and its generation.
func (k *Keeper) asked(ctx context.Context, w *waiting, run string) (Interaction, string, error) {
	decided := w != nil && k.decided(w)
	if w != nil && !decided {
		return w.parked.Interaction, w.parked.Generation, nil
	}
	j, p, err := k.open(ctx, run)
	if err == nil && decided && p.opened.ID == w.parked.ID {
		err = errNoInteraction
	}
	if err != nil {
		return Interaction{}, "", err
	}
	return p.interaction(run), j.generation, nil
}

// deliver takes on a run that has just been answered: at once where it waits,
// else when the replica with its stream has had its time.
func (k *Keeper) deliver(run string, w *waiting) {
	if w != nil {
		if k.take(w) && !k.do(func() { k.goOn(w) }) && w.out != nil {
			w.out.Ended(w.parked.Info) // the host stops; another replica goes on
			w.over()
		}
		return
	}
	time.AfterFunc(k.opts.Preference, func() { k.do(func() { k.pickUp(run) }) })
}

// pickUp goes on with a run that nobody has claimed yet.
func (k *Keeper) pickUp(run string) {
	j, err := read(k.life, k.log, run)
	if err != nil || j.entries[len(j.entries)-1].Kind != RecordInteractionAnswered {
		return
	}
	if w := k.find(run); w != nil {
		if !k.decided(w) && k.take(w) {
			k.goOn(w)
		}
		return
	}
	k.goOn(&waiting{parked: Parked{Interaction: Interaction{Run: run}, Generation: j.generation}})
}

// lose ends a run that somebody has taken out and that cannot go on, because
// its generation does not exist any more or its log cannot be read.
func (k *Keeper) lose(w *waiting) {
	err := k.conclude(w, endedPayload{State: Failed, Reason: "it cannot be resumed"})
	if w.out != nil {
		w.out.Failed(FailureRun)
		w.out.Ended(w.parked.Info)
	}
	w.letGo()
	if err != nil {
		k.opts.Logger.Error("a run that cannot go on is not ended in the log", "run", w.parked.Run, "error", err)
	}
	if passing(err) && k.life.Err() == nil {
		k.retry(w, func() { k.lose(w) })
		return
	}
	k.forget(w.parked.Run)
	k.ring(w.parked.Run)
}

// goOn resumes a run that somebody has taken out.
func (k *Keeper) goOn(w *waiting) {
	if w.out != nil && k.opts.Park && w.ctx.Err() != nil { // the client left a moment ago
		w.letGo()
	}
	ctx, out, over := w.ctx, w.out, w.over
	if out == nil {
		ctx, out, over = k.life, nobody{}, func() {}
	}
	if !k.begin(w.parked.Run) { // it does already
		out.Ended(w.parked.Info)
		over()
		return
	}
	o, err := k.resume(ctx, w, out)
	k.began(w.parked.Run)
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

// openRun is what the index says of a run that is not ended.
type openRun struct {
	Generation string `json:"generation"`
	Expires    int64  `json:"expires"` // of its question, milliseconds
}

// Prefixes of the index's keys. The values are JSON objects with a member
// generation.
const (
	OpenPrefix    = "open."    // <replica>.<run>
	ReplicaPrefix = "replica." // <replica>
)

func (k *Keeper) key(run string) string { return OpenPrefix + k.opts.Replica + "." + run }

// announce puts a run into the index, where others find it should we die. It
// stands there before the log has the question.
func (k *Keeper) announce(ctx context.Context, run, generation string, expires time.Time) error {
	if k == nil {
		return nil
	}
	body, err := json.Marshal(openRun{Generation: generation, Expires: expires.UnixMilli()})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.indexed[run] = true
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
	defer cancel()
	return k.index.Put(ctx, k.key(run), body, 0)
}

// forget takes an ended run out of the index, where those that never waited do
// not stand.
func (k *Keeper) forget(run string) {
	k.mu.Lock()
	indexed := k.indexed[run]
	delete(k.indexed, run)
	k.mu.Unlock()
	if !indexed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.life), logTimeout)
	defer cancel()
	if err := k.index.Delete(ctx, k.key(run)); err != nil {
		k.opts.Logger.Warn("an ended run is still in the index", "run", run, "error", err)
	}
}

// nobody is where a run shows itself that no client listens to.
type nobody struct{}

func (nobody) Started(Info)      {}
func (nobody) Step(Step)         {}
func (nobody) Text(string)       {}
func (nobody) Asked(Interaction) {}
func (nobody) Failed(Failure)    {}
func (nobody) Ended(Info)        {}
