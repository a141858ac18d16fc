package guard

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What is assembled depends on the bytes and not on where they were cut, and
// is what a conversion to runes gives.
func FuzzAssembler(f *testing.F) {
	f.Add("a\xe2\x82\xac\xf0\x9f\x98\x80\xff", uint64(0b1011), 100)
	f.Add("\xf0\x9f\x98", uint64(7), 2)
	f.Add("\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80", uint64(0xffff), 5)
	f.Add("plain", uint64(2), 3)
	f.Fuzz(func(t *testing.T, s string, cuts uint64, limit int) {
		limit = 1 + (limit&0x7fffffff)%300
		a := assembler{max: limit}
		rest := s
		for i := 0; rest != ""; i = (i + 1) % 64 {
			n := min(len(rest), 1+int(cuts>>i&3))
			a.add(rest[:n])
			rest = rest[n:]
		}
		a.end()
		runes := []rune(s)
		want := string(runes[:min(limit, len(runes))])
		if got := a.text.String(); got != want || !utf8.ValidString(got) {
			t.Errorf("assembled %q, want %q", got, want)
		}
		if a.seen != len(runes) || a.kept != min(limit, len(runes)) || a.over != (len(runes) > limit) {
			t.Errorf("seen %d, kept %d, over %v of %d characters, limit %d", a.seen, a.kept, a.over, len(runes), limit)
		}
	})
}

// Only what can still become a character waits for more bytes.
func TestAssemblerWaitsOnlyForCharacters(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a", "a"}, {"a\xe2\x82", "a"}, {"a\xe2\x82\xac", "a€"}, {"\xff", "\ufffd"}, {"\x80\x80", "\ufffd\ufffd"},
		{"\xe2x", "\ufffdx"}, {"\xf0\x9f\x98", ""}, {"\xed\xa0", "\ufffd\ufffd"}, {"\xe2\x82\xe2", "\ufffd\ufffd"},
	} {
		for _, pieces := range [][]string{{c.in}, bytewise(c.in)} {
			a := assembler{max: 100}
			for _, p := range pieces {
				a.add(p)
			}
			if got := a.text.String(); got != c.want {
				t.Errorf("%q in %d pieces gives %q, want %q", c.in, len(pieces), got, c.want)
			}
		}
	}
}

func TestLookBehind(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 2, "bc"}, {"abc", 9, "abc"}, {"abc", 0, ""}, {"a€b", 3, "b"}, {"a€b", 4, "€b"}, {"😀", 3, ""}, {"", 4, ""}} {
		if got := lookBehind(c.s, c.n); got != c.want {
			t.Errorf("lookBehind(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

// 10.5.5: a fragment is never a lone JSON container.
func TestSplitContainer(t *testing.T) {
	for _, c := range []struct{ in, head, rest string }{
		{`{"a":1}`, `{`, `"a":1}`},
		{`[]`, `[`, `]`},
		{` [[1]] `, ` [[`, `1]] `},
		{"\ufeff{ }\u0085", "\ufeff{ ", "}\u0085"},
		{`[[]`, `[[`, `]`},
		{`[ {"a":[]} ]`, `[ {`, `"a":[]} ]`},
		{`{hello}`, `{`, `hello}`},
		{`{`, `{`, ``}, {`}`, `}`, ``}, {`100`, `100`, ``}, {`"{}"`, `"{}"`, ``}, {`{} and`, `{} and`, ``},
		{` `, ` `, ``}, {``, ``, ``}, {`true`, `true`, ``},
	} {
		head, rest := splitContainer(c.in)
		if head != c.head || rest != c.rest {
			t.Errorf("splitContainer(%q) = %q, %q, want %q, %q", c.in, head, rest, c.head, c.rest)
		}
	}
}

func FuzzSplitContainer(f *testing.F) {
	f.Add(`[{"a":[1,2]},{}]`)
	f.Add("\u2028[[1]\t")
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || !utf8.ValidString(s) {
			return
		}
		head, rest := splitContainer(s)
		if head+rest != s {
			t.Fatalf("split %q into %q and %q", s, head, rest)
		}
		checkFragment(t, head)
		if rest != "" {
			checkFragment(t, rest)
		}
		if h, r := splitContainer(strings.TrimSpace(rest)); r != "" {
			t.Errorf("the rest %q would be split again into %q and %q", rest, h, r)
		}
	})
}
