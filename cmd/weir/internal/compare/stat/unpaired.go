package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Cluster is the values of one user in one group: runs of one user are no cases
// of their own, because a person asks alike again.
type Cluster struct {
	Sum float64
	N   int
}

// MinUsers is how many users each group needs before a difference may name a
// winner. With three against three, even the clearest difference has a chance of
// one in ten; with six against six it is below one in four hundred.
const MinUsers = 6

// Gap is the difference of two groups' means over all runs, B - A.
type Gap struct {
	UsersA int     `json:"users_a"`
	UsersB int     `json:"users_b"`
	A      float64 `json:"a"` // mean
	B      float64 `json:"b"`
	Mean   float64 `json:"mean"` // of the difference
	// Low and High bound the 95 % interval.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Resamples is how many times users were drawn again, and put into the groups
	// anew; 0 where a group is empty.
	Resamples int `json:"resamples"`
	// P is how often users who were put into the groups anew, by chance alone,
	// differ as much, at least, times the number of comparisons that are made
	// together; at most 1.
	P float64 `json:"p"`
	// Decided: there are enough users, the interval does not hold zero, and P is
	// below 0.05.
	Decided bool `json:"decided"`
}

// Unpaired compares two groups of users. The interval is by bootstrap: users are
// drawn again with replacement in each group, with all their runs. Because a few
// rare events make such an interval too narrow, a winner is named only if
// putting the users into the groups anew does not give as much, either; that is
// what an assignment by hash would have done. The same seed gives the same Gap.
func Unpaired(a, b []Cluster, comparisons int, seed uint64) Gap {
	sumA, runsA := total(a)
	sumB, runsB := total(b)
	g := Gap{UsersA: len(a), UsersB: len(b), A: ratio(sumA, runsA), B: ratio(sumB, runsB), P: 1}
	if len(a) == 0 || len(b) == 0 {
		return g
	}
	g.Mean = g.B - g.A
	random := rand.New(rand.NewPCG(seed, uint64(len(a))<<32|uint64(len(b))))
	g.Resamples = resamples(len(a) + len(b))
	differences := make([]float64, g.Resamples)
	for i := range differences {
		differences[i] = draw(random, b) - draw(random, a)
	}
	slices.Sort(differences)
	g.Low = differences[int(math.Floor(0.025*float64(len(differences))))]
	g.High = differences[int(math.Ceil(0.975*float64(len(differences))))-1]
	g.P = math.Min(1, chance(random, a, b, g.Mean)*float64(max(comparisons, 1)))
	g.Decided = min(len(a), len(b)) >= MinUsers && (g.Low > 0 || g.High < 0) && g.P < 0.05
	return g
}

// resamples are fewer where there are so many users that each takes long.
func resamples(users int) int { return min(Resamples, max(2000, 40_000_000/users)) }

func total(clusters []Cluster) (sum float64, runs int) {
	for _, c := range clusters {
		sum, runs = sum+c.Sum, runs+c.N
	}
	return sum, runs
}

func ratio(sum float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// draw is the mean of as many users, drawn with replacement.
func draw(random *rand.Rand, clusters []Cluster) float64 {
	sum, runs := 0.0, 0
	for range clusters {
		c := clusters[random.IntN(len(clusters))]
		sum, runs = sum+c.Sum, runs+c.N
	}
	return ratio(sum, runs)
}

// chance is the part of random assignments of the same users to groups of the
// same size whose difference is as large as this one, in either direction.
func chance(random *rand.Rand, a, b []Cluster, seen float64) float64 {
	all := slices.Concat(a, b)
	sum, runs := total(all)
	few := min(len(a), len(b))
	const rounding = 1e-12
	times := resamples(len(all))
	hits := 0
	for range times {
		some, n := 0.0, 0
		for i := range few { // the first few of a shuffle
			j := i + random.IntN(len(all)-i)
			all[i], all[j] = all[j], all[i]
			some, n = some+all[i].Sum, n+all[i].N
		}
		if math.Abs(ratio(some, n)-ratio(sum-some, runs-n)) >= math.Abs(seen)-rounding {
			hits++
		}
	}
	return float64(hits+1) / float64(times+1)
}
