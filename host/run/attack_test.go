package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/memory"
)

// faulty is a store that fails where a test wants it to.
type faulty struct {
	store.Store
	mu   sync.Mutex
	fail func(op, name string) error
}

// breaks sets what fails from now on; nil: nothing.
func (f *faulty) breaks(fail func(op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *faulty) failure(op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		return nil
	}
	return f.fail(op, name)
}

func (f *faulty) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	if err := f.failure("append", log); err != nil {
		return 0, err
	}
	position, err := f.Store.Append(ctx, log, expected, id, records)
	if err == nil {
		err = f.failure("appended", log)
	}
	return position, err
}

func (f *faulty) Read(ctx context.Context, log string, from int64) iter.Seq2[store.Message, error] {
	if err := f.failure("read", log); err != nil {
		return func(yield func(store.Message, error) bool) { yield(store.Message{}, err) }
	}
	return f.Store.Read(ctx, log, from)
}

func (f *faulty) Blob(ctx context.Context, space, digest string) ([]byte, error) {
	if err := f.failure("blob", space); err != nil {
		return nil, err
	}
	return f.Store.Blob(ctx, space, digest)
}

func (f *faulty) DropSpace(ctx context.Context, space string) error {
	if err := f.failure("drop", space); err != nil {
		return err
	}
	return f.Store.DropSpace(ctx, space)
}

func (f *faulty) Put(ctx context.Context, key string, data []byte, expected int64, ttl time.Duration) (int64, error) {
	if err := f.failure("put", key); err != nil {
		return 0, err
	}
	return f.Store.Put(ctx, key, data, expected, ttl)
}

func (f *faulty) Changes(ctx context.Context, prefix string) iter.Seq2[store.Change, error] {
	return func(yield func(store.Change, error) bool) {
		for c, err := range f.Store.Changes(ctx, prefix) {
			if f.failure("change", c.Log) == nil && !yield(c, err) {
				return
			}
		}
	}
}

// away is a store that does not answer, but for leases and notes.
func away(op, name string) error {
	if op == "change" || strings.HasPrefix(name, ReplicaPrefix) {
		return nil
	}
	return fault.New(fault.Unavailable, "away")
}

var errLeft = fault.Coded(fault.Gone, "client_gone", "the client has left")

// until waits for something that is polled.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// state is where the log leaves a run.
func (r *replica) state(run string) State {
	r.t.Helper()
	j, err := read(r.t.Context(), r.store, run)
	if err != nil {
		r.t.Fatal(err)
	}
	return j.state()
}

// raw tells whether a payload of a run is there that its end should have
// dropped.
func (r *replica) raw(run string) bool {
	r.t.Helper()
	j, err := read(r.t.Context(), r.store, run)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range j.entries {
		if part := j.entries[i].part; part != nil {
			if _, err := r.store.Blob(r.t.Context(), rawSpace(run), part.Blob); err == nil {
				return true
			}
		}
	}
	return false
}

const brief = 50 * time.Millisecond

// An answer that was taken is not lost because the client leaves before the run
// has gone on (A4).
func TestAnswerBeatsLeaving(t *testing.T) {
	var c *client
	var r *replica
	answers := 0
	ready := make(chan struct{})
	r = newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true, Reached: func(record string) {
		if record != RecordInteractionAnswered {
			return
		}
		if answers++; answers == 2 {
			<-ready
			c.leave(errLeft)
			select {
			case <-c.over:
			case <-time.After(time.Minute):
			}
		}
	}})
	c = r.begin(runID)
	close(ready)
	r.answer(within(t, "question", c.asked), "high")
	r.answer(within(t, "question", c.asked), "because")
	r.ends(runID)
	if got := r.desk.done(); len(got) != 1 {
		t.Errorf("executed %q, want the change that was approved", got)
	}
}

// The store is away when the client leaves: the run is cancelled later, and its
// question cannot be answered then.
func TestCancelledLater(t *testing.T) {
	s := &faulty{Store: memory.New(memory.Options{})}
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, Lease: brief})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	s.breaks(away)
	c.leave(errLeft)
	within(t, "end", c.over)
	s.breaks(nil)
	until(t, "the run is cancelled", func() bool { return r.state(runID) == Cancelled })
	if err := r.keeper.Answer(t.Context(), "support-rep-1", runID, first.ID, accept("answered", "high")); fault.Of(err) != fault.NotFound {
		t.Errorf("an answer to a cancelled run: %v", err)
	}
	until(t, "nothing of it is left", func() bool { return r.keeper.Pending() == 0 && !r.raw(runID) })
}

