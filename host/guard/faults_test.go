package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/fault"
)

// run pushes pieces with a Sync after each and returns what was released.
func run(t *testing.T, c *Chain, pieces ...string) (released []string, v OutputVerdict) {
	t.Helper()
	s := c.Session(SessionOptions{Stamp: stamp, Release: func(text string) { released = append(released, text) }})
	for _, p := range pieces {
		s.Sink().Push(p)
		if err := s.Sink().Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	v = s.Sink().Finish(t.Context())
	return released, v
}

// broken is a guard that decides six bytes of its first text and then replies
// with r, or fails when r is nil.
func broken(r *abi.CheckOutputReply, err error) OutputChecker {
	return outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		if q.StreamPos == 0 {
			return &abi.CheckOutputReply{HoldFrom: 6, Edits: []abi.Edit{{Start: 0, End: 1, Replace: "_", Label: "X"}}}, nil
		}
		return r, err
	})
}

// FAULTS S5 and P12: what breaks the protocol takes the failure policy and is
// never a pass-through. The guard has decided "01234 " of "01234 é789".
func TestBrokenReplyTakesTheFailurePolicy(t *testing.T) {
	edit := func(start, end int, label string) *abi.CheckOutputReply {
		return &abi.CheckOutputReply{HoldFrom: 5, Edits: []abi.Edit{{Start: start, End: end, Replace: "!", Label: label}}}
	}
	for _, c := range []struct {
		name  string
		reply *abi.CheckOutputReply
		err   error
		code  string
	}{
		{"no reply", nil, nil, "bad_reply"},
		{"trap", nil, fault.Coded(fault.Plugin, "trap", "plugin bad: check_output: trap"), "trap"},
		{"timeout", nil, fault.Coded(fault.Plugin, "timeout", "plugin bad: check_output: timeout"), "timeout"},
		{"plain error", nil, errors.New("no"), "failed"},
		{"hold_from moves back", &abi.CheckOutputReply{HoldFrom: -1}, nil, "bad_reply"},
		{"hold_from behind the text", &abi.CheckOutputReply{HoldFrom: 99}, nil, "bad_reply"},
		{"hold_from inside a character", &abi.CheckOutputReply{HoldFrom: 1}, nil, "bad_reply"},
		{"edit behind hold_from", edit(2, 6, "X"), nil, "bad_reply"},
		{"edit of decided text", edit(-2, 2, "X"), nil, "bad_reply"},
		{"edit inside a character", edit(1, 3, "X"), nil, "bad_reply"},
		{"edit ends inside a character", edit(0, 1, "X"), nil, "bad_reply"},
		{"empty edit", edit(2, 2, "X"), nil, "bad_reply"},
		{"edit without a label", edit(0, 2, ""), nil, "bad_reply"},
		{"label with text of the answer", edit(0, 2, "bob@example.com"), nil, "bad_reply"},
		{"edit of a display", &abi.CheckOutputReply{HoldFrom: 5, Edits: []abi.Edit{{Index: 1, End: 2, Label: "X"}}}, nil, "bad_reply"},
		{"cut inside decided text", &abi.CheckOutputReply{HoldFrom: 5, Cut: &abi.Cut{At: -1, Label: "secret:0"}}, nil, "bad_reply"},
		{"cut inside a character", &abi.CheckOutputReply{HoldFrom: 5, Cut: &abi.Cut{At: 1, Label: "secret:0"}}, nil, "bad_reply"},
		{"cut behind the text", &abi.CheckOutputReply{HoldFrom: 5, Cut: &abi.Cut{At: 6, Label: "secret:0"}}, nil, "bad_reply"},
		{"state too large", &abi.CheckOutputReply{HoldFrom: 5, State: slices.Repeat(abi.Raw("1"), abi.MaxOutputState+1)}, nil, "bad_reply"},
		{"final without the whole text", &abi.CheckOutputReply{HoldFrom: 2}, nil, "bad_reply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, allow := range []bool{false, true} {
				want := "_1234 " + defaultSecretNotice
				if allow {
					want = "_1234 é789"
				}
				guards := []Guard{
					{Name: "good", Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
						return &abi.CheckOutputReply{HoldFrom: len(q.Text)}, nil
					})},
					{Name: "bad", AllowOnError: allow, Output: broken(c.reply, c.err)},
				}
				released, v := run(t, must(New(guards, Options{})), "01234 é789")
				if got := strings.Join(released, ""); got != want {
					t.Errorf("allow %v: released %q, want %q", allow, got, want)
				}
				if v.Cut == allow {
					t.Errorf("allow %v: cut %v", allow, v.Cut)
				}
				entry := `"name":"bad","digest":"","mode":"enforce","verdict":"error","reason_code":"` + c.code + `"`
				if !strings.Contains(string(v.Decision), entry) {
					t.Errorf("decision %s, want %s", v.Decision, entry)
				}
			}
		})
	}
}

