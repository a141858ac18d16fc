package match

import "unicode/utf8"

// All returns every match in a whole text, in the order of their starts and
// then of their patterns.
func (s *Set) All(text string) []Match {
	found, _ := s.Scanner().Scan(text, true)
	return found
}

// Occurring returns the patterns that have a match in a whole text, ascending.
// It is what a filter needs, and cheaper than All: most texts are only read by
// the automaton.
func (s *Set) Occurring(text string) []int {
	return s.holding(s.search, text, func(f *finder, m *machine, from int) bool {
		f.minimal = true
		f.reset(from)
		for len(f.read) > 0 || f.at < len(text) {
			if f.next(m, text, true) {
				return true
			}
		}
		return false
	})
}

// Fitting returns the patterns that match a whole text from its beginning to
// its end, ascending.
func (s *Set) Fitting(text string) []int {
	return s.holding(s.fit, text, func(f *finder, m *machine, _ int) bool {
		return f.fits(m, text)
	})
}

// holding reads a text with an automaton and returns the patterns that sure
// confirms. It is asked once for each pattern that the automaton names, with a
// place before which nothing began that can lead to a match.
func (s *Set) holding(a *automaton, text string, sure func(f *finder, m *machine, from int) bool) []int {
	var m *machine
	var asked []bool
	var held []bool
	ask := func(patterns []uint16, from int) {
		for _, p := range patterns {
			if m == nil {
				m, asked, held = newMachine(s.most), make([]bool, len(s.patterns)), make([]bool, len(s.patterns))
			}
			if !asked[p] {
				asked[p] = true
				q := &s.patterns[p]
				held[p] = q.loose == q.prog || sure(&finder{prog: q.prog}, m, from)
			}
		}
	}
	st := a.root(edge)
	quiet := 0
	for at := 0; at < len(text); {
		k, n := class(0), 1
		if b := text[at]; b < utf8.RuneSelf {
			k = s.abc.table[b]
		} else {
			k, n = s.abc.at(text, at)
		}
		at += n
		next := st.next[k].Load()
		if next == nil {
			next = a.follow(st, k)
		}
		st = next
		if st.sort == busy {
			continue
		}
		if !a.anchored {
			ask(st.hits, quiet)
		}
		if len(st.pcs) == 0 {
			quiet = at
			if a.anchored {
				break
			}
		}
	}
	ask(a.end(st), quiet)
	var list []int
	for p, yes := range held {
		if yes {
			list = append(list, p)
		}
	}
	return list
}

// fits reports whether the whole of text is a match.
func (f *finder) fits(m *machine, text string) bool {
	abc, p := f.prog.abc, f.prog
	f.reset(0)
	f.read = append(f.read, thread{p.start, 0})
	for f.at <= len(text) && len(f.read) > 0 {
		after, c, size := edge, class(0), 1
		if f.at < len(text) {
			c, size = abc.at(text, f.at)
			after = abc.kind[c]
		}
		looks := looksAt(abc.before(text, f.at), after)
		m.begin()
		for _, t := range f.read {
			m.add(p, t, looks)
		}
		f.read = f.read[:0]
		for _, t := range m.now {
			in := &p.insts[t.pc]
			if in.op == opMatch && after == edge {
				return true
			}
			if in.op == opRead && after != edge && abc.has(in.set, c) {
				f.read = append(f.read, thread{in.out, 0})
			}
		}
		f.at += size
	}
	return false
}

// Warm lets the automata read text and keep what they built. A guest does it
// when it is configured, so that it is part of the image that every call begins
// with.
func (s *Set) Warm(text string) {
	s.Occurring(text)
	s.Fitting(text)
}
