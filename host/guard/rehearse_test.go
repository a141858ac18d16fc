package guard

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a person sees of a text: held, edited, cut.
func TestRehearsal(t *testing.T) {
	chain := chainOf(t, []*fake{named(digitMask("D"), "digits"), named(secretCut(0, "[no]", "sekrit"), "secrets")}, 1000)
	r := chain.Rehearse(SessionOptions{Stamp: stamp})
	digits := func(held, calls int) GuardStep { return GuardStep{Name: "digits", Held: held, Calls: calls} }
	secrets := func(held, calls int) GuardStep { return GuardStep{Name: "secrets", Held: held, Calls: calls} }
	cutting := GuardStep{Name: "secrets", Calls: 1, Cuts: true}
	for _, c := range []struct {
		piece string
		want  Step
	}{
		{"a 12", Step{Released: "a ", Held: "12", Guards: []GuardStep{digits(2, 1), secrets(0, 1)}}},
		{"3 s", Step{Released: "<D> ", Held: "s", Guards: []GuardStep{digits(0, 1), secrets(1, 1)},
			Edits: []AppliedEdit{{Guard: "digits", Label: "D", Text: "123", Replace: "<D>"}}}},
		{"ekrit", Step{Released: "[no]", Ended: true, Guards: []GuardStep{digits(0, 1), cutting}}},
		{"more", Step{Ended: true, Guards: []GuardStep{digits(4, 0), {Name: "secrets", Cuts: true}}}},
	} {
		got, err := r.Push(t.Context(), c.piece)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("step %q (-want +got):\n%s", c.piece, diff)
		}
	}
	if _, v, err := r.Finish(t.Context()); err != nil || !v.Cut || r.Released() != "a <D> [no]" {
		t.Errorf("released %q, %+v, %v", r.Released(), v, err)
	}
}

// A rehearsal releases what a sink does.
func TestRehearsalIsTheSink(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 8))
	for range 200 {
		fs, text, limit := randomChain(rnd), randomText(rnd, 25), 1+rnd.IntN(60)
		r := chainOf(t, fs, limit).Rehearse(SessionOptions{Stamp: stamp})
		var all strings.Builder
		for _, p := range randomSplit(rnd, text) {
			step, err := r.Push(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(step.Released)
		}
		step, _, _ := r.Finish(t.Context())
		all.WriteString(step.Released)
		if want := oracle(fs, text, limit); all.String() != want || r.Released() != want || step.Held != "" {
			t.Fatalf("%q: released %q, want %q", text, all.String(), want)
		}
	}
}
