package match

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func compile(t testing.TB, patterns ...Pattern) *Set {
	t.Helper()
	s, err := Compile(patterns, Options{})
	if err != nil {
		t.Fatalf("Compile(%v): %v", patterns, err)
	}
	return s
}

// one is a set of one expression.
func one(t testing.TB, expr string) *Set { return compile(t, Pattern{Expr: expr}) }

// reference is every match of pattern i in a whole text, by the slow matcher.
func (s *Set) reference(t testing.TB, i int, text string) (all []Match) {
	t.Helper()
	p, err := slowCompile(s.Expr(i))
	if err != nil {
		t.Fatalf("slowCompile(%q): %v", s.Expr(i), err)
	}
	for at := 0; ; {
		r := p.Find(text, at, true)
		if s.patterns[i].Minimal {
			r = p.Earliest(text, at, 0, true)
		}
		if !r.Found {
			return all
		}
		all = append(all, Match{i, r.Start, r.End})
		at = r.End
	}
}

func (s *Set) references(t testing.TB, text string) (all []Match) {
	t.Helper()
	for i := range s.patterns {
		all = append(all, s.reference(t, i, text)...)
	}
	return byPattern(all)
}

// byPattern puts matches into an order that does not depend on when they were
// decided.
func byPattern(all []Match) []Match {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Match) int { return a.Pattern - b.Pattern })
	return all
}

// stream scans a text in pieces, given by their ends, and holds the protocol.
func (s *Set) stream(t testing.TB, text string, ends []int) (all []Match) {
	t.Helper()
	return s.streamBy(t, s.Scanner(), text, ends)
}

// streamBy does so with a scanner that may have read other texts.
func (s *Set) streamBy(t testing.TB, c *Scanner, text string, ends []int) (all []Match) {
	t.Helper()
	c.Reset(text, 0)
	open := 0
	for _, end := range ends {
		final := end < 0
		if final {
			end = len(text)
		}
		found, now := c.Scan(text[:end], final)
		if now < open || now > end || final && now != end {
			t.Fatalf("%q up to %d: open goes from %d to %d", text, end, open, now)
		}
		last := -1
		for _, m := range found {
			if m.Start < open || m.End > end || m.Start >= m.End || m.Start < last {
				t.Fatalf("%q up to %d: match %v, open was %d", text, end, m, open)
			}
			last = m.Start
		}
		all = append(all, found...)
		open = now
		for i := range s.patterns {
			if o := c.Open(i); !final && o < now {
				t.Fatalf("%q up to %d: pattern %d is open from %d, the set from %d", text, end, i, o, now)
			}
		}
	}
	return byPattern(all)
}

// everyCut holds streams against the whole: cut in two at every byte, cut at
// every byte, and at random; by a new scanner, by one that remembers what it
// read before, and by one that soon has no room for that.
func (s *Set) everyCut(t testing.TB, text string, want []Match) {
	t.Helper()
	experienced, full := s.Scanner(), s.Scanner()
	full.machine.room = 3
	check := func(ends []int) {
		t.Helper()
		for i, c := range []*Scanner{s.Scanner(), experienced, full} {
			if got := s.streamBy(t, c, text, ends); !slices.Equal(got, want) {
				t.Fatalf("%q cut at %v, scanner %d: %v, want %v; patterns %v", text, ends, i, got, want, s.patterns)
			}
		}
	}
	var each []int
	for i := range len(text) + 1 {
		check([]int{i, -1})
		each = append(each, i)
	}
	check(append(each, -1))
	r := rand.New(rand.NewPCG(uint64(len(text)), 1))
	for range 4 {
		var ends []int
		for i := range len(text) {
			if r.IntN(4) == 0 {
				ends = append(ends, i)
			}
		}
		check(append(ends, -1))
	}
}