// An answer that was taken is not lost because the store is away, or full, when
// the run should go on.
func TestAnswerSurvivesOutage(t *testing.T) {
	for name, err := range map[string]error{
		"away":     fault.New(fault.Unavailable, "away"),
		"too late": fmt.Errorf("store: %w", context.DeadlineExceeded),
		"full":     fault.New(fault.Limit, "full"),
	} {
		t.Run(name, func(t *testing.T) {
			s := &faulty{Store: memory.New(memory.Options{})}
			r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, Lease: brief})
			answer := func(i Interaction, value string) { // its append is made, and no other for longer than a lease
				answered, refused := false, make(chan struct{}, 1)
				s.breaks(func(op, name string) error {
					if op != "append" || strings.HasPrefix(name, ReplicaPrefix) {
						return nil
					}
					if !answered {
						answered = true
						return nil
					}
					select {
					case refused <- struct{}{}:
					default:
					}
					return err
				})
				r.answer(i, value)
				within(t, "refused append", refused)
				<-time.After(2 * brief)
				s.breaks(nil)
			}
			c := r.begin(runID)
			answer(within(t, "question", c.asked), "high")
			answer(within(t, "question", c.asked), "because")
			within(t, "end", c.over)
			if len(r.desk.done()) != 1 || r.state(runID) != Completed {
				t.Errorf("executed %q, ended %s", r.desk.done(), r.state(runID))
			}
		})
	}
}

// A stream whose run waits for the store is ended by a drain, and let go when
// the client leaves; the run goes on (A4, H6).
func TestOutageFollowsClient(t *testing.T) {
	for _, drain := range []bool{false, true} {
		s := &faulty{Store: memory.New(memory.Options{})}
		r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, Lease: 500 * time.Millisecond})
		c := r.begin(runID)
		first := within(t, "question", c.asked)
		answered := false // from its append on the store is away, for whoever goes on
		s.breaks(func(op, name string) error {
			if answered && op != "appended" {
				return away(op, name)
			}
			answered = answered || op == "append"
			return nil
		})
		r.answer(first, "high")
		until(t, "the run waits for the store", func() bool { w := r.keeper.find(runID); return w != nil && w.parked.ID == first.ID })
		if drain {
			r.keeper.Drain()
		} else {
			c.leave(errLeft)
		}
		within(t, "end of the stream", c.over)
		s.breaks(nil)
		second := r.next(runID, first.ID)
		s.breaks(nil)
		if second.ID == first.ID {
			t.Error("the run has not gone on")
		}
	}
}

// The end of a run that waited is written when the store is back, and what only
// a resume needed is dropped then.
func TestEndWrittenLater(t *testing.T) {
	for _, op := range []string{"append", "drop"} {
		s := &faulty{Store: memory.New(memory.Options{})}
		r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, Lease: brief})
		r.desk.hold = make(chan struct{})
		c := r.begin(runID)
		r.answer(within(t, "question", c.asked), "high")
		r.answer(within(t, "question", c.asked), "because")
		until(t, "the change is executed", func() bool { return len(r.desk.done()) == 1 })
		s.breaks(func(what, name string) error {
			if what == op {
				return fault.New(fault.Unavailable, "away")
			}
			return nil
		})
		close(r.desk.hold)
		within(t, "end", c.over)
		s.breaks(nil)
		until(t, "the end is in the log: "+op, func() bool { return r.state(runID) == Completed && !r.raw(runID) })
		until(t, "the index forgets it", func() bool {
			keys, err := r.store.Keys(t.Context(), OpenPrefix)
			return err == nil && len(keys) == 0
		})
		if n := len(r.desk.done()); n != 1 {
			t.Errorf("%s: executed %d times", op, n)
		}
	}
}

