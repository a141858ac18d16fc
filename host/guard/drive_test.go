package guard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/match"
)

// windowOnly masks what expr matches in whatever it is shown, and knows nothing
// of hold_from, of final and of state.
func windowOnly(expr, label string, back int) *fake {
	re := regexp.MustCompile(expr)
	edits := func(text string) []abi.Edit {
		var list []abi.Edit
		for _, m := range re.FindAllStringIndex(text, -1) {
			list = append(list, abi.Edit{Start: m[0], End: m[1], Replace: "<" + label + ">", Label: label})
		}
		return list
	}
	return &fake{
		back: back, edits: edits, cut: noCut,
		hold: func(text string) int { return (&window{bytes: back}).hold(text, edits(text)) },
		reply: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
			return &abi.CheckOutputReply{Edits: edits(q.Text), HoldFrom: 1 << 40, State: abi.Raw(`"ignored"`)}
		},
	}
}

// windowCut cuts at the first match of expr.
func windowCut(index int, notice, expr string, back int) *fake {
	re := regexp.MustCompile(expr)
	cut := func(text string) (abi.Cut, bool) {
		m := re.FindStringIndex(text)
		if m == nil {
			return abi.Cut{}, false
		}
		return abi.Cut{At: m[0], Notice: notice, Label: "secret:" + strconv.Itoa(index)}, true
	}
	return &fake{
		back: back, edits: noEdits, cut: cut,
		hold: func(text string) int { return (&window{bytes: back}).hold(text, nil) },
		reply: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
			r := &abi.CheckOutputReply{}
			if c, ok := cut(q.Text); ok {
				r.Cut = &c
			}
			return r
		},
	}
}

// odd is a validator: it refuses matches of an even number of bytes.
func odd(match string) bool { return len(match)%2 == 1 }

func patternsOf(exprs []string) (list []match.Pattern, declared []abi.Pattern) {
	for i, e := range exprs {
		id := strconv.Itoa(i)
		list = append(list, match.Pattern{ID: id, Expr: e, Bound: 4})
		declared = append(declared, abi.Pattern{ID: id, Expr: e, Bound: 4})
	}
	return list, declared
}

// setGuard masks what its patterns match and valid confirms. A match that is
// refused is consumed: no other of its pattern begins inside it. So its state is
// where each pattern goes on, as that of any such guard must be.
func setGuard(valid func(string) bool, exprs ...string) *fake {
	list, declared := patternsOf(exprs)
	set := must(match.Compile(list, match.Options{}))
	reply := func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
		joined, base := q.Before+q.Text, len(q.Before)
		resume := offsets(q.State, len(list))
		s := set.Scanner()
		s.Reset(joined, base)
		for i, at := range resume {
			s.From(i, int(at-q.StreamPos)+base)
		}
		found, open := s.Scan(joined, q.Final)
		r := &abi.CheckOutputReply{}
		hold, end := open, 0
		for _, m := range found {
			if m.Start >= hold {
				break
			}
			if valid != nil && !valid(joined[m.Start:m.End]) {
				resume[m.Pattern] = max(resume[m.Pattern], q.StreamPos+int64(m.End-base))
				continue
			}
			if m.Start < end {
				continue
			}
			if m.End > hold {
				hold = m.Start
				break
			}
			end = m.End
			r.Edits = append(r.Edits, abi.Edit{Start: m.Start - base, End: m.End - base,
				Replace: "<" + strconv.Itoa(m.Pattern) + ">", Label: "SET"})
		}
		r.HoldFrom = hold - base
		if !q.Final {
			r.State = stateOf(resume, q.StreamPos+int64(r.HoldFrom))
		}
		return r
	}
	whole := func(text string) []abi.Edit { return reply(&abi.CheckOutputRequest{Text: text, Final: true}).Edits }
	return &fake{
		behind: 4, patterns: declared, reply: reply, cut: noCut, edits: whole,
		hold: func(text string) int { return reply(&abi.CheckOutputRequest{Text: text}).HoldFrom },
	}
}

func offsets(state abi.Raw, n int) []int64 {
	list := make([]int64, 0, n)
	d := strictjson.NewDecoder(state)
	if len(state) > 0 {
		_ = d.Array(func() error { v, err := d.Int(); list = append(list, v); return err })
	}
	return append(list, make([]int64, n-len(list))...)
}

// stateOf keeps the offsets that lie behind hold, and is nothing when none does.
func stateOf(resume []int64, hold int64) abi.Raw {
	if !slices.ContainsFunc(resume, func(at int64) bool { return at > hold }) {
		return nil
	}
	var parts []string
	for _, at := range resume {
		parts = append(parts, strconv.FormatInt(at, 10))
	}
	return abi.Raw("[" + strings.Join(parts, ",") + "]")
}

