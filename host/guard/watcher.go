package guard

import (
	"context"

	"weir/abi"
)

const maxLabel = 64 // bytes of an edit's or a cut's label

// watcher drives one output guard along the run's text. Offsets are into the
// whole text; those in requests and replies are into what the guard is shown.
//
//	0 ……………… hold ………………………………… end
//	   before │ text of the next call │
type watcher struct {
	session *Session
	guard   *Guard
	index   int
	tally   tally

	hold   int     // it has decided everything before; undecidable when it is out
	state  abi.Raw // opaque, of this stream only
	cut    *cutAt
	edited bool // one of its edits was applied
	req    abi.CheckOutputRequest
	own    abi.CheckOutputReply // the host's, where the guard has nothing to say

	matches []int // of req, used again
}

func (w *watcher) out() bool { return w.hold == undecidable }

// look shows the guard the text up to its end and takes what it decides. Final
// means that no text will follow. The error says only that ctx ended.
func (w *watcher) look(ctx context.Context, text string, final bool, m *merger) error {
	w.req = abi.CheckOutputRequest{
		Call:      w.session.opts.Stamp(),
		StreamPos: int64(w.hold),
		Before:    lookBehind(text[:w.hold], w.guard.LookBehind),
		Text:      text[w.hold:],
		Final:     final,
		State:     w.state,
	}
	reply, err := w.answer(ctx, text)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		err = w.check(reply)
	}
	if err != nil {
		w.fail(err)
		return nil
	}
	w.accept(reply, m)
	return nil
}

// answer asks the guard, or answers for one that has nothing to say.
func (w *watcher) answer(ctx context.Context, text string) (*abi.CheckOutputReply, error) {
	if n := w.guard.native; n != nil && len(w.state) == 0 {
		open, clean, matches, err := n.open(text, w.hold, w.req.Final, w.matches[:0])
		if err != nil {
			return nil, err
		}
		w.matches = matches
		if clean {
			w.own.HoldFrom = open
			return &w.own, nil
		}
		if w.guard.SendMatches {
			w.req.Matches, w.req.Open = matches, open
		}
	}
	clock := w.session.chain.opts.Clock
	began := clock()
	reply, fuel, err := w.guard.Output.CheckOutput(ctx, &w.req)
	w.tally.called(fuel, clock().Sub(began))
	return reply, err
}

// check holds a reply against the protocol. A guard that breaks it is not
// trusted with any part of that reply.
func (w *watcher) check(r *abi.CheckOutputReply) error {
	if err := checkOutputReply(w.guard, r, &w.req); err != nil {
		return err
	}
	most := w.session.chain.opts.TailBytes
	if held := len(w.req.Text) - r.HoldFrom; held > most {
		return badReply(w.guard, abi.HookCheckOutput, "hold_from %d: %d bytes are undecided, expected at most %d", r.HoldFrom, held, most)
	}
	return nil
}

// checkOutputReply holds a reply against its request. Labels stand in decision
// events, so one that could carry text of the answer is refused.
func checkOutputReply(g *Guard, r *abi.CheckOutputReply, q *abi.CheckOutputRequest) error {
	if r == nil {
		return badReply(g, abi.HookCheckOutput, "no reply")
	}
	if err := r.Validate(q); err != nil {
		return badReply(g, abi.HookCheckOutput, "%w", err)
	}
	for i := range r.Edits {
		if !validLabel(r.Edits[i].Label) {
			return badReply(g, abi.HookCheckOutput, "edits[%d]: label: expected 1 to %d of A-Z, a-z, 0-9, _, :, . and -", i, maxLabel)
		}
	}
	if r.Cut != nil && !validLabel(r.Cut.Label) {
		return badReply(g, abi.HookCheckOutput, "cut: label: expected 1 to %d of A-Z, a-z, 0-9, _, :, . and -", maxLabel)
	}
	return nil
}

// accept takes a checked reply.
func (w *watcher) accept(r *abi.CheckOutputReply, m *merger) {
	for _, e := range r.Edits {
		m.add(edit{w.hold + e.Start, w.hold + e.End, w.index, e.Replace, e.Label})
	}
	// A cut beyond hold_from is not decided: the guard sees that text again and
	// says so again, or something nearer.
	if c := r.Cut; c != nil && c.At <= r.HoldFrom {
		w.stop(w.hold+c.At, c.Notice, c.Label)
		return
	}
	w.hold += r.HoldFrom
	w.state = r.State
	if w.req.Final {
		w.hold = undecidable
	}
}

// fail applies the failure policy: without the guard from here on, or no
// further than it has decided.
func (w *watcher) fail(err error) {
	w.tally.fail(err)
	if w.guard.AllowOnError {
		w.hold = undecidable
		return
	}
	w.stop(w.hold, "", "")
}

func (w *watcher) stop(at int, notice, label string) {
	if notice == "" {
		notice = w.session.chain.opts.SecretNotice
	}
	w.cut = &cutAt{at: at, guard: w.index, notice: notice, label: label}
	w.hold = undecidable
}

// verdict is what the guard's part in the stream comes to; final is the cut
// that ended it, if one did. A guard whose cut came too late blocked nothing.
func (w *watcher) verdict(final *cutAt) *tally {
	t := &w.tally
	switch {
	case t.err != nil:
	case w.cut != nil && w.cut == final:
		t.verdict = VerdictBlock
	case w.edited:
		t.verdict = VerdictModify
	default:
		t.verdict = VerdictAllow
	}
	return t
}

func newWatchers(s *Session, guards []*Guard) []*watcher {
	all := make([]watcher, len(guards))
	list := make([]*watcher, len(all))
	for i, g := range guards {
		all[i] = watcher{session: s, guard: g, index: i, tally: tally{guard: g}}
		list[i] = &all[i]
	}
	return list
}

func validLabel(label string) bool {
	if label == "" || len(label) > maxLabel {
		return false
	}
	for i := range len(label) {
		switch c := label[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == ':', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}
