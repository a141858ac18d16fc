// Package benchtest measures for the benchmarks whose figures are rows of
// `make bench`: single operations, taken in turn, and told by their quantiles;
// and for the tests of what must happen in time.
//
// A mean says little on a machine that does other things as well. The median
// says what an operation takes when nothing gets in its way, and operations
// that take turns meet the same hindrances, so their ratio holds where neither
// of the two figures does.
package benchtest

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Times are those of single operations, in the order in which they ran.
type Times []time.Duration

// Time adds how long f takes.
func (t *Times) Time(f func()) {
	begun := time.Now()
	f()
	*t = append(*t, time.Since(begun))
}

// Median is the time that half of the operations did not exceed.
func (t Times) Median() time.Duration { return t.Quantile(0.5) }

// Quantile is the least time that a share q of the operations, from 0 to 1, did
// not exceed. It is one of the times; without any it is zero.
func (t Times) Quantile(q float64) time.Duration { return Quantile(t, q) }

// Quantile is that of [Times.Quantile] for anything that has an order.
func Quantile[T ~int64 | ~int | ~float64](values []T, q float64) T {
	if len(values) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// InTurn runs operations in turn, A B A B, until the benchmark has run long
// enough, and returns the times of each.
func InTurn(b *testing.B, operations ...func()) []Times {
	times := make([]Times, len(operations))
	for b.Loop() {
		for n, f := range operations {
			times[n].Time(f)
		}
	}
	return times
}

// Ratio is how many times as long as one of b one of a takes, by their medians.
func Ratio(a, b Times) float64 { return float64(a.Median()) / float64(b.Median()) }

// Best measures until one of the attempts is within the limit, and returns the
// least: other programs may use the processors, and what the code under test
// allows shows in the best attempt. It is for a promise of time that a test has
// to see kept.
func Best(attempts int, limit time.Duration, measure func() time.Duration) time.Duration {
	least := time.Duration(math.MaxInt64)
	for range attempts {
		if least = min(least, measure()); least <= limit {
			break
		}
	}
	return least
}

// Micro is a time in microseconds.
func Micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Processor returns the processor time that this process has used, to a
// hundredth of a second, or zero where the system does not tell. On a busy
// machine it says more of long operations than the clock does.
func Processor() time.Duration {
	text, _ := os.ReadFile("/proc/self/stat")
	// pid (name) state and ten more, then the ticks in user and kernel mode
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	kernel, _ := strconv.Atoi(string(fields[12]))
	return time.Duration(user+kernel) * (time.Second / 100)
}