// A question is in the log and its acknowledgement got lost for good: the client
// is told that the run failed, and nobody can answer it afterwards.
func TestQuestionNobodyKnows(t *testing.T) {
	s := &faulty{Store: memory.New(memory.Options{})}
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, Lease: brief})
	s.breaks(func(op, name string) error {
		if op == "appended" && strings.HasPrefix(name, LogName("")) {
			return fmt.Errorf("store: %w", context.DeadlineExceeded)
		}
		return nil
	})
	c := r.begin(runID)
	within(t, "end", c.over)
	s.breaks(nil)
	if !strings.Contains(c.text(), "failed") {
		t.Errorf("shown:\n%s", c.text())
	}
	until(t, "the run has failed", func() bool { return r.state(runID) == Failed && !r.raw(runID) })
	names, err := s.List(t.Context(), "")
	if err != nil || len(names) != 1 {
		t.Errorf("logs: %q, %v, want one", names, err)
	}
}

// The question's payloads are in the store and its append was not made: the run
// fails, and they go as they would have at its end.
func TestQuestionThatWasNotWritten(t *testing.T) {
	m := memory.New(memory.Options{})
	s := &faulty{Store: m}
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, Lease: brief})
	s.breaks(func(op, name string) error {
		if op == "append" && strings.HasPrefix(name, LogName("")) {
			return fault.New(fault.Limit, "full")
		}
		return nil
	})
	c := r.begin(runID)
	within(t, "end", c.over)
	raw := func() bool {
		all, err := m.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(all), rawSpace(runID))
	}
	if !raw() {
		t.Fatal("no payload was written before its question, so none can stay")
	}
	s.breaks(nil)
	if p := r.ends(runID); p.ended.State != Failed {
		t.Errorf("ended %s", p.ended.State)
	}
	until(t, "the payloads are dropped", func() bool { return !raw() })
}

// The acknowledgement of what came of a change got lost for good, its append was
// made: the run goes on as if it had not, to its end or to a further question.
func TestOutcomeWhoseAcknowledgementIsLost(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := proposing()
		if again {
			w.script.model = []modelTurn{w.script.model[0], {text: []string{"Once more. "},
				calls: []abi.ToolCall{{ID: "c2", Name: "change", Arguments: `{"what":"T-2","why":"late"}`}}}, w.script.model[1]}
		}
		s := &faulty{Store: memory.New(memory.Options{})}
		r := newReplica(t, s, w, "a", KeeperOptions{Alone: true, Lease: brief})
		r.desk.hold = make(chan struct{})
		c := r.begin(runID)
		r.answer(within(t, "question", c.asked), "high")
		r.answer(within(t, "question", c.asked), "because")
		until(t, "the change is executed", func() bool { return len(r.desk.done()) == 1 })
		lost := false
		s.breaks(func(op, name string) error {
			if lost || op != "appended" || !strings.HasPrefix(name, LogName("")) {
				return nil
			}
			lost = true
			return fmt.Errorf("store: %w", context.DeadlineExceeded)
		})
		close(r.desk.hold)
		if again {
			r.answer(within(t, "further question", c.asked), "high")
			r.answer(within(t, "further question", c.asked), "because")
		}
		within(t, "end", c.over)
		if p := r.ends(runID); p.ended.State != Completed || p.released != c.read() || !strings.HasSuffix(p.released, "Done.") {
			t.Errorf("again %t: ended %s, the log has %q; shown:\n%s", again, p.ended.State, p.released, c.text())
		}
		if want := map[bool]int{false: 1, true: 2}[again]; len(r.desk.done()) != want || !lost {
			t.Errorf("again %t: executed %q", again, r.desk.done())
		}
	}
}

// A list of runs leaves nothing out because the store is away for a moment:
// whoever judges by it would judge by fewer.
func TestListWhileReadsFail(t *testing.T) {
	s := &faulty{Store: memory.New(memory.Options{})}
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true})
	within(t, "question", r.begin(runID).asked)
	names := []string{LogName("unknown"), LogName(runID)}
	if got, err := List(t.Context(), r.store, names, time.Time{}, 0); err != nil || len(got) != 1 || got[0].Run != runID {
		t.Errorf("%v, %v, want the run", got, err)
	}
	s.breaks(func(op, name string) error {
		if op == "read" {
			return away(op, name)
		}
		return nil
	})
	if got, err := List(t.Context(), r.store, names, time.Time{}, 0); fault.Of(err) != fault.Unavailable {
		t.Errorf("%v, %v, want kind unavailable", got, err)
	}
	s.breaks(nil)
}

