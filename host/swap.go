package host

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/host/config"
	"weir/host/fault"
	"weir/host/plugin"
	"weir/host/run/replay"
)

// What asks for another policy.
const (
	TriggerStart  = "start"
	TriggerFile   = "file"
	TriggerSignal = "signal"
	TriggerAdmin  = "admin"
)

// Outcomes of a reload or a rollback.
const (
	OutcomeSwapped   = "swapped"   // another generation is active
	OutcomeUnchanged = "unchanged" // the active one is what was asked for
	OutcomeHeld      = "held"      // the files say what was rolled back from; only a person brings that back
	OutcomeFailed    = "failed"    // the active one stays
)

// Kinds of task.
type task string

const (
	reload   task = "reload"
	rollback task = "rollback"
)

// errNoPrevious refuses a rollback that has nowhere to go. Nothing else was
// wanted by it, so the status stays as it is.
var errNoPrevious = fault.New(fault.Conflict, "there is no previous generation to go back to")

var errStopping = fault.New(fault.Unavailable, "the host is stopping")

// swaps makes policies and makes them current, one at a time:
//
//	ask ─ queue ─ read ─ verify ─ load ─ equip ─► one atomic store ─► the old
//	        └ a burst is one        any of it fails: nothing changes   one drains
//
// It also is what gives runs their policy.
type swaps struct {
	host    *Host
	started *config.Config
	current atomic.Pointer[policy]
	life    context.Context // of the work; its cause is errStopping
	end     context.CancelCauseFunc
	serving sync.WaitGroup // the queue's goroutine
	drains  sync.WaitGroup // one goroutine for each old generation

	mu       sync.Mutex
	stopped  bool
	busy     bool
	queue    []*job
	previous *draft // what rollback goes to; nil: nothing
	held     *draft // what was rolled back from; nil: nothing
	last     attempt
	failure  failure // the last one
	count    int
	draining []*plugin.Generation
}

// job is one task of the queue, for everybody who asked for it before it began.
type job struct {
	task    task
	trigger string
	check   *check // the new policy has to pass it; nil: none
	done    chan struct{}
	outcome string // set before done closes
	err     error
	summary *replay.Summary
}

// attempt is what was wanted last.
type attempt struct {
	generation string // empty when the files could not be read
	whole      string // of the generation, its variants and their shares
	trigger    string
	at         time.Time
	failed     bool
}

type failure struct {
	trigger string
	at      time.Time
	text    string
}

func newSwaps(h *Host, p *policy) *swaps {
	s := &swaps{host: h, started: h.cfg}
	s.life, s.end = context.WithCancelCause(context.Background())
	p.since = time.Now()
	s.last = attempt{generation: p.id, whole: p.whole, trigger: TriggerStart, at: p.since}
	s.current.Store(p)
	return s
}

// begin returns the policy that a new run gets: its session's variant if there
// is one of that name, else its user's. It is released like acquire's.
func (s *swaps) begin(pseudonym, variant string) (*policy, func()) {
	return s.take(func(current *policy) *policy { return current.choose(pseudonym, variant) })
}

// acquire returns the current policy of this generation and what to call when it
// is not used any more. Nil: there is none, or the host has stopped.
func (s *swaps) acquire(generation string) (*policy, func()) {
	return s.take(func(current *policy) *policy { return current.find(generation) })
}

func (s *swaps) take(choose func(*policy) *policy) (*policy, func()) {
	for {
		current := s.current.Load()
		p := choose(current)
		if p == nil {
			return nil, nil
		}
		if release := p.generation.Acquire(); release != nil {
			return p, release
		}
		if s.current.Load() == current { // freed and not replaced: the host has stopped
			return nil, nil
		}
	}
}

// ask queues a task, or joins one that has not begun.
func (s *swaps) ask(t task, trigger string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		j := &job{task: t, trigger: trigger, done: make(chan struct{}), outcome: OutcomeFailed, err: errStopping}
		close(j.done)
		return j
	}
	if n := len(s.queue); n > 0 && s.queue[n-1].task == t && s.queue[n-1].check == nil {
		j := s.queue[n-1]
		if trigger != TriggerFile { // a person's wish weighs more
			j.trigger = trigger
		}
		return j
	}
	return s.add(&job{task: t, trigger: trigger, done: make(chan struct{})})
}

