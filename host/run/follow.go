package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/host/fault"
)

// live is a run in progress at this replica, for followers.
type live struct {
	owner string
	info  Info
	shown *shown
}

// live lets followers read a run until the returned function is called.
func (k *Keeper) live(run, owner string, info Info, s *shown) (gone func()) {
	if k == nil {
		return func() {}
	}
	l := &live{owner: owner, info: info, shown: s}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running[run] = l
	k.ringLocked(run)
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.running[run] == l {
			delete(k.running, run)
		}
		k.ringLocked(run)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tell() // what comes next stands in the log
	}
}

// bell wakes those who follow a run.
type bell struct {
	rings chan struct{} // closed and replaced when something happens to the run
	users int
}

// listenTo returns a run's bell and what to call when nobody listens any more.
func (k *Keeper) listenTo(run string) (b *bell, leave func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b = k.bells[run]
	if b == nil {
		b = &bell{rings: make(chan struct{})}
		k.bells[run] = b
	}
	b.users++
	return b, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if b.users--; b.users == 0 {
			delete(k.bells, run)
		}
	}
}

// next is closed when something happens to the run from now on.
func (k *Keeper) next(b *bell) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return b.rings
}

func (k *Keeper) ring(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ringLocked(run)
}

func (k *Keeper) ringLocked(run string) {
	if b := k.bells[run]; b != nil {
		close(b.rings)
		b.rings = make(chan struct{})
	}
}

// ringAll wakes all followers: something may have happened to any run.
func (k *Keeper) ringAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for run := range k.bells {
		k.ringLocked(run)
	}
}

// Follower is shown a run's events again. At names the place that is reached
// with what is shown next, for a client that comes back; Gap says that events
// are missing there. Either Started or Continued comes first.
type Follower interface {
	Observer
	At(place string)
	Gap(reason string)
	// Continued names the run to a client that has its start.
	Continued(Info)
}

// place is where a follower stands: the records it has seen, of which epoch the
// last one is, and the bytes of released text.
type place struct {
	epoch, n, offset int
}

func (p place) String() string { return fmt.Sprintf("%d-%d-%d", p.epoch, p.n, p.offset) }

// parsePlace reads a place; the start for "".
func parsePlace(s string) (place, error) {
	var p place
	if s == "" {
		return p, nil
	}
	parts := strings.Split(s, "-")
	if len(parts) != 3 {
		return p, errPlace
	}
	for i, into := range []*int{&p.epoch, &p.n, &p.offset} {
		v, err := strconv.Atoi(parts[i])
		if err != nil || v < 0 || strconv.Itoa(v) != parts[i] {
			return p, errPlace
		}
		*into = v
	}
	return p, nil
}

var (
	errPlace  = fault.New(fault.Invalid, "Last-Event-ID: expected <epoch>-<n>-<offset>")
	errNoRun  = fault.New(fault.NotFound, "not found")
	errRemote = fault.New(fault.Conflict, "the run is in progress at another replica")
)

// view is a run as a follower finds it.
type view struct {
	entries  []entry
	tail     string // released and without a record yet; begins at recorded
	recorded int
	changed  <-chan struct{} // of a run in progress here
	log      Log             // nil: nothing of it can be read any more
	started  startedPayload
	live     bool
}

// load decodes a record's payload. It changes nothing, since others may look at
// the same records.
func (v *view) load(ctx context.Context, i int, into any) error {
	e := v.entries[i]
	if v.log == nil {
		return fault.New(fault.Gone, "expired")
	}
	var err error
	if e.payload, err = e.body(ctx, v.log.Blob); err != nil {
		return err
	}
	return e.decode(into)
}

// Follow looks for a run of this user's; show shows its events after the place,
// until the run has ended or the context has. Errors are NotFound for
// everything that is not this user's run, Conflict for a run in progress
// elsewhere, Invalid for a place that is none.
func (k *Keeper) Follow(ctx context.Context, user, run, after string) (show func(context.Context, Follower), err error) {
	from, err := parsePlace(after)
	if err != nil {
		return nil, err
	}
	v, err := k.view(ctx, run)
	if err != nil {
		return nil, err
	}
	if v.started.Principal != user {
		return nil, errNoRun
	}
	if !v.live && !v.rests() && !k.here(run) { // here: it is being taken up
		return nil, errRemote
	}
	return func(ctx context.Context, out Follower) { k.follow(ctx, run, from, out) }, nil
}

