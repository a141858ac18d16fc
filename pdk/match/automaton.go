package match

import (
	"regexp/syntax"
	"slices"
	"sync"
	"unicode/utf8"
)

// An automaton follows all patterns of a set at once through a text, without
// knowing where anything began. Its states are built when a text first needs
// them, and thrown away together when there are too many.
type automaton struct {
	abc      *alphabet
	anchored bool           // matches begin at the beginning only
	looks    syntax.EmptyOp // what the programs ask for
	most     int

	// The programs, one behind the other.
	insts  []inst
	starts []uint32
	owner  []uint16 // the program of each instruction
	of     []int    // the pattern of each program

	mu     sync.Mutex // for building
	states map[string]*state
	roots  [kinds]*state
	built  int // states, since the last flush
	bytes  int // that they take, about
	work   int // instructions that were looked at

	// Scratch of the builder.
	key   []byte
	pcs   []uint32
	hits  []uint16
	stack []uint32
	mark  []uint32
	epoch uint32
	begun map[uint32][]uint32 // what reading a class at a fresh start comes to
}

// sort says whether a state needs to be looked at.
type sort uint8

const (
	busy  sort = iota // something is in progress
	quiet             // nothing is
	hit               // some pattern may have had a match before the last character
)

// A state is what has been read so far, as far as it matters. Its next states
// are set once and read without a lock.
type state struct {
	next   []link // by class
	sort   sort
	before kind
	pcs    []uint32 // that have just read a character, ascending
	hits   []uint16 // programs with a match that ends before that character
	live   []uint16 // programs that have a pc

	stay *[256]bool // quiet: bytes that change nothing
}

func newAutomaton(abc *alphabet, most int, anchored bool) *automaton {
	return &automaton{
		abc: abc, anchored: anchored, most: most,
		states: make(map[string]*state),
		begun:  make(map[uint32][]uint32),
	}
}

// add adds a program. It is called before the automaton is used.
func (a *automaton) add(p *program, pattern int) {
	base := uint32(len(a.insts))
	for _, in := range p.insts {
		in.out += base
		in.arg += base
		a.insts = append(a.insts, in)
		a.owner = append(a.owner, uint16(len(a.of)))
	}
	a.looks |= p.looks
	a.of = append(a.of, pattern)
	a.starts = append(a.starts, p.start+base)
	a.mark = append(a.mark, make([]uint32, len(p.insts))...)
}

// root returns the state of a search that begins behind a character, or with
// edge at the beginning of the text.
func (a *automaton) root(before kind) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.roots[before] == nil {
		a.pcs, a.hits = a.pcs[:0], a.hits[:0]
		if a.anchored {
			a.pcs = append(a.pcs, a.starts...)
			slices.Sort(a.pcs)
		}
		a.roots[before] = a.intern(before)
	}
	return a.roots[before]
}

// why tells why a run stopped.
type why uint8

const (
	ended   why = iota // at the end of the text
	unbuilt            // before a character whose state is not built
	hitting            // in a state with hits
	calm               // in a quiet state, if asked to
)

// run reads text from at on, until something needs to be looked at: the loop
// that everything else is kept out of. With it goes the last place where
// nothing was in progress, but for the one where it stops.
func (a *automaton) run(st *state, text string, at, quietAt int, stop bool) (*state, int, int, why) {
	table := &a.abc.table
	for at < len(text) {
		var next *state
		n := 1
		if b := text[at]; b < utf8.RuneSelf {
			next = st.next[table[b]].Load()
		} else {
			var c class
			c, n = a.abc.at(text, at)
			next = st.next[c].Load()
		}
		if next == nil {
			return st, at, quietAt, unbuilt
		}
		st = next
		at += n
		if st.sort == busy {
			continue
		}
		if st.sort == hit {
			return st, at, quietAt, hitting
		}
		if stop {
			return st, at, quietAt, calm
		}
		for at < len(text) && st.stay[text[at]] {
			at++
		}
		quietAt = at
	}
	return st, at, quietAt, ended
}

// follow builds the state behind st and the character at an offset of text, and
// returns how many instructions it looked at.
func (a *automaton) follow(st *state, text string, at int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, _ := a.abc.at(text, at)
	if st.next[c].Load() != nil {
		return 0
	}
	began := a.work
	if a.full() {
		a.clear()
	}
	st.next[c].Store(a.build(st, c))
	return a.work - began
}

// full reports whether there is no room for another state.
func (a *automaton) full() bool { return a.built >= a.most || a.bytes >= a.most*stateBytes }

// clear forgets all states. Those that somebody still stands in lose their ways
// on, so that they keep nothing else alive.
func (a *automaton) clear() {
	for _, st := range a.states {
		for i := range st.next {
			st.next[i].Store(nil)
		}
	}
	clear(a.states)
	clear(a.begun)
	a.roots = [kinds]*state{}
	a.built, a.bytes = 0, 0
}