// A run that goes on somewhere is nobody else's, whoever has died before: not
// that of the replica that has it, nor of another one.
func TestRunningRunIsNotTakenOver(t *testing.T) {
	s := memory.New(memory.Options{})
	w := proposing()
	a := newReplica(t, s, w, "a", KeeperOptions{Park: true})
	b := newReplica(t, s, w, "b", KeeperOptions{Park: true, Preference: time.Millisecond})
	d := newReplica(t, s, w, "d", KeeperOptions{Park: true})
	b.desk.hold = make(chan struct{})
	first := within(t, "question", a.begin(runID).asked)
	a.die()
	b.answer(first, "high")
	b.answer(b.next(runID, first.ID), "because")
	until(t, "b executes", func() bool { return len(b.desk.done()) == 1 })
	if err := s.Delete(t.Context(), ReplicaPrefix+"a", store.Any); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*replica{b, d} {
		if err := r.keeper.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		engine, _, err := r.Engine(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if o, err := engine.Resume(t.Context(), runID, "d", nobody{}); err != nil || !o.Lost {
			t.Errorf("resume of a run in progress: %+v, %v", o, err)
		}
	}
	<-time.After(50 * time.Millisecond)
	close(b.desk.hold)
	if p := b.ends(runID); p.ended.State != Completed {
		t.Errorf("ended %s", p.ended.State)
	}
	if got, more := b.desk.done(), d.desk.done(); len(got) != 1 || len(more) != 0 {
		t.Errorf("executed %q and %q", got, more)
	}
}

// A replica that learns late that a run has gone on elsewhere lets it go, and
// answers for it as everybody does.
func TestGoneOnElsewhere(t *testing.T) {
	shared := memory.New(memory.Options{})
	deaf := &faulty{Store: shared}
	w := proposing()
	a := newReplica(t, deaf, w, "a", KeeperOptions{Park: true})
	b := newReplica(t, shared, w, "b", KeeperOptions{Park: true, Preference: time.Millisecond})
	c := a.begin(runID)
	first := within(t, "question", c.asked)
	deaf.breaks(func(op, _ string) error {
		if op == "change" {
			return errors.New("lost")
		}
		return nil
	})
	b.answer(first, "high")
	second := b.next(runID, first.ID)
	deaf.breaks(nil)
	a.keeper.lookAtAll()
	within(t, "end of the stream", c.over)
	if !strings.HasSuffix(c.text(), "end") || strings.Contains(c.text(), "failed") {
		t.Errorf("shown:\n%s", c.text())
	}
	a.answer(second, "because")
	if p := b.ends(runID); p.ended.State != Completed || len(a.desk.done())+len(b.desk.done()) != 1 {
		t.Errorf("ended %s", p.ended.State)
	}
}

// A call that a person has agreed to is made once: when the replica that makes
// it is gone, the model is told that nobody knows (A6, A7).
func TestApprovedCallIsMadeOnce(t *testing.T) {
	s := memory.New(memory.Options{})
	closing := func() *world {
		return &world{script: script{question: "Close it", approve: "close_ticket", model: []modelTurn{
			{calls: []abi.ToolCall{{ID: "c1", Name: "close_ticket", Arguments: `{}`}}}, {text: []string{"Done."}},
		}, tools: map[string]toolTurn{"close_ticket": {text: "closed"}}}, cancel: func() {}}
	}
	wa, wb := closing(), closing()
	wb.turn = 1
	hold := make(chan struct{})
	wa.script.tools["close_ticket"] = toolTurn{text: "closed", hold: hold}
	calls := func(w *world) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return strings.Count(strings.Join(w.lines, "\n"), "call    close_ticket")
	}
	a := newReplica(t, s, wa, "a", KeeperOptions{Alone: true, Park: true})
	c := a.begin(runID)
	a.answer(within(t, "question", c.asked), "confirm")
	until(t, "a makes the call", func() bool { return calls(wa) == 1 })
	b := newReplica(t, s, wb, "b", KeeperOptions{Alone: true, Park: true}) // a hangs for longer than its lease
	p := b.ends(runID)
	close(hold)
	within(t, "end", c.over)
	if n := calls(wb); n != 0 || p.ended.State != Completed {
		t.Errorf("the call was made %d times more, ended %s", n, p.ended.State)
	}
	if told := strings.Join(wb.lines, "\n"); !strings.Contains(told, "it is not known whether this call was carried out") {
		t.Errorf("the workflow was told:\n%s", told)
	}
}

