package match

import (
	"regexp/syntax"
	"unicode/utf8"
)

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
	prev  kind     // of the character before, if sure
	sure  bool
	found bool // a match of lower priority than all of them
	start int
	end   int

	way    *way  // if not nil, this and starts are the threads, and read is scratch
	starts []int // ascending
	ways   map[string]*way
	roots  [kinds]*way
}

// machine is what finders need while they run.
type machine struct {
	now   []thread // between two characters
	stack []uint32
	mark  []uint32 // by instruction: the epoch that has been through it
	epoch uint32
	key   []byte
	room  int // for ways
	work  int // instructions that were looked at, since the reset
	limit int // of work; 0: none
}

// spent reports whether there was more work than the limit.
func (m *machine) spent() bool { return m.limit > 0 && m.work > m.limit }

func newMachine(insts int) *machine { return &machine{mark: make([]uint32, insts)} }

// reset puts the finder at an offset, with nothing in progress.
func (f *finder) reset(at int) {
	f.at, f.read, f.found, f.sure = at, f.read[:0], false, false
	f.way = nil
}

// next runs on until the next match is decided and returns whether one is; then
// the finder stands where it ends. Otherwise it stands at the end of text,
// which unless final is not the end of it all.
func (f *finder) next(m *machine, text string, final bool) bool {
	for {
		if f.idle() {
			if f.found {
				f.reset(f.end)
				return true
			}
			f.read, f.way = f.read[:0], nil
			was := f.at
			if f.skip(text); f.at >= len(text) {
				return false
			}
			m.work += (f.at - was) / 8 // it is that much quicker
		}
		if f.at >= len(text) && !final || m.spent() {
			return false
		}
		f.stride(m, text)
	}
}

// skip goes to the next place where a match can begin.
func (f *finder) skip(text string) {
	at := f.at
	for at < len(text) && !f.prog.first[text[at]] {
		at++
	}
	f.sure = f.sure && at == f.at
	f.at = at
}

// step lets the threads pass what stands between two characters and read the
// second, or meet the end of the text.
func (f *finder) step(m *machine, text string) {
	p := f.prog
	abc := p.abc
	after, c, size, begins := edge, class(0), 0, false
	if f.at < len(text) {
		b := text[f.at]
		if begins = p.first[b] && !f.found; b < utf8.RuneSelf {
			c, size = abc.table[b], 1
		} else {
			c, size = abc.at(text, f.at)
		}
		after = abc.kind[c]
	}
	var looks syntax.EmptyOp
	if p.looks != 0 {
		looks = looksAt(f.before(text), after)
	}
	m.begin()
	for _, t := range f.read {
		m.add(p, t, looks)
	}
	if begins {
		m.add(p, thread{p.start, f.at}, looks)
	}
	f.read = f.read[:0]
	for _, t := range m.now {
		in := &p.insts[t.pc]
		if in.op == opMatch {
			f.match(t.start)
			break // only what has priority goes on
		}
		if after != edge && abc.sets[in.set][c>>6]>>(c&63)&1 != 0 {
			f.read = append(f.read, thread{in.out, t.start})
		}
	}
	f.prev, f.sure = after, after != edge
	f.at += size
}

// before returns the kind of the character before the one that comes next.
func (f *finder) before(text string) kind {
	if !f.sure {
		f.prev, f.sure = f.prog.abc.before(text, f.at), true
	}
	return f.prev
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
	f.spread()
	if len(f.read) == 0 && !f.found {
		return false, open
	}
	var before kind
	if f.prog.looks != 0 {
		before = f.before(text)
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

func (m *machine) begin() {
	m.now = m.now[:0]
	if m.epoch++; m.epoch == 0 {
		clear(m.mark)
		m.epoch = 1
	}
}

// add puts what follows t without a character into now, in order of priority.
func (m *machine) add(p *program, t thread, looks syntax.EmptyOp) {
	stack := m.stack[:0]
	for pc := t.pc; ; {
		if m.mark[pc] != m.epoch {
			m.mark[pc] = m.epoch
			m.work++
			in := &p.insts[pc]
			switch in.op {
			case opRead, opMatch:
				m.now = append(m.now, thread{pc, t.start})
			case opAlt:
				stack = append(stack, in.arg)
				pc = in.out
				continue
			case opLook:
				if syntax.EmptyOp(in.look)&^looks == 0 {
					pc = in.out
					continue
				}
			}
		}
		if len(stack) == 0 {
			break
		}
		pc = stack[len(stack)-1]
		stack = stack[:len(stack)-1]
	}
	m.stack = stack
}
