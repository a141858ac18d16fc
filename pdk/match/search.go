package match

import (
	"regexp/syntax"
	"unicode/utf8"
)

// mode is what a search is for.
type mode uint8

const (
	leftmost mode = iota // the match that Go's regexp finds
	shortest             // its start, as soon as it is certain
	any                  // whether there is one; whole texts only
	full                 // whether the whole text is one; whole texts only
)

// A thread is one way through the program: the instruction that it stands at
// and where its match began. Threads are kept in the order of their priority,
// and an earlier start always comes first.
type thread struct {
	pc    uint32
	start int
	maybe bool // came through a look at text that is not known yet
}

// none stands for the character beside the first and the last.
const none rune = -1

// bounds are where a search starts, and from where on it waits for what is
// undecided.
type bounds struct{ from, floor int }

// machine runs a program over a text, all threads in step.
type machine struct {
	p     *Pattern
	mode  mode
	floor int
	res   Result

	read []thread // have just read a character
	now  []thread // what became of them before the next one

	stack  []thread
	seen   []uint32 // the instructions that now has been through …
	sparse []uint32 // … and where seen lists them
}

// search is the one loop over text. Between two characters the threads pass
// the look-arounds, then those that can read the second one.
func (p *Pattern) search(s string, b bounds, final bool, md mode) Result {
	m := &machine{p: p, mode: md, floor: b.floor, res: Result{Open: len(s)}}
	for at := b.from; ; {
		if len(m.read) == 0 {
			if m.res.Found || md == full && at > b.from {
				return m.res
			}
			if md != full {
				at = p.skip(s, at)
			}
			if at >= len(s) {
				return m.res
			}
		}
		prev, next, size := around(s, at)
		if next == none && !final {
			m.pause(p.before(prev))
			return m.res
		}
		looks := p.context(prev, next)
		m.now, m.seen = m.now[:0], m.seen[:0]
		for _, t := range m.read {
			m.add(t, looks, 0)
		}
		if next != none && !m.res.Found && (md != full || at == b.from) {
			m.add(thread{pc: p.start, start: at}, looks, 0)
		}
		if m.step(next, at) || next == none {
			return m.res
		}
		at += size
	}
}

// around returns the characters before and after an offset.
func around(s string, at int) (prev, next rune, size int) {
	prev, next = none, none
	if at > 0 {
		if prev = rune(s[at-1]); prev >= utf8.RuneSelf {
			prev, _ = utf8.DecodeLastRuneInString(s[:at])
		}
	}
	if at < len(s) {
		if next, size = rune(s[at]), 1; next >= utf8.RuneSelf {
			next, size = utf8.DecodeRuneInString(s[at:])
		}
	}
	return prev, next, size
}

// skip returns the next offset from at on where a match can begin.
func (p *Pattern) skip(s string, at int) int {
	for at < len(s) {
		c := s[at]
		if c < utf8.RuneSelf {
			if p.first.has(c) {
				break
			}
		} else if p.wide && utf8.RuneStart(c) {
			break
		}
		at++
	}
	return at
}

// step lets the threads read next, and notes matches that end at offset at. It
// reports whether the search is over.
func (m *machine) step(next rune, at int) bool {
	m.read = m.read[:0]
	for _, t := range m.now {
		in := &m.p.insts[t.pc]
		if in.op == syntax.InstRune {
			if next != none && in.reads(next) {
				m.read = append(m.read, thread{pc: in.out, start: t.start})
			}
			continue
		}
		if m.mode == full {
			if next == none {
				m.found(t.start, at)
				return true
			}
			continue
		}
		m.found(t.start, at)
		if m.mode == shortest {
			m.keepBefore(t.start)
		}
		return m.mode == any // else only what has priority goes on
	}
	return false
}

func (m *machine) found(start, end int) {
	m.res.Found, m.res.Start, m.res.End = true, start, end
}

// keepBefore drops the threads that began at start or later.
func (m *machine) keepBefore(start int) {
	for i, t := range m.read {
		if t.start >= start {
			m.read = m.read[:i]
			return
		}
	}
}

// pause decides what can be decided where the text ends for now: a match
// stands only if nothing of higher priority may still come of what follows.
func (m *machine) pause(known, open syntax.EmptyOp) {
	m.now, m.seen = m.now[:0], m.seen[:0]
	for _, t := range m.read {
		m.add(t, known, open)
	}
	undecided := -1
	for _, t := range m.now {
		certain := m.p.insts[t.pc].op == syntax.InstMatch && !t.maybe
		switch {
		case certain && (undecided < 0 || m.mode == shortest && t.start == undecided):
			m.found(t.start, m.res.Open)
			return
		case certain || t.start < m.floor:
			// Something before it may still win, or it is too old to wait for.
		case undecided < 0:
			undecided = t.start
		}
	}
	if undecided >= 0 {
		m.res = Result{Open: undecided}
	}
}

// add puts what follows t without a character into now, in order of priority.
// A look-around passes if looks has it; one that open has may pass later.
func (m *machine) add(t thread, looks, open syntax.EmptyOp) {
	if m.sparse == nil {
		m.sparse = make([]uint32, len(m.p.insts))
	}
	m.stack = append(m.stack[:0], t)
	for len(m.stack) > 0 {
		t := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if !m.visit(t.pc) {
			continue
		}
		in := &m.p.insts[t.pc]
		switch in.op {
		case syntax.InstAlt:
			m.stack = append(m.stack, thread{in.arg, t.start, t.maybe}, thread{in.out, t.start, t.maybe})
		case syntax.InstEmptyWidth:
			if in.look&^looks == 0 {
				m.stack = append(m.stack, thread{in.out, t.start, t.maybe})
			} else if in.look&^(looks|open) == 0 {
				m.stack = append(m.stack, thread{in.out, t.start, true})
			}
		case syntax.InstRune, syntax.InstMatch:
			m.now = append(m.now, t)
		}
	}
}

// visit reports whether pc is new, and remembers it.
func (m *machine) visit(pc uint32) bool {
	if i := m.sparse[pc]; int(i) < len(m.seen) && m.seen[i] == pc {
		return false
	}
	m.sparse[pc] = uint32(len(m.seen))
	m.seen = append(m.seen, pc)
	return true
}

const (
	boundary = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	behind   = syntax.EmptyBeginText | syntax.EmptyBeginLine
)

// context returns the look-arounds that hold between two characters.
func (p *Pattern) context(prev, next rune) syntax.EmptyOp {
	if p.looks == 0 {
		return 0
	}
	looks := lineStart(prev)
	switch next {
	case none:
		looks |= syntax.EmptyEndText | syntax.EmptyEndLine
	case '\n':
		looks |= syntax.EmptyEndLine
	}
	if p.looks&boundary == 0 {
		return looks
	}
	if (prev != none && IsWord(prev)) != (next != none && IsWord(next)) {
		return looks | syntax.EmptyWordBoundary
	}
	return looks | syntax.EmptyNoWordBoundary
}

// before returns the look-arounds that hold behind prev whatever follows it,
// and those that what follows decides.
func (p *Pattern) before(prev rune) (known, open syntax.EmptyOp) {
	return lineStart(prev), ^behind
}

func lineStart(prev rune) syntax.EmptyOp {
	switch prev {
	case none:
		return syntax.EmptyBeginText | syntax.EmptyBeginLine
	case '\n':
		return syntax.EmptyBeginLine
	}
	return 0
}
