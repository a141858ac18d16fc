// Package variant compares the variants of one host by the runs that it has
// recorded: each with the base, over the same time and the same kind of users.
//
//	log ─► sample ─► group by variant ─► difference to the base, user by user
//
// Nobody is asked anything and nothing is judged: outcomes, decisions, calls and
// times are what the log says. Users were put into the groups by a hash, so what
// differs beyond chance comes of the variant.
package variant

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"weir/cmd/weir/internal/compare"
	"weir/cmd/weir/internal/compare/stat"
)

// Result is what a comparison found. It names nobody.
type Result struct {
	GeneratedAt string          `json:"generated_at"`
	Mode        string          `json:"mode"`
	Config      string          `json:"config"`
	Since       string          `json:"since"` // a duration
	Runs        int             `json:"runs"`  // logs that were read
	Apart       int             `json:"runs_without_variant"`
	Shared      int             `json:"users_in_several"`
	Seed        uint64          `json:"seed"`
	Resamples   int             `json:"resamples"` // of the interval that has the fewest; 0: there is none
	Harness     compare.Harness `json:"harness"`
	Groups      []Group         `json:"groups"` // the base first
	Comparisons []Comparison    `json:"comparisons"`
	// Broken says why something could not be compared that should have been.
	Broken []string `json:"broken"`
	Notes  []string `json:"notes"`
}

// Group is the runs of one variant.
type Group struct {
	Name        string         `json:"name"`
	Share       float64        `json:"share"` // by the configuration; 0: it is not there any more
	Generations map[string]int `json:"generations"`
	Runs        int            `json:"runs"`
	Open        int            `json:"open"` // more that have not ended
	Users       int            `json:"users"`
	Time        stat.Summary   `json:"running_time"` // of completed runs, seconds
	Metrics     []Value        `json:"metrics"`

	samples []Sample
}

// Value is one metric of a group: its mean over the runs of which it is known.
type Value struct {
	Name string  `json:"name"`
	Mean float64 `json:"mean"`
	Runs int     `json:"runs"`
}

// Comparison is one variant against the base.
type Comparison struct {
	Variant string `json:"variant"`
	Rows    []Row  `json:"rows"`
}

// Row is one metric of both, and their difference: variant − base.
type Row struct {
	Metric
	Difference stat.Gap `json:"difference"`
	Verdict    string   `json:"verdict"`
}

// Base is how the runs outside of every variant are called.
const Base = "base"

// Declared is a variant as the configuration has it.
type Declared struct {
	Name  string
	Share float64
}

// Options of a comparison.
type Options struct {
	Config   string     // path of the file that says which variants there are
	Variants []Declared // as it says
	Since    time.Duration
	Seed     uint64 // of the resampling, 1 by default
	Harness  compare.Harness
	// Now is the clock of generated_at; time.Now by default.
	Now func() time.Time
}

// Compare compares what the samples say.
func Compare(samples []Sample, opts Options) *Result {
	if opts.Seed == 0 {
		opts.Seed = 1
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	r := &Result{GeneratedAt: opts.Now().UTC().Format(time.RFC3339), Mode: "variants", Config: opts.Config,
		Since: span(opts.Since), Runs: len(samples), Seed: opts.Seed, Harness: opts.Harness,
		Groups: []Group{}, Comparisons: []Comparison{}, Broken: []string{}, Notes: []string{}}
	r.group(samples, opts.Variants)
	for i := range r.Groups {
		r.Groups[i].sum()
	}
	r.judge()
	r.note(samples)
	return r
}

// span is a duration without the zeros behind.
func span(d time.Duration) string {
	s := d.String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, end) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// group sorts the samples by variant: the base, those of the configuration in
// its order, and those that the configuration does not have any more.
func (r *Result) group(samples []Sample, declared []Declared) {
	r.Groups = append(r.Groups, Group{Name: Base})
	taken := 0.0
	for _, v := range declared {
		r.Groups = append(r.Groups, Group{Name: v.Name, Share: v.Share})
		taken += v.Share
	}
	r.Groups[0].Share = rest(taken)
	for _, s := range samples {
		if s.Variant == "" {
			r.Apart++
			continue
		}
		i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == s.Variant })
		if i < 0 {
			i = len(r.Groups)
			r.Groups = append(r.Groups, Group{Name: s.Variant})
		}
		r.Groups[i].samples = append(r.Groups[i].samples, s)
	}
	r.Groups = slices.DeleteFunc(r.Groups, func(g Group) bool { // nobody should have had it, and nobody did
		return len(g.samples) == 0 && g.Share == 0 && g.Name != Base
	})
}

// rest is what is left of 1, without what sums of decimal fractions are off by.
func rest(taken float64) float64 {
	const precision = 1e12
	return max(0, math.Round((1-taken)*precision)/precision)
}

