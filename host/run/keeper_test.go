package run

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/memory"
)

// replica is one process: a keeper and an engine on a store that it may share.
type replica struct {
	t      *testing.T
	keeper *Keeper
	desk   *desk
	world  *world
	store  noted
	log    Log           // of the engine, where it is not the store
	gone   bool          // no generation can be had
	loads  chan struct{} // where it is there, a generation takes until it is closed

	left func() // is called by an engine's user that has no more to do with it

	digests bool
}

func newReplica(t *testing.T, s store.Store, w *world, name string, opts KeeperOptions) *replica {
	t.Helper()
	r := &replica{t: t, desk: &desk{}, world: w, store: noted{logs{s}, w}}
	opts.Replica = name
	if opts.Preference == 0 {
		opts.Preference = 20 * time.Second // however slow the machine, the replica with the stream goes on
	}
	r.keeper = NewKeeper(r, r.store, r.store, opts)
	if err := r.keeper.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *replica) stop() {
	if err := r.keeper.Stop(context.Background()); err != nil {
		r.t.Error(err)
	}
}

func (r *replica) Begin(*Request) (*Engine, string, func(), error) {
	e, release, err := r.Engine(r.t.Context(), "")
	return e, "", release, err
}

func (r *replica) Engine(context.Context, string) (*Engine, func(), error) {
	if r.gone {
		return nil, nil, fault.New(fault.Gone, "gone")
	}
	if r.loads != nil {
		<-r.loads
	}
	engine, err := New(Deps{Policy: func() (Policy, func()) { return r.world, func() {} },
		Model: r.world, Tools: fakeTools{r.world}, Log: r.engineLog(), Keeper: r.keeper, People: r.desk,
	}, Options{AskTimeout: time.Minute, Digests: r.digests})
	if r.left != nil {
		return engine, r.left, err
	}
	return engine, func() {}, err
}

func (r *replica) engineLog() Log {
	if r.log != nil {
		return r.log
	}
	return r.store
}

func (r *replica) Kept(context.Context, string) (bool, error) { return !r.gone, nil }

// client is an observer that a test can wait with.
type client struct {
	mu     sync.Mutex
	lines  []string
	asked  chan Interaction
	over   chan struct{}
	leave  context.CancelCauseFunc
	closed bool
}

func (c *client) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if c.closed {
		panic("shown after the end: " + line)
	}
}

func (c *client) Started(Info)        { c.note("start") }
func (c *client) Step(s Step)         { c.note("step " + s.Name) }
func (c *client) Text(t string)       { c.note("text " + t) }
func (c *client) Failed(Failure)      { c.note("failed") }
func (c *client) Ended(Info)          { c.note("end") }
func (c *client) Asked(i Interaction) { c.note("asked " + string(i.Prompt)); c.asked <- i }

func (c *client) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// read is the text that the client was shown.
func (c *client) read() (all string) {
	for line := range strings.SplitSeq(c.text(), "\n") {
		if text, ok := strings.CutPrefix(line, "text "); ok {
			all += text
		}
	}
	return all
}

// begin begins a run and returns when it has ended or waits.
func (r *replica) begin(run string) *client {
	c := &client{asked: make(chan Interaction, 8), over: make(chan struct{})}
	ctx, leave := context.WithCancelCause(context.Background())
	c.leave = leave
	req := request(r.world.script)
	req.RunID = run
	r.keeper.Run(ctx, req, c, func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		close(c.over)
	})
	return c
}

func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(2 * time.Minute):
		t.Fatalf("no %s within two minutes", what)
	}
	return v
}

// proposing is a world whose model proposes a change and then answers.
func proposing() *world {
	return &world{script: script{question: "Change it", model: []modelTurn{
		{text: []string{"Let me ask. "}, calls: []abi.ToolCall{{ID: "c1", Name: "change", Arguments: `{"what":"T-1","why":"late"}`}}},
		{text: []string{"Done."}},
	}}, cancel: func() {}}
}

