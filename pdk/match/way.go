package match

import (
	"slices"
	"unicode/utf8"
)

// A finder comes by the same lists of threads again and again; only where their
// matches began differs. So a scanner remembers the steps of its finders: what
// an ASCII character makes of a list, with numbers in place of starts. A list
// is in the order of priority, and an earlier start always comes first, so
// equal lists behave alike whatever their starts are.

const (
	maxWays   = 512 // that a scanner remembers, of a kilobyte and of 128 threads each
	maxStarts = 16  // that the threads of a remembered list have
)

// way is a list of threads and what else a step depends on.
type way struct {
	pcs   []uint32
	slots []uint8 // by thread: which of the starts
	next  [utf8.RuneSelf]*stride
}

// stride is a step from one way to another.
type stride struct {
	to   *way
	prev kind    // of the character that was read
	from []uint8 // by start of to: which start it was, or fresh
	hit  uint8   // the start of a match that ends before the character, or none
}

const (
	fresh = 0xff // the match begins with the character
	none8 = 0xfe
)

// stride lets the finder make a step that is remembered, or a step that it then
// remembers.
func (f *finder) stride(m *machine, text string) {
	m.work++
	if f.at >= len(text) || text[f.at] >= utf8.RuneSelf {
		f.leave()
		f.step(m, text)
		return
	}
	if f.way == nil && len(f.read) == 0 && !f.found {
		f.way = f.root(m, text)
		f.starts = f.starts[:0]
	}
	w := f.way
	if w == nil {
		f.step(m, text)
		return
	}
	s := w.next[text[f.at]]
	switch {
	case s != nil:
	case m.room > 0:
		f.learn(m, w, text)
		return
	default:
		f.leave()
		f.step(m, text)
		return
	}
	if s.hit != none8 {
		f.found, f.end = true, f.at
		if f.start = f.at; s.hit != fresh {
			f.start = f.starts[s.hit]
		}
	}
	for i, from := range s.from {
		switch {
		case from == fresh:
			f.starts = append(f.starts[:i], f.at)
		case int(from) != i:
			f.starts[i] = f.starts[from]
		}
	}
	f.starts = f.starts[:len(s.from)]
	f.way, f.prev, f.sure = s.to, s.prev, true
	f.at++
}

// root returns the way of no threads, nil if there is no room for it.
func (f *finder) root(m *machine, text string) *way {
	before := other
	if f.prog.looks != 0 {
		before = f.before(text)
	}
	if f.roots[before] == nil {
		f.roots[before] = f.intern(m, before, nil)
	}
	return f.roots[before]
}

// idle reports whether nothing is in progress.
func (f *finder) idle() bool {
	if f.way != nil {
		return len(f.way.pcs) == 0
	}
	return len(f.read) == 0
}

// spread writes the threads of a way out.
func (f *finder) spread() {
	if f.way == nil {
		return
	}
	f.read = f.read[:0]
	for i, pc := range f.way.pcs {
		f.read = append(f.read, thread{pc, f.starts[f.way.slots[i]]})
	}
}

// leave goes on without ways.
func (f *finder) leave() {
	f.spread()
	f.way = nil
}

// learn makes a step and remembers it.
func (f *finder) learn(m *machine, w *way, text string) {
	f.leave()
	at, before := f.at, f.starts
	f.step(m, text)
	slot := func(start int) uint8 {
		if start == at {
			return fresh
		}
		return uint8(slices.Index(before, start))
	}
	s := &stride{prev: f.prev, hit: none8}
	if f.found && f.end == at {
		s.hit = slot(f.start)
	}
	starts := make([]int, 0, maxStarts)
	for _, t := range f.read {
		if n := len(starts); n == 0 || starts[n-1] != t.start {
			if n == maxStarts {
				return
			}
			starts = append(starts, t.start)
			s.from = append(s.from, slot(t.start))
		}
	}
	prev := other
	if f.prog.looks != 0 {
		prev = f.prev
	}
	if s.to = f.intern(m, prev, starts); s.to != nil {
		w.next[text[at]] = s
		f.way, f.starts = s.to, append(f.starts[:0], starts...)
	}
}

// intern returns the way of the threads in read, nil if there is no room for it.
func (f *finder) intern(m *machine, before kind, starts []int) *way {
	key := append(m.key[:0], byte(before))
	if f.found {
		key[0] |= 0x80
	}
	slot := 0
	for _, t := range f.read {
		for starts[slot] != t.start {
			slot++
		}
		key = append(key, byte(slot), byte(t.pc), byte(t.pc>>8), byte(t.pc>>16), byte(t.pc>>24))
	}
	m.key = key
	if w, ok := f.ways[string(key)]; ok {
		return w
	}
	if m.room <= 0 {
		return nil
	}
	m.room -= 1 + len(f.read)/128
	w := new(way)
	for i, t := range f.read {
		w.pcs = append(w.pcs, t.pc)
		w.slots = append(w.slots, key[1+5*i])
	}
	if f.ways == nil {
		f.ways = make(map[string]*way)
	}
	f.ways[string(key)] = w
	return w
}