// sum computes what a group says by itself.
func (g *Group) sum() {
	g.Generations = map[string]int{}
	users := map[string]bool{}
	var ended []Sample
	var times []float64
	for _, s := range g.samples {
		g.Generations[s.Generation]++
		if !s.Ended {
			g.Open++
			continue
		}
		ended = append(ended, s)
		users[s.User] = true
		if s.timed() {
			times = append(times, s.Seconds)
		}
	}
	g.samples, g.Runs, g.Users, g.Time = ended, len(ended), len(users), stat.Summarize(times)
	g.Metrics = []Value{}
	for _, m := range metrics() {
		sum, n := 0.0, 0
		for i := range ended {
			if v, ok := m.of(&ended[i]); ok {
				sum, n = sum+v, n+1
			}
		}
		value := Value{Name: m.Name, Runs: n}
		if n > 0 {
			value.Mean = sum / float64(n)
		}
		g.Metrics = append(g.Metrics, value)
	}
}

// judge compares every group with the base.
func (r *Result) judge() {
	base := &r.Groups[0]
	if len(r.Groups) == 1 {
		r.Broken = append(r.Broken, "there are no variants: "+r.Config+" gives none a share, and no run of the last "+r.Since+" names one")
		return
	}
	if base.Runs == 0 {
		r.Broken = append(r.Broken, "there is nothing to compare with: no run of the base has ended in the last "+r.Since)
	}
	for i := 1; i < len(r.Groups); i++ {
		g := &r.Groups[i]
		if g.Runs == 0 {
			r.Broken = append(r.Broken, fmt.Sprintf("variant %s: no run of it has ended in the last %s", g.Name, r.Since))
		}
		if g.Runs == 0 || base.Runs == 0 {
			continue
		}
		c := Comparison{Variant: g.Name}
		all := metrics()
		for _, m := range all {
			row := Row{Metric: m.Metric, Difference: stat.Unpaired(base.clusters(m), g.clusters(m), len(all), r.Seed)}
			row.Verdict = row.verdict(g.Name)
			if n := row.Difference.Resamples; n > 0 && (r.Resamples == 0 || n < r.Resamples) {
				r.Resamples = n
			}
			c.Rows = append(c.Rows, row)
		}
		r.Comparisons = append(r.Comparisons, c)
	}
}

// clusters are a metric's values user by user, in the order of their first runs,
// so that the same log gives the same intervals.
func (g *Group) clusters(m measure) (list []stat.Cluster) {
	at := map[string]int{}
	for i := range g.samples {
		s := &g.samples[i]
		v, ok := m.of(s)
		if !ok {
			continue
		}
		n, known := at[s.User]
		if !known {
			n = len(list)
			at[s.User] = n
			list = append(list, stat.Cluster{})
		}
		list[n].Sum, list[n].N = list[n].Sum+v, list[n].N+1
	}
	return list
}

// verdict says in words what a difference shows. Whether more is better is said
// only where it is so for every policy.
func (r *Row) verdict(name string) string {
	d := r.Difference
	switch {
	case d.UsersA == 0 || d.UsersB == 0:
		return "nothing to compare"
	case min(d.UsersA, d.UsersB) < stat.MinUsers:
		return "too few users to say"
	case !d.Decided:
		return "no difference shown"
	case r.LessIsBetter && d.Mean < 0:
		return name + " is better"
	case r.LessIsBetter:
		return Base + " is better"
	case d.Mean > 0:
		return "more with " + name
	}
	return "less with " + name
}

// note says what a reader has to know of the numbers.
func (r *Result) note(samples []Sample) {
	where := map[string]map[string]bool{}
	for _, s := range samples {
		if s.Variant == "" || s.User == "" {
			continue
		}
		if where[s.User] == nil {
			where[s.User] = map[string]bool{}
		}
		where[s.User][s.Variant] = true
	}
	for _, in := range where {
		if len(in) > 1 {
			r.Shared++
		}
	}
	if r.Shared > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d users have runs in more than one variant: shares or sessions were changed; what they saw before may show", r.Shared))
	}
	if r.Apart > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d runs are left out: there were no variants when they began", r.Apart))
	}
	for _, g := range r.Groups {
		if len(g.Generations) > 1 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s ran with %d generations in this time: its policy was changed, so its numbers are of several", g.Name, len(g.Generations)))
		}
		if g.Open > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s has %d runs that have not ended and do not count", g.Name, g.Open))
		}
		if len(g.Metrics) > 0 && g.Runs > 0 && !slices.ContainsFunc(g.Metrics, func(v Value) bool { return v.Name == metricMasked && v.Runs > 0 }) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: no decision is kept, only how runs ended ([store] content)", g.Name))
		}
	}
}

// Times are the running times of a group's completed runs, in seconds.
func (g *Group) Times() []float64 {
	times := []float64{}
	for i := range g.samples {
		if g.samples[i].timed() {
			times = append(times, g.samples[i].Seconds)
		}
	}
	return times
}