const runID = "9e3f0a52-6d53-4a9e-a0b4-2f3f5a1c0001"

// A proposal with two questions, answered while the stream is open.
func TestApproval(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	if err := r.keeper.Answer(t.Context(), "somebody", runID, first.ID, accept("answered", "high")); fault.Of(err) != fault.Denied {
		t.Errorf("another user: %v", err)
	}
	if err := r.keeper.Answer(t.Context(), "support-rep-1", runID, first.ID, accept("answered", "high")); err != nil {
		t.Fatal(err)
	}
	if err := r.keeper.Answer(t.Context(), "support-rep-1", runID, first.ID, accept("answered", "low")); fault.Of(err) != fault.NotFound {
		t.Errorf("a second answer: %v", err)
	}
	second := within(t, "question", c.asked)
	if err := r.keeper.Answer(t.Context(), "support-rep-1", runID, second.ID, accept("answered", "because")); err != nil {
		t.Fatal(err)
	}
	within(t, "end", c.over)
	want := `start
step guardrail_input_self_check_decision
step guardrail_input_self_check_decision
text Let me ask. 
step change
asked "T-1? late"
asked "why high?"
step change
text Done.
step guardrail_output_regex_pii_decision
end`
	if got := c.text(); got != want {
		t.Errorf("shown:\n%s\nwant:\n%s", got, want)
	}
	if got := r.desk.done(); len(got) != 1 || got[0] != `{"actor":"support-rep-1","request":"req-1","answers":"high/because"}` {
		t.Errorf("executed: %q", got)
	}
	if keys, err := r.store.Keys(t.Context(), OpenPrefix); err != nil || len(keys) != 0 {
		t.Errorf("the index still has %q, %v", keys, err)
	}
	kinds(t, r.world.records)
}

// answer gives an answer of support-rep-1's that must be taken.
func (r *replica) answer(i Interaction, value string) {
	r.t.Helper()
	if err := r.keeper.Answer(r.t.Context(), "support-rep-1", i.Run, i.ID, accept("answered", value)); err != nil {
		r.t.Fatal(err)
	}
}

// answerEarly answers the question in the log of a run that r.left still keeps
// from waiting, and lets nothing be kept any more.
func (r *replica) answerEarly(value string) Interaction {
	r.t.Helper()
	_, p, err := r.keeper.open(r.t.Context(), runID)
	if err != nil {
		r.t.Fatal(err)
	}
	r.left = nil
	i := p.interaction(runID)
	r.answer(i, value)
	return i
}

// A question stands in the log a moment before the run waits at its replica. Who
// answers it then is not forgotten, however long that moment is.
func TestAnsweredBeforeItWaits(t *testing.T) {
	for name, resumed := range map[string]bool{"the first question": false, "a later one": true} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true, Preference: 10 * time.Millisecond})
			written, goOn := make(chan struct{}, 1), make(chan struct{})
			hold := func() {
				written <- struct{}{}
				<-goOn
			}
			begun := make(chan *client, 1)
			if resumed {
				c := r.begin(runID)
				first := within(t, "question", c.asked)
				r.left = hold
				r.answer(first, "high")
				begun <- c
			} else {
				r.left = hold
				go func() { begun <- r.begin(runID) }()
			}
			within(t, "question in the log", written)
			r.answerEarly("high")
			time.Sleep(100 * time.Millisecond) // the preference is over long before
			close(goOn)
			c := <-begun
			within(t, "question that was answered", c.asked)
			if !resumed {
				r.answer(within(t, "question", c.asked), "because")
			}
			within(t, "end", c.over)
			if got := c.text(); !strings.Contains(got, "text Done.") {
				t.Errorf("the client was shown:\n%s", got)
			}
		})
	}
}

