package match

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// A Scanner finds the matches of a set in one text that grows. It is for one
// goroutine; many may share a set.
type Scanner struct {
	set   *Set
	state *state // of the set's automaton; nil once that is of no use
	pos   int    // the automaton has read the text up to here
	quiet int    // the last place where nothing was in progress
	begun int    // where the scan began
	// missed counts states that were not built. A text that needs new ones all
	// the time is read faster without the automaton.
	missed int

	// A stretch is the text between two quiet places. Patterns take part when
	// their finders have been run in it or must be before it ends.
	taking  []uint16
	finders []tracker
	machine *machine
	found   []Match
}

// tracker is the finder of one pattern.
type tracker struct {
	finder
	from   int  // the end of its last match: no other begins before
	taking bool // it is in the list of those that take part
	run    bool // it has been run in this stretch
	due    bool // it has matches that it has not seen
	open   int
}

// Scanner returns a scanner for a new text.
func (s *Set) Scanner() *Scanner {
	c := &Scanner{set: s, finders: make([]tracker, len(s.patterns)), machine: newMachine(s.most)}
	c.machine.room = maxWays
	for i := range c.finders {
		c.finders[i].prog, c.finders[i].minimal = s.patterns[i].prog, s.patterns[i].Minimal
	}
	c.Reset("", 0)
	return c
}

// Reset begins anew at offset at of text. What stands before it is looked at by
// \b and the like only.
func (c *Scanner) Reset(text string, at int) {
	c.state = c.set.search.root(c.set.abc.before(text, at))
	c.pos, c.quiet, c.begun, c.missed = at, at, at, 0
	c.taking, c.found = c.taking[:0], c.found[:0]
	c.machine.work = 0
	for i := range c.finders {
		f := &c.finders[i]
		f.reset(at)
		f.from, f.taking, f.run, f.due = 0, false, false, false
	}
}

// Limit bounds the work of the scans between two resets, counted in steps that
// take a few nanoseconds each; 0, the default, is no bound. It is for sets that
// somebody else wrote: a text is read in linear time by every set, but how long
// a character takes is the set's to say, and that may be a millisecond.
func (c *Scanner) Limit(work int) { c.machine.limit = work }

// Spent reports whether the scans since Reset needed more work than their limit.
// What they found is not all there is then, and Scan returns nothing of any use
// until the next Reset.
func (c *Scanner) Spent() bool { return c.machine.spent() }

// From makes a pattern's search go on at an offset, as it does behind a match
// of it that ends there. It may be called between Reset and the first Scan.
func (c *Scanner) From(pattern, at int) { c.finders[pattern].from = at }

// Scan reads on in text, which begins with the text of the scan before and may
// be longer; final says that it is complete. It returns the matches that are
// newly decided, those of one scan in the order of their starts and then of
// their patterns, those of one pattern always from left to right and without
// overlap. No match that is still to come begins before open.
//
// An incomplete character at the end of text is left for the next scan. The
// matches are valid until then.
func (c *Scanner) Scan(text string, final bool) (found []Match, open int) {
	c.found = c.found[:0]
	if !final {
		text = text[:complete(text)]
	}
	if c.state != nil {
		c.sweep(text)
	}
	if c.state == nil {
		open = c.runAll(text, final)
	} else {
		open = c.pause(text, final)
	}
	if c.machine.spent() {
		return nil, c.begun
	}
	if len(c.found) > 1 {
		slices.SortStableFunc(c.found, func(a, b Match) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Pattern, b.Pattern))
		})
	}
	return c.found, open
}

// Open returns where pattern may still have a match that begins first, after a
// scan of text that was not final: the length of the text when nowhere.
func (c *Scanner) Open(pattern int) int {
	if f := &c.finders[pattern]; f.taking {
		return f.open
	}
	return c.pos
}

// complete returns the length of s without a last character that later bytes
// could complete.
func complete(s string) int {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if tail := s[len(s)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return len(s) - i
			}
			break
		}
	}
	return len(s)
}

// sweep lets the automaton read to the end of text: the fast path.
func (c *Scanner) sweep(text string) {
	a, st := c.set.search, c.state
	for c.pos < len(text) {
		var reason why
		st, c.pos, c.quiet, reason = a.run(st, text, c.pos, c.quiet, len(c.taking) > 0)
		switch reason {
		case unbuilt:
			if c.missed++; c.missed > a.most && 4*c.missed > c.pos-c.begun {
				c.state = nil
				return
			}
			if c.machine.work += a.follow(st, text, c.pos); c.machine.spent() {
				return
			}
			continue
		case hitting:
			for _, p := range st.hits {
				c.take(p).due = true
			}
		}
		if len(st.pcs) == 0 && len(c.taking) > 0 {
			c.resolve(text[:c.pos])
			c.quiet = c.pos
		}
	}
	c.state = st
}

// take makes a pattern take part in this stretch.
func (c *Scanner) take(p uint16) *tracker {
	f := &c.finders[p]
	if !f.taking {
		f.taking = true
		c.taking = append(c.taking, p)
	}
	return f
}

// resolve ends a stretch: text ends where nothing is in progress, so all that
// was is decided.
func (c *Scanner) resolve(text string) {
	for _, p := range c.taking {
		f := &c.finders[p]
		if f.due || f.found {
			c.run(p, text, false)
		}
		f.taking, f.run, f.due = false, false, false
		f.reset(len(text))
	}
	c.taking = c.taking[:0]
}

// run lets the finder of a pattern read to the end of text.
func (c *Scanner) run(p uint16, text string, final bool) *tracker {
	f := &c.finders[p]
	f.open = len(text)
	if f.from > len(text) {
		return f
	}
	if !f.run {
		f.run = true
		f.reset(max(c.quiet, f.from))
	}
	for {
		decided := f.next(c.machine, text, final)
		if !decided && !final {
			decided, f.open = f.settle(c.machine, text)
		}
		if !decided {
			return f
		}
		f.from = f.end
		c.found = append(c.found, Match{int(p), f.start, f.end})
	}
}

// pause decides what can be decided where text ends for now, or for good.
func (c *Scanner) pause(text string, final bool) (open int) {
	open = len(text)
	if final {
		for _, p := range c.set.search.end(c.state) {
			c.take(p).due = true
		}
		for _, p := range c.taking {
			if f := &c.finders[p]; f.due || f.found {
				c.run(p, text, true)
			}
		}
		return open
	}
	if len(c.state.pcs) == 0 {
		return open
	}
	for _, p := range c.state.live {
		c.take(p)
	}
	for _, p := range c.taking {
		f := c.run(p, text, false)
		f.due = false
		open = min(open, f.open)
	}
	return open
}

// runAll is the way without the automaton.
func (c *Scanner) runAll(text string, final bool) (open int) {
	open = len(text)
	for p := range c.finders {
		c.take(uint16(p))
		open = min(open, c.run(uint16(p), text, final).open)
	}
	c.pos = len(text)
	return open
}
