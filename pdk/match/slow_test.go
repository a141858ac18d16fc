package match

import (
	"errors"
	"regexp/syntax"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// The matcher that this package began with: one pattern, no automaton, and
// nothing that is remembered between two calls. It is slow and simple, and the
// reference where Go's own regexp is none, because of Unicode.

// A slowPattern is one compiled expression. It is read-only and may be used
// concurrently.
type slowPattern struct {
	insts []slowInst
	start uint32
	first asciiSet // characters with which a match can begin
	wide  bool     // a match can begin with a character beyond ASCII
	looks syntax.EmptyOp
}

// slowCompile reads an expression in Go's syntax. Its error is a sentence for
// whoever wrote the expression.
func slowCompile(expr string) (*slowPattern, error) {
	wide, err := widen(expr)
	if err != nil {
		return nil, err
	}
	re, err := syntax.Parse(wide, syntax.Perl)
	if err != nil {
		return nil, reason(err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, reason(err)
	}
	if len(prog.Inst) > maxInsts {
		return nil, errors.New("the expression is too large: " + strconv.Itoa(len(prog.Inst)) +
			" states, at most " + strconv.Itoa(maxInsts))
	}
	p := slowLoad(prog)
	if p.empty() {
		return nil, errors.New("the expression matches the empty text")
	}
	return p, nil
}

// A slowResult is what a search knows.
type slowResult struct {
	Found      bool
	Start, End int // of the match, when Found

	// Open is the earliest start of a match that further text could bring or
	// change, and the length of the text when there is noRune. With Found it is
	// the length of the text.
	Open int
}

// Find searches s from byte offset from on for the leftmost match. What stands
// before from is looked at by \b and the like only. Unless final, the end of s
// is not the end of the text, and a match is found only when nothing that may
// follow can change it.
func (p *slowPattern) Find(s string, from int, final bool) slowResult {
	return p.search(s, slowBounds{from: from}, final, slowLeftmost)
}

// Earliest is Find for callers that need to know where the leftmost match
// starts but not how far it goes: it is found as soon as that is certain. End
// is where its shortest form ends. What began before floor and is still
// undecided is not waited for, and Open is never before floor.
func (p *slowPattern) Earliest(s string, from, floor int, final bool) slowResult {
	return p.search(s, slowBounds{from, floor}, final, slowShortest)
}

// MatchFull reports whether the whole of s is a match.
func (p *slowPattern) MatchFull(s string) bool {
	return p.search(s, slowBounds{}, true, slowFull).Found
}

// asciiSet is a set of ASCII characters.
type asciiSet [2]uint64

func (s *asciiSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *asciiSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

// slowInst is one instruction, with the ASCII part of what it reads as an asciiSet.
type slowInst struct {
	op    syntax.InstOp
	look  syntax.EmptyOp // InstEmptyWidth
	out   uint32
	arg   uint32   // InstAlt: the branch of lower priority
	ascii asciiSet // InstRune
	src   *syntax.Inst
}

// reads reports whether the instruction consumes r.
func (in *slowInst) reads(r rune) bool {
	if r < 0x80 {
		return in.ascii.has(byte(r))
	}
	return in.src.MatchRune(r)
}

// slowLoad turns a program into instructions of five kinds: InstRune, InstAlt,
// InstEmptyWidth, InstMatch and InstFail.
func slowLoad(prog *syntax.Prog) *slowPattern {
	p := &slowPattern{insts: make([]slowInst, len(prog.Inst))}
	for i := range prog.Inst {
		src := &prog.Inst[i]
		in := &p.insts[i]
		in.op, in.src, in.out = src.Op, src, slowTarget(prog, src.Out)
		switch src.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			in.op, in.arg = syntax.InstAlt, slowTarget(prog, src.Arg)
		case syntax.InstEmptyWidth:
			in.look = syntax.EmptyOp(src.Arg)
			p.looks |= in.look
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			in.op = syntax.InstRune
			for c := range byte(0x80) {
				if src.MatchRune(rune(c)) {
					in.ascii.add(c)
				}
			}
		}
	}
	p.start = slowTarget(prog, uint32(prog.Start))
	p.begin()
	return p
}

// slowTarget follows instructions that do nothing.
func slowTarget(prog *syntax.Prog, pc uint32) uint32 {
	for prog.Inst[pc].Op == syntax.InstNop || prog.Inst[pc].Op == syntax.InstCapture {
		pc = prog.Inst[pc].Out
	}
	return pc
}

// reach calls visit for every instruction that can follow pc without a
// character, whatever stands around.
func (p *slowPattern) reach(pc uint32, visit func(*slowInst)) {
	seen := make([]bool, len(p.insts))
	for stack := []uint32{pc}; len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		in := &p.insts[pc]
		visit(in)
		switch in.op {
		case syntax.InstAlt:
			stack = append(stack, in.out, in.arg)
		case syntax.InstEmptyWidth:
			stack = append(stack, in.out)
		}
	}
}

// begin finds the characters that a match can begin with.
func (p *slowPattern) begin() {
	p.reach(p.start, func(in *slowInst) {
		if in.op != syntax.InstRune {
			return
		}
		p.first[0] |= in.ascii[0]
		p.first[1] |= in.ascii[1]
		p.wide = p.wide || isWide(in.src)
	})
}

// isWide reports whether an instruction reads a character beyond ASCII.
func isWide(in *syntax.Inst) bool {
	if in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL {
		return true
	}
	for _, r := range in.Rune {
		if r >= 0x80 {
			return true
		}
	}
	if len(in.Rune) != 1 || syntax.Flags(in.Arg)&syntax.FoldCase == 0 {
		return false
	}
	for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
		if r >= 0x80 {
			return true
		}
	}
	return false
}

