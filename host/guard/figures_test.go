package guard_test

import (
	"strings"
	"testing"

	"weir/host/guard"
	"weir/host/guard/trial"
)

// BenchmarkFirstCharacter counts, for the beginning of every paragraph of the
// prose, the deltas that come between the end of its first word and the first
// character that is released; 1 is the next delta. Deltas have one character.
func BenchmarkFirstCharacter(b *testing.B) {
	chain := chainOf(b, shippedOutput(b))
	most := 0
	for b.Loop() {
		for paragraph := range strings.SplitSeq(corpus(b, "prose.txt"), "\n\n") {
			word, _, _ := strings.Cut(paragraph, " ")
			most = max(most, released(b, chain, paragraph)-len([]rune(word)))
		}
	}
	b.ReportMetric(float64(most), "deltas-most")
}

// released is the number of the delta with which something is first released.
func released(b *testing.B, chain *guard.Chain, text string) (n int) {
	r := chain.Rehearse(guard.SessionOptions{Stamp: trial.Stamp})
	for _, piece := range strings.Split(text, "") {
		n++
		step, err := r.Push(b.Context(), piece)
		if err != nil {
			b.Fatal(err)
		}
		if step.Released != "" {
			return n
		}
	}
	b.Fatalf("nothing of %q was released", text)
	return 0
}
