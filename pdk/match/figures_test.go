package match

import (
	"regexp"
	"testing"

	"weir/host/benchtest"
)

// BenchmarkAgainstRegexp reads prose without matches with all shipped output
// patterns: as one set, and with the standard library for each pattern.
func BenchmarkAgainstRegexp(b *testing.B) {
	s := compile(b, shipped(b)...)
	text := prose(b, 64<<10)
	s.All(text) // builds what this text needs of the automaton
	var list []*regexp.Regexp
	for i := range s.Len() {
		list = append(list, regexp.MustCompile(s.Expr(i)))
	}
	times := benchtest.InTurn(b,
		func() { s.All(text) },
		func() {
			for _, re := range list {
				re.FindAllStringIndex(text, -1)
			}
		})
	b.ReportMetric(float64(len(text))/1e6/times[0].Median().Seconds(), "p50-MB/s")
	b.ReportMetric(benchtest.Ratio(times[1], times[0]), "x-regexp")
}