// A guard that failed is out for the rest of the run: it is not called again,
// and the others go on.
func TestFailedGuardIsOut(t *testing.T) {
	calls := 0
	bad := outputFunc(func(context.Context, *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		calls++
		return nil, errors.New("no")
	})
	masker := named(digitMask("DIGITS"), "digits").guard()
	chain := must(New([]Guard{{Name: "bad", AllowOnError: true, Output: bad}, masker}, Options{}))
	released, _ := run(t, chain, "a 123", " b", " 4567 c")
	if got, want := strings.Join(released, ""), "a <DIGITS> b <DIGITS> c"; got != want {
		t.Errorf("released %q, want %q", got, want)
	}
	if calls != 1 {
		t.Errorf("the failed guard was called %d times, want once", calls)
	}
}

// A failed guard that blocks cuts at its own hold_from; another one's mask that
// reaches over that place is applied whole (rule 3), so no half of it shows.
func TestFailureCutKeepsMasksWhole(t *testing.T) {
	half := outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		if q.Final {
			return nil, errors.New("no")
		}
		return &abi.CheckOutputReply{HoldFrom: 4}, nil
	})
	masker := named(digitMask("DIGITS"), "digits").guard()
	chain := must(New([]Guard{{Name: "half", Output: half}, masker}, Options{}))
	released, v := run(t, chain, "a 1234 b")
	if got, want := strings.Join(released, ""), "a <DIGITS>"+defaultSecretNotice; got != want {
		t.Errorf("released %q, want %q", got, want)
	}
	if !v.Cut {
		t.Error("the answer is not cut")
	}
}

// The tail bound is far above what patterns need; a guard that reaches it fails.
func TestTailBound(t *testing.T) {
	holder := outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		if q.Final {
			return &abi.CheckOutputReply{HoldFrom: len(q.Text)}, nil
		}
		return &abi.CheckOutputReply{}, nil
	})
	chain := must(New([]Guard{{Name: "holder", Output: holder}}, Options{TailBytes: 8}))
	if released, v := run(t, chain, "12345678"); strings.Join(released, "") != "12345678" || v.Cut {
		t.Errorf("at the bound: released %q, cut %v", released, v.Cut)
	}
	if released, v := run(t, chain, "123456789"); strings.Join(released, "") != defaultSecretNotice || !v.Cut {
		t.Errorf("over the bound: released %q, cut %v", released, v.Cut)
	}
}

// FAULTS S6: text comes out while it comes in, with a window and more so with
// an exact guard.
func TestAnswerIsReleasedProgressively(t *testing.T) {
	var sentences []string
	for range 120 {
		sentences = append(sentences, "The printer on the third floor is out of paper again. ")
	}
	for _, f := range []*fake{windowMask(`never[0-9]{3}`, "N", 320), secretCut(0, "[zero]", "sekrit")} {
		released, _ := run(t, chainOf(t, []*fake{named(f, "g")}, 100000), sentences...)
		if len(released) <= 20 {
			t.Errorf("%d fragments for 120 sentences, want more than 20", len(released))
		}
	}
}

// An exact guard holds nothing of clean text: each delta comes out at once.
func TestExactGuardHoldsNothingBack(t *testing.T) {
	words := []string{"A", " clean", " answer", " with", " words."}
	released, _ := run(t, chainOf(t, []*fake{named(secretCut(0, "[zero]", "sekrit"), "g")}, 1000), words...)
	if !slices.Equal(released, words) {
		t.Errorf("released %q, want %q", released, words)
	}
}

