package main

import (
	"cmp"
	"slices"

	"weir/abi"
	"weir/pdk/match"
)

const redacted = "[REDACTED]"

// display redacts every secret in every text (6.10). Where secrets overlap, one
// edit covers them all: leaving out the later one would show its end.
func (g *guard) display(texts []string) *abi.CheckOutputReply {
	reply := &abi.CheckOutputReply{}
	c := g.displayed
	for i, text := range texts {
		reply.Edits = append(reply.Edits, redact(c, i, text)...)
	}
	return reply
}

func redact(c *match.Scanner, index int, text string) []abi.Edit {
	var found []abi.Edit
	c.Reset(text, 0)
	matches, _ := c.Scan(text, true)
	for _, m := range matches {
		found = append(found, abi.Edit{Index: index, Start: m.Start, End: m.End, Replace: redacted, Label: label(m.Pattern)})
	}
	slices.SortStableFunc(found, func(a, b abi.Edit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	edits := found[:0]
	for _, e := range found {
		if n := len(edits); n > 0 && e.Start < edits[n-1].End {
			edits[n-1].End = max(edits[n-1].End, e.End)
			continue
		}
		edits = append(edits, e)
	}
	return edits
}
