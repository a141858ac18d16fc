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
	st, at := a.root(edge), 0
	for at < len(text) && len(st.pcs) > 0 {
		var reason why
		if st, at, _, reason = a.run(st, text, at, 0, true); reason == unbuilt {
			a.follow(st, text, at)
		}
	}
	for _, p := range a.end(st) {
		q := a.of[p]
		w.sure(q, s.patterns[q].exact(), func(f *finder) bool { return f.fits(w.machine, text) })
	}
	return w.list()
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

// Warm builds the part of the automata that most texts need. A guest does it
// when it is configured, so that it is part of the image that every call begins
// with.
func (s *Set) Warm() {
	s.Occurring(page)
	s.Fitting(page)
	s.Scanner().Scan(page, true)
}

const page = `My parcel has not arrived yet, and I was told to show the order number. It's
ORD-5510, placed on 14 September 2026 at 08:12 for $54.20; the ticket is TKT-1001. Could you
please look up what happened, who is working on it, and when I can expect an answer? I have
already written 3 times: on 2026-09-10, on 2026-09-12 and yesterday. "We'll call you back,"
they said (nobody did). You may reach me by e-mail, or at home after 17:30.

The device doesn't switch on; I charged it overnight, tried another cable and pressed both
buttons for 10 seconds. Before I give up, explain how to get a replacement, which documents
you need, and whether the refund of 25% applies. Kind regards, Zoë from Zürich – thanks!
List all open tickets, summarize their status, quickly just verify whether every quote of
the complete history is exact, including details of the customer and the assigned agent.
`
