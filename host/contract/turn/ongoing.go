package turn

import (
	"strings"
	"sync"

	"weir/host/run"
)

// ongoing is a run as its session sees it. It is the run's observer.
type ongoing struct {
	id string

	mu       sync.Mutex
	text     strings.Builder // released since the question
	toldText int             // bytes of it that earlier replies had
	pending  *run.Interaction
	failed   bool
	failure  run.Failure
	ended    bool
	isOver   bool
	policy   string        // generation of the policy
	variant  string        // of agent.toml; empty: there are none
	changed  chan struct{} // closed and replaced at each change
}

func newOngoing(id string) *ongoing { return &ongoing{id: id, changed: make(chan struct{})} }

// outcome is where a run stands.
type outcome struct {
	pending *run.Interaction // what it waits for
	over    bool             // nothing more comes
	ended   bool             // it came to an end of its own
	failed  bool
	failure run.Failure
	policy  string // generation of the run's policy
	variant string
	text    string // released since the question
	fresh   string // of it, what no reply has had
}

func (o outcome) settled() bool { return o.pending != nil || o.over }

func (o *ongoing) look() (outcome, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.text.String()
	return outcome{pending: o.pending, over: o.isOver, ended: o.ended, failed: o.failed, failure: o.failure,
		policy: o.policy, variant: o.variant, text: text, fresh: text[o.toldText:]}, o.changed
}

// tell marks the text so far as told.
func (o *ongoing) tell() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.toldText = o.text.Len()
}

// expect returns what the run waits for, if it still does, and notes that it
// waits no more.
func (o *ongoing) expect() (run.Interaction, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending == nil {
		return run.Interaction{}, false
	}
	i := *o.pending
	o.pending = nil
	return i, true
}

func (o *ongoing) change(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	close(o.changed)
	o.changed = make(chan struct{})
}

// Started implements run.Observer, and so do the next ones.
func (o *ongoing) Started(i run.Info) {
	o.change(func() { o.policy, o.variant = i.Generation, i.Variant })
}

// Step is not shown: the caller knows what it performs.
func (o *ongoing) Step(run.Step) {}

func (o *ongoing) Text(text string) { o.change(func() { o.text.WriteString(text) }) }

func (o *ongoing) Asked(i run.Interaction) { o.change(func() { o.pending = &i }) }

func (o *ongoing) Failed(f run.Failure) {
	o.change(func() { o.failed, o.failure, o.pending = true, f, nil })
}

func (o *ongoing) Ended(run.Info) { o.change(func() { o.ended = true }) }

func (o *ongoing) over() { o.change(func() { o.isOver = true }) }
