package stat

import (
	"math"
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