// The same while the store cannot be read for a moment, when the run should be
// looked at again.
func TestAnsweredBeforeItWaitsAndReadsFail(t *testing.T) {
	s := &faulty{Store: memory.New(memory.Options{})}
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, Preference: 10 * time.Millisecond})
	written, goOn := make(chan struct{}), make(chan struct{})
	r.left = func() { close(written); <-goOn }
	refused := make(chan struct{}, 1)
	breaks := func(reads bool) { // and nobody hears of what is appended
		s.breaks(func(op, name string) error {
			if op != "change" && (op != "read" || !reads) {
				return nil
			}
			if op == "read" {
				select {
				case refused <- struct{}{}:
				default:
				}
			}
			return fault.New(fault.Unavailable, "away")
		})
	}
	breaks(false)
	begun := make(chan *client, 1)
	go func() { begun <- r.begin(runID) }()
	within(t, "question in the log", written)
	asked := r.answerEarly("high")
	breaks(true)
	within(t, "refused read", refused)
	breaks(false)
	close(goOn)
	c := <-begun
	within(t, "question that was answered", c.asked)
	second := within(t, "question", c.asked)
	if !time.Now().Before(asked.Expires) {
		t.Error("the answer was forgotten until its question expired")
	}
	r.answer(second, "because")
	within(t, "end", c.over)
}

// die ends a replica as a kill would: nothing is said, nothing is written.
func (r *replica) die() {
	r.keeper.mu.Lock()
	r.keeper.stopped = true
	for _, w := range r.keeper.waiting {
		w.timer.Stop()
	}
	r.keeper.mu.Unlock()
	r.keeper.end(errKeeperStops)
	r.keeper.work.Wait()
}

// A run is answered at a replica that has never seen it, while another one has
// its stream: the stream goes on where it is (ARCHITECTURE 8, DECISIONS 5).
func TestAnswerElsewhere(t *testing.T) {
	s := memory.New(memory.Options{})
	w := proposing()
	a, b := newReplica(t, s, w, "a", KeeperOptions{}), newReplica(t, s, w, "b", KeeperOptions{})
	c := a.begin(runID)
	b.answer(within(t, "question", c.asked), "high")
	b.answer(within(t, "question", c.asked), "because")
	within(t, "end", c.over)
	if got := a.desk.done(); len(got) != 1 || len(b.desk.done()) != 0 {
		t.Errorf("executed at a: %q, at b: %q", got, b.desk.done())
	}
	if got := c.text(); !strings.HasSuffix(got, "text Done.\nstep guardrail_output_regex_pii_decision\nend") {
		t.Errorf("shown:\n%s", got)
	}
}

// held is a log that holds the first look at a blob.
type held struct {
	Log
	once           sync.Once
	looks, release chan struct{}
}

func (h *held) Blob(ctx context.Context, space, digest string) ([]byte, error) {
	h.once.Do(func() {
		close(h.looks)
		<-h.release
	})
	return h.Log.Blob(ctx, space, digest)
}

// A run that another replica ends while this one reads its log is no failed run:
// its client finds it under its events.
func TestEndedWhileRead(t *testing.T) {
	s := memory.New(memory.Options{})
	w := proposing()
	a, b := newReplica(t, s, w, "a", KeeperOptions{}), newReplica(t, s, w, "b", KeeperOptions{Preference: 10 * time.Millisecond})
	log := &held{Log: a.store, looks: make(chan struct{}), release: make(chan struct{})}
	a.log = log
	c := a.begin(runID)
	first := within(t, "question", c.asked)
	b.answer(first, "high")
	within(t, "look at the log", log.looks)
	b.answer(b.next(runID, first.ID), "because")
	b.ends(runID)
	close(log.release)
	within(t, "end", c.over)
	if got := c.text(); strings.Contains(got, "fail") || !strings.HasSuffix(got, "\nend") {
		t.Errorf("shown:\n%s", got)
	}
}

