package guard

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// edit is one guard's edit at its place in the run's whole text.
type edit struct {
	start, end int
	guard      int // its place in the chain
	replace    string
	label      string
}

// order is rule 1: ascending start, then the longest, then chain order.
func (e edit) order(o edit) int {
	return cmp.Or(cmp.Compare(e.start, o.start), cmp.Compare(o.end, e.end), cmp.Compare(e.guard, o.guard))
}

// merger applies the edits of several guards to one text, front to back.
//
//	0 ………… pos ………………… to ………………
//	released │ decided     │ some guard may still edit
//
// Every edit that starts before to is known when text before to is taken, so
// which edits are kept does not depend on when that happens.
type merger struct {
	edits   []edit // not yet decided, all at or after pos
	sorted  bool
	pos     int
	applied func(edit)
}

func (m *merger) add(e edit) {
	m.edits = append(m.edits, e)
	m.sorted = false
}

// take returns the text from pos to the end of what is decided, with its edits
// applied. Where an edit reaches over to, it stops at the edit's start; the last
// take, before a cut at to, applies such an edit whole (rule 3).
func (m *merger) take(text string, to int, last bool) string {
	if len(m.edits) == 0 {
		out := text[m.pos:max(m.pos, to)]
		m.pos += len(out)
		return out
	}
	if !m.sorted {
		slices.SortStableFunc(m.edits, edit.order)
		m.sorted = true
	}
	var out strings.Builder
	n := 0
	for _, e := range m.edits {
		if e.start >= to {
			break
		}
		if e.start >= m.pos { // else it starts inside one that was kept
			if e.end > to && !last {
				to = e.start
				break
			}
			out.WriteString(text[m.pos:e.start])
			out.WriteString(e.replace)
			m.pos = e.end
			m.applied(e)
		}
		n++
	}
	m.edits = slices.Delete(m.edits, 0, n)
	if m.pos < to {
		out.WriteString(text[m.pos:to])
		m.pos = to
	}
	return out.String()
}

// cutAt is a guard's decided cut at its place in the run's whole text.
type cutAt struct {
	at     int
	guard  int
	notice string
	label  string // empty when the guard failed
}

// undecidable is the hold_from of a guard that will say no more.
const undecidable = math.MaxInt

// smallestHold returns how far every guard has decided, at most end.
func smallestHold(guards []*watcher, end int) int {
	for _, w := range guards {
		end = min(end, w.hold)
	}
	return end
}

// firstCut is rule 2: the smallest cut, and of several the one of the guard
// that comes first in the chain.
func firstCut(guards []*watcher) *cutAt {
	var first *cutAt
	for _, w := range guards {
		if w.cut != nil && (first == nil || w.cut.at < first.at) {
			first = w.cut
		}
	}
	return first
}

// final returns whether no guard can still cut at or before c. A guard later in
// the chain loses a tie, so its hold_from need only have reached the cut; one
// earlier in the chain must have passed it, or the notice would depend on which
// of two guards needed fewer characters to be sure.
func (c *cutAt) final(guards []*watcher) bool {
	for i, w := range guards {
		if w.hold < c.at || w.hold == c.at && i < c.guard {
			return false
		}
	}
	return true
}