// view looks at a run in progress here, or at its log.
func (k *Keeper) view(ctx context.Context, run string) (*view, error) {
	if l := k.shows(run); l != nil {
		return l.view(k.log), nil
	}
	j, err := read(ctx, k.log, run)
	if err != nil {
		return nil, k.unseen(run, err)
	}
	v := &view{entries: j.entries, log: k.log}
	if err := v.load(ctx, 0, &v.started); err != nil && fault.Of(err) != fault.Gone {
		return nil, k.unseen(run, err)
	}
	if v.expired(k.opts.Now(), k.opts.KeepEvents) {
		v.log = nil
	}
	if open := openQuestion(v.entries); open >= 0 && k.asking(run) { // it is shown when it can be answered
		v.entries = v.entries[:open]
	}
	return v, nil
}

// asking tells whether a run goes on here and does not wait yet.
func (k *Keeper) asking(run string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, going := k.going[run]
	return going && k.waiting[run] == nil
}

// unseen is what anybody is told of a run whose owner cannot be read: that there
// is none, unless the store does not answer, which has nothing to do with it.
func (k *Keeper) unseen(run string, err error) error {
	if passing(err) {
		return fault.New(fault.Unavailable, "the store does not answer")
	}
	if kind := fault.Of(err); kind == fault.Internal || kind == fault.Limit {
		k.opts.Logger.Error("the log of a run cannot be read", "run", run, "error", err)
	}
	return errNoRun
}

func (l *live) view(log Log) *view {
	s := l.shown
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.journal.entries
	if open := openQuestion(entries); open >= 0 { // it is shown when it can be answered
		entries = entries[:open]
	}
	v := &view{entries: entries, recorded: s.recorded, tail: s.released.String()[s.recorded:],
		changed: s.changed, log: log, live: true}
	v.started.Principal = l.owner
	v.started.StepID, v.started.TraceID, v.started.RequestID = l.info.StepID, l.info.TraceID, l.info.RequestID
	v.started.Variant = l.info.Variant
	return v
}

// rests tells whether a run that is in progress nowhere may go on only by
// somebody's doing: it has ended, or it waits.
func (v *view) rests() bool {
	for i := len(v.entries) - 1; i >= 0; i-- {
		switch v.entries[i].Kind {
		case RecordRunEnded, RecordInteractionOpened:
			return true
		case RecordInteractionAnswered, RecordInteractionExpired, RecordInteractionCancelled, RecordRunClaimed:
			return false
		}
	}
	return false
}

func (v *view) ended() bool {
	return len(v.entries) > 0 && v.entries[len(v.entries)-1].Kind == RecordRunEnded
}

func (v *view) expired(now time.Time, keep time.Duration) bool {
	return v.ended() && now.Sub(time.UnixMilli(v.entries[len(v.entries)-1].Time)) > keep
}

func (k *Keeper) follow(ctx context.Context, run string, from place, out Follower) {
	f := &follower{out: out, at: from, run: run}
	bell, leave := k.listenTo(run)
	defer leave()
	for {
		rings := k.next(bell) // before the look, so that nothing is missed
		v, err := k.view(ctx, run)
		switch {
		case err != nil && ctx.Err() == nil:
			out.Gap("the run cannot be read any more")
			return
		case err != nil || f.show(ctx, v):
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-rings:
		case <-v.changed: // never, of a run that is not here
		}
	}
}

// follower shows what is behind its place.
type follower struct {
	out  Follower
	run  string
	info Info
	at   place

	astray bool // the place was not one of this run
	gap    bool // it is said that events are missing
}

// fits tells whether the place can be one of this run: its record is there, and
// its text is no less than the record's and no more than there has been.
func (f *follower) fits(ctx context.Context, v *view) bool {
	if f.at.n == 0 {
		return f.at == place{}
	}
	if f.at.n > len(v.entries) || v.entries[f.at.n-1].Epoch != f.at.epoch {
		return false
	}
	most := v.shown(ctx, f.at.n)
	return f.at.offset >= v.released(ctx, f.at.n) && (most < 0 || f.at.offset <= most)
}

