package stat

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// ones are n users with one run each, of which so many have the value 1.
func ones(n, hits int) []Cluster {
	all := make([]Cluster, n)
	for i := range all {
		all[i].N = 1
		if i < hits {
			all[i].Sum = 1
		}
	}
	return all
}

func TestUnpaired(t *testing.T) {
	for _, tt := range []struct {
		name    string
		a, b    []Cluster
		decided bool
		mean    float64
	}{
		{"nobody", nil, ones(9, 3), false, 0},
		{"no difference", ones(50, 25), ones(50, 25), false, 0},
		{"all against none", ones(10, 0), ones(10, 10), true, 1},
		{"none against all", ones(10, 10), ones(10, 0), true, -1},
		{"all against none, too few users", ones(5, 0), ones(20, 20), false, 1},
		{"a bootstrap alone would say yes: 4 of 10 against none", ones(10, 0), ones(10, 4), false, 0.4},
		{"half of many", ones(60, 0), ones(60, 30), true, 0.5},
		{"many runs of one user", []Cluster{{0, 500}}, []Cluster{{500, 500}}, false, 1},
		{"users with many runs weigh as many", []Cluster{{0, 9}, {1, 1}}, []Cluster{{0, 1}, {9, 9}}, false, 0.8},
	} {
		got := Unpaired(tt.a, tt.b, 10, 1)
		if got.Decided != tt.decided || math.Abs(got.Mean-tt.mean) > 1e-12 || got.UsersA != len(tt.a) || got.UsersB != len(tt.b) {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if len(tt.a) > 0 && (got.Low > got.Mean || got.High < got.Mean) {
			t.Errorf("%s: the interval %v to %v does not hold %v", tt.name, got.Low, got.High, got.Mean)
		}
		if again := Unpaired(tt.a, tt.b, 10, 1); again != got {
			t.Errorf("%s: the same seed gave %+v and then %+v", tt.name, got, again)
		}
	}
}

// The more comparisons are made together, the clearer each has to be.
func TestUnpairedTogether(t *testing.T) {
	a, b := ones(40, 4), ones(40, 13)
	if alone, many := Unpaired(a, b, 1, 1), Unpaired(a, b, 15, 1); !alone.Decided || many.Decided || many.Low != alone.Low {
		t.Errorf("alone %+v, among fifteen %+v", alone, many)
	}
}

// One user's case is a rare thing to fall into so small a group, but without that
// user nothing is left of the difference: the interval holds zero.
func TestUnpairedNotByOneUser(t *testing.T) {
	a := ones(200, 0)
	if got := Unpaired(a, ones(6, 1), 1, 1); got.Decided || got.P >= 0.05 || got.Low > 0 {
		t.Errorf("one of six: %+v", got)
	}
	if got := Unpaired(a, ones(6, 5), 1, 1); !got.Decided {
		t.Errorf("five of six: %+v", got)
	}
}

// Where there is no difference hardly any is found, also with rare events and
// with users who come back; and one that is there is.
func TestUnpairedFalseAlarms(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	group := func(users int, rate float64) (all []Cluster) {
		for range users {
			c := Cluster{N: 1 + random.IntN(5)}
			own := rate * 2 * random.Float64() // users differ
			for range c.N {
				if random.Float64() < own {
					c.Sum++
				}
			}
			all = append(all, c)
		}
		return all
	}
	alarms, found := 0, 0
	const trials = 120
	for i := range trials {
		if Unpaired(group(30, 0.05), group(20, 0.05), 1, uint64(i)).Decided {
			alarms++
		}
		if Unpaired(group(60, 0.05), group(60, 0.3), 15, uint64(i)).Decided {
			found++
		}
	}
	if alarms > trials/10 || found < trials*8/10 {
		t.Errorf("%d false alarms and %d of %d differences found", alarms, found, trials)
	}
}

// assigned is P as it is defined: the part of all assignments whose difference is
// as large, in either direction.
func assigned(a, b []Cluster) float64 {
	all := append(append([]Cluster{}, a...), b...)
	everybody := uint(1)<<len(all) - 1
	mean := func(group uint) float64 {
		sum, runs := 0.0, 0
		for i, c := range all {
			if group>>i&1 == 1 {
				sum, runs = sum+c.Sum, runs+c.N
			}
		}
		return sum / float64(runs)
	}
	gap := func(group uint) float64 { return math.Abs(mean(group) - mean(everybody&^group)) }
	seen, hits, tries := gap(uint(1)<<len(a)-1), 0, 0
	for group := range everybody + 1 {
		if bits.OnesCount(group) != len(a) {
			continue
		}
		tries++
		if gap(group) >= seen-1e-9 {
			hits++
		}
	}
	return float64(hits) / float64(tries)
}

// spread is the variance of a group's mean over all runs by the usual
// approximation for ratios.
func spread(group []Cluster) float64 {
	sum, runs := total(group)
	mean, square := sum/float64(runs), 0.0
	for _, c := range group {
		square += (c.Sum - mean*float64(c.N)) * (c.Sum - mean*float64(c.N))
	}
	return square / float64(runs) / float64(runs)
}

// P and the interval are what other ways of computing them say, whichever group
// has more.
func TestUnpairedByOtherMeans(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	group := func(users int, mean float64) (all []Cluster) {
		for range users {
			c := Cluster{N: 1 + random.IntN(5)}
			for range c.N {
				c.Sum += mean * 2 * random.Float64()
			}
			all = append(all, c)
		}
		return all
	}
	for i := range 8 {
		a, b := group(7+i%3, 1), group(10-i%4, 1.3)
		for _, pair := range [][2][]Cluster{{a, b}, {b, a}} {
			got, want := Unpaired(pair[0], pair[1], 1, uint64(i)), assigned(a, b)
			if off := math.Abs(got.P - want); off > 5*math.Sqrt(want*(1-want)/Resamples)+2.0/Resamples {
				t.Errorf("%d: P %v, of all assignments %v", i, got.P, want)
			}
			if width, half := (got.High-got.Low)/2, 1.96*math.Sqrt(spread(a)+spread(b)); width < 0.8*half || width > 1.3*half {
				t.Errorf("%d: half the interval %v, by approximation %v", i, width, half)
			}
		}
	}
}