// add queues a job; the caller holds mu.
func (s *swaps) add(j *job) *job {
	s.queue = append(s.queue, j)
	if !s.busy {
		s.busy = true
		s.serving.Go(s.serve)
	}
	return j
}

// doIf is do for a reload that has to pass a check. Nobody joins it: who asks
// without a condition means that.
func (s *swaps) doIf(ctx context.Context, c check) (string, *replay.Summary, error) {
	j := &job{task: reload, trigger: TriggerAdmin, check: &c, done: make(chan struct{})}
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return OutcomeFailed, nil, errStopping
	}
	s.add(j)
	s.mu.Unlock()
	select {
	case <-j.done:
		return j.outcome, j.summary, j.err
	case <-ctx.Done():
		return OutcomeFailed, nil, context.Cause(ctx)
	}
}

// do asks and waits. When ctx ends first the task goes on all the same.
func (s *swaps) do(ctx context.Context, t task, trigger string) (string, error) {
	j := s.ask(t, trigger)
	select {
	case <-j.done:
		return j.outcome, j.err
	case <-ctx.Done():
		return OutcomeFailed, context.Cause(ctx)
	}
}

// serve works the queue off.
func (s *swaps) serve() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		j := s.queue[0]
		s.queue = s.queue[1:]
		trigger := j.trigger
		s.mu.Unlock()
		j.outcome, j.err = s.perform(j, trigger)
		close(j.done)
	}
}

func (s *swaps) perform(j *job, trigger string) (string, error) {
	t := j.task
	outcome, err := OutcomeFailed, context.Cause(s.life)
	switch {
	case err != nil:
	case t == rollback:
		outcome, err = s.rollback(trigger)
	default:
		outcome, err = s.reload(trigger, j)
	}
	if err != nil && !errors.Is(err, errNoPrevious) {
		s.failed(t, trigger, err)
	}
	return outcome, err
}

func (s *swaps) failed(t task, trigger string, err error) {
	s.mu.Lock()
	s.last.failed = true
	s.failure = failure{trigger: trigger, at: time.Now(), text: err.Error()}
	s.mu.Unlock()
	for _, p := range config.Problems(err) {
		s.host.log.Error("the policy stays as it is", "task", string(t), "trigger", trigger,
			"generation", s.current.Load().generation.Short(), "error", p)
	}
}

// reload goes to what the files say.
func (s *swaps) reload(trigger string, j *job) (string, error) {
	s.attempt(&draft{}, trigger)
	read, err := config.Load(s.host.source)
	if err != nil {
		return OutcomeFailed, err
	}
	current := s.current.Load()
	s.host.watch(files(read), files(current.cfg))
	cfg, waiting := s.started.Succeed(read)
	d, err := newDraft(cfg)
	if err != nil {
		return OutcomeFailed, err
	}
	s.attempt(d, trigger)
	if s.holds(d.whole) && trigger == TriggerFile {
		s.host.log.Warn("the files say what was rolled back from; `weir admin reload` brings it back",
			append([]any{"generation", d.id[:12]}, changed(d, current.draft)...)...)
		return OutcomeHeld, nil
	}
	if d.same(current.draft) && slices.Equal(waiting, current.waiting) && len(current.tools.set.Changed()) == 0 {
		return OutcomeUnchanged, nil
	}
	d.share(current.draft)
	return s.swap(d, waiting, trigger, current.draft, j)
}

// rollback goes to the policy before the current one, as it was verified then.
// It goes one step and not forward again: reload is the way back.
func (s *swaps) rollback(trigger string) (string, error) {
	s.mu.Lock()
	d := s.previous
	s.mu.Unlock()
	if d == nil {
		return OutcomeFailed, errNoPrevious
	}
	s.attempt(d, trigger)
	current := s.current.Load()
	outcome, err := s.swap(d, nil, trigger, nil, nil)
	if err == nil {
		s.mu.Lock()
		s.held = current.draft
		s.mu.Unlock()
	}
	return outcome, err
}

func (s *swaps) attempt(d *draft, trigger string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = attempt{generation: d.id, whole: d.whole, trigger: trigger, at: time.Now()}
}

// holds tells whether this is what was rolled back from. Once the files say
// something else it is forgotten.
func (s *swaps) holds(whole string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil && s.held.whole != whole {
		s.held = nil
	}
	return s.held != nil
}

