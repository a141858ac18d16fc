package guard

import (
	"context"
	"unicode/utf8"
)

// callBytes is how much new text a guard sees in one call, so that a long text
// that arrives at once needs no longer calls than a streamed one.
const callBytes = 1 << 10

// stream guards one text, synchronously: it is the sink without its goroutine.
//
// Guards are called one after the other. They are computations, so on a busy
// machine calling them side by side finishes no sooner, and it would take a
// goroutine and a hand-over per guard and delta. The result is the same.
type stream struct {
	session *Session
	guards  []*watcher
	merge   merger
	looked  int // every guard that is not out has seen the text up to here

	emit      func(string) // receives what is released
	stopped   func()       // told before the rest is released that the answer is cut
	cut       *cutAt       // final
	oversized bool
	labels    map[string]int // of applied edits
	made      []MadeEdit     // in order
	released  int            // characters, notices not counted
}

func newStream(s *Session, guards []*Guard, emit func(string), stopped func()) *stream {
	st := &stream{session: s, guards: newWatchers(s, guards), emit: emit, stopped: stopped}
	st.merge.applied = st.count
	return st
}

func (st *stream) count(e edit) {
	if st.labels == nil {
		st.labels = make(map[string]int)
	}
	st.labels[e.label]++
	st.guards[e.guard].edited = true
	st.made = append(st.made, MadeEdit{Start: e.start, End: e.end, Replace: e.replace, Label: e.label,
		Guard: st.guards[e.guard].guard.Name})
}

// advance looks at text, all that is known of the answer, and releases what may
// go. Over means that text has been cut off at the limit, final that it is
// complete. It returns whether the stream goes on; it ends with a cut, with the
// final text and with ctx.
func (st *stream) advance(ctx context.Context, text string, over, final bool) bool {
	for {
		end := st.next(text)
		last := end == len(text)
		if end > st.looked || last && final && !over {
			if !st.look(ctx, text[:end], last && final && !over) {
				return false
			}
		}
		if !st.settle(ctx, text[:end], over && last) {
			return false
		}
		if last {
			return !final
		}
	}
}

// next returns the end of the next piece of text.
func (st *stream) next(text string) int {
	if len(text)-st.looked <= callBytes {
		return len(text)
	}
	return runeStart(text, st.looked+callBytes)
}

func (st *stream) look(ctx context.Context, text string, final bool) bool {
	for _, w := range st.guards {
		if w.out() {
			continue
		}
		if w.look(ctx, text, final, &st.merge) != nil {
			return false
		}
	}
	st.looked = len(text)
	return true
}

// settle releases what all guards have decided of text, or cuts. Full means
// that text ends at the limit and the answer does not.
func (st *stream) settle(ctx context.Context, text string, full bool) bool {
	hold := smallestHold(st.guards, len(text))
	cut := firstCut(st.guards)
	switch {
	case cut != nil && (cut.final(st.guards) || full && cut.at <= hold):
	case full:
		// The start of the earliest candidate that is undecided at the limit.
		st.oversized = true
		cut = &cutAt{at: hold, guard: -1, notice: st.session.chain.opts.OversizeNotice}
	default:
		// Before a cut that is not final hold is at or before it.
		return st.release(ctx, st.merge.take(text, hold, false), true)
	}
	st.cut = cut
	st.stopped()
	if st.release(ctx, st.merge.take(text, cut.at, true), true) {
		st.release(ctx, cut.notice, false)
	}
	return false
}

// release hands text to the client and returns whether the run goes on.
func (st *stream) release(ctx context.Context, text string, counted bool) bool {
	head, rest := splitContainer(text)
	for _, fragment := range [...]string{head, rest} {
		if fragment == "" {
			continue
		}
		if ctx.Err() != nil {
			return false
		}
		st.emit(fragment)
		if counted {
			st.released += utf8.RuneCountInString(fragment)
		}
	}
	return ctx.Err() == nil
}
