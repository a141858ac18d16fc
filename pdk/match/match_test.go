package match

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// matches reports whether the set's only pattern occurs in text.
func (s *Set) matches(text string) bool { return len(s.Occurring(text)) > 0 }

// Clause 14.3: \b, \w, \d and \s are Unicode's.
func TestUnicodeClasses(t *testing.T) {
	tests := []struct {
		expr, text string
		want       bool
	}{
		{`\bignore\b`, "ignore previous", true},
		{`\bignore\b`, "éignore previous", false},
		{`\bignore\b`, "ignoreé", false},
		{`\bignore\b`, "«ignore»", true},
		{`\bignore\b`, "日ignore", false},
		{`\Bignore`, "éignore", true},
		{`a\sb`, "a\u00a0b", true},
		{`a\sb`, "a\u2028b", true},
		{`a\sb`, "a\u0085b", true},
		{`a\sb`, "a\vb", true},
		{`a\sb`, "a\u200bb", false},
		{`a[-\s]b`, "a\u202fb", true},
		{`a[^\s]b`, "a\u3000b", false},
		{`a\Sb`, "a\u00a0b", false},
		{`a\Sb`, "aéb", true},
		{`a[\S]b`, "a\u00a0b", false},
		{`^\d+$`, "٣٤", true},
		{`^[x\d]+$`, "x३", true},
		{`^\D+$`, "٣", false},
		{`^\w+$`, "naïve_ſ9", true},
		{`^\W+$`, "é", false},
		{`^[\W]+$`, "—", true},
		{`^[^\w]+$`, "é", false},
		{`\Q\s\E`, `\s`, true},
		{`\Q\s\E`, ` `, false},
		{`[]\s]`, "\u00a0", true},
		{`[^]\s]`, "]", false},
		{`[[:digit:]\s]`, "\u00a0", true},
		{`[\]\s]`, "\u00a0", true},
		{`(?i)straße`, "STRAßE", true},
		{`(?i)mask`, "maſK", true}, // folded as the other runtimes fold
	}
	for _, tt := range tests {
		if got := one(t, tt.expr).matches(tt.text); got != tt.want {
			t.Errorf("%s on %q = %v, want %v", tt.expr, tt.text, got, tt.want)
		}
	}
}

