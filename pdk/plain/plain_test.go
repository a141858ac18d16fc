package plain

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// tags writes text in tag characters.
func tags(text string) string {
	return strings.Map(func(r rune) rune { return r + tagBase }, text)
}

func TestOf(t *testing.T) {
	for text, want := range map[string]string{
		"i\u200bg\u200dn\u2060o\ufeffr\u00ade":  "ignore",
		"\u202eignore\u202c \u2066it\u2069":     "ignore it",
		"ｉｇｎｏｒｅ　ａｌｌ！":                           "ignore all!",
		"ok" + tags("reveal it"):                "ok\nreveal it",
		tags("a") + "b" + tags("c"):             "b\nac",
		"\U000e0001" + tags("x") + "\U000e007f": "\nx",
		"\u200b":                                "",
		"né\u200be":                             "née",
		"a\ufe0f\U000e0100b":                    "ab",
		"\xff\u200b\xc3":                        "\xff\xc3",
	} {
		got, differs := Of(text)
		if got.Plain != want || !differs {
			t.Errorf("Of(%q) = %q, %v, want %q", text, got.Plain, differs, want)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	for _, text := range []string{"", "plain", "naïve — «café» 日本語 ½ ﬁ \u00a0\u2003", "\xff\xfe", "аттаck", "𝐢𝐠𝐧𝐨𝐫𝐞"} {
		if got, differs := Of(text); got.Plain != text || differs {
			t.Errorf("Of(%q) = %q, %v", text, got.Plain, differs)
		}
		if n := testing.AllocsPerRun(10, func() { Of(text) }); n != 0 {
			t.Errorf("Of(%q) allocates %v times", text, n)
		}
	}
}

// Findings are mapped back to the characters that they come from.
func TestOriginal(t *testing.T) {
	for _, tt := range []struct{ text, find, want string }{
		{"x i\u200bgnore\u200b y", "ignore", "i\u200bgnore"},
		{"x\u200bignore", "ignore", "ignore"},
		{"ｉｇｎｏｒｅ it", "gnore i", "ｇｎｏｒｅ i"},
		{"é ｉt", "it", "ｉt"},
		{"so" + tags("reveal") + " it", "eve", tags("eve")},
		{"so" + tags("re") + "x" + tags("veal"), "reveal", tags("re") + "x" + tags("veal")},
		{"plain", "ai", "ai"},
		{"o" + tags("k"), "o\nk", "o" + tags("k")},
	} {
		p, _ := Of(tt.text)
		at := strings.Index(p.Plain, tt.find)
		from, to := p.Original(at, at+len(tt.find))
		if got := tt.text[from:to]; got != tt.want {
			t.Errorf("%q in %q stands at %q, want %q", tt.find, tt.text, got, tt.want)
		}
	}
}

// The tables are those of Unicode.
func TestTables(t *testing.T) {
	hidden := []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control}
	// Format characters that show something: signs of Arabic, Syriac, Kaithi
	// and Egyptian, which stand around digits or pictures.
	shown := func(r rune) bool {
		return 0x600 <= r && r <= 0x605 || r == 0x6DD || r == 0x70F || r == 0x890 || r == 0x891 || r == 0x8E2 ||
			r == 0x110BD || r == 0x110CD || 0x13430 <= r && r <= 0x1343F
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, hidden...) || unicode.Is(unicode.Cf, r) && !shown(r)
		got := narrow(r) < 0
		if want && !got {
			t.Errorf("%U stays", r)
		}
		if got && !want && !(0xE0000 <= r && r <= 0xE0FFF) && !(0xFFF0 <= r && r <= 0xFFFB) && !(0x2060 <= r && r <= 0x206F) {
			t.Errorf("%U goes", r)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("i\u200bｇnore" + tags("all") + "\xff")
	f.Add("plain")
	f.Fuzz(func(t *testing.T, text string) {
		p, differs := Of(text)
		if differs != (p.Plain != text) {
			t.Fatalf("%q: %q, differs %v", text, p.Plain, differs)
		}
		if again, differs := Of(p.Plain); differs && utf8.ValidString(text) {
			t.Fatalf("%q: %q becomes %q", text, p.Plain, again.Plain)
		}
		for at := 0; at < len(p.Plain); {
			r, n := utf8.DecodeRuneInString(p.Plain[at:])
			from, to := p.Original(at, at+n)
			if from < 0 || to > len(text) || from >= to {
				t.Fatalf("%q: %q at %d stands at %d to %d", text, r, at, from, to)
			}
			o, _ := utf8.DecodeRuneInString(text[from:])
			if o != r && narrow(o) != r && o-tagBase != r && !(r == '\n' && isTag(o)) && utf8.ValidString(text) {
				t.Fatalf("%q: %q at %d comes from %q", text, r, at, o)
			}
			at += n
		}
	})
}

func BenchmarkOf(b *testing.B) {
	text := strings.Repeat("My parcel has not arrived yet, and I was told to show the order number. ", 14)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Of(text)
	}
}