// setCut cuts at the first match of its patterns.
func setCut(index int, notice string, exprs ...string) *fake {
	list, declared := patternsOf(exprs)
	set := must(match.Compile(list, match.Options{}))
	reply := func(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
		s := set.Scanner()
		s.Reset(q.Before+q.Text, len(q.Before))
		found, open := s.Scan(q.Before+q.Text, q.Final)
		r := &abi.CheckOutputReply{HoldFrom: open - len(q.Before)}
		if len(found) > 0 && found[0].Start < open {
			r.Cut = &abi.Cut{At: found[0].Start - len(q.Before), Notice: notice, Label: "secret:" + strconv.Itoa(index)}
		}
		return r
	}
	return &fake{
		behind: 4, patterns: declared, reply: reply, edits: noEdits,
		cut: func(text string) (abi.Cut, bool) {
			r := reply(&abi.CheckOutputRequest{Text: text, Final: true})
			if r.Cut == nil {
				return abi.Cut{}, false
			}
			return *r.Cut, true
		},
		hold: func(text string) int { return reply(&abi.CheckOutputRequest{Text: text}).HoldFrom },
	}
}

// What comes out of a chain, fragment by fragment, with who was called how often.
type outcomeOf struct {
	Released []string
	Cut      bool
	calls    int
}

func watch(t *testing.T, c *Chain, pieces []string) outcomeOf {
	t.Helper()
	r := &recorder{}
	var o outcomeOf
	var since strings.Builder
	s := c.Session(SessionOptions{Stamp: stamp, Observer: r, Release: func(text string) { since.WriteString(text) }})
	for _, p := range pieces {
		s.Sink().Push(p)
		if err := s.Sink().Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.Released = append(o.Released, since.String())
		since.Reset()
	}
	v := s.Sink().Finish(t.Context())
	o.Released, o.Cut = append(o.Released, since.String()), v.Cut
	for _, v := range r.verdicts {
		o.calls += v.Calls
	}
	return o
}

// A guard that declares its patterns is called only where one stands, and what
// is released after every piece is what calling it always gives: the native
// hold position is the guard's own.
func TestNativeEqualsCallingAlways(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 4))
	n := 400
	if testing.Short() {
		n = 100
	}
	saved := 0
	for range n {
		var native, always []Guard
		for i, f := range []*fake{
			setGuard(nil, `[ab]{2,4}c`, `\bb[0-9]{2,4}`), setGuard(odd, `[0-9]{2,6}`, `a(?:b|€)+`, `c[^a]{0,3}c`),
			setCut(5, "[five]", `abc[*1]`, `\b1\*2\b`),
		} {
			g := named(f, strconv.Itoa(i)).guard()
			native = append(native, g)
			g.Patterns = nil
			always = append(always, g)
		}
		pieces := strings.SplitAfter(randomText(r, 25), "")
		if r.IntN(2) == 0 {
			pieces = randomSplit(r, strings.Join(pieces, ""))
		}
		a, b := watch(t, must(New(native, Options{})), pieces), watch(t, must(New(always, Options{})), pieces)
		if diff := cmp.Diff(b.Released, a.Released); diff != "" || a.Cut != b.Cut {
			t.Fatalf("%q: native differs from always (-always +native):\n%s", pieces, diff)
		}
		if a.calls > b.calls {
			t.Errorf("%q: %d calls, always %d", pieces, a.calls, b.calls)
		}
		saved += b.calls - a.calls
	}
	if saved == 0 {
		t.Error("no call was saved")
	}
}

// Clean text costs no call: not while it streams, not at its end, not as a
// display. A match costs one.
func TestCleanTextCostsNoCall(t *testing.T) {
	g := named(setGuard(nil, `\b[0-9]{4,8}\b`, `[a-z]{1,20}@[a-z]{1,20}`), "g").guard()
	inner := g.Output
	var calls []string
	g.Output = outputFunc(func(ctx context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		calls = append(calls, q.Text)
		if q.Use == abi.UseDisplay {
			return &abi.CheckOutputReply{}, nil
		}
		r, _, err := inner.CheckOutput(ctx, q)
		return r, err
	})
	chain := must(New([]Guard{g}, Options{}))
	text := strings.Repeat("Ticket TKT-101 from 12 May is open, 350.00 EUR; é€😀. ", 30)
	if o := watch(t, chain, strings.SplitAfter(text, "")); strings.Join(o.Released, "") != text || o.calls != 0 || len(calls) > 0 {
		t.Errorf("%d calls with %q", len(calls), calls)
	}
	s := chain.Session(SessionOptions{Stamp: stamp})
	s.Display(t.Context(), abi.Raw(`{"a":"clean","b":["12",{"c":"é"}]}`))
	if len(calls) > 0 {
		t.Errorf("a clean display calls with %q", calls)
	}
	s.Display(t.Context(), abi.Raw(`{"a":"clean","b":["12",{"c":"1234"}]}`))
	if len(calls) != 1 {
		t.Errorf("a display with a match makes %d calls", len(calls))
	}
	calls = nil
	watch(t, chain, strings.SplitAfter("pay 12345 now, or 12345", ""))
	if diff := cmp.Diff([]string{"12345 ", "12345"}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A guard with a state is called always: what it remembers is its own affair.
func TestNativeLeavesStateToTheGuard(t *testing.T) {
	var states []string
	g := Guard{Name: "g", LookBehind: 4, Patterns: []abi.Pattern{{ID: "x", Expr: "x"}},
		Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
			states = append(states, q.Text+string(q.State))
			r := passing(q)
			if strings.Contains(q.Text, "x") {
				r.State = abi.Raw(`1`)
			}
			return r, nil
		})}
	watch(t, must(New([]Guard{g}, Options{})), []string{"a", "x", "b", "c"})
	if diff := cmp.Diff([]string{"x", "b1"}, states); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// abi.CheckOutputRequest: a guard that asked gets the matches, counted from its
// text, and what is still open; not with a state, and no other guard does.
func TestMatchesAreSent(t *testing.T) {
	for asked, want := range map[bool][]string{
		true:  {"+1 x+: [1 1 5] open 6", "2 [] open 0", "3 [] open 0", " [] open 0"},
		false: {"+1 x+: [] open 0", "2 [] open 0", "3 [] open 0", " [] open 0"},
	} {
		var calls []string
		g := Guard{Name: "g", LookBehind: 4, SendMatches: asked,
			Patterns: []abi.Pattern{{ID: "q", Expr: "q"}, {ID: "x", Expr: `1 x\+`}},
			Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
				calls = append(calls, fmt.Sprintf("%s %v open %d", q.Text, q.Matches, q.Open))
				r := passing(q)
				r.State = abi.Raw(`1`)
				return r, nil
			})}
		watch(t, must(New([]Guard{g}, Options{})), []string{"clean ", "é", "+1 x+:", "2", "3"})
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("asked %v: calls (-want +got):\n%s", asked, diff)
		}
	}
}