// FAULTS S7: nothing of one run, and nothing of another stream, reaches a call.
func TestNoStateBleeds(t *testing.T) {
	type seen struct {
		pos    int64
		before string
		text   string
		state  string
	}
	var calls []seen
	g := Guard{Name: "g", LookBehind: 4, Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		calls = append(calls, seen{q.StreamPos, q.Before, q.Text, string(q.State)})
		return &abi.CheckOutputReply{HoldFrom: len(q.Text), State: abi.Raw(`"` + q.Text + `"`)}, nil
	})}
	chain := must(New([]Guard{g}, Options{}))
	one := chain.Session(SessionOptions{Stamp: stamp, Release: func(string) {}})
	two := chain.Session(SessionOptions{Stamp: stamp, Release: func(string) {}})
	for _, p := range []struct {
		s    *Session
		text string
	}{{one, "abc€"}, {two, "second"}, {one, "de"}, {two, "!"}} {
		p.s.Sink().Push(p.text)
		if err := p.s.Sink().Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one.Sink().Finish(t.Context())
	two.Sink().Finish(t.Context())
	want := []seen{
		{0, "", "abc€", ""},
		{0, "", "second", ""},
		{6, "c€", "de", `"abc€"`},
		{6, "cond", "!", `"second"`},
		{8, "de", "", `"de"`},
		{7, "ond!", "", `"!"`},
	}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %+v\nwant  %+v", calls, want)
	}
}

// 6.7 and DECISIONS 2: an answer of exactly the limit is not too long; one over
// it is cut where a candidate is still undecided, else at the limit.
func TestAnswerOverTheLimit(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"at the limit", "0123456789", "0123456789"},
		{"over it", "0123456789x", "0123456789[oversize]"},
		{"characters, not bytes", "éééééééééé", "éééééééééé"},
		{"a candidate at the limit", "01234sekrit", "01234[oversize]"},
		{"no candidate beyond the limit", "0123456789sekrit", "0123456789[oversize]"},
		{"a secret before the limit", "01sekrit89xx", "01[zero]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain := chainOf(t, []*fake{named(secretCut(0, "[zero]", "sekrit"), "g")}, 10)
			drive(t, chain, []string{c.text}, c.want)
			drive(t, chain, bytewise(c.text), c.want)
			_, v := run(t, chain, c.text)
			oversized := strings.Contains(string(v.Decision), `"oversized":true`)
			if want := strings.HasSuffix(c.want, "[oversize]"); oversized != want || v.Cut != strings.HasSuffix(c.want, "]") {
				t.Errorf("oversized %v, cut %v: %s", oversized, v.Cut, v.Decision)
			}
		})
	}
}

// FAULTS P1: patterns that a guard declares run in the host and not in its
// sandbox, and are bounded all the same. Every character of this text is the
// beginning of a match of every one of them.
func TestPatternsThatTakeTooLong(t *testing.T) {
	g := Guard{Name: "slow", LookBehind: 4, Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		return &abi.CheckOutputReply{HoldFrom: len(q.Text)}, nil
	})}
	ends := ""
	for i := range 60 {
		ends += strconv.Itoa(i) + "x "
		g.Patterns = append(g.Patterns, abi.Pattern{ID: strconv.Itoa(i), Expr: fmt.Sprintf(`(?s)(?:[a-z ].{1,%d}){20,24}%dx`, 20+i%7, i)})
	}
	text := strings.Repeat("hello this is some text\n", 100)
	for _, tt := range []struct {
		name    string
		text    string
		allow   bool
		want    string
		verdict string
	}{
		{"block", text, false, defaultSecretNotice, `"verdict":"error","reason_code":"fuel"`},
		{"allow", text, true, text, `"verdict":"error","reason_code":"fuel"`},
		{"in time", "$ 3 and 4 $", false, "$ 3 and 4 $", `"verdict":"allow"`},
	} {
		g.AllowOnError = tt.allow
		released, v := run(t, must(New([]Guard{g}, Options{})), tt.text)
		if got := strings.Join(released, ""); got != tt.want || !strings.Contains(string(v.Decision), tt.verdict) {
			t.Errorf("%s: released %.90q, %s", tt.name, got, v.Decision)
		}
	}
	s := must(New([]Guard{g}, Options{})).Session(SessionOptions{Stamp: stamp})
	if got := s.Display(t.Context(), abi.Raw(strconv.Quote(text+ends))); string(got) != withheld {
		t.Errorf("display: %.90q", got)
	}
	if got := s.Display(t.Context(), abi.Raw(`"$"`)); string(got) != `"$"` {
		t.Errorf("display: %s", got)
	}
}
