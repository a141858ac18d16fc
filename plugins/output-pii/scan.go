package main

import (
	"cmp"
	"errors"
	"slices"

	"weir/abi"
)

// found is one match of one finder: from and to are the match itself, start
// and end the part of it that is masked.
type found struct {
	from, to   int
	start, end int
	finder     int
	entity     string // empty when the validator refused it and every part
	mask       string
}

func (f found) edit(base int) abi.Edit {
	return abi.Edit{Start: f.start - base, End: f.end - base, Replace: f.mask, Label: f.entity}
}

// scan returns every decided match of every finder, and the earliest start of
// one that is not decided. The reference is: all matches of the pattern from
// left to right without overlap, then those that the validator confirms. Text
// begins at pos in the stream; a finder starts at base or where resume says.
func (g *guard) scan(text string, base int, resume []int64, pos int64, final bool) (all []found, open int) {
	c := g.scanner
	c.Reset(text, base)
	for i, r := range resume {
		if r > pos+int64(base) {
			c.From(i, int(r-pos))
		}
	}
	matches, open := c.Scan(text, final)
	all = g.found[:0]
	for _, m := range matches {
		all = append(all, g.confirm(m.Pattern, text, m.Start, m.End))
	}
	return all, open
}

// given is what scan would find, of a host that has sent the matches along: it
// looks for the same patterns with the same matcher. Offsets are into q.Text.
func (g *guard) given(q *abi.CheckOutputRequest) ([]found, error) {
	all := g.found[:0]
	for m := q.Matches; len(m) > 0; m = m[3:] {
		if len(m) < 3 || m[0] < 0 || m[0] >= len(g.finders) || m[1] < 0 || m[1] >= m[2] || m[2] > len(q.Text) {
			return nil, errors.New("matches: expected a pattern, a start and an end for each, inside of the text")
		}
		all = append(all, g.confirm(m[0], q.Text, m[1], m[2]))
	}
	return all, nil
}

func (g *guard) confirm(i int, text string, start, end int) found {
	r := &g.finders[i]
	f := found{from: start, to: end, start: start, end: end, finder: i, entity: r.entity, mask: r.mask}
	switch {
	case r.valid == nil || r.valid(text[start:end]):
	case r.parts != wholeOnly:
		if a, b, ok := r.part(text[start:end]); ok {
			f.start, f.end = start+a, start+b
			break
		}
		fallthrough
	default:
		f.entity = ""
	}
	return f
}

// keep returns the confirmed matches that are masked (6.9): in order of their
// start, then the longest, and none that begins inside one before it.
func (g *guard) keep(all []found) []found {
	kept := g.kept[:0]
	for _, f := range all {
		if f.entity != "" {
			kept = append(kept, f)
		}
	}
	if len(kept) < 2 {
		return kept
	}
	slices.SortStableFunc(kept, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	end := 0
	return slices.DeleteFunc(kept, func(f found) bool {
		if f.start < end {
			return true
		}
		end = f.end
		return false
	})
}

// display masks every text (6.10).
func (g *guard) display(texts []string) *abi.CheckOutputReply {
	reply := &abi.CheckOutputReply{}
	for i, text := range texts {
		all, _ := g.scan(text, 0, nil, 0, true)
		for _, f := range g.keep(all) {
			e := f.edit(0)
			e.Index = i
			reply.Edits = append(reply.Edits, e)
		}
	}
	return reply
}