// swap builds the policy of a draft aside and makes it current.
func (s *swaps) swap(d *draft, waiting []string, trigger string, previous *draft, j *job) (string, error) {
	current := s.current.Load()
	next, err := load(s.life, s.host.runtime, d, current)
	if err != nil {
		return OutcomeFailed, err
	}
	if err := s.host.keep(s.life, d); err != nil {
		next.discard(current)
		return OutcomeFailed, err
	}
	if err := s.host.equip(s.life, next, current); err != nil {
		next.discard(current)
		return OutcomeFailed, err
	}
	if j != nil && j.check != nil {
		if err := s.pass(next, j); err != nil {
			next.discard(current)
			return OutcomeFailed, err
		}
	}
	next.waiting, next.since = waiting, current.since
	outcome := OutcomeUnchanged
	if next.whole != current.whole {
		outcome, next.since = OutcomeSwapped, time.Now()
	}
	s.mu.Lock()
	s.current.Store(next)
	if outcome == OutcomeSwapped {
		s.previous, s.held = previous, nil
		s.count++
	}
	s.mu.Unlock()
	s.drain(current, next)
	s.tell(next, current, trigger, outcome)
	return outcome, nil
}

// pass holds a policy against a job's check.
func (s *swaps) pass(next *policy, j *job) error {
	summary, variant, err := s.host.try(s.life, next, *j.check)
	if err != nil {
		return fault.New(fault.Of(err), "replay: %w", ofVariant(variant, err))
	}
	j.summary = summary
	if summary.Passed() {
		return nil
	}
	with := ""
	if variant == nil && len(next.variants) > 0 {
		with = " with its variants"
	}
	return ofVariant(variant, fault.New(fault.Conflict, "generation %s%s does not pass the gate: %s", summary.Generation[:12], with, summary.Failed()))
}

// drain frees the plugins of the old policies, each when its last run has ended.
func (s *swaps) drain(old, next *policy) {
	for _, g := range old.generations() {
		if !slices.Contains(next.generations(), g) {
			s.drainOne(old, g)
		}
	}
}

func (s *swaps) drainOne(old *policy, g *plugin.Generation) {
	s.mu.Lock()
	s.draining = append(s.draining, g)
	s.mu.Unlock()
	g.Retire()
	s.drains.Go(func() {
		// Guards in monitor mode may keep it longer than its runs do.
		defer context.AfterFunc(s.life, func() { _ = old.closeChains(context.Background(), g) })()
		<-g.Freed()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.draining = slices.DeleteFunc(s.draining, func(other *plugin.Generation) bool { return other == g })
	})
}

// old are the generations that runs still use and that are not current.
func (s *swaps) old() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.draining {
		ids = append(ids, g.ID())
	}
	return ids
}

func (s *swaps) tell(next, old *policy, trigger, outcome string) {
	if outcome == OutcomeSwapped {
		attrs := append([]any{"generation", next.generation.Short(), "from", old.generation.Short()}, changed(next.draft, old.draft)...)
		s.host.log.Info("policy swapped", append(attrs, "trigger", trigger)...)
	} else {
		s.host.log.Info("policy read again", "generation", next.generation.Short(), "trigger", trigger)
	}
	known := slices.Concat(old.notes, old.unpinned)
	for _, note := range slices.Concat(next.notes, next.unpinned) {
		if !slices.Contains(known, note) {
			s.host.log.Warn(note)
		}
	}
	for _, key := range next.waiting {
		s.host.log.Warn("a changed key waits for a restart and keeps its old value", slog.String("key", key))
	}
}

// changed names for the log the variants in which a draft differs from another,
// if there are any: their bases may be the same.
func changed(d, from *draft) []any {
	if names := d.changedVariants(from); len(names) > 0 {
		return []any{"changed_variants", strings.Join(names, ", ")}
	}
	return nil
}

// quit ends what is being built and refuses everything from now on. It does
// not wait for old policies to drain.
func (s *swaps) quit() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.end(errStopping)
	s.serving.Wait()
}

// free waits until every policy's runs have ended and its plugins are freed.
func (s *swaps) free(ctx context.Context) error {
	s.quit()
	p := s.current.Load()
	err := p.close(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.drains.Wait()
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
}
