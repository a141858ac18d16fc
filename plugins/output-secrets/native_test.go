package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
	"weir/pdk/match"
)

// sparing plays a host that looks for the declared patterns itself and calls
// the guard only while a match is not behind the guard's own hold_from.
type sparing struct {
	*driver
	scanner *match.Scanner
	last    int // the end of the last match
	calls   int
}

// declared are the guard's patterns as the host compiles them.
func (g *guard) declared(t testing.TB) *match.Set {
	t.Helper()
	var patterns []match.Pattern
	for _, p := range g.settings().Patterns {
		patterns = append(patterns, match.Pattern{ID: p.ID, Expr: p.Expr, Bound: p.Bound, Minimal: p.Minimal})
	}
	set, err := match.Compile(patterns, match.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (s *sparing) push(piece string, final bool) {
	if s.cut != nil {
		return
	}
	found, open := s.scanner.Scan(s.text+piece, final)
	for _, m := range found {
		s.last = max(s.last, m.End)
	}
	if s.last > s.hold {
		s.calls++
		s.driver.push(piece, final)
		return
	}
	s.text += piece
	s.driver.release(&abi.CheckOutputReply{HoldFrom: open - s.hold, State: s.state})
}

// sparingly is what a client receives of such a host.
func (g *guard) sparingly(t testing.TB, set *match.Set, pieces ...string) (string, *sparing) {
	t.Helper()
	s := &sparing{driver: g.stream(t), scanner: set.Scanner()}
	for i, p := range pieces {
		s.push(p, i == len(pieces)-1)
	}
	return s.released.String(), s
}

// A host that spares itself the calls without a candidate gets the same.
func TestDeclaredPatterns(t *testing.T) {
	g := load(t, shipped(t))
	set := g.declared(t)
	for _, s := range samples {
		text := "Zoë wrote a line. " + s.text + " and so on"
		want, wantCut := g.all(t, text)
		for _, pieces := range [][]string{{text}, append(chars(text), "")} {
			if got, d := g.sparingly(t, set, pieces...); got != want || !cmp.Equal(label0(d.cut), label0(wantCut)) {
				t.Fatalf("%q in %d pieces: %q %v, with every call %q %v", text, len(pieces), got, d.cut, want, wantCut)
			}
		}
	}
	const clean = "The password of the operating system is changed once a year. "
	if _, s := g.sparingly(t, set, chars(clean)...); s.calls != 0 {
		t.Errorf("%d calls for clean text", s.calls)
	}
}

// sent is the request of a host that sends along what it has found, as
// host/guard does.
func sent(set *match.Set, q abi.CheckOutputRequest) *abi.CheckOutputRequest {
	s := set.Scanner()
	s.Reset(q.Before+q.Text, len(q.Before))
	found, open := s.Scan(q.Before+q.Text, q.Final)
	q.Open = open - len(q.Before)
	for _, m := range found {
		q.Matches = append(q.Matches, m.Pattern, m.Start-len(q.Before), m.End-len(q.Before))
	}
	return &q
}

// abi.CheckOutputRequest: the reply is the same with the matches and without,
// wherever the text is cut and the guard's hold_from stands. The patterns are
// such that one may still come before the first that is found, and at it.
func TestMatchesThatAreSent(t *testing.T) {
	type sample struct{ config, text string }
	list := []sample{
		{`{"patterns":["abcd","bc","abce?x"]}`, "abc bcd abce abcex abcd ab"},
		{`{"patterns":["ab{2,9}c\\b","ab","ab+d"]}`, "abbbb abc abbbc abbd abbbbbbbbbbbc ab"},
	}
	for _, s := range samples {
		list = append(list, sample{string(shipped(t)), "é " + s.text + " so. " + s.text})
	}
	with, without := 0, 0
	for _, s := range list {
		g := load(t, abi.Raw(s.config))
		set := g.declared(t)
		for from := range s.text {
			for to := range s.text[from:] {
				q := abi.CheckOutputRequest{StreamPos: int64(from), Before: lastBytes(s.text[:from], lookBehind), Text: s.text[from : from+to], Final: to%2 == 1}
				again := sent(set, q)
				want, got := answer(t, g, &q), answer(t, g, again)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%q %v (-without +with):\n%s", q.Text, again.Matches, diff)
				}
				if len(again.Matches) > 0 {
					if want.Cut == nil {
						without++
					} else {
						with++
					}
				}
			}
		}
	}
	if with < 1000 || without == 0 {
		t.Errorf("with matches %d replies have a cut and %d have none", with, without)
	}
}

func TestMatchesThatAreNone(t *testing.T) {
	g := load(t, shipped(t))
	for _, bad := range [][]int{{0}, {0, 1}, {99, 0, 1}, {-1, 0, 1}, {0, -1, 1}, {0, 1, 1}, {0, 1, 5}, {0, 0, 1, 0}} {
		if r, err := g.answer(&abi.CheckOutputRequest{Text: "abcd", Matches: bad, Open: 4}); err == nil {
			t.Errorf("%v: %+v", bad, r)
		}
	}
	q := &abi.CheckOutputRequest{Text: "abcd", Matches: []int{0, 1, 4}, Open: 4}
	if r, err := g.answer(q); err != nil || r.Cut == nil || r.Cut.At != 1 { // the control
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzDeclaredPatterns(f *testing.F) {
	for _, s := range []string{"xx abbc key=123 xyz", "key=12 xy abbbbbc", "éabbcékey=éé3", "xyzz xyz", "k\u00a0ey=1"} {
		f.Add(s, uint64(1))
	}
	g := load(f, abi.Raw(`{"patterns":["ab{2,4}c","\\bkey=\\w{3,}","xyz\\b|y\\sz","z{3}","b*bc"],"notice":"!"}`))
	set := g.declared(f)
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 200 {
			t.Skip()
		}
		text = strings.ToValidUTF8(text, "\ufffd")
		want, wantCut := g.all(t, text)
		got, s := g.sparingly(t, set, pieces(text, seed)...)
		if got != want || !cmp.Equal(label0(s.cut), label0(wantCut)) {
			t.Fatalf("%q: released %q %v, with every call %q %v", text, got, s.cut, want, wantCut)
		}
	})
}

// What is held back of prose, one character at a time: on average at most 5
// characters, in 99 of 100 cases at most 24.
func TestHeldOnProse(t *testing.T) {
	raw, err := os.ReadFile("../../pdk/match/testdata/prose.txt")
	if err != nil {
		t.Fatal(err)
	}
	d := load(t, shipped(t)).stream(t)
	var held []int
	sum := 0
	for _, c := range chars(string(raw)) {
		d.push(c, false)
		n := utf8.RuneCountInString(d.text[d.hold:])
		held, sum = append(held, n), sum+n
	}
	slices.Sort(held)
	mean, p99 := float64(sum)/float64(len(held)), held[len(held)*99/100]
	t.Logf("held %.2f characters on average, p99 %d, at most %d", mean, p99, held[len(held)-1])
	if mean > 5 || p99 > 24 {
		t.Errorf("held %.2f characters on average, p99 %d", mean, p99)
	}
	if d.push("", true); d.released.String() != string(raw) {
		t.Error("clean prose was changed")
	}
}

// The matcher is measured with the patterns that are shipped.
func TestMeasuredPatterns(t *testing.T) {
	raw, err := os.ReadFile("../../pdk/match/testdata/output.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range load(t, shipped(t)).patterns {
		if line := p.ID + "\tminimal\t" + p.Expr + "\n"; !strings.Contains(string(raw), line) {
			t.Errorf("not in output.tsv: %s", line)
		}
	}
}
