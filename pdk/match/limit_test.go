package match

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// slow is a set that somebody might declare to keep others waiting: every
// character is the beginning of a match of every pattern.
func slow(n int) (list []Pattern) {
	for i := range n {
		list = append(list, Pattern{Expr: fmt.Sprintf(`(?s)(?:[a-z ].{1,%d}){20,24}%dx`, 10+i%7, i)})
	}
	return list
}

// A scan ends where its work does, and the next one begins anew.
func TestLimit(t *testing.T) {
	const limit = 1 << 20
	s := compile(t, slow(100)...)
	c := s.Scanner()
	c.Limit(limit)
	text := strings.Repeat("hello this is some text\n", 100)
	if found, open := c.Scan(text, false); found != nil || open != 0 || !c.Spent() {
		t.Fatalf("%d matches, open %d, spent %v after %d steps", len(found), open, c.Spent(), c.machine.work)
	}
	// One step past the limit is the look at one character.
	if most := limit + 4*maxTotal; c.machine.work > most {
		t.Errorf("%d steps, expected at most %d", c.machine.work, most)
	}
	if found, open := c.Scan(text+text, true); found != nil || open != 0 {
		t.Errorf("%d matches, open %d after the work was spent", len(found), open)
	}
	if c.Reset("", 0); c.Spent() {
		t.Error("a reset leaves the work of the text before")
	}
	short := "no digits"
	if found, open := c.Scan(short, true); len(found) > 0 || open != len(short) || c.Spent() {
		t.Errorf("%q: %d matches, open %d, spent %v", short, len(found), open, c.Spent())
	}
}

// Ordinary sets are far from it, on ordinary text and on any other.
func TestShippedWorkIsLittle(t *testing.T) {
	s := compile(t, shipped(t)...)
	for _, unit := range []string{read(t, "prose.txt"), "a@a.", "1 ", "+1 2(3)-", "password: ", "GB82 1", "12:", "日é 1"} {
		text := strings.Repeat(unit, 1+16<<10/len(unit))[:16<<10]
		c := s.Scanner()
		want, _ := c.Scan(text, true)
		want = slices.Clone(want)
		if per := c.machine.work / len(text); per > 256 {
			t.Errorf("%.20q …: %d steps a byte", unit, per)
		}
		c.Limit(256 * len(text))
		c.Reset(text, 0)
		if got, _ := c.Scan(text, true); c.Spent() || !slices.Equal(got, want) {
			t.Errorf("%.20q …: %d matches under a limit, %d without", unit, len(got), len(want))
		}
	}
}

// What a set takes is bounded, whoever wrote it.
func TestSetsHaveASize(t *testing.T) {
	list := slow(400)
	if _, err := Compile(list, Options{}); err == nil || !strings.Contains(err.Error(), "together are too large") {
		t.Errorf("%d expressions: %v", len(list), err)
	}
	s := compile(t, slow(40)...)
	c := s.Scanner()
	text := strings.Repeat("hello this is some text 7x\n", 20)
	for end := range text {
		c.Scan(text[:end], false)
		if s.search.bytes > 8<<20 {
			t.Fatalf("%d bytes of states after %d of text", s.search.bytes, end)
		}
	}
}
