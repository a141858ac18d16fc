package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// 11.3: nearest rank gives values that were measured, never one in between.
func TestSummarize(t *testing.T) {
	upTo := func(n int) (v []float64) {
		for i := n; i > 0; i-- {
			v = append(v, float64(i))
		}
		return v
	}
	for _, tt := range []struct {
		name   string
		values []float64
		want   Summary
	}{
		{"none", nil, Summary{}},
		{"one", []float64{7}, Summary{1, 7, 7, 7, 7, 7}},
		{"two", []float64{3, 1}, Summary{2, 1, 1, 3, 3, 2}},
		{"three", []float64{3, 1, 8}, Summary{3, 1, 3, 8, 8, 4}},
		{"nineteen: the 95th is the last", upTo(19), Summary{19, 1, 10, 19, 19, 10}},
		{"twenty: the 95th is the last but one", upTo(20), Summary{20, 1, 10, 19, 20, 10.5}},
		{"a hundred", upTo(100), Summary{100, 1, 50, 95, 100, 50.5}},
		{"equal ones", []float64{2, 2, 2, 2}, Summary{4, 2, 2, 2, 2, 2}},
	} {
		if got := Summarize(tt.values); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	values := []float64{3, 1, 2}
	Summarize(values)
	if values[0] != 3 || values[1] != 1 {
		t.Errorf("the values were sorted in place: %v", values)
	}
}

func TestPaired(t *testing.T) {
	repeat := func(n int, v ...float64) (all []float64) {
		for range n {
			all = append(all, v...)
		}
		return all
	}
	for _, tt := range []struct {
		name    string
		values  []float64
		decided bool
		mean    float64
	}{
		{"none", nil, false, 0},
		{"no difference", repeat(20, 0), false, 0},
		{"always better", repeat(6, 1), true, 1},
		{"always worse", repeat(6, -1), true, -1},
		{"too few, although all point one way", repeat(5, 1), false, 1},
		{"one of twelve", append(repeat(11, 0), 1), false, 1.0 / 12},
		{"half of twenty", repeat(10, 0, 1), true, 0.5},
		{"to and fro", repeat(10, 1, -1), false, 0},
	} {
		got := Paired(tt.values, 1)
		if got.Decided != tt.decided || math.Abs(got.Mean-tt.mean) > 1e-12 || got.Pairs != len(tt.values) || got.Low > got.Mean || got.High < got.Mean {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if again := Paired(tt.values, 1); again != got {
			t.Errorf("%s: the same seed gave %+v and then %+v", tt.name, got, again)
		}
	}
	values := repeat(1, 0.3, 1.7, -0.4, 2.2, 0.1, 0.9, 1.3)
	if Paired(values, 1) == Paired(values, 2) {
		t.Error("the seed changes nothing")
	}
}

// The interval holds the true mean about as often as it says. With thirty pairs
// a percentile interval is a little too narrow, so the bound leaves room.
func TestCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	const trials, truth = 150, 0.5
	hit := 0
	for i := range trials {
		values := make([]float64, 30)
		for j := range values {
			values[j] = truth + random.NormFloat64()
		}
		if d := Paired(values, uint64(i)); d.Low <= truth && truth <= d.High {
			hit++
		}
	}
	if share := float64(hit) / trials; share < 0.88 || share > 0.995 {
		t.Errorf("the 95 %% interval holds the mean in %.0f %% of the trials", 100*share)
	}
}