// empty reports whether the pattern can match without a character.
func (p *slowPattern) empty() bool {
	found := false
	p.reach(p.start, func(in *slowInst) { found = found || in.op == syntax.InstMatch })
	return found
}

// slowMode is what a search is for.
type slowMode uint8

const (
	slowLeftmost slowMode = iota // the match that Go's regexp finds
	slowShortest                 // its start, as soon as it is certain
	slowFull                     // whether the whole text is one; whole texts only
)

// A slowThread is one way through the program: the instruction that it stands at
// and where its match began. Threads are kept in the order of their priority,
// and an earlier start always comes first.
type slowThread struct {
	pc    uint32
	start int
	maybe bool // came through a look at text that is not known yet
}

// noRune stands for the character beside the first and the last.
const noRune rune = -1

// slowBounds are where a search starts, and from where on it waits for what is
// undecided.
type slowBounds struct{ from, floor int }

// slowMachine runs a program over a text, all threads in step.
type slowMachine struct {
	p     *slowPattern
	mode  slowMode
	floor int
	res   slowResult

	read []slowThread // have just read a character
	now  []slowThread // what became of them before the next one

	stack  []slowThread
	seen   []uint32 // the instructions that now has been through …
	sparse []uint32 // … and where seen lists them
}

// search is the one loop over text. Between two characters the threads pass
// the look-arounds, then those that can read the second one.
func (p *slowPattern) search(s string, b slowBounds, final bool, md slowMode) slowResult {
	m := &slowMachine{p: p, mode: md, floor: b.floor, res: slowResult{Open: len(s)}}
	for at := b.from; ; {
		if len(m.read) == 0 {
			if m.res.Found || md == slowFull && at > b.from {
				return m.res
			}
			if md != slowFull {
				at = p.skip(s, at)
			}
			if at >= len(s) {
				return m.res
			}
		}
		prev, next, size := slowAround(s, at)
		if next == noRune && !final {
			m.pause(p.before(prev))
			return m.res
		}
		looks := p.context(prev, next)
		m.now, m.seen = m.now[:0], m.seen[:0]
		for _, t := range m.read {
			m.add(t, looks, 0)
		}
		if next != noRune && !m.res.Found && (md != slowFull || at == b.from) {
			m.add(slowThread{pc: p.start, start: at}, looks, 0)
		}
		if m.step(next, at) || next == noRune {
			return m.res
		}
		at += size
	}
}

