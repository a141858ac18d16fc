package match

import (
	"regexp"
	"strings"
	"testing"
)

func compile(t testing.TB, expr string) *Pattern {
	t.Helper()
	p, err := Compile(expr)
	if err != nil {
		t.Fatalf("Compile(%q): %v", expr, err)
	}
	return p
}

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
		if got := compile(t, tt.expr).Match(tt.text); got != tt.want {
			t.Errorf("%s on %q = %v, want %v", tt.expr, tt.text, got, tt.want)
		}
	}
}

// Clause 6.2: gaps count code points, not bytes.
func TestGapsCountCharacters(t *testing.T) {
	p := compile(t, `(?is)\ba\b.{0,3}\bb\b`)
	if !p.Match("a 日 b") {
		t.Error("a gap of three characters of which one takes three bytes does not match")
	}
	if p.Match("a 日日 b") {
		t.Error("a gap of four characters matches")
	}
	if !p.Match("A\n\nB") {
		t.Error("the dot does not match a newline under (?s)")
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, expr := range []string{`(`, `a)(b`, `[a`, `a{2,1}`, `x*`, `\b`, `^$`, `(a|)`, `(?=a)`, `a\1`, ``, `\`, `[\`, `(.{0,900}x){0,90}`, strings.Repeat("a{900}", 10)} {
		p, err := Compile(expr)
		if err == nil {
			t.Errorf("Compile(%q) = %v, want an error", expr, p)
		} else if strings.Contains(err.Error(), "regexp") || strings.Contains(err.Error(), `\x{`) {
			t.Errorf("Compile(%q): %v: quotes what the author never wrote", expr, err)
		}
	}
}

func TestMatchFull(t *testing.T) {
	p := compile(t, `a|ab|abc`)
	for text, want := range map[string]bool{"a": true, "ab": true, "abc": true, "abcd": false, "xa": false, "": false} {
		if got := p.MatchFull(text); got != want {
			t.Errorf("MatchFull(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestFindUnfinished(t *testing.T) {
	tests := []struct {
		name, expr, text string
		from             int
		want             Result
	}{
		{"nothing live", `abc`, "xyz", 0, Result{Open: 3}},
		{"a beginning", `abc`, "xyab", 0, Result{Open: 2}},
		{"complete", `abc`, "xabc", 0, Result{Found: true, Start: 1, End: 4, Open: 4}},
		{"may grow", `abc*`, "xab", 0, Result{Open: 1}},
		{"may not grow", `abc*`, "xabcy", 0, Result{Found: true, Start: 1, End: 4, Open: 5}},
		{"boundary unknown", `abc\b`, "xabc", 0, Result{Open: 1}},
		{"boundary known", `abc\b`, "xabc ", 0, Result{Found: true, Start: 1, End: 4, Open: 5}},
		{"no boundary", `abc\b`, "xabcd", 0, Result{Open: 5}},
		{"an earlier one may win", `ab.*x|b`, "zab", 0, Result{Open: 1}},
		{"the first branch wins", `b|bc`, "ab", 0, Result{Found: true, Start: 1, End: 2, Open: 2}},
		{"context", `\bb`, "ab", 1, Result{Open: 2}},
		{"end of text unknown", `ab$`, "ab", 0, Result{Open: 0}},
		{"begin is not from", `^b`, "ab", 1, Result{Open: 2}},
	}
	for _, tt := range tests {
		if got := compile(t, tt.expr).Find(tt.text, tt.from, false); got != tt.want {
			t.Errorf("%s: %s on %q = %+v, want %+v", tt.name, tt.expr, tt.text, got, tt.want)
		}
	}
}

func TestEarliestUnfinished(t *testing.T) {
	tests := []struct {
		expr, text string
		want       Result
	}{
		{`ab{3,}`, "xabbb", Result{Found: true, Start: 1, End: 5, Open: 5}},
		{`ab{3,}`, "xabb", Result{Open: 1}},
		{`a.{3}c|b`, "xab", Result{Open: 1}}, // the a may still win
		{`a.{3}c|b`, "xabzzzz", Result{Found: true, Start: 2, End: 3, Open: 7}},
		{`abc+|ab`, "ab", Result{Found: true, Start: 0, End: 2, Open: 2}},
	}
	for _, tt := range tests {
		if got := compile(t, tt.expr).Earliest(tt.text, 0, 0, false); got != tt.want {
			t.Errorf("%s on %q = %+v, want %+v", tt.expr, tt.text, got, tt.want)
		}
	}
}

// What is older than the floor hides nothing that began after it.
func TestEarliestFloor(t *testing.T) {
	p := compile(t, `a.*z|b`)
	for floor, want := range map[int]Result{
		0: {Open: 1},
		1: {Open: 1},
		2: {Found: true, Start: 4, End: 5, Open: 6},
		6: {Found: true, Start: 4, End: 5, Open: 6},
	} {
		if got := p.Earliest("xa  b ", 0, floor, false); got != want {
			t.Errorf("floor %d: %+v, want %+v", floor, got, want)
		}
	}
	if got, want := p.Earliest("xa   ", 0, 2, false), (Result{Open: 5}); got != want {
		t.Errorf("nothing but what is too old: %+v, want %+v", got, want)
	}
}

func TestAll(t *testing.T) {
	var got []string
	text := "one twenty three"
	compile(t, `t\w+`).All(text, func(start, end int) bool {
		got = append(got, text[start:end])
		return true
	})
	if strings.Join(got, "|") != "twenty|three" {
		t.Errorf("All = %q", got)
	}
}

// seeds are expressions and texts that meet every kind of instruction.
var seeds = [][2]string{
	{`a+b|ab`, "aab ab"}, {`\bfoo\b`, "foo food xfoo foo"}, {`(?i)api[_-]?key\s*[:=]\s*["']?[a-z0-9]{8,}`, `API_KEY = "abcdefgh1"`},
	{`(?is)a.{0,5}b.{0,4}c`, "a\nb   c a b c"}, {`(?m)^x.*$`, "y\nxab\nz"}, {`(a|ab)(c|bcd)(d*)`, "abcd"},
	{`a*?b`, "aaab"}, {`(?U)a+`, "aaa"}, {`\Ba\B`, "xay a"}, {`[^a]b`, "ab cb éb"}, {`x{2,4}?y?`, "xxxxy"}, {`\Aab|b\z`, "abb"},
}

// FuzzFind holds Find against the standard library, and an unfinished search
// against the finished one, at every cut.
func FuzzFind(f *testing.F) {
	for _, s := range seeds {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 60 || len(text) > 60 || !ascii(expr) || !ascii(text) || strings.Contains(text, "\v") {
			t.Skip()
		}
		std, err := regexp.Compile(expr)
		if err != nil {
			if _, ours := Compile(expr); ours == nil {
				t.Fatalf("%q: accepted, the library says %v", expr, err)
			}
			return
		}
		p, err := Compile(expr)
		if err != nil {
			return
		}
		var want Result
		want.Open = len(text)
		if loc := std.FindStringIndex(text); loc != nil {
			want = Result{true, loc[0], loc[1], len(text)}
		}
		if got := p.Find(text, 0, true); got != want {
			t.Fatalf("%q on %q: %+v, the library says %+v", expr, text, got, want)
		}
		if got := p.Match(text); got != want.Found {
			t.Fatalf("%q on %q: Match = %v", expr, text, got)
		}
		if got, want := p.MatchFull(text), fullMatch(expr, text); got != want && !strings.Contains(expr, `\Q`) {
			t.Fatalf("%q on %q: MatchFull = %v, want %v", expr, text, got, want)
		}
		checkCuts(t, p, text, want)
	})
}

func fullMatch(expr, text string) bool {
	re, err := regexp.Compile(`\A(?:` + expr + `)\z`)
	return err == nil && re.MatchString(text)
}

func checkCuts(t *testing.T, p *Pattern, text string, want Result) {
	t.Helper()
	early := p.Earliest(text, 0, 0, true)
	if early.Found != want.Found || early.Start != want.Start {
		t.Fatalf("Earliest = %+v, Find = %+v", early, want)
	}
	for cut := range len(text) + 1 {
		got := p.Find(text[:cut], 0, false)
		if got.Found && (got.Start != want.Start || got.End != want.End || !want.Found) {
			t.Fatalf("cut at %d of %q decides %+v, the whole says %+v", cut, text, got, want)
		}
		if !got.Found && want.Found && got.Open > want.Start {
			t.Fatalf("cut at %d of %q is open from %d, the whole says %+v", cut, text, got.Open, want)
		}
		got = p.Earliest(text[:cut], 0, 0, false)
		if got.Found && (!want.Found || got.Start != want.Start) {
			t.Fatalf("cut at %d of %q decides the start %+v, the whole says %+v", cut, text, got, want)
		}
		if !got.Found && want.Found && got.Open > want.Start {
			t.Fatalf("cut at %d of %q: start open from %d, the whole says %+v", cut, text, got.Open, want)
		}
	}
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
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
		p, err := Compile(expr)
		if err != nil {
			return
		}
		std, err := regexp.Compile(expr)
		if err != nil {
			t.Fatalf("%q: accepted, the library says %v", expr, err)
		}
		for _, text := range []string{"a b", "s", "d9", "w_", `\s]`, "-:^"} {
			if got, want := p.Match(text), std.MatchString(text); got != want {
				t.Fatalf("%q on %q = %v, the library says %v", expr, text, got, want)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	gap := compile(b, `(?is)\b(?:give|show|tell|explain|help)\b.{0,80}\b(?:method|plan|how\s+to)\b.{0,160}\b(?:commit|abuse)\b.{0,160}\b(?:refund\s+fraud|loss\s+prevention)\b`)
	for name, text := range map[string]string{
		"prose": strings.Repeat("The parcel was delivered to the wrong address, and support sent another one. ", 14),
		"worst": strings.Repeat("show plan abuse ", 64),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				gap.Match(text)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	const expr = `(?is)\b(?:give|show|tell|explain|help)\b.{0,80}\b(?:method|plan|how\s+to)\b.{0,160}\b(?:commit|abuse)\b.{0,160}\b(?:refund\s+fraud|loss\s+prevention)\b`
	for b.Loop() {
		compile(b, expr)
	}
}
