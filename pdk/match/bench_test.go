package match

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func read(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// shipped are the patterns of both output guards as they are shipped.
func shipped(t testing.TB) (list []Pattern) {
	t.Helper()
	for line := range strings.Lines(read(t, "output.tsv")) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		list = append(list, Pattern{ID: f[0], Expr: f[2], Minimal: f[1] == "minimal"})
	}
	return list
}

// prose is text without matches, of about n bytes.
func prose(t testing.TB, n int) string {
	text := read(t, "prose.txt")
	return strings.Repeat(text, 1+n/len(text))
}

// What streams of prose hold back with all shipped output patterns, one
// character at a time: mean at most 5 characters, 99 of 100 at most 24.
func TestHeldOnProse(t *testing.T) {
	s := compile(t, shipped(t)...)
	text := read(t, "prose.txt")
	c := s.Scanner()
	var held []int
	sum := 0
	for i, r := range text {
		i += utf8.RuneLen(r)
		found, open := c.Scan(text[:i], false)
		for _, m := range found {
			if s.patterns[m.Pattern].Minimal {
				t.Errorf("%s matches %q", s.ID(m.Pattern), text[m.Start:m.End])
			}
		}
		n := utf8.RuneCountInString(text[open:i])
		held, sum = append(held, n), sum+n
	}
	slices.Sort(held)
	mean, p99, most := float64(sum)/float64(len(held)), held[len(held)*99/100], held[len(held)-1]
	t.Logf("%d characters: held %.2f on average, p99 %d, at most %d", len(held), mean, p99, most)
	if mean > 5 || p99 > 24 {
		t.Errorf("held %.2f on average, p99 %d; at most 5 and 24", mean, p99)
	}
}

func BenchmarkProse(b *testing.B) {
	s := compile(b, shipped(b)...)
	text := prose(b, 64<<10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.All(text)
	}
}

// BenchmarkRegexp is the standard library on the same text.
func BenchmarkRegexp(b *testing.B) {
	s := compile(b, shipped(b)...)
	text := prose(b, 64<<10)
	var list []*regexp.Regexp
	for i := range s.Len() {
		list = append(list, regexp.MustCompile(s.Expr(i)))
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for _, re := range list {
			re.FindAllStringIndex(text, -1)
		}
	}
}

// BenchmarkDeltas streams prose four bytes at a time; one operation is a delta.
func BenchmarkDeltas(b *testing.B) {
	s := compile(b, shipped(b)...)
	text := prose(b, 64<<10)
	c := s.Scanner()
	at := 0
	for b.Loop() {
		if at += 4; at > len(text) {
			c.Reset("", 0)
			at = 4
		}
		c.Scan(text[:at], false)
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, unit := range map[string]string{"addresses": "a.a@", "digits": "1 2-", "words": "password "} {
		b.Run(name, func(b *testing.B) {
			s := compile(b, shipped(b)...)
			text := strings.Repeat(unit, 64<<10/len(unit))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.All(text)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	list := shipped(b)
	for b.Loop() {
		compile(b, list...)
	}
}