// build makes the state after st and a character.
func (a *automaton) build(st *state, c class) *state {
	abc := a.abc
	looks := a.looksAt(st.before, abc.kind[c])
	a.pcs, a.hits = a.pcs[:0], a.hits[:0]
	a.newEpoch()
	for _, pc := range st.pcs {
		a.advance(pc, c, looks)
	}
	if !a.anchored {
		a.pcs = append(a.pcs, a.begin(c, looks)...)
	}
	slices.Sort(a.pcs)
	a.pcs = slices.Compact(a.pcs)
	a.hits = slices.Compact(a.hits)
	return a.intern(abc.kind[c])
}

// begin returns what matches that begin with a character of class c come to.
func (a *automaton) begin(c class, looks uint8) []uint32 {
	key := uint32(c)<<8 | uint32(looks)
	if pcs, ok := a.begun[key]; ok {
		return pcs
	}
	kept, hits := len(a.pcs), len(a.hits)
	a.newEpoch()
	for _, pc := range a.starts {
		a.advance(pc, c, looks)
	}
	pcs := slices.Clone(a.pcs[kept:])
	a.pcs, a.hits = a.pcs[:kept], a.hits[:hits]
	a.begun[key] = pcs
	a.bytes += 4 * len(pcs)
	return pcs
}

// newEpoch forgets which instructions have been through.
func (a *automaton) newEpoch() {
	if a.epoch++; a.epoch == 0 {
		clear(a.mark)
		a.epoch = 1
	}
}

// advance appends what pc comes to by reading c, and its program if it comes to
// a match without.
func (a *automaton) advance(pc uint32, c class, looks uint8) {
	a.stack = append(a.stack[:0], pc)
	for len(a.stack) > 0 {
		pc := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.mark[pc] == a.epoch {
			continue
		}
		a.mark[pc] = a.epoch
		a.work++
		in := &a.insts[pc]
		switch in.op {
		case opAlt:
			a.stack = append(a.stack, in.out, in.arg)
		case opLook:
			if in.look&^looks == 0 {
				a.stack = append(a.stack, in.out)
			}
		case opMatch:
			a.hits = append(a.hits, a.owner[pc])
		case opRead:
			if c != none && a.abc.has(in.set, c) {
				a.pcs = append(a.pcs, in.out)
			}
		}
	}
}

// none is the class of no character: the text ends.
const none = ^class(0)

// end returns the programs that may have a match where the text ends.
func (a *automaton) end(st *state) []uint16 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pcs, a.hits = a.pcs[:0], a.hits[:0]
	a.newEpoch()
	for _, pc := range st.pcs {
		a.advance(pc, none, a.looksAt(st.before, edge))
	}
	return slices.Clone(slices.Compact(a.hits))
}

// looksAt returns what holds between two characters and is asked for.
func (a *automaton) looksAt(before, after kind) uint8 {
	return uint8(looksAt(before, after) & a.looks)
}

// plain returns a kind that means the same to the programs and to more states.
func (a *automaton) plain(before kind) kind {
	switch {
	case before == edge && a.looks&(syntax.EmptyBeginText|syntax.EmptyBeginLine) == 0,
		before == newline && a.looks&syntax.EmptyBeginLine == 0,
		before == word && a.looks&boundary == 0:
		return other
	}
	return before
}

// intern returns the state of the builder's pcs and hits behind a character.
func (a *automaton) intern(before kind) *state {
	before = a.plain(before)
	slices.Sort(a.hits)
	a.hits = slices.Compact(a.hits)
	a.key = append(a.key[:0], byte(before), byte(len(a.hits)), byte(len(a.hits)>>8))
	for _, h := range a.hits {
		a.key = append(a.key, byte(h), byte(h>>8))
	}
	for _, pc := range a.pcs {
		a.key = append(a.key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	if st, ok := a.states[string(a.key)]; ok {
		return st
	}
	st := &state{
		next:   make([]link, len(a.abc.kind)),
		before: before,
		pcs:    slices.Clone(a.pcs),
		hits:   slices.Clone(a.hits),
	}
	for _, pc := range st.pcs {
		if o := a.owner[pc]; len(st.live) == 0 || st.live[len(st.live)-1] != o {
			st.live = append(st.live, o)
		}
	}
	switch {
	case len(st.hits) > 0:
		st.sort = hit
	case len(st.pcs) == 0:
		st.sort = quiet
		st.stay = a.idle(before)
	}
	a.states[string(a.key)] = st
	a.built++
	a.bytes += 8*len(st.next) + 2*len(a.key)
	return st
}

// idle returns the bytes that leave a quiet state as it is.
func (a *automaton) idle(before kind) *[256]bool {
	var stay [256]bool
	for b := range 0x80 {
		c := a.abc.table[b]
		if a.plain(a.abc.kind[c]) == before {
			stay[b] = a.anchored || len(a.begin(c, a.looksAt(before, a.abc.kind[c]))) == 0
		}
	}
	return &stay
}
