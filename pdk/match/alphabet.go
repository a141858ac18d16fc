package match

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// A class is a set of characters that no instruction of a set of patterns tells
// apart. Everything that reads text reads classes.
type class uint16

// A kind is what look-arounds know of a character, or of the place where the
// text begins or ends.
type kind uint8

const (
	other   kind = iota
	newline      // \n
	word         // counts as a word character, where some \b asks
	edge         // beside the first or the last character
	kinds
)

// direct is the number of characters whose classes stand in a table of their
// own: all but East Asian scripts and what is rare.
const direct = 0x2100

// alphabet maps characters to classes.
type alphabet struct {
	table  [direct]class
	lows   []rune // first characters of ranges, ascending from 0 …
	ranges []class
	kind   []kind     // of each class
	sets   [][]uint64 // sets of characters, as bits for classes
}

// of returns the class of r.
func (a *alphabet) of(r rune) class {
	if r < direct {
		return a.table[r]
	}
	i, found := slices.BinarySearch(a.lows, r)
	if !found {
		i--
	}
	return a.ranges[i]
}

// at returns the class of the character at offset i of s, and its length.
func (a *alphabet) at(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return a.table[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return a.of(r), n
}

// before returns the kind of what stands before offset i of s.
func (a *alphabet) before(s string, i int) kind {
	if i == 0 {
		return edge
	}
	if c := s[i-1]; c < utf8.RuneSelf {
		return a.kind[a.table[c]]
	}
	r, _ := utf8.DecodeLastRuneInString(s[:i])
	return a.kind[a.of(r)]
}

func (a *alphabet) has(set uint16, c class) bool {
	return a.sets[set][c>>6]>>(c&63)&1 != 0
}

// alphabetBuilder collects the sets of characters that instructions read.
type alphabetBuilder struct {
	sets     [][]span
	byKey    map[string]uint16
	boundary bool // somebody asks for word boundaries
}

// add returns the number of a set.
func (b *alphabetBuilder) add(spans []span) uint16 {
	key := make([]byte, 0, 8*len(spans))
	for _, s := range spans {
		key = append(key, byte(s.lo), byte(s.lo>>8), byte(s.lo>>16), byte(s.hi), byte(s.hi>>8), byte(s.hi>>16))
	}
	if n, ok := b.byKey[string(key)]; ok {
		return n
	}
	if b.byKey == nil {
		b.byKey = make(map[string]uint16)
	}
	n := uint16(len(b.sets))
	b.byKey[string(key)] = n
	b.sets = append(b.sets, spans)
	return n
}

// event is a place where a set begins or ends.
type event struct {
	at  rune
	set int
}

// build sweeps over all characters and gives those that are in the same sets
// the same class.
func (b *alphabetBuilder) build() *alphabet {
	sets := append(b.sets[:len(b.sets):len(b.sets)], []span{{'\n', '\n'}})
	if b.boundary {
		sets = append(sets, members(wordTables()...))
	}
	var events []event
	for i, set := range sets {
		for _, s := range set {
			events = append(events, event{s.lo, i}, event{s.hi + 1, i})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return int(a.at - b.at) })
	a := &alphabet{sets: make([][]uint64, len(b.sets))}
	in := make([]byte, (len(sets)+7)/8)
	classes := make(map[string]class)
	for at := rune(0); at <= unicode.MaxRune; {
		for len(events) > 0 && events[0].at == at {
			in[events[0].set/8] ^= 1 << (events[0].set % 8)
			events = events[1:]
		}
		c, ok := classes[string(in)]
		if !ok {
			c = class(len(classes))
			classes[string(in)] = c
			a.admit(in, len(sets), b.boundary)
		}
		a.lows, a.ranges = append(a.lows, at), append(a.ranges, c)
		if len(events) == 0 {
			break
		}
		at = events[0].at
	}
	a.fill()
	return a
}

// admit makes a class of the characters that are in the sets that in names. The
// last of them are newline and, with boundary, word.
func (a *alphabet) admit(in []byte, sets int, boundary bool) {
	c := len(a.kind)
	has := func(set int) bool { return in[set/8]>>(set%8)&1 != 0 }
	for i := range a.sets {
		if c%64 == 0 {
			a.sets[i] = append(a.sets[i], 0)
		}
		if has(i) {
			a.sets[i][c/64] |= 1 << (c % 64)
		}
	}
	k := other
	switch {
	case boundary && has(sets-1):
		k = word
	case has(len(a.sets)):
		k = newline
	}
	a.kind = append(a.kind, k)
}

func (a *alphabet) fill() {
	for i, lo := range a.lows {
		hi := rune(direct)
		if i+1 < len(a.lows) {
			hi = min(hi, a.lows[i+1])
		}
		for r := lo; r < hi; r++ {
			a.table[r] = a.ranges[i]
		}
	}
}
