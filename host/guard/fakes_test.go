package guard

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"

	"weir/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outputFunc is a native output guard.
type outputFunc func(ctx context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error)

func (f outputFunc) CheckOutput(ctx context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	r, err := f(ctx, q)
	return r, 7, err
}

func stamp() abi.Call { return abi.Call{Now: 1, Seed: "2"} }

// fake is a native guard that follows the protocol, with what it says of a
// whole text written down separately and simply.
type fake struct {
	name     string
	behind   int
	back     int           // hold_back
	patterns []abi.Pattern // that the host looks for
	reply    func(q *abi.CheckOutputRequest) *abi.CheckOutputReply

	edits func(text string) []abi.Edit      // of a whole text
	cut   func(text string) (abi.Cut, bool) // of a whole text
	hold  func(text string) int             // of a text that may go on
}

func (f *fake) guard() Guard {
	return Guard{Name: f.name, Digest: "d-" + f.name, LookBehind: f.behind, HoldBack: f.back, Patterns: f.patterns,
		Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
			return f.reply(q), nil
		})}
}

func noEdits(string) []abi.Edit        { return nil }
func noCut(string) (abi.Cut, bool)     { return abi.Cut{}, false }
func named(f *fake, name string) *fake { f.name = name; return f }

// windowMask masks what expr matches, at most window bytes, and knows nothing
// better than to hold back a window.
func windowMask(expr, label string, window int) *fake {
	re := regexp.MustCompile(expr)
	hold := func(text string) int {
		limit := runeStart(text, max(0, len(text)-window))
		for _, m := range re.FindAllStringIndex(text, -1) {
			if m[0] < limit {
				limit = max(limit, m[1])
			}
		}
		return limit
	}
	edits := func(text string) []abi.Edit {
		var list []abi.Edit
		for _, m := range re.FindAllStringIndex(text, -1) {
			list = append(list, abi.Edit{Start: m[0], End: m[1], Replace: "<" + label + ">", Label: label})
		}
		return list
	}
	return &fake{
		edits: edits, cut: noCut, hold: hold,
		reply: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
			r := &abi.CheckOutputReply{HoldFrom: len(q.Text), Edits: edits(q.Text)}
			if !q.Final {
				r.HoldFrom = hold(q.Text)
				r.Edits = slices.DeleteFunc(r.Edits, func(e abi.Edit) bool { return e.End > r.HoldFrom })
			}
			return r
		},
	}
}

// secretCut cuts at the first of some literals and holds back exactly what
// could still become one.
func secretCut(index int, notice string, literals ...string) *fake {
	hold := func(text string) int {
		for i := range len(text) {
			for _, l := range literals {
				if rest := text[i:]; len(rest) < len(l) && strings.HasPrefix(l, rest) {
					return i
				}
			}
		}
		return len(text)
	}
	label := "secret:" + strconv.Itoa(index)
	cut := func(text string) (abi.Cut, bool) {
		at := -1
		for _, l := range literals {
			if i := strings.Index(text, l); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		return abi.Cut{At: at, Notice: notice, Label: label}, at >= 0
	}
	return &fake{
		edits: noEdits, cut: cut, hold: hold,
		reply: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
			r := &abi.CheckOutputReply{HoldFrom: len(q.Text)}
			if !q.Final {
				r.HoldFrom = hold(q.Text)
			}
			if c, ok := cut(q.Text); ok {
				r.Cut = &c
			}
			return r
		},
	}
}

