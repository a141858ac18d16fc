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
	resume, err := readState(q.State, len(g.finders))
	if err != nil {
		return nil, err
	}
	text, base := joined(q)
	all, open, given, err := g.given(q, text, base)
	if err != nil {
		return nil, err
	}
	if !given {
		all, open = g.scan(text, base, resume, q.StreamPos-int64(base), q.Final)
	}
	edits, hold := decided(keep(all), open, base)
	reply := &abi.CheckOutputReply{HoldFrom: hold - base, Edits: edits}
	if !q.Final {
		reply.State = appendState(nil, all, len(g.finders), resume, hold, q.StreamPos-int64(base))
	}
	return reply, nil
}

// joined puts the one character that \b looks at before the text, which then
// begins at base.
func joined(q *abi.CheckOutputRequest) (text string, base int) {
	_, size := utf8.DecodeLastRuneInString(q.Before)
	return q.Before[len(q.Before)-size:] + q.Text, size
}

// decided returns the edits of the entities that end before hold, and hold
// itself, which steps back to the start of a match whose entity it would cut.
func decided(entities []found, hold, base int) ([]abi.Edit, int) {
	for moved := true; moved; {
		moved = false
		for _, e := range entities {
			if e.from < hold && e.end > hold {
				hold, moved = e.from, true
			}
		}
	}
	var edits []abi.Edit
	for _, e := range entities {
		if e.end <= hold {
			edits = append(edits, e.edit(base))
		}
	}
	return edits, hold
}