// seeds are expressions and texts that meet every kind of instruction.
var seeds = [][2]string{
	{`a+b|ab`, "aab ab"}, {`\bfoo\b`, "foo food xfoo foo"}, {`(?i)api[_-]?key\s*[:=]\s*["']?[a-z0-9]{8,}`, `API_KEY = "abcdefgh1"`},
	{`(?is)a.{0,5}b.{0,4}c`, "a\nb   c a b c"}, {`(?m)^x.*$`, "y\nxab\nz"}, {`(a|ab)(c|bcd)(d*)`, "abcd"},
	{`a*?b`, "aaab"}, {`(?U)a+`, "aaa"}, {`\Ba\B`, "xay a"}, {`[^a]b`, "ab cb éb"}, {`x{2,4}?y?`, "xxxxy"}, {`\Aab|b\z`, "abb"},
	{`\w+@\w+`, "a@b c@d@e"}, {`(?:\d[ -]?){5,9}\d\b`, "12345 67890 1234567890123"}, {`\x{FFFD}`, "a\xffb\xc3"},
	{`a(?:b{10}c)?`, "abbbbbbbbbbcaabbb"}, {`\bé\b`, "é éé é"}, {`[[:alpha:]]+\s`, "ab cd "},
	{`a.{0,30}b`, "aaaaaaaaaaaaaaaaaaaaaaaa ab aab b"}, {`a.?a.?b|aa`, "aaaab aacab"},
	{`(?:abc)+|bx`, "abcabx abcabcabx"}, {`.{3,9}a.{0,9}b`, "xxxab aab"}, {`a.{2,9}b.{3,9}`, "abbabb aab"},
}

func TestWholeIsTheReference(t *testing.T) {
	for _, seed := range seeds {
		for _, minimal := range []bool{false, true} {
			s := compile(t, Pattern{Expr: seed[0], Minimal: minimal})
			want := s.references(t, seed[1])
			if got := byPattern(s.All(seed[1])); !slices.Equal(got, want) {
				t.Errorf("%s on %q, minimal %v: %v, want %v", seed[0], seed[1], minimal, got, want)
			}
			s.everyCut(t, seed[1], want)
		}
	}
}

// All seeds together, on all texts.
func TestSetIsItsPatterns(t *testing.T) {
	var patterns []Pattern
	text := ""
	for i, seed := range seeds {
		patterns = append(patterns, Pattern{Expr: seed[0], Minimal: i%3 == 0})
		text += seed[1] + []string{" ", "\n", "", "é"}[i%4]
	}
	s := compile(t, patterns...)
	s.everyCut(t, text, s.references(t, text))
}

// FuzzAgainstRegexp holds sets against the standard library, whole and cut.
func FuzzAgainstRegexp(f *testing.F) {
	for i, s := range seeds {
		f.Add(s[0], seeds[(i+3)%len(seeds)][0], s[1], byte(i))
	}
	f.Fuzz(func(t *testing.T, a, b, text string, bound byte) {
		if len(a)+len(b) > 60 || len(text) > 60 || !ascii(a+b+text) {
			t.Skip()
		}
		set, err := Compile([]Pattern{{Expr: a, Bound: 1 + int(bound%9)}, {Expr: b, Bound: 3}}, Options{})
		if err != nil {
			t.Skip()
		}
		var want []Match
		for i := range 2 {
			re, err := regexp.Compile(set.Expr(i))
			if err != nil {
				t.Skip() // counts above the library's limit
			}
			for _, loc := range re.FindAllStringIndex(text, -1) {
				want = append(want, Match{i, loc[0], loc[1]})
			}
		}
		if got := byPattern(set.All(text)); !slices.Equal(got, want) {
			t.Fatalf("%q and %q on %q: %v, the library says %v", a, b, text, got, want)
		}
		set.everyCut(t, text, want)
		checkWhole(t, set, text, want)
	})
}

func checkWhole(t *testing.T, set *Set, text string, want []Match) {
	t.Helper()
	var occur, fit []int
	for i := range set.Len() {
		if slices.ContainsFunc(want, func(m Match) bool { return m.Pattern == i }) {
			occur = append(occur, i)
		}
		if p, err := slowCompile(set.Expr(i)); err == nil && p.MatchFull(text) {
			fit = append(fit, i)
		}
	}
	if got := set.Occurring(text); !slices.Equal(got, occur) {
		t.Fatalf("%q: occurring %v, want %v; %v", text, got, occur, set.patterns)
	}
	if got := set.Fitting(text); !slices.Equal(got, fit) {
		t.Fatalf("%q: fitting %v, want %v; %v", text, got, fit, set.patterns)
	}
}

