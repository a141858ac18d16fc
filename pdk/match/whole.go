package match

// All returns every match in a whole text, in the order of their starts and
// then of their patterns.
func (s *Set) All(text string) []Match {
	found, _ := s.Scanner().Scan(text, true)
	return found
}

// Occurring returns the patterns that have a match in a whole text, ascending.
// It is what a filter needs, and cheaper than All: most texts are only read by
// an automaton, and that knows no more than the parts of a pattern between its
// wide gaps.
func (s *Set) Occurring(text string) []int {
	w := whole{set: s, text: text}
	a := s.sieve
	st, at, quiet := a.root(edge), 0, 0
	for at < len(text) {
		var reason why
		switch st, at, quiet, reason = a.run(st, text, at, quiet, false); reason {
		case unbuilt:
			a.follow(st, text, at)
		case hitting:
			w.occur(a, st.hits, quiet)
			if len(st.pcs) == 0 {
				quiet = at
			}
		}
	}
	w.occur(a, a.end(st), quiet)
	return w.list()
}

// Fitting returns the patterns that match a whole text from its beginning to
// its end, ascending.
func (s *Set) Fitting(text string) []int {
	w := whole{set: s, text: text}
	a := s.fit
	for _, p := range a.end(s.fitted(text)) {
		q := a.of[p]
		w.sure(q, s.patterns[q].exact(), func(f *finder) bool { return f.fits(w.machine, text) })
	}
	return w.list()
}

// Beginning reports whether a text that begins like this may fit a pattern. It
// is false only if no continuation does.
func (s *Set) Beginning(text string) bool {
	return len(s.fitted(text[:complete(text)]).pcs) > 0
}

// fitted returns the state in which text leaves the automaton of what began at
// the beginning. It reads no further than something is in progress.
func (s *Set) fitted(text string) *state {
	a := s.fit
	st, at := a.root(edge), 0
	for at < len(text) && len(st.pcs) > 0 {
		var reason why
		if st, at, _, reason = a.run(st, text, at, 0, true); reason == unbuilt {
			a.follow(st, text, at)
		}
	}
	return st
}

// whole is one look at a whole text.
type whole struct {
	set     *Set
	text    string
	machine *machine
	seen    []progress // by pattern
}

// progress is what is known of a pattern.
type progress struct {
	parts int // that were seen, in order
	from  int // no match begins before
	asked bool
	holds bool
}

// occur notes programs of the sieve that had a match, in a stretch of text
// before which nothing was in progress.
func (w *whole) occur(a *automaton, hits []uint16, quiet int) {
	for _, h := range hits {
		p := a.of[h]
		w.begin()
		g := &w.seen[p]
		part := int(h) - w.set.patterns[p].part
		if part != g.parts {
			continue
		}
		if g.parts++; part == 0 {
			g.from = quiet
		}
		if g.parts == len(w.set.patterns[p].parts) {
			q := &w.set.patterns[p]
			w.sure(p, q.exact() && len(q.parts) == 1, func(f *finder) bool { return f.occurs(w.machine, w.text, g.from) })
		}
	}
}

func (w *whole) begin() {
	if w.seen == nil {
		w.seen = make([]progress, len(w.set.patterns))
		w.machine = newMachine(w.set.most)
	}
}

// sure decides a pattern, once, by check unless the automaton is exact.
func (w *whole) sure(pattern int, exact bool, check func(*finder) bool) {
	w.begin()
	if g := &w.seen[pattern]; !g.asked {
		g.asked = true
		g.holds = exact || check(&finder{prog: w.set.patterns[pattern].prog})
	}
}

// exact reports whether automata are made of the very expression.
func (p *pattern) exact() bool { return p.loose == p.prog }

func (w *whole) list() (list []int) {
	for p := range w.seen {
		if w.seen[p].holds {
			list = append(list, p)
		}
	}
	return list
}

// occurs reports whether there is a match from an offset on.
func (f *finder) occurs(m *machine, text string, from int) bool {
	f.reset(from)
	for {
		if len(f.read) == 0 {
			if f.skip(text); f.at >= len(text) {
				return false
			}
		}
		if f.step(m, text); f.found {
			return true
		}
	}
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
