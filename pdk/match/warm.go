package match

// Guests build automata when they are configured, so that what most texts need
// is part of the image that every call begins with.

// Warm lets the scanner read ordinary text and samples, so that what it needs
// for such texts is there: of the set's automaton and of its own memory. Reset
// makes it ready for a text.
func (c *Scanner) Warm(samples ...string) {
	for _, text := range append(samples, page) {
		c.Reset("", 0)
		for end := range text {
			c.Scan(text[:end], false)
		}
		c.Scan(text, true)
	}
}

// WarmWhole builds the part of the automata that most texts need of Occurring
// and Fitting. The first is nearly all there is for words and gaps.
func (s *Set) WarmWhole() {
	s.Occurring(page)
	s.Fitting(page)
	s.sieve.explore(1 << 13)
}

// explore builds states in the order of their distance from the beginning,
// until so many ways between them have been looked at.
func (a *automaton) explore(ways int) {
	letters := a.letters()
	known := make(map[*state]bool)
	var queue []*state
	reach := func(st *state) {
		if st != nil && !known[st] {
			known[st] = true
			queue = append(queue, st)
		}
	}
	for before := range kinds {
		reach(a.root(before))
	}
	for ; len(queue) > 0 && !a.full(); queue = queue[1:] {
		for _, letter := range letters {
			if ways--; ways < 0 {
				return
			}
			a.follow(queue[0], letter, 0)
			reach(queue[0].next[a.abc.table[letter[0]]].Load())
		}
	}
}

// letters returns an ASCII character of each class that has one.
func (a *automaton) letters() (list []string) {
	seen := make([]bool, len(a.abc.kind))
	for b := range byte(0x80) {
		if c := a.abc.table[b]; !seen[c] {
			seen[c] = true
			list = append(list, string(rune(b)))
		}
	}
	return list
}

// page is ordinary English of people who write to a support desk and of those
// who answer.
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
