package run

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/store/memory"
)

// reader is a client that follows a run's events.
type reader struct {
	mu     sync.Mutex
	lines  []string
	places []string // the place behind each line
	at     string
	done   chan struct{}
	stop   context.CancelFunc
}

func (r *reader) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines, r.places = append(r.lines, line), append(r.places, r.at)
}

func (r *reader) At(place string)     { r.at = place }
func (r *reader) Gap(reason string)   { r.note("gap " + reason) }
func (r *reader) Continued(Info)      {}
func (r *reader) Started(Info)        { r.note("start") }
func (r *reader) Step(s Step)         { r.note("step " + s.Name) }
func (r *reader) Text(t string)       { r.note("text " + t) }
func (r *reader) Failed(Failure)      { r.note("failed") }
func (r *reader) Ended(Info)          { r.note("end") }
func (r *reader) Asked(i Interaction) { r.note("asked " + string(i.Prompt)) }

func (r *reader) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// follow begins to follow a run after a place.
func (r *replica) follow(run, after string) *reader {
	r.t.Helper()
	show, err := r.keeper.Follow(r.t.Context(), "support-rep-1", run, after)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(r.t.Context())
	f := &reader{done: make(chan struct{}), stop: stop}
	go func() {
		defer close(f.done)
		show(ctx, f)
	}()
	return f
}

// joined is what was shown, with neighbouring texts as one.
func joined(lines []string) string {
	var out []string
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "text "); ok && len(out) > 0 && strings.HasPrefix(out[len(out)-1], "text ") {
			out[len(out)-1] += text
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// unasked is what was shown but for questions: a follower may see one, or come
// after its answer.
func unasked(lines []string) string {
	return joined(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "asked ") }))
}

const whole = `start
step guardrail_input_self_check_decision
step guardrail_input_self_check_decision
text Let me ask. 
step change
step change
text Done.
step guardrail_output_regex_pii_decision
end`

// Whoever follows sees what the client saw, from any place on, in every phase;
// what is answered already is not asked again (DECISIONS 6, fault A8).
func TestFollow(t *testing.T) {
	s := memory.New(memory.Options{})
	r := newReplica(t, s, proposing(), "a", KeeperOptions{Alone: true})
	elsewhere := newReplica(t, s, proposing(), "b", KeeperOptions{})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	waiting, other := r.follow(runID, ""), elsewhere.follow(runID, "")
	for len(waiting.all()) < 6 || len(other.all()) < 6 {
		<-time.After(time.Millisecond)
	}
	if got := joined(waiting.all()); !strings.HasSuffix(got, "step change\nasked \"T-1? late\"") {
		t.Errorf("while it waits:\n%s", got)
	}
	r.answer(first, "high")
	r.answer(within(t, "question", c.asked), "because")
	within(t, "end", c.over)
	within(t, "end of the follower", waiting.done)
	within(t, "end of the follower elsewhere", other.done)
	if live, far := unasked(waiting.all()), unasked(other.all()); live != whole || far != whole {
		t.Errorf("live:\n%s\nelsewhere:\n%s", live, far)
	}
	ended := r.follow(runID, "")
	within(t, "end", ended.done)
	if got := joined(ended.all()); got != whole {
		t.Errorf("afterwards:\n%s\nwant:\n%s", got, whole)
	}
	for i, place := range ended.places[:len(ended.places)-1] {
		rest := r.follow(runID, place)
		within(t, "end", rest.done)
		if got, want := joined(rest.all()), joined(ended.all()[i+1:]); got != want {
			t.Errorf("after %s:\n%s\nwant:\n%s", place, got, want)
		}
	}
	for i, place := range waiting.places[:len(waiting.places)-1] {
		rest := r.follow(runID, place)
		within(t, "end", rest.done)
		got, want := joined(rest.all()), unasked(waiting.all()[i+1:])
		if got != want {
			t.Errorf("after the live place %s:\n%s\nwant:\n%s", place, got, want)
		}
	}
}

// A follower in the middle of a text gets the rest of it, and no byte twice.
func TestFollowWithinText(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true})
	c := r.begin(runID)
	within(t, "question", c.asked)
	f := r.follow(runID, "1-5-4")
	for len(f.all()) < 2 {
		<-time.After(time.Millisecond)
	}
	if got := f.all()[0]; got != "text me ask. " {
		t.Errorf("got %q", got)
	}
	f.stop()
	within(t, "end", f.done)
	c.leave(nil)
	within(t, "end", c.over)
}

