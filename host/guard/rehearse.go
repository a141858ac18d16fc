package guard

import (
	"context"
	"strings"
)

// Rehearsal guards one text step by step, for people to watch and for
// measurements: it is the sink without its goroutine, with a look inside. It is
// for one goroutine. Guards in monitor mode take no part.
type Rehearsal struct {
	stream   *stream
	in       assembler
	released strings.Builder
	edits    []AppliedEdit
	step     strings.Builder
	over     bool
}

// Step is what came of one piece of text.
type Step struct {
	Released string        // with its edits, and with the notice of a cut
	Edits    []AppliedEdit // whose replacement was released
	Held     string        // what has arrived and may not go yet
	Guards   []GuardStep   // in chain order
	Ended    bool          // the answer is cut; further text is dropped
}

// AppliedEdit is one edit of one guard.
type AppliedEdit struct {
	Guard   string
	Label   string
	Text    string // that was replaced
	Replace string
}

// GuardStep is one guard's part in a step.
type GuardStep struct {
	Name  string
	Held  int  // bytes at the end of the text that it has not decided
	Calls int  // of check_output in this step
	Cuts  bool // it wants the answer cut
	Err   error
}

// Rehearse begins a rehearsal. Of opts only Stamp is required; Release is not
// called.
func (c *Chain) Rehearse(opts SessionOptions) *Rehearsal {
	r := &Rehearsal{}
	r.in.max = c.opts.MaxOutputChars
	s := c.Session(opts)
	r.stream = newStream(s, c.output.enforcing, func(text string) { r.step.WriteString(text) }, func() {})
	r.stream.merge.applied = func(e edit) {
		r.stream.count(e)
		r.edits = append(r.edits, AppliedEdit{Guard: r.stream.guards[e.guard].guard.Name, Label: e.label,
			Text: r.in.text.String()[e.start:e.end], Replace: e.replace})
	}
	return r
}

// Push adds a piece, which may be cut anywhere, and returns what came of it. Its
// error says only that ctx ended.
func (r *Rehearsal) Push(ctx context.Context, piece string) (Step, error) {
	r.in.add(piece)
	return r.advance(ctx, false)
}

// Finish decides the rest. It is called once, after the last Push.
func (r *Rehearsal) Finish(ctx context.Context) (Step, OutputVerdict, error) {
	r.in.end()
	step, err := r.advance(ctx, true)
	return step, r.stream.verdict(r.in.seen), err
}

// Released returns all that was released so far.
func (r *Rehearsal) Released() string { return r.released.String() }

func (r *Rehearsal) advance(ctx context.Context, final bool) (Step, error) {
	r.step.Reset()
	r.edits = nil
	calls := make([]int, len(r.stream.guards))
	for i, w := range r.stream.guards {
		calls[i] = w.tally.calls
	}
	text := r.in.text.String()
	if !r.over {
		r.over = !r.stream.advance(ctx, text, r.in.over, final)
	}
	if ctx.Err() != nil {
		return Step{}, context.Cause(ctx)
	}
	r.released.WriteString(r.step.String())
	step := Step{Released: r.step.String(), Edits: r.edits, Ended: r.stream.cut != nil}
	if !r.over {
		step.Held = text[r.stream.merge.pos:]
	}
	for i, w := range r.stream.guards {
		g := GuardStep{Name: w.guard.Name, Calls: w.tally.calls - calls[i], Cuts: w.cut != nil, Err: w.tally.err}
		if !w.out() {
			g.Held = len(text) - w.hold
		}
		step.Guards = append(step.Guards, g)
	}
	return step, nil
}
