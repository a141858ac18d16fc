package plugin_test

import (
	"testing"
	"time"

	"weir/abi"
)

// BenchmarkHostile is FAULTS P1 and P2 in figures: of all shapes of code that
// never ends, the longest that one outlives the beginning of a call whose limit
// is 100 ms, and the longest that an unrelated 1 ms ticker waits meanwhile while
// the collector runs. Of each shape the best of a few calls counts, because
// other programs may have the processors in the others.
func BenchmarkHostile(b *testing.B) {
	const calls = 5
	var ended, stalled time.Duration
	for b.Loop() {
		for _, s := range shapes(60, 4000) {
			p := loadShape(b, s)
			took, late := time.Duration(1<<62), time.Duration(1<<62)
			for range calls {
				begun := time.Now()
				if _, _, err := p.Call(background(), abi.HookCheckInput, ordinary); err == nil {
					b.Fatalf("%s ended by itself", s.name)
				}
				took = min(took, time.Since(begun))
				late = min(late, stall(func() { _, _, _ = p.Call(background(), abi.HookCheckInput, ordinary) }))
			}
			b.Logf("%s: ended after %v, the ticker was late by %v", s.name, took, late)
			ended, stalled = max(ended, took), max(stalled, late)
		}
	}
	b.ReportMetric(float64(ended.Microseconds())/1000, "ended-ms")
	b.ReportMetric(float64(stalled.Microseconds())/1000, "stalled-ms")
}
