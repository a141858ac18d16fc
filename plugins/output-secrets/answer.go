package main

import (
	"strconv"
	"unicode/utf8"

	"weir/abi"
	"weir/pdk/match"
)

// guard is the guardrail with its configuration.
type guard struct {
	config
}

// answer looks at a piece of the answer. What may still become part of a secret
// is held back, and nothing else.
//
//	before │ text
//	     c │ … decided … │ hold_from: the earliest start that is open
//	     ▲ what \b looks at
func (g *guard) answer(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
	text, base := joined(q)
	c := g.streamed
	c.Reset(text, base)
	found, open := c.Scan(text, q.Final)
	m, ok := g.first(c, found, q.Final)
	if !ok {
		return &abi.CheckOutputReply{HoldFrom: open - base}
	}
	at := m.Start - base
	reply := &abi.CheckOutputReply{
		HoldFrom: at,
		Cut:      &abi.Cut{At: at, Notice: g.notice, Label: label(m.Pattern)},
	}
	if q.Final {
		reply.HoldFrom = len(q.Text)
	}
	return reply
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
