package main

import (
	"unicode/utf8"

	"weir/abi"
)

// answer masks a piece of the answer. Held back is what may still become part
// of an entity, and an entity that such a place stands in.
//
//	         decided │ hold_from
//	… ──[entity]─────┼──[entity   ── end
//	                 │      ▲ another may begin here
//
// Which matches are found may not depend on where hold_from stands. A match
// that no checksum confirms hides what begins inside it, so when hold_from is
// inside of such a match, the state tells the next call where to go on.
func (g *guard) answer(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
	if len(q.Matches) > 0 && len(q.State) == 0 {
		all, err := g.given(q)
		if err != nil {
			return nil, err
		}
		return g.decide(q, all, q.Open, 0, nil), nil
	}
	resume, err := readState(q.State, len(g.finders))
	if err != nil {
		return nil, err
	}
	text, base := joined(q)
	all, open := g.scan(text, base, resume, q.StreamPos-int64(base), q.Final)
	return g.decide(q, all, open, base, resume), nil
}

// decide answers with all matches of a text that begins base bytes before q's.
func (g *guard) decide(q *abi.CheckOutputRequest, all []found, open, base int, resume []int64) *abi.CheckOutputReply {
	r := g.replies.Take()
	edits, hold := decided(r.edits[:0], g.keep(all), open, base)
	r.Edits, r.HoldFrom = edits, hold-base
	if !q.Final {
		r.State = appendState(nil, all, len(g.finders), resume, hold, q.StreamPos-int64(base))
	}
	return &r.CheckOutputReply
}

// roomyReply is a reply with room for its edits, so that one object is enough.
type roomyReply struct {
	abi.CheckOutputReply
	edits [2]abi.Edit
}

// joined puts the one character that \b looks at before the text, which then
// begins at base.
func joined(q *abi.CheckOutputRequest) (text string, base int) {
	_, size := utf8.DecodeLastRuneInString(q.Before)
	return q.Before[len(q.Before)-size:] + q.Text, size
}

// decided appends the edits of the entities that end before hold, and returns hold
// itself, which steps back to the start of a match whose entity it would cut.
func decided(edits []abi.Edit, entities []found, hold, base int) ([]abi.Edit, int) {
	for moved := true; moved; {
		moved = false
		for _, e := range entities {
			if e.from < hold && e.end > hold {
				hold, moved = e.from, true
			}
		}
	}
	for _, e := range entities {
		if e.end <= hold {
			edits = append(edits, e.edit(base))
		}
	}
	return edits, hold
}
