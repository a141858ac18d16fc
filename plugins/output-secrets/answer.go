package main

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"weir/abi"
	"weir/pdk/match"
	"weir/pdk/spare"
)

// guard is the guardrail with its configuration.
type guard struct {
	config
	replies spare.Of[roomyReply]
}

// answer looks at a piece of the answer. What may still become part of a secret
// is held back, and nothing else.
//
//	before │ text
//	     c │ … decided … │ hold_from: the earliest start that is open
//	     ▲ what \b looks at
func (g *guard) answer(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
	m, known, err := g.given(q)
	if err != nil {
		return nil, err
	}
	if known {
		return g.cut(q, m.Pattern, m.Start), nil
	}
	text, base := joined(q)
	c := g.streamed
	c.Reset(text, base)
	found, open := c.Scan(text, q.Final)
	m, ok := g.first(c, found, q.Final)
	if !ok {
		r := g.replies.Take()
		r.HoldFrom = open - base
		return &r.CheckOutputReply, nil
	}
	return g.cut(q, m.Pattern, m.Start-base), nil
}

// cut answers that the answer ends where a secret begins.
func (g *guard) cut(q *abi.CheckOutputRequest, pattern, at int) *abi.CheckOutputReply {
	r := g.replies.Take()
	r.cut = abi.Cut{At: at, Notice: g.notice, Label: g.patterns[pattern].ID}
	r.HoldFrom, r.Cut = at, &r.cut
	if q.Final {
		r.HoldFrom = len(q.Text)
	}
	return &r.CheckOutputReply
}

// roomyReply is a reply with room for its cut, so that one object is enough.
type roomyReply struct {
	abi.CheckOutputReply
	cut abi.Cut
}

// given returns the first secret by the matches that the host has sent along:
// it looks for the same patterns with the same matcher. They do not tell which
// pattern is open; where that decides, and where there are none, it is not known.
func (g *guard) given(q *abi.CheckOutputRequest) (first match.Match, known bool, err error) {
	for m := q.Matches; len(m) > 0; m = m[3:] {
		if len(m) < 3 || m[0] < 0 || m[0] >= len(g.patterns) || m[1] < 0 || m[1] >= m[2] || m[2] > len(q.Text) {
			return first, false, errors.New("matches: expected a pattern, a start and an end for each, inside of the text")
		}
	}
	if len(q.Matches) == 0 {
		return first, false, nil
	}
	first = match.Match{Pattern: q.Matches[0], Start: q.Matches[1], End: q.Matches[2]}
	return first, q.Final || q.Open > first.Start, nil
}

// joined puts the one character that \b looks at before the text, which then
// begins at base.
func joined(q *abi.CheckOutputRequest) (text string, base int) {
	_, size := utf8.DecodeLastRuneInString(q.Before)
	return q.Before[len(q.Before)-size:] + q.Text, size
}

// first returns the first secret: the one that begins first, and of several
// that begin there the first in the list. There is none as long as another one
// may still turn up before it.
func (g *guard) first(c *match.Scanner, found []match.Match, final bool) (match.Match, bool) {
	if len(found) == 0 {
		return match.Match{}, false
	}
	m := found[0]
	for i := range g.patterns {
		if final {
			break
		}
		if o := c.Open(i); o < m.Start || o == m.Start && i < m.Pattern {
			return m, false
		}
	}
	return m, true
}

// label names a pattern by its number in the configuration.
func label(index int) string { return "secret:" + strconv.Itoa(index) }