// FuzzAgainstSlow holds sets against the slow matcher, whose \b is Unicode's
// too and which knows minimal matches.
func FuzzAgainstSlow(f *testing.F) {
	for i, s := range seeds {
		f.Add(s[0], seeds[(i+5)%len(seeds)][0], s[1]+"é日\u00a0", byte(i))
	}
	f.Fuzz(func(t *testing.T, a, b, text string, bound byte) {
		if len(a)+len(b) > 60 || len(text) > 60 {
			t.Skip()
		}
		set, err := Compile([]Pattern{{Expr: a, Bound: 1 + int(bound%9), Minimal: bound&16 != 0}, {Expr: b, Bound: 3, Minimal: true}}, Options{MaxStates: 4})
		if err != nil {
			t.Skip()
		}
		for i := range 2 {
			if _, err := slowCompile(set.Expr(i)); err != nil {
				t.Skip()
			}
		}
		// Of bytes that are no UTF-8 the slow matcher knows less than regexp does,
		// see TestInvalidBytes.
		text = strings.ToValidUTF8(text, "\ufffd")
		want := set.references(t, text)
		set.everyCut(t, text, want)
		checkWhole(t, set, text, want)
	})
}

// A byte that is no UTF-8 reads as U+FFFD, as in the standard library.
func TestInvalidBytes(t *testing.T) {
	for _, expr := range []string{`\x{FFFD}`, `[^a]`, `a.b`, `\x{FFFD}+`} {
		set, err := Compile([]Pattern{{Expr: expr}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"\x97", "a\x97b", "\xf0\x9f\x97", "a\ufffdb", "ab"} {
			want := regexp.MustCompile(set.Expr(0)).FindAllStringIndex(text, -1)
			var got [][]int
			found, _ := set.Scanner().Scan(text, true)
			for _, m := range found {
				got = append(got, []int{m.Start, m.End})
			}
			if !slices.EqualFunc(got, want, slices.Equal[[]int]) {
				t.Errorf("%s in %q: %v, regexp says %v", expr, text, got, want)
			}
		}
	}
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// An expression of the brute-force oracle: small, over a small alphabet.
func randomExpr(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "[ab]", " ", ".", `\b`, `\B`, "é", `\w`, "^", "$", `\z`}[r.IntN(12)]
	}
	x := func() string { return randomExpr(r, depth-1) }
	switch r.IntN(9) {
	case 0:
		return "(?:" + x() + "|" + x() + ")"
	case 1:
		return "(?:" + x() + ")" + []string{"?", "*", "+", "{2}", "{1,2}", "{0,2}?", "??", "+?"}[r.IntN(8)]
	case 2, 3, 4, 5:
		return x() + x()
	default:
		return x()
	}
}

// What is held is what must be: for every text up to some length, what the
// scanner has decided is what all continuations have in common, and open is the
// earliest start of a match that some continuation adds.
func TestNothingIsHeldInVain(t *testing.T) {
	const ahead = 4
	letters := []string{"a", "b", " ", "é", "\n"}
	var more []string
	for grow := []string{""}; len(grow) > 0 && len(grow[0]) < 2*ahead+2; {
		more = append(more, grow...)
		var next []string
		for _, g := range grow {
			if utf8.RuneCountInString(g) < ahead {
				for _, l := range letters {
					next = append(next, g+l)
				}
			}
		}
		grow = next
	}
	r := rand.New(rand.NewPCG(7, 7))
	sets := 60
	if testing.Short() {
		sets = 8
	}
	for done := 0; done < sets; {
		p := Pattern{Expr: randomExpr(r, 3), Bound: 2, Minimal: r.IntN(3) == 0}
		s, err := Compile([]Pattern{p}, Options{})
		if err != nil || size2(s) > ahead {
			continue
		}
		done++
		for range 6 {
			text := ""
			for range r.IntN(6) {
				text += letters[r.IntN(len(letters))]
			}
			checkExact(t, s, text, more)
		}
	}
}

// size2 estimates how many characters a match of the set's pattern can have.
func size2(s *Set) int {
	n := 0
	for _, in := range s.patterns[0].prog.insts {
		if in.op == opRead {
			n++
		}
	}
	return n
}

