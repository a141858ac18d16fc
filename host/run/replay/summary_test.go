package replay

import (
	"context"
	"maps"
	"strings"
	"testing"

	"weir/host/run"
)

// called is a policy under another identity.
type called struct {
	run.Policy
	id string
}

func (c called) Generation() string { return c.id }

// W7: each run is folded through its own variant, so a summary names all
// generations that judged, each once, and each result its own.
func TestSummaryNamesWhoJudged(t *testing.T) {
	policy := newNative(t, "")
	base, left, right := strings.Repeat("b", 64), strings.Repeat("1", 64), strings.Repeat("2", 64)
	target := func(id string) Target {
		return Target{Policy: called{policy, id}, People: agrees{}, Pauses: agrees{}, Options: run.Options{MaxToolCalls: 4}}
	}
	all := target(base)
	all.Variants = map[string]Target{"left": target(left), "again": target(left), "unused": target(right)}
	variants := []string{"", "left", "base", "again", "gone", "left", "left"}
	s, err := All(t.Context(), all, len(variants), 2, func(_ context.Context, i int) (*run.Recorded, error) {
		rec := record(t, policy, uint64(i))
		rec.Variant = variants[i]
		if i == len(variants)-1 {
			rec.State = run.Cancelled // nobody judges that
		}
		return rec, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{base: 3, left: 3}; s.Generation != base || s.Replayed != 6 || !maps.Equal(s.Judged, want) {
		t.Errorf("%s, %d replayed, judged %v, want %v", s.Generation, s.Replayed, s.Judged, want)
	}
	for i, want := range []string{base, left, base, left, base, left, ""} {
		if got := s.Results[i].GenerationNow; got != want {
			t.Errorf("run %d of variant %q: %s, want %s", i, variants[i], got, want)
		}
	}
}
