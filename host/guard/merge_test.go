package guard

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/abi"
)

// says is a guard that masks and cuts literals and is sure of each at once, or
// only at the end of the text when late.
type says struct {
	mask map[string]string // literal, label
	cut  string
	late bool
}

func (s says) fake(notice string) *fake {
	edits := func(text string) []abi.Edit {
		var list []abi.Edit
		for literal, label := range s.mask {
			if i := strings.Index(text, literal); i >= 0 {
				list = append(list, abi.Edit{Start: i, End: i + len(literal), Replace: "<" + label + ">", Label: label})
			}
		}
		return list
	}
	cut := func(text string) (abi.Cut, bool) {
		i := strings.Index(text, s.cut)
		return abi.Cut{At: i, Notice: notice, Label: "secret:0"}, s.cut != "" && i >= 0
	}
	return &fake{edits: edits, cut: cut, reply: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
		if !q.Final && s.late {
			return &abi.CheckOutputReply{}
		}
		r := &abi.CheckOutputReply{HoldFrom: len(q.Text), Edits: edits(q.Text)}
		if c, ok := cut(q.Text); ok {
			r.Cut = &c
		}
		return r
	}}
}

func mask(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// DECISIONS 2, merge rules 1 to 3, one by one.
func TestMergeRules(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		guards           []says
	}{
		{"1: an edit that starts before the last kept end is dropped", "abcd", "<X>d",
			[]says{{mask: mask("bc", "Y")}, {mask: mask("abc", "X")}}},
		{"1: the longest of those that start together", "abcd", "<X>d",
			[]says{{mask: mask("ab", "Y")}, {mask: mask("abc", "X")}}},
		{"1: chain order between equal spans", "abcd", "<X>d",
			[]says{{mask: mask("abc", "X")}, {mask: mask("abc", "Y")}}},
		{"1: an edit behind a dropped one is kept", "abcdef", "<X><Z>f",
			[]says{{mask: mask("abc", "X", "de", "Z")}, {mask: mask("cd", "Y")}}},
		{"1: edits that touch are both kept", "abcd", "<X><Y>",
			[]says{{mask: mask("ab", "X")}, {mask: mask("cd", "Y")}}},
		{"2: the smallest cut", "abcd", "a[1]",
			[]says{{cut: "c"}, {cut: "b"}}},
		{"2: ties go to the first in the chain", "abcd", "ab[0]",
			[]says{{cut: "cd"}, {cut: "c"}}},
		{"2: ties go to the first in the chain, though it decides later", "abcd", "ab[0]",
			[]says{{cut: "cd", late: true}, {cut: "c"}}},
		{"2: a guard that decides later may cut earlier", "abcd", "a[0]",
			[]says{{cut: "bc", late: true}, {cut: "c"}}},
		{"3: an edit over the cut is applied whole", "abcd", "a<X>[0]",
			[]says{{cut: "c"}, {mask: mask("bcd", "X")}}},
		{"3: edits from the cut on are dropped", "abcd", "<Y>[0]",
			[]says{{cut: "c"}, {mask: mask("cd", "X", "ab", "Y")}}},
		{"3: a cut at the start", "abcd", "[0]", []says{{cut: "a"}}},
		{"no guard changes anything", "abcd", "abcd", []says{{}, {}}},
		{"an edit may delete", "abcd", "ad", []says{{mask: mask("bc", "X")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var guards []Guard
			for i, s := range c.guards {
				f := s.fake("[" + string(rune('0'+i)) + "]")
				if c.name == "an edit may delete" {
					f = deleting(f)
				}
				guards = append(guards, named(f, "g"+string(rune('0'+i))).guard())
			}
			chain := must(New(guards, Options{}))
			drive(t, chain, []string{c.text}, c.want)
		})
	}
}

func deleting(f *fake) *fake {
	inner := f.reply
	f.reply = func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
		r := inner(q)
		for i := range r.Edits {
			r.Edits[i].Replace = ""
		}
		return r
	}
	return f
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A cut that ties with another, or with the length limit, may not depend on who
// was sure first. Each of these was chosen to need one particular rule.
func TestPromiseOnTies(t *testing.T) {
	first := func() []*fake {
		return []*fake{named(secretCut(1, "[one]", "€123"), "one"), named(secretCut(0, "[zero]", "€12"), "zero")}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, text := range []string{"a€123", "a€12", "a€124", "a€12 b", "€123€123"} {
		for limit := 1; limit < 8; limit++ {
			prove(t, r, first(), text, limit)
			fs := first()
			fs[0], fs[1] = fs[1], fs[0]
			prove(t, r, fs, text, limit)
		}
	}
}

// A guard's hold_from inside another's edit stops the release at the edit's
// start, and an edit that begins at hold_from is not applied yet.
func TestReleaseStopsBeforeAnEditThatReachesOver(t *testing.T) {
	m := merger{applied: func(edit) {}}
	m.add(edit{2, 6, 0, "<X>", "X"})
	for _, step := range []struct {
		to   int
		want string
	}{{1, "a"}, {4, "b"}, {5, ""}, {6, "<X>"}, {8, "gh"}} {
		if got := m.take("abcdefgh", step.to, false); got != step.want {
			t.Errorf("take to %d = %q, want %q", step.to, got, step.want)
		}
	}
}

// FAULTS S3: a guard that matches nothing leaves a stream as it is.
func TestStreamWithoutMatchIsByteIdentical(t *testing.T) {
	text := strings.Repeat("plain prose, é€😀 and \u2028 or \x00 {\"a\": [1, 2]}\r\n", 40)
	chain := chainOf(t, []*fake{
		named(windowMask(`never[0-9]{3}`, "N", 8), "n"), named(secretCut(0, "[zero]", "sekrit"), "s"),
	}, 100000)
	r := rand.New(rand.NewPCG(8, 8))
	for range 20 {
		drive(t, chain, randomSplit(r, text), text)
	}
	s := chain.Session(SessionOptions{Stamp: stamp, Release: func(string) {}})
	s.Sink().Push(text)
	if v := s.Sink().Finish(context.Background()); strings.Contains(string(v.Decision), `"modified":true`) {
		t.Errorf("decision %s, want nothing modified", v.Decision)
	}
}