// slowAround returns the characters before and after an offset.
func slowAround(s string, at int) (prev, next rune, size int) {
	prev, next = noRune, noRune
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
func (p *slowPattern) skip(s string, at int) int {
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
func (m *slowMachine) step(next rune, at int) bool {
	m.read = m.read[:0]
	for _, t := range m.now {
		in := &m.p.insts[t.pc]
		if in.op == syntax.InstRune {
			if next != noRune && in.reads(next) {
				m.read = append(m.read, slowThread{pc: in.out, start: t.start})
			}
			continue
		}
		if m.mode == slowFull {
			if next == noRune {
				m.found(t.start, at)
				return true
			}
			continue
		}
		m.found(t.start, at)
		if m.mode == slowShortest {
			m.keepBefore(t.start)
		}
		return false // only what has priority goes on
	}
	return false
}

func (m *slowMachine) found(start, end int) {
	m.res.Found, m.res.Start, m.res.End = true, start, end
}

// keepBefore drops the threads that began at start or later.
func (m *slowMachine) keepBefore(start int) {
	for i, t := range m.read {
		if t.start >= start {
			m.read = m.read[:i]
			return
		}
	}
}

// pause decides what can be decided where the text ends for now: a match
// stands only if nothing of higher priority may still come of what follows.
func (m *slowMachine) pause(known, open syntax.EmptyOp) {
	m.now, m.seen = m.now[:0], m.seen[:0]
	for _, t := range m.read {
		m.add(t, known, open)
	}
	undecided := -1
	for _, t := range m.now {
		certain := m.p.insts[t.pc].op == syntax.InstMatch && !t.maybe
		switch {
		case certain && (undecided < 0 || m.mode == slowShortest && t.start == undecided):
			m.found(t.start, m.res.Open)
			return
		case certain || t.start < m.floor:
			// Something before it may still win, or it is too old to wait for.
		case undecided < 0:
			undecided = t.start
		}
	}
	if undecided >= 0 {
		m.res = slowResult{Open: undecided}
	}
}

// add puts what follows t without a character into now, in order of priority.
// A look-slowAround passes if looks has it; one that open has may pass later.
func (m *slowMachine) add(t slowThread, looks, open syntax.EmptyOp) {
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
			m.stack = append(m.stack, slowThread{in.arg, t.start, t.maybe}, slowThread{in.out, t.start, t.maybe})
		case syntax.InstEmptyWidth:
			if in.look&^looks == 0 {
				m.stack = append(m.stack, slowThread{in.out, t.start, t.maybe})
			} else if in.look&^(looks|open) == 0 {
				m.stack = append(m.stack, slowThread{in.out, t.start, true})
			}
		case syntax.InstRune, syntax.InstMatch:
			m.now = append(m.now, t)
		}
	}
}

// visit reports whether pc is new, and remembers it.
func (m *slowMachine) visit(pc uint32) bool {
	if i := m.sparse[pc]; int(i) < len(m.seen) && m.seen[i] == pc {
		return false
	}
	m.sparse[pc] = uint32(len(m.seen))
	m.seen = append(m.seen, pc)
	return true
}

const (
	slowBoundary = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	slowBehind   = syntax.EmptyBeginText | syntax.EmptyBeginLine
)

// context returns the look-arounds that hold between two characters.
func (p *slowPattern) context(prev, next rune) syntax.EmptyOp {
	if p.looks == 0 {
		return 0
	}
	looks := slowLineStart(prev)
	switch next {
	case noRune:
		looks |= syntax.EmptyEndText | syntax.EmptyEndLine
	case '\n':
		looks |= syntax.EmptyEndLine
	}
	if p.looks&slowBoundary == 0 {
		return looks
	}
	if (prev != noRune && IsWord(prev)) != (next != noRune && IsWord(next)) {
		return looks | syntax.EmptyWordBoundary
	}
	return looks | syntax.EmptyNoWordBoundary
}

// before returns the look-arounds that hold slowBehind prev whatever follows it,
// and those that what follows decides.
func (p *slowPattern) before(prev rune) (known, open syntax.EmptyOp) {
	return slowLineStart(prev), ^slowBehind
}

func slowLineStart(prev rune) syntax.EmptyOp {
	switch prev {
	case noRune:
		return syntax.EmptyBeginText | syntax.EmptyBeginLine
	case '\n':
		return syntax.EmptyBeginLine
	}
	return 0
}