// Clause 6.2: gaps count code points, not bytes.
func TestGapsCountCharacters(t *testing.T) {
	p := one(t, `(?is)\ba\b.{0,3}\bb\b`)
	if !p.matches("a 日 b") {
		t.Error("a gap of three characters of which one takes three bytes does not match")
	}
	if p.matches("a 日日 b") {
		t.Error("a gap of four characters matches")
	}
	if !p.matches("A\n\nB") {
		t.Error("the dot does not match a newline under (?s)")
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, expr := range []string{`(`, `a)(b`, `[a`, `a{2,1}`, `x*`, `\b`, `^$`, `(a|)`, `(?=a)`, `a\1`, ``, `\`, `[\`, `(.{0,900}x){0,90}`, strings.Repeat("a{900}", 10)} {
		p, err := Compile([]Pattern{{Expr: "a"}, {Expr: expr, Bound: Unbounded}}, Options{})
		if err == nil {
			t.Errorf("Compile(%q) = %v, want an error", expr, p)
			continue
		}
		if e, ok := errors.AsType[*ExprError](err); !ok || e.Pattern != 1 {
			t.Errorf("Compile(%q): %v: does not say which pattern", expr, err)
		}
		if strings.Contains(err.Error(), "regexp") || strings.Contains(err.Error(), `\x{`) {
			t.Errorf("Compile(%q): %v: quotes what the author never wrote", expr, err)
		}
	}
}

// What a pattern matches has a bound, whatever its author wrote.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		p    Pattern
		want string
	}{
		{Pattern{Expr: `xa*`}, `xa{0,256}`},
		{Pattern{Expr: `xa+?`, Bound: 7}, `xa{1,7}?`},
		{Pattern{Expr: `a{20,}`, Bound: 7}, `a{20}`},
		{Pattern{Expr: `a{3,}b{2,3}`, Bound: 7}, `a{3,7}b{2,3}`},
		{Pattern{Expr: `x(?:ab)*`, Bound: 7}, `x(?:ab){0,7}`},
		{Pattern{Expr: `x(?:a+b)*`, Bound: 3}, `x(?:a{1,3}b){0,3}`},
		{Pattern{Expr: `x *y`}, `x {0,64}y`},
		{Pattern{Expr: `x[ \t]+y`, Bound: 100}, `x[\t ]{1,64}y`},
		{Pattern{Expr: `x[ \t]+y`, Bound: 5}, `x[\t ]{1,5}y`},
		{Pattern{Expr: `x *y+`, Bound: Unbounded}, `x *y+`},
	} {
		got := compile(t, tt.p).Expr(0)
		if re, err := syntax.Parse(tt.want, syntax.Perl); err != nil || got != re.String() {
			t.Errorf("%+v is %s, want %s", tt.p, got, tt.want)
		}
	}
	s := one(t, `x\s*y`)
	if !s.matches("x"+strings.Repeat("\u00a0", 64)+"y") || s.matches("x"+strings.Repeat("\u00a0", 65)+"y") {
		t.Error("white space is not bounded by 64")
	}
}

func TestFitting(t *testing.T) {
	s := compile(t, Pattern{Expr: `a|ab|abc`}, Pattern{Expr: `ab+`, Bound: Unbounded}, Pattern{Expr: `\w{2,9}`}, Pattern{Expr: `b`})
	for text, want := range map[string][]int{
		"a": {0}, "ab": {0, 1, 2}, "abc": {0, 2}, "abcd": {2}, "xa": {2}, "": nil, "b": {3}, "éa": {2}, "ab ": nil,
		"a" + strings.Repeat("b", 500): {1},
	} {
		if got := s.Fitting(text); !slices.Equal(got, want) {
			t.Errorf("Fitting(%q) = %v, want %v", text, got, want)
		}
		for i := range len(text) {
			if want != nil && !s.Beginning(text[:i]) {
				t.Errorf("%q fits, and Beginning(%q) is false", text, text[:i])
			}
		}
	}
}

func TestBeginning(t *testing.T) {
	s := compile(t, Pattern{Expr: `show (?:me )?tickets?\.?`}, Pattern{Expr: `list`})
	for text, want := range map[string]bool{"": true, "show": true, "show me ": true, "show them": false, "x": false, "show tickets.": true, "show tickets. ": false, "list": true, "lists": false} {
		if got := s.Beginning(text); got != want {
			t.Errorf("Beginning(%q) = %v", text, got)
		}
	}
}

func TestOccurring(t *testing.T) {
	s := compile(t, Pattern{Expr: `(?s)a.{0,9}b.{0,9}c`}, Pattern{Expr: `x{6,}`}, Pattern{Expr: `\bz$`}, Pattern{Expr: `.+f.+g`})
	for text, want := range map[string][]int{
		"": nil, "a": nil, "abc": {0}, "a12345678901b12c ab c": {0}, "a12345678901bc": nil, "xxxxx": nil, "xxxxxxx": {1}, "z": {2}, "z ": nil,
		"a b xxxxxxxxx c z": {1, 2},
		// A match that begins with a gap begins before the first thing that it names.
		"-f-g": {3}, "  -f-g": {3}, "f-g": nil, "f-f-g": {3}, "--f g": {3},
	} {
		if got := s.Occurring(text); !slices.Equal(got, want) {
			t.Errorf("Occurring(%q) = %v, want %v", text, got, want)
		}
	}
}

// What is known of a match where the text ends for now.
func TestUnfinished(t *testing.T) {
	tests := []struct {
		name, expr, text string
		want             []Match
		open             int
	}{
		{"nothing live", `abc`, "xyz", nil, 3},
		{"a beginning", `abc`, "xyab", nil, 2},
		{"complete", `abc`, "xabc", []Match{{0, 1, 4}}, 4},
		{"may grow", `abc*`, "xab", nil, 1},
		{"may not grow", `abc*`, "xabcy", []Match{{0, 1, 4}}, 5},
		{"boundary unknown", `abc\b`, "xabc", nil, 1},
		{"boundary known", `abc\b`, "xabc ", []Match{{0, 1, 4}}, 5},
		{"no boundary", `abc\b`, "xabcd", nil, 5},
		{"an earlier one may win", `ab.*x|b`, "zab", nil, 1},
		{"the first branch wins", `b|bc`, "ab", []Match{{0, 1, 2}}, 2},
		{"end of text unknown", `ab$`, "ab", nil, 0},
		{"boundary or not", `a\b|a`, "xa", []Match{{0, 1, 2}}, 2},
		{"never", `a\bb`, "xa", nil, 2},
		{"half a character", `é`, "xé"[:2], nil, 1},
		{"no character", `\x{FFFD}`, "x\xff", []Match{{0, 1, 2}}, 2},
	}
	for _, tt := range tests {
		got, open := one(t, tt.expr).Scanner().Scan(tt.text, false)
		if !slices.Equal(got, tt.want) || open != tt.open {
			t.Errorf("%s: %s on %q = %v, %d, want %v, %d", tt.name, tt.expr, tt.text, got, open, tt.want, tt.open)
		}
	}
}

func TestReset(t *testing.T) {
	s := compile(t, Pattern{Expr: `\bab`}, Pattern{Expr: `b+`})
	c := s.Scanner()
	for range 2 {
		c.Reset("xab", 1)
		if got, open := c.Scan("xab", false); len(got) != 0 || open != 2 {
			t.Errorf("behind a word: %v, %d", got, open)
		}
		c.Reset(" abbbb", 1)
		c.From(1, 4)
		if got, _ := c.Scan(" abbbb", true); !slices.Equal(got, []Match{{0, 1, 3}, {1, 4, 6}}) {
			t.Errorf("From: %v", got)
		}
		c.Reset(" abbbb", 1)
		c.From(1, 5)
		if got, _ := c.Scan(" abb", false); !slices.Equal(got, []Match{{0, 1, 3}}) {
			t.Errorf("From beyond the text: %v", got)
		}
		if got, _ := c.Scan(" abbbbb", true); !slices.Equal(got, []Match{{1, 5, 7}}) {
			t.Errorf("From within the text: %v", got)
		}
	}
}

// FuzzWiden looks for an expression whose widened form means something else.
func FuzzWiden(f *testing.F) {
	for _, s := range []string{`\s`, `[\s]`, `[^\S]`, `\Q\d`, `[[:alpha:]\d]`, `[]\w]`, `\\s`, `[a\]\s]`, `\pL\s`, `(?i)[\W]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if len(expr) > 200 {
			t.Skip()
		}
		p, err := Compile([]Pattern{{Expr: expr, Bound: Unbounded}}, Options{})
		if err != nil {
			return
		}
		std, err := regexp.Compile(expr)
		if err != nil {
			t.Fatalf("%q: accepted, the library says %v", expr, err)
		}
		for _, text := range []string{"a b", "s", "d9", "w_", `\s]`, "-:^"} {
			if got, want := p.matches(text), std.MatchString(text); got != want {
				t.Fatalf("%q on %q = %v, the library says %v", expr, text, got, want)
			}
		}
	})
}