// What New refuses of the ways to drive a guard.
func TestDriversAreRefused(t *testing.T) {
	out := passAll().Output
	for want, g := range map[string]Guard{
		"guard g: patterns need a look_behind of at least 4 bytes, not 3":                                     {LookBehind: 3, Patterns: []abi.Pattern{{ID: "a", Expr: "x"}}},
		"guard g: it declares both patterns and hold_back, expected one of them":                              {LookBehind: 4, HoldBack: 1, Patterns: []abi.Pattern{{ID: "a", Expr: "x"}}},
		"guard g: hold_back must be at most 32768 bytes, half of what a guard may leave undecided, not 32769": {HoldBack: 32769},
		"guard g: hold_back must not be negative, it is -1":                                                   {HoldBack: -1},
		`guard g: pattern "b": the expression matches the empty text`:                                         {LookBehind: 4, Patterns: []abi.Pattern{{ID: "a", Expr: "x"}, {ID: "b", Expr: "x*"}}},
	} {
		g.Name, g.Output = "g", out
		if _, err := New([]Guard{g}, Options{}); errorText(err) != want {
			t.Errorf("New = %q, want %q", errorText(err), want)
		}
	}
}

// hold_back: characters are not split, edits are not, and edits that reach into
// each other step back together.
func TestWindowHold(t *testing.T) {
	edit := func(start, end int) abi.Edit { return abi.Edit{Start: start, End: end} }
	for _, c := range []struct {
		text  string
		bytes int
		edits []abi.Edit
		want  int
	}{
		{"", 4, nil, 0}, {"abc", 4, nil, 0}, {"abcdef", 4, nil, 2},
		{"a€bcd", 4, nil, 1}, {"a€bcd", 5, nil, 1}, {"a€bcd", 3, nil, 4},
		{"abcdef", 3, []abi.Edit{edit(1, 4)}, 1}, {"abcdef", 3, []abi.Edit{edit(1, 3)}, 3}, {"abcdef", 3, []abi.Edit{edit(3, 5)}, 3},
		{"abcdefgh", 2, []abi.Edit{edit(1, 4), edit(3, 6), edit(5, 7)}, 1},
	} {
		if got := (&window{bytes: c.bytes}).hold(c.text, c.edits); got != c.want {
			t.Errorf("hold(%q, %d, %v) = %d, want %d", c.text, c.bytes, c.edits, got, c.want)
		}
	}
}

// A match within the window is found for every chunking and held back until it
// is decided; nothing farther back than the window is.
func TestWindowHoldsNoMoreThanItSays(t *testing.T) {
	f := named(windowOnly(`key=[0-9]{1,4}`, "KEY", 8), "w")
	o := watch(t, must(New([]Guard{f.guard()}, Options{})), strings.SplitAfter("my key=1234 is key=99.", ""))
	if got := strings.Join(o.Released, ""); got != "my <KEY> is <KEY>." {
		t.Errorf("released %q", got)
	}
	clean := watch(t, must(New([]Guard{f.guard()}, Options{})), strings.SplitAfter(strings.Repeat("a", 20), ""))
	for i, p := range clean.Released[:20] {
		if want := strings.Repeat("a", min(1, i/8)); p != want {
			t.Errorf("after %d characters %q was released, want %q", i+1, p, want)
		}
	}
}