// A restart: the process that asked is dead, another one takes the run over,
// also when the answer was given and nobody had gone on with it.
func TestTakenOver(t *testing.T) {
	for _, answered := range []bool{false, true} {
		s := memory.New(memory.Options{})
		w := proposing()
		a := newReplica(t, s, w, "a", KeeperOptions{Alone: true})
		c := a.begin(runID)
		first := within(t, "question", c.asked)
		a.die()
		if answered { // by a replica that died right after
			if err := a.keeper.resolve(t.Context(), runID, first.ID, RecordInteractionAnswered, abi.Raw(`{"outcome":"answered","value":"high"}`)); err != nil {
				t.Fatal(err)
			}
		}
		b := newReplica(t, s, w, "b", KeeperOptions{Alone: true, Park: true})
		if !answered {
			if n := b.keeper.Pending(); n != 1 {
				t.Fatalf("%d questions wait after the restart, want 1", n)
			}
			b.answer(first, "high")
		}
		second := b.next(runID, first.ID)
		b.answer(second, "because")
		b.ends(runID)
		if got := b.desk.done(); len(got) != 1 || strings.HasPrefix(got[0], "settle") {
			t.Errorf("answered=%t: executed %q", answered, got)
		}
	}
}

// No replica has the stream, or the one that has it does not go on in time: the
// one that took the answer does.
func TestPickedUp(t *testing.T) {
	s := memory.New(memory.Options{})
	w := proposing()
	a := newReplica(t, s, w, "a", KeeperOptions{Park: true})
	c := a.begin(runID)
	first := within(t, "question", c.asked)
	a.die()
	b := newReplica(t, s, w, "b", KeeperOptions{Park: true, Preference: 10 * time.Millisecond})
	if b.keeper.Pending() != 0 {
		t.Fatal("a run of a replica that is alive was taken over")
	}
	b.answer(first, "high")
	b.answer(b.next(runID, first.ID), "because")
	if p := b.ends(runID); p.ended.State != Completed || len(b.desk.done()) != 1 {
		t.Errorf("ended %s, executed %q", p.ended.State, b.desk.done())
	}
}

// next waits for the run's question after another one.
func (r *replica) next(run, after string) Interaction {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if w := r.keeper.find(run); w != nil && w.parked.ID != after {
			return w.parked.Interaction
		}
		<-time.After(time.Millisecond)
	}
	r.t.Fatal("no further question")
	return Interaction{}
}

// ends waits for the run's end in the log and returns how it ended.
func (r *replica) ends(run string) *past {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if j, err := read(r.t.Context(), r.store, run); err == nil && j.hasEnded() {
			p := &past{}
			for i := range j.entries {
				if err := p.take(r.t.Context(), r.store, j, i); err != nil && fault.Of(err) != fault.Gone {
					r.t.Fatal(err)
				}
			}
			return p
		}
		<-time.After(time.Millisecond)
	}
	r.t.Fatal("the run has no end")
	return nil
}

// Fault A7: a crash after the claims were written is settled, not executed
// again, and a crash after the outcome was written does neither.
func TestSettledAfterCrash(t *testing.T) {
	for name, settled := range map[string]bool{"claims": false, "outcome": true} {
		s := memory.New(memory.Options{})
		w := proposing()
		a := newReplica(t, s, w, "a", KeeperOptions{Alone: true})
		a.desk.hold = make(chan struct{})
		c := a.begin(runID)
		a.answer(within(t, "question", c.asked), "high")
		a.answer(within(t, "question", c.asked), "because")
		for len(a.desk.done()) == 0 {
			<-time.After(time.Millisecond)
		}
		if settled {
			j, err := read(t.Context(), a.store, runID)
			if err != nil {
				t.Fatal(err)
			}
			_ = j.add(RecordActionSettled, settledPayload{Result: abi.Raw(`{"committed":true}`)}, true)
			if err := j.flush(t.Context(), a.store, a.keeper.opts.NewID, false); err != nil {
				t.Fatal(err)
			}
		}
		b := newReplica(t, s, w, "b", KeeperOptions{Alone: true, Park: true}) // a still hangs in its request
		p := b.ends(runID)
		close(a.desk.hold)
		within(t, "end", c.over) // a learns that it has lost the run
		want := 1
		if settled {
			want = 0
		}
		if got := b.desk.done(); len(got) != want || want == 1 && !strings.HasPrefix(got[0], "settle ") {
			t.Errorf("%s: executed %q", name, got)
		}
		if p.ended.State != Completed || p.released != "Let me ask. Done." {
			t.Errorf("%s: ended %s with %q", name, p.ended.State, p.released)
		}
	}
}

