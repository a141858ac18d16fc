package main

import (
	"strconv"
	"unicode/utf8"

	"weir/abi"
)

// guard is the guardrail with its configuration.
type guard struct {
	config
}

// answer looks at a piece of the answer. The last window characters are held
// back; before them a secret is either found or no longer begins.
//
//	before                │ text
//	… look_behind ────────┼──────────┬─ window ─┐
//	   a secret may begin here …     │          end
//	   … cut at 0         │ … or here: cut there
func (g *guard) answer(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
	text, from, base := g.context(q)
	hold := len(text)
	if !q.Final {
		hold = max(base, back(text, len(text), g.window))
	}
	start, index := g.first(text, from, hold, q.Final)
	if index < 0 {
		return &abi.CheckOutputReply{HoldFrom: hold - base}
	}
	at := max(start-base, 0)
	reply := &abi.CheckOutputReply{
		HoldFrom: at,
		Cut:      &abi.Cut{At: at, Notice: g.notice, Label: label(index)},
	}
	if q.Final {
		reply.HoldFrom = len(q.Text)
	}
	return reply
}

// context joins what is searched: at most look_behind characters before the
// text, and the text, which begins at base. A search starts at from; what stands
// before that is there for \b only, because the text goes on to its left.
func (g *guard) context(q *abi.CheckOutputRequest) (text string, from, base int) {
	first := back(q.Before, len(q.Before), g.lookBehind)
	if first == 0 && q.StreamPos > int64(len(q.Before)) {
		_, first = utf8.DecodeRuneInString(q.Before)
	}
	open := back(q.Before, first, 1)
	return q.Before[open:] + q.Text, first - open, len(q.Before) - open
}

// back returns the offset n characters before offset end of s, or 0.
func back(s string, end, n int) int {
	for ; n > 0 && end > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return end
}

// first returns where the first secret of text begins, and its pattern; of
// several that begin there the first in the list. The pattern is -1 when there
// is none, or when another one that begins before it, but not before hold, may
// still turn up: then the text up to hold is all that is decided.
func (g *guard) first(text string, from, hold int, final bool) (start, index int) {
	index = -1
	rival, rivalIndex := len(text), -1
	for i, p := range g.patterns {
		r := p.Earliest(text, from, hold, final)
		switch {
		case r.Found && (index < 0 || r.Start < start):
			start, index = r.Start, i
		case !r.Found && r.Open < rival:
			rival, rivalIndex = r.Open, i
		}
	}
	if index >= 0 && rivalIndex >= 0 && (rival < start || rival == start && rivalIndex < index) {
		return 0, -1
	}
	return start, index
}

// label names a pattern by its number in the configuration.
func label(index int) string { return "secret:" + strconv.Itoa(index) }
