package match

import "regexp/syntax"

// A thread is one way through a program: the instruction that it stands at and
// where its match began.
type thread struct {
	pc    uint32
	start int
}

// A finder decides one pattern exactly. It runs the program over the text, all
// threads in step, in the order of their priority; an earlier start always
// comes first. It can stop anywhere and go on when there is more text.
type finder struct {
	prog    *program
	minimal bool

	at    int      // the threads have read the text up to here
	read  []thread // what they came to
	found bool     // a match of lower priority than all of them
	start int
	end   int
}

// machine is what finders need while they run.
type machine struct {
	now    []thread // between two characters
	stack  []uint32
	sparse []uint32 // the instructions that now has been through …
	seen   []uint32 // … and where seen lists them
}

func newMachine(insts int) *machine { return &machine{sparse: make([]uint32, insts)} }

// reset puts the finder at an offset, with nothing in progress.
func (f *finder) reset(at int) {
	f.at, f.read, f.found = at, f.read[:0], false
}

// next runs on until the next match is decided and returns whether one is; then
// the finder stands where it ends. Otherwise it stands at the end of text,
// which unless final is not the end of it all.
func (f *finder) next(m *machine, text string, final bool) bool {
	for {
		if len(f.read) == 0 {
			if f.found {
				f.reset(f.end)
				return true
			}
			if f.skip(text); f.at >= len(text) {
				return false
			}
		}
		if f.at >= len(text) && !final {
			return false
		}
		f.step(m, text)
	}
}

// skip goes to the next place where a match can begin.
func (f *finder) skip(text string) {
	at := f.at
	for at < len(text) && !f.prog.first[text[at]] {
		at++
	}
	f.at = at
}

// step lets the threads pass what stands between two characters and read the
// second, or meet the end of the text.
func (f *finder) step(m *machine, text string) {
	abc, p := f.prog.abc, f.prog
	after, c, size := edge, class(0), 0
	if f.at < len(text) {
		c, size = abc.at(text, f.at)
		after = abc.kind[c]
	}
	var looks syntax.EmptyOp
	if p.looks != 0 {
		looks = looksAt(abc.before(text, f.at), after)
	}
	m.begin()
	for _, t := range f.read {
		m.add(p, t, looks)
	}
	if !f.found && after != edge {
		m.add(p, thread{p.start, f.at}, looks)
	}
	f.read = f.read[:0]
	for _, t := range m.now {
		in := &p.insts[t.pc]
		if in.op == opMatch {
			f.match(t.start)
			break // only what has priority goes on
		}
		if after != edge && abc.has(in.set, c) {
			f.read = append(f.read, thread{in.out, t.start})
		}
	}
	f.at += size
}

// match notes a match that ends where the finder stands.
func (f *finder) match(start int) {
	f.found, f.start, f.end = true, start, f.at
	if !f.minimal {
		return
	}
	for i, t := range f.read {
		if t.start >= start {
			f.read = f.read[:i]
			return
		}
	}
}

// settle is for a finder that stands at the end of a text that goes on. It
// reports whether the next match is decided whatever follows; then the finder
// stands where it ends. Otherwise open is the earliest start of a match that
// some continuation brings, or the length of the text.
//
// Only the kind of the next character matters, so each is tried. Threads that
// cannot come to a match any more count for nothing.
func (f *finder) settle(m *machine, text string) (decided bool, open int) {
	open = len(text)
	if len(f.read) == 0 && !f.found {
		return false, open
	}
	var before kind
	if f.prog.looks != 0 {
		before = f.prog.abc.before(text, f.at)
	}
	first := f.outcome(m, before, other)
	same := true
	if f.prog.looks&ahead != 0 {
		for after := other + 1; after < kinds; after++ {
			o := f.outcome(m, before, after)
			same = same && o == first
			if o.end != 0 {
				open = min(open, o.start)
			}
		}
	}
	if first.end != 0 {
		open = min(open, first.start)
	}
	switch {
	case !same || first.open:
		return false, open
	case first.end == 0:
		f.reset(f.at)
		return false, open
	}
	f.start, f.end = first.start, first.end
	f.reset(f.end)
	return true, open
}

// outcome is what comes of a finder with one kind of next character: a match,
// or with open a match that begins there and ends nobody knows where; nothing
// when end is 0.
type outcome struct {
	start, end int
	open       bool
}

func (f *finder) outcome(m *machine, before, after kind) outcome {
	p := f.prog
	var looks syntax.EmptyOp
	if p.looks != 0 {
		looks = looksAt(before, after)
	}
	kinds := uint8(1) << after
	if p.looks&ahead == 0 {
		kinds = 0xff // they are all alike
	}
	m.begin()
	for _, t := range f.read {
		m.add(p, t, looks)
	}
	var o outcome
	for _, t := range m.now {
		if o.open && (!f.minimal || t.start > o.start) {
			return o
		}
		in := &p.insts[t.pc]
		if in.op == opMatch {
			return outcome{start: t.start, end: f.at}
		}
		if !o.open && in.ahead&kinds != 0 {
			o = outcome{start: t.start, end: f.at, open: true}
		}
	}
	if !o.open && f.found {
		return outcome{start: f.start, end: f.end}
	}
	return o
}

func (m *machine) begin() { m.now, m.seen = m.now[:0], m.seen[:0] }

// add puts what follows t without a character into now, in order of priority.
func (m *machine) add(p *program, t thread, looks syntax.EmptyOp) {
	m.stack = append(m.stack[:0], t.pc)
	for len(m.stack) > 0 {
		pc := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if !m.visit(pc) {
			continue
		}
		in := &p.insts[pc]
		switch in.op {
		case opAlt:
			m.stack = append(m.stack, in.arg, in.out)
		case opLook:
			if syntax.EmptyOp(in.look)&^looks == 0 {
				m.stack = append(m.stack, in.out)
			}
		case opRead, opMatch:
			m.now = append(m.now, thread{pc, t.start})
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