// Fault A3: of many answers at several replicas one wins.
func TestOneAnswerWins(t *testing.T) {
	s := memory.New(memory.Options{})
	w := proposing()
	a, b := newReplica(t, s, w, "a", KeeperOptions{}), newReplica(t, s, w, "b", KeeperOptions{})
	c := a.begin(runID)
	first := within(t, "question", c.asked)
	var wins, losses int
	var mu sync.Mutex
	var storm sync.WaitGroup
	for i := range 32 {
		at := []*replica{a, b}[i%2]
		storm.Go(func() {
			err := at.keeper.Answer(context.Background(), "support-rep-1", runID, first.ID, accept("answered", "high"))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				wins++
			case fault.Of(err) == fault.NotFound:
				losses++
			default:
				t.Errorf("a loser was told: %v", err)
			}
		})
	}
	storm.Wait()
	if wins != 1 || losses != 31 {
		t.Errorf("%d winners and %d losers, want 1 and 31", wins, losses)
	}
	b.answer(within(t, "question", c.asked), "because")
	within(t, "end", c.over)
	if n := len(a.desk.done()) + len(b.desk.done()); n != 1 {
		t.Errorf("executed %d times", n)
	}
}

// on_disconnect: a waiting run whose client leaves is cancelled, or waits on.
func TestClientLeavesWaitingRun(t *testing.T) {
	for _, park := range []bool{false, true} {
		r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true, Park: park})
		c := r.begin(runID)
		first := within(t, "question", c.asked)
		c.leave(fault.Coded(fault.Gone, "client_gone", "the client has left"))
		within(t, "end", c.over)
		err := r.keeper.Answer(t.Context(), "support-rep-1", runID, first.ID, accept("answered", "high"))
		if !park {
			if fault.Of(err) != fault.NotFound || r.ends(runID).ended.State != Cancelled || r.keeper.Pending() != 0 {
				t.Errorf("cancel: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r.answer(r.next(runID, first.ID), "because")
		if p := r.ends(runID); p.ended.State != Completed || len(r.desk.done()) != 1 {
			t.Errorf("park: ended %s, executed %q", p.ended.State, r.desk.done())
		}
	}
}

// An expired question is a record, the model hears of it, and a late answer
// finds nothing.
func TestExpiry(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true,
		Now: func() time.Time { return time.Now().Add(time.Minute) }}) // the engine's clock is a minute behind
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	if err := r.keeper.Answer(t.Context(), "support-rep-1", runID, first.ID, accept("answered", "high")); fault.Of(err) != fault.NotFound {
		t.Errorf("a late answer: %v", err)
	}
	within(t, "end", c.over)
	if len(r.desk.done()) != 0 || !strings.Contains(c.text(), "text Done.") {
		t.Errorf("executed %q, shown:\n%s", r.desk.done(), c.text())
	}
}

// At capacity nobody is asked, and the model is told that nothing was changed.
func TestNoRoom(t *testing.T) {
	s := memory.New(memory.Options{})
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true, MaxPending: 1})
	c := r.begin(runID)
	within(t, "question", c.asked)
	w := proposing()
	r.world = w
	second := r.begin("9e3f0a52-6d53-4a9e-a0b4-2f3f5a1c0002")
	within(t, "end", second.over)
	if got := second.text(); strings.Contains(got, "asked") || !strings.Contains(got, "text Done.") {
		t.Errorf("shown:\n%s", got)
	}
	if !strings.Contains(strings.Join(w.lines, "\n"), "too many interactions are pending. Nothing was changed.") {
		t.Errorf("the model was told:\n%s", strings.Join(w.lines, "\n"))
	}
	c.leave(nil)
	within(t, "end", c.over)
}