func checkExact(t *testing.T, s *Set, text string, more []string) {
	t.Helper()
	c := s.Scanner()
	got, open := c.Scan(text, false)
	got = slices.Clone(got)
	common := s.All(text)
	var all [][]Match
	for _, m := range more {
		whole := s.All(text + m)
		all = append(all, whole)
		n := 0
		for n < len(common) && n < len(whole) && common[n] == whole[n] {
			n++
		}
		common = common[:n]
	}
	want := len(text)
	for _, whole := range all {
		if len(whole) > len(common) {
			want = min(want, whole[len(common)].Start)
		}
	}
	if !slices.Equal(got, common) || open != want {
		t.Fatalf("%q (minimal %v) after %q: decided %v, open %d; must be %v, %d",
			s.patterns[0].Expr, s.patterns[0].Minimal, text, got, open, common, want)
	}
}

// Go's regexp decides what the whole of a text has, this package what a piece
// has; both must agree on text that hostile people write.
func TestHostileTexts(t *testing.T) {
	s := compile(t,
		Pattern{Expr: `\b[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,24}\b`},
		Pattern{Expr: `\b(?:\d[ -]?){12,18}\d\b`},
		Pattern{Expr: `(?s)\bshow\b.{0,60}\bplan\b.{0,60}\babuse\b`},
		Pattern{Expr: `a(?:.{0,50}b)?`},
	)
	for _, unit := range []string{"a.", "a@a.", "1 ", "1-", "show plan ", "show ", "a", "aé", "a\n", "@"} {
		text := strings.Repeat(unit, 300)
		want := s.references(t, text)
		if got := byPattern(s.All(text)); !slices.Equal(got, want) {
			t.Fatalf("%q …: %d matches, want %d", unit, len(got), len(want))
		}
		var each []int
		for i := range len(text) {
			each = append(each, i)
		}
		if got := s.stream(t, text, append(each, -1)); !slices.Equal(got, want) {
			t.Fatalf("%q …, one byte at a time: %d matches, want %d", unit, len(got), len(want))
		}
	}
}

// Time is linear in the text and memory does not grow with it, whatever the
// text is: counted in steps of finders and in states, not by a clock.
func TestHostileTextsCostLittle(t *testing.T) {
	list := append(shipped(t), Pattern{Expr: `(?s)\bshow\b.{0,60}\bplan\b.{0,60}\babuse\b`}, Pattern{Expr: `a(?:.{0,50}b)?`})
	for _, unit := range []string{"a.", "a@a.", "1 ", "12:", "+1 2(3)-", "show plan ", "password: ", "sk-a", "a", "é1", "GB82 1", "-----BEGIN "} {
		s, err := Compile(list, Options{MaxStates: 64})
		if err != nil {
			t.Fatal(err)
		}
		cost := func(n int) uint32 {
			c := s.Scanner()
			text := strings.Repeat(unit, n/len(unit))
			for end := range text {
				c.Scan(text[:end], false)
			}
			c.Scan(text, true)
			return c.machine.epoch
		}
		short, long := cost(1000), cost(4000)
		if long > 5*short+1000 {
			t.Errorf("%q …: %d steps for 1,000 bytes, %d for 4,000", unit, short, long)
		}
		if s.search.built > 64 {
			t.Errorf("%q …: %d states, at most 64", unit, s.search.built)
		}
	}
}

// Many scanners share a set while its states are built and thrown away.
func TestConcurrentScanners(t *testing.T) {
	s, err := Compile(shipped(t), Options{MaxStates: 32})
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "prose.txt")[:1200] + " write to a@b.example or call 415-555-0132. "
	want := s.references(t, text)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := s.Scanner()
			var got []Match
			for at := i + 1; at < len(text); at += i + 1 {
				found, _ := c.Scan(text[:at], false)
				got = append(got, found...)
			}
			found, _ := c.Scan(text, true)
			if got = byPattern(append(got, found...)); !slices.Equal(got, want) {
				t.Errorf("scanner %d: %v, want %v", i, got, want)
			}
			s.Occurring(text)
		})
	}
	wg.Wait()
}

// A list of threads behaves otherwise once a match was found: nothing begins
// any more. Without bounds a loop comes back to the same list.
func TestRememberedStepsKnowWhatWasFound(t *testing.T) {
	const text = "abcabx abcabcabx"
	s := compile(t, Pattern{Expr: `(?:abc)+|bx`, Bound: Unbounded})
	s.everyCut(t, text, []Match{{0, 0, 3}, {0, 4, 6}, {0, 7, 13}, {0, 14, 16}})
}
