package main

import (
	"unicode/utf8"

	"weir/abi"
)

// answer masks a piece of the answer. What is undecided stays: the last window
// characters, whatever may still become an entity, and an entity that begins
// before those and ends in them.
//
//	         decided │ hold_from
//	… ──[entity]─────┼──[entity]──┬─ window ─┐
//	                 │  stays whole          end
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
	all, open := g.scan(text, base, resume, q.StreamPos-int64(base), q.Final)
	hold := len(text)
	if !q.Final {
		hold = max(base, min(back(text, g.window), open))
	}
	edits, hold := decided(keep(all), hold, base)
	reply := &abi.CheckOutputReply{HoldFrom: hold - base, Edits: edits}
	if !q.Final {
		reply.State = appendState(nil, all, len(g.finders), resume, hold, q.StreamPos-int64(base))
	}
	return reply, nil
}

// joined puts the one character that \b looks at before the text, which then
// begins at base.
func joined(q *abi.CheckOutputRequest) (text string, base int) {
	open := back(q.Before, 1)
	return q.Before[open:] + q.Text, len(q.Before) - open
}

// back returns the offset n characters before the end of s, or 0.
func back(s string, n int) int {
	end := len(s)
	for ; n > 0 && end > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return end
}

// decided returns the edits of the entities that end before hold, and hold
// itself, which steps back to the start of one that it stands in.
func decided(entities []found, hold, base int) ([]abi.Edit, int) {
	var edits []abi.Edit
	for _, e := range entities {
		if e.start >= hold {
			break
		}
		if e.end > hold {
			return edits, e.start
		}
		edits = append(edits, e.edit(base))
	}
	return edits, hold
}