// A run that has been answered is this replica's while its engine is made, too:
// its own replica is none to send a client away from (DECISIONS 6).
func TestFollowWhileItIsTakenUp(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	r.loads = make(chan struct{})
	loaded := sync.OnceFunc(func() { close(r.loads) })
	defer loaded()
	r.answer(first, "high")
	f := r.follow(runID, "")
	loaded()
	second := within(t, "question", c.asked)
	r.answer(second, "because")
	within(t, "end", c.over)
	within(t, "end of the follower", f.done)
	if got := unasked(f.all()); got != whole {
		t.Errorf("got:\n%s", got)
	}
}

// A place in the text that the run has never had is not one of it: what lies
// between is not left out in silence (fault A8).
func TestFollowBeyondTheText(t *testing.T) {
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true})
	c := r.begin(runID)
	first := within(t, "question", c.asked)
	astray := func(when, place string) {
		t.Helper()
		f := r.follow(runID, place)
		for begin := time.Now(); len(f.all()) < 2 && time.Since(begin) < time.Minute; {
			<-time.After(time.Millisecond)
		}
		if got := f.all(); len(got) < 2 || got[0] != "start" || !strings.HasPrefix(got[1], "gap the place that was named") {
			t.Errorf("%s, place %s: %q", when, place, got)
		}
		f.stop()
		within(t, "end", f.done)
	}
	f := r.follow(runID, "")
	for len(f.all()) < 6 {
		<-time.After(time.Millisecond)
	}
	last := f.places[5] // of the question; everything before has a record
	f.stop()
	within(t, "end", f.done)
	at, _ := parsePlace(last)
	beyond, short := place{at.epoch, 1, 999}, place{at.epoch, at.n, at.offset - 1}
	astray("while it waits", beyond.String())
	astray("while it waits", short.String())
	r.answer(first, "high")
	r.answer(within(t, "question", c.asked), "because")
	within(t, "end", c.over)
	r.ends(runID)
	ended := r.follow(runID, "")
	within(t, "end", ended.done)
	at, _ = parsePlace(ended.places[len(ended.places)-1])
	astray("afterwards", place{at.epoch, at.n, at.offset + 1}.String())
	astray("afterwards", place{at.epoch, at.n, 0}.String())
}

// Faults A2 and A8: nothing tells another's run from none, a place that is none
// is refused, one of another run is announced, and so is what expired.
func TestFollowRefuses(t *testing.T) {
	now := time.Now()
	r := newReplica(t, memory.New(memory.Options{}), proposing(), "a", KeeperOptions{Alone: true, Now: func() time.Time { return now }})
	c := r.begin(runID)
	within(t, "question", c.asked)
	_, foreign := r.keeper.Follow(t.Context(), "somebody", runID, "")
	_, unknown := r.keeper.Follow(t.Context(), "somebody", "9e3f0a52-6d53-4a9e-a0b4-2f3f5a1cffff", "")
	if fault.Of(foreign) != fault.NotFound || foreign.Error() != unknown.Error() {
		t.Errorf("another's: %v; none: %v", foreign, unknown)
	}
	for _, place := range []string{"x", "1-2", "1-2-3-4", "01-1-1", "-1-1-1", "1-1-99999999999999999999"} {
		if _, err := r.keeper.Follow(t.Context(), "support-rep-1", runID, place); fault.Of(err) != fault.Invalid {
			t.Errorf("place %q: %v", place, err)
		}
	}
	for _, place := range []string{"2-1-0", "1-99-0", "0-0-7"} {
		f := r.follow(runID, place)
		for len(f.all()) < 2 {
			<-time.After(time.Millisecond)
		}
		if got := f.all(); got[0] != "start" || !strings.HasPrefix(got[1], "gap ") {
			t.Errorf("place %s: %q", place, got)
		}
		f.stop()
		within(t, "end", f.done)
	}
	c.leave(nil)
	within(t, "end", c.over)
	r.ends(runID)
	now = now.Add(time.Hour)
	f := r.follow(runID, "")
	within(t, "end", f.done)
	if got := joined(f.all()); !strings.Contains(got, "gap ") || strings.Contains(got, "text") {
		t.Errorf("an hour after the end:\n%s", got)
	}
}