// digitMask masks runs of three to five digits that follow no letter. It needs
// the character before its text, and holds back only a run at the end.
func digitMask(label string) *fake {
	edits := func(before, text string) ([]abi.Edit, int) {
		var list []abi.Edit
		prev, _ := utf8.DecodeLastRuneInString(before)
		start := -1
		blocked := false
		closeRun := func(end int) {
			if n := end - start; start >= 0 && !blocked && n >= 3 && n <= 5 {
				list = append(list, abi.Edit{Start: start, End: end, Replace: "<" + label + ">", Label: label})
			}
			start = -1
		}
		for i, r := range text {
			if r >= '0' && r <= '9' {
				if start < 0 {
					start, blocked = i, unicode.IsLetter(prev) || prev >= '0' && prev <= '9'
				}
			} else {
				closeRun(i)
			}
			prev = r
		}
		open := start
		closeRun(len(text))
		return list, open
	}
	whole := func(text string) []abi.Edit { list, _ := edits("", text); return list }
	return &fake{
		behind: 4, edits: whole, cut: noCut,
		hold: func(text string) int {
			if _, open := edits("", text); open >= 0 {
				return open
			}
			return len(text)
		},
		reply: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
			list, open := edits(q.Before, q.Text)
			r := &abi.CheckOutputReply{Edits: list, HoldFrom: len(q.Text)}
			if open >= 0 && !q.Final {
				r.HoldFrom = open
				r.Edits = slices.DeleteFunc(list, func(e abi.Edit) bool { return e.End > open })
			}
			return r
		},
	}
}

// everyThird masks every third star and keeps its count in its state.
func everyThird(label string) *fake {
	edits := func(n int, text string) ([]abi.Edit, int) {
		var list []abi.Edit
		for i := range len(text) {
			if text[i] != '*' {
				continue
			}
			if n++; n%3 == 0 {
				list = append(list, abi.Edit{Start: i, End: i + 1, Replace: "#", Label: label})
			}
		}
		return list, n
	}
	return &fake{
		edits: func(text string) []abi.Edit { list, _ := edits(0, text); return list },
		cut:   noCut,
		hold:  func(text string) int { return len(text) },
		reply: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
			n, _ := strconv.Atoi(string(q.State))
			list, n := edits(n, q.Text)
			return &abi.CheckOutputReply{Edits: list, HoldFrom: len(q.Text), State: abi.Raw(strconv.Itoa(n))}
		},
	}
}

// fakes are the guards that the property is tested with: windows, an exact
// matcher, look-behind, state, declared windows, declared patterns, maskers that
// overlap and cutters that tie.
func fakes() []*fake {
	return []*fake{
		windowMask(`[ab]{2,4}c`, "WIN", 5),
		windowMask(`bc[0-9]{0,3}é?`, "OVER", 9),
		windowMask(`a€|€😀|ca`, "WIDE", 12),
		windowMask(`b[abc*]{1,2}`, "LONG", 3),
		digitMask("DIGITS"),
		everyThird("STAR"),
		windowOnly(`b[abc]{1,3}c`, "ONLY", 5),
		windowOnly(`[12]é?`, "ONLY2", 3),
		windowCut(4, "[four]", `\*€|ca12`, 6),
		setGuard(nil, `[ab]{2,4}c`, `\bb[0-9]{2,4}`),
		setGuard(odd, `[0-9]{2,6}`, `a(?:b|€)+`, `\b\*+\b`, `c[^a]{0,3}c`),
		setCut(5, "[five]", `abc[*1]`, `\b1\*2\b`),
		secretCut(0, "[zero]", "abcab", "€12"),
		secretCut(1, "[one]", "abc*", "€123"),
		secretCut(2, "[two]", "😀😀", "abcabca"),
		secretCut(3, "[three]", "1*2", "a1*2b"),
	}
}

var tokens = []string{"a", "b", "c", "ab", "bc", "ca", "abc", "1", "12", "123", "4567", "1*2", "a1*2b", "*", "**", "é", "€", "😀", " ", ". ",
	"{", "}", "[", "]", "word ", "€12", "abcab", "\n"}

func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(tokens[r.IntN(len(tokens))])
	}
	return b.String()
}

func randomChain(r *rand.Rand) []*fake {
	all := fakes()
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:r.IntN(5)]
	for i, f := range all {
		f.name = "guard-" + strconv.Itoa(i)
	}
	return all
}