// shown is how many bytes of text somebody may have seen who has the first n
// records; -1 when nobody can say, as of what a process showed before it died.
func (v *view) shown(ctx context.Context, n int) int {
	for _, e := range v.entries[n:] {
		if e.Kind == RecordRunClaimed {
			return -1
		}
	}
	if v.live {
		return v.recorded + len(v.tail)
	}
	return v.released(ctx, len(v.entries))
}

// show shows all that is there now, and reports whether the run has ended.
func (f *follower) show(ctx context.Context, v *view) (ended bool) {
	if len(v.entries) == 0 { // it is just beginning
		return false
	}
	open := openQuestion(v.entries)
	if f.info.RunID == "" {
		f.begin(ctx, v)
	}
	for i := range v.entries {
		if v.entries[i].N <= f.at.n {
			continue
		}
		if f.showEntry(ctx, v, i, i == open) {
			return true
		}
	}
	if skip := f.at.offset - v.recorded; v.tail != "" && skip < len(v.tail) {
		text := v.tail[max(skip, 0):]
		f.at.offset += len(text)
		f.out.At(f.at.String())
		f.out.Text(text)
	}
	return v.ended() // also for who has seen the end before
}

// openQuestion is the index of the question that can be answered, or -1.
func openQuestion(entries []entry) int {
	open := -1
	for i := range entries {
		switch entries[i].Kind {
		case RecordInteractionOpened:
			open = i
		case RecordInteractionAnswered, RecordInteractionExpired, RecordInteractionCancelled, RecordRunEnded:
			open = -1
		}
	}
	return open
}

// begin knows the run's names from its first record.
func (f *follower) begin(ctx context.Context, v *view) {
	s := &v.started
	f.info = Info{RunID: f.run, StepID: s.StepID, TraceID: s.TraceID, RequestID: s.RequestID, Generation: v.entries[0].Generation, Variant: s.Variant}
	if !f.fits(ctx, v) {
		f.at, f.astray = place{}, true
	}
	if f.at.n > 0 {
		f.out.Continued(f.info)
	}
}

// showEntry shows one record and moves the place behind it.
func (f *follower) showEntry(ctx context.Context, v *view, i int, open bool) (ended bool) {
	e := &v.entries[i]
	reached := place{epoch: e.Epoch, n: e.N, offset: f.at.offset}
	at := func() { f.at = reached; f.out.At(reached.String()) }
	var err error
	switch e.Kind {
	case RecordRunStarted:
		at()
		f.out.Started(f.info)
		if f.astray {
			f.out.Gap("the place that was named is not one of this run; it is shown from its start")
		}
	case RecordStep, RecordDecision:
		var p stepPayload
		if err = v.load(ctx, i, &p); err == nil {
			at()
			f.out.Step(p.step())
		}
	case RecordReleased:
		var p releasedPayload
		if err = v.load(ctx, i, &p); err == nil {
			from := max(f.at.offset, p.From)
			reached.offset = max(f.at.offset, p.To)
			at()
			if from < p.To {
				f.out.Text(p.Text[from-p.From:])
			}
		}
	case RecordInteractionOpened:
		var p openedPayload
		if !open {
			break
		}
		if err = v.load(ctx, i, &p); err == nil && p.Kind != KindCalls { // those are for the caller alone
			at()
			past := past{opened: &p}
			f.out.Asked(past.interaction(f.run))
		}
	case RecordRunClaimed: // nothing that had no record by then was shown again
		if kept := v.released(ctx, i); kept >= 0 && kept < f.at.offset {
			reached.offset = kept
			at()
			f.out.Gap("the end of the text so far is lost with the process that showed it; the run goes on before it")
		}
	case RecordRunEnded:
		at()
		f.ended(ctx, v, i)
		return true
	}
	f.at = reached
	if err != nil && !f.gap {
		f.gap = true
		f.out.Gap("events of this run are not kept any more")
	}
	return false
}

// released is how many bytes of text have a record before this one; -1 when that
// cannot be read.
func (v *view) released(ctx context.Context, i int) int {
	for i--; i >= 0; i-- {
		if v.entries[i].Kind == RecordReleased {
			var p releasedPayload
			if v.load(ctx, i, &p) != nil {
				return -1
			}
			return p.To
		}
	}
	return 0
}

func (f *follower) ended(ctx context.Context, v *view, i int) {
	p := endedPayload{State: Completed}
	_ = v.load(ctx, i, &p)
	if p.State == Failed {
		f.out.Failed(p.Failure)
	}
	f.out.Ended(f.info)
}
