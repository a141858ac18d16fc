package main

import (
	"unicode"
)

// A refused match may hold an entity beside something else: digits of an
// expiry date behind a card number, a bank's name behind an IBAN. What counts
// as a part stands between separators, so a run of digits is never cut.

// parts says which parts of a refused match may be the entity.
type parts uint8

const (
	wholeOnly parts = iota
	fromStart       // those that begin where the match begins
	anywhere
)

// part returns the first part of match, and of those with its start the
// longest, that the validator confirms.
func (r *recogniser) part(match string) (start, end int, ok bool) {
	starts, ends := words(match)
	if r.parts == fromStart {
		starts = starts[:1]
	}
	for i, start := range starts {
		for j := len(ends) - 1; j >= i; j-- {
			if r.valid(match[start:ends[j]]) {
				return start, ends[j], true
			}
		}
	}
	return 0, 0, false
}

// words returns where the pieces between separators begin and end. A match
// begins and ends with one.
func words(match string) (starts, ends []int) {
	starts = []int{0}
	gap := -1 // where a separator began
	for i, c := range match {
		if c == '-' || unicode.Is(unicode.Zs, c) {
			gap = i
			continue
		}
		if gap >= 0 {
			starts, ends = append(starts, i), append(ends, gap)
			gap = -1
		}
	}
	return starts, append(ends, len(match))
}