// What a person typed is readable after the end only as the guards let it pass,
// and with digests not at all (DECISIONS 5).
func TestAnswersAreNotKept(t *testing.T) {
	for _, digests := range []bool{false, true} {
		s := memory.New(memory.Options{})
		r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true})
		r.digests, r.keeper.opts.Digests = digests, digests
		c := r.begin(runID)
		r.answer(within(t, "question", c.asked), "high")
		r.answer(within(t, "question", c.asked), "SECRET because")
		within(t, "end", c.over)
		r.ends(runID)
		redacted := false
		for m, err := range s.Read(t.Context(), LogName(runID), 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range m.Records {
				if strings.Contains(string(record), "SECRET") || digests && strings.Contains(string(record), "because") {
					t.Errorf("digests=%t: %s", digests, record)
				}
				redacted = redacted || strings.Contains(string(record), "[REDACTED] because")
			}
		}
		if redacted == digests || r.raw(runID) {
			t.Errorf("digests=%t: the redacted answer is there: %t, raw ones: %t", digests, redacted, r.raw(runID))
		}
	}
}

// A late answer finds nothing, also in the moment in which the run ends and drops
// what was answered before (3.2, 3.6).
func TestLateAnswerWhileEnding(t *testing.T) {
	s := &faulty{Store: memory.New(memory.Options{})}
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true})
	elsewhere := newReplica(t, s, proposing(), "b", KeeperOptions{})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	r.answer(first, "high")
	within(t, "question", c.asked)
	s.breaks(func(op, _ string) error {
		if op == "blob" {
			return fault.New(fault.NotFound, "dropped")
		}
		return nil
	})
	if err := elsewhere.keeper.Answer(t.Context(), "support-rep-1", runID, first.ID, accept("answered", "low")); fault.Of(err) != fault.NotFound {
		t.Errorf("a late answer: %v", err)
	}
	s.breaks(nil)
	c.leave(errLeft)
	within(t, "end", c.over)
}

// Looking for runs leaves nothing behind.
func TestFollowLeavesNothing(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true})
	for i := range 100 {
		if _, err := r.keeper.Follow(t.Context(), "support-rep-1", fmt.Sprintf("9e3f0a52-6d53-4a9e-a0b4-2f3f5a1d%04d", i), ""); fault.Of(err) != fault.NotFound {
			t.Fatal(err)
		}
	}
	c := r.begin(runID)
	within(t, "question", c.asked)
	f := r.follow(runID, "")
	until(t, "the question", func() bool { return len(f.all()) > 5 })
	c.leave(errLeft)
	within(t, "end", f.done)
	r.ends(runID)
	within(t, "end", r.follow(runID, "").done)
	r.keeper.mu.Lock()
	defer r.keeper.mu.Unlock()
	if n := len(r.keeper.bells); n != 0 {
		t.Errorf("%d bells are left", n)
	}
}

// Text that was shown and lost with a process is said to be lost: what the run
// says instead is not appended to it (A8).
func TestFollowLostText(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	r.answer(first, "high")
	second := within(t, "question", c.asked)
	r.answer(second, "because")
	r.ends(runID)
	j, err := read(t.Context(), r.store, runID)
	if err != nil {
		t.Fatal(err)
	}
	claim := 0
	for i := range j.entries {
		if j.entries[i].Kind == RecordRunClaimed {
			claim = i
			break
		}
	}
	seen := fmt.Sprintf("%d-%d-%d", j.entries[claim-1].Epoch, claim, len("Let me ask. ")+3) // three bytes more than the log has
	f := r.follow(runID, seen)
	within(t, "end", f.done)
	if got := strings.Join(f.all(), "\n"); !strings.Contains(got, "gap ") || !strings.Contains(got, "text Done.") {
		t.Errorf("after %s:\n%s", seen, got)
	}
	whole := r.follow(runID, fmt.Sprintf("%d-%d-%d", j.entries[claim-1].Epoch, claim, len("Let me ask. ")))
	within(t, "end", whole.done)
	if got := strings.Join(whole.all(), "\n"); strings.Contains(got, "gap ") {
		t.Errorf("nothing was lost:\n%s", got)
	}
}

// A part of the policy that panics when a run goes on ends that run, not the
// process.
func TestResumePanics(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	r.desk.panics = true
	r.answer(first, "high")
	within(t, "end", c.over)
	if r.ends(runID).ended.State != Failed || !strings.Contains(c.text(), "failed") {
		t.Errorf("shown:\n%s", c.text())
	}
}
