// Package stat has the few statistics that a comparison needs: order
// statistics by nearest rank, and the mean of paired differences with a
// confidence interval by bootstrap. Nothing here depends on chance: the
// resampling is seeded.
package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Summary is a distribution in four order statistics and its mean.
type Summary struct {
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Summarize returns the summary of values, which stay as they are.
func Summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Summary{
		N: len(sorted), Min: sorted[0], P50: Rank(sorted, 50), P95: Rank(sorted, 95),
		Max: sorted[len(sorted)-1], Mean: Mean(values),
	}
}

// Rank returns the percentile of sorted values by nearest rank: the smallest
// value that at least p percent of the values do not exceed. It is always one
// of the values.
func Rank(sorted []float64, p int) float64 {
	n := (p*len(sorted) + 99) / 100 // rounded up, in whole numbers
	return sorted[min(max(n, 1), len(sorted))-1]
}

// Mean is the arithmetic mean, and 0 of nothing.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// MinPairs is how many pairs a difference needs before it may name a winner.
// With five, even five differences in one direction have a chance of one in
// sixteen; with six it is one in thirty-two.
const MinPairs = 6

// Resamples is how many resamples make an interval.
const Resamples = 10_000

// Difference is the mean of paired differences B - A.
type Difference struct {
	Pairs int     `json:"pairs"`
	Mean  float64 `json:"mean"`
	// Low and High bound the 95 % interval.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Decided: there are enough pairs and the interval does not hold zero.
	Decided bool `json:"decided"`
}

// Paired returns the mean of the differences of pairs (one for each case) and
// its 95 % interval: the percentiles of the means of resamples with
// replacement. The same seed gives the same interval.
func Paired(differences []float64, seed uint64) Difference {
	d := Difference{Pairs: len(differences), Mean: Mean(differences)}
	if len(differences) == 0 {
		return d
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(differences))))
	means := make([]float64, Resamples)
	for i := range means {
		sum := 0.0
		for range differences {
			sum += differences[random.IntN(len(differences))]
		}
		means[i] = sum / float64(len(differences))
	}
	slices.Sort(means)
	d.Low = means[int(math.Floor(0.025*float64(Resamples)))]
	d.High = means[int(math.Ceil(0.975*float64(Resamples)))-1]
	d.Decided = len(differences) >= MinPairs && (d.Low > 0 || d.High < 0)
	return d
}
