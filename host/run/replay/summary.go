package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/host/run"
)

// Summary is what replaying a number of runs said, and what a reviewer signs.
type Summary struct {
	Generation string         `json:"generation"` // that was tried, the base's where there are variants
	Recorded   map[string]int `json:"recorded"`   // runs by the generation that they had
	Judged     map[string]int `json:"judged"`     // replayed runs by the generation that they were folded through
	At         time.Time      `json:"at"`
	Runs       int            `json:"runs"` // that were looked at
	Replayed   int            `json:"replayed"`
	Same       int            `json:"same"`
	Changed    int            `json:"changed"`
	Unanswered int            `json:"unanswerable"`      // runs about which nothing is known to change
	Skipped    map[string]int `json:"skipped,omitempty"` // by reason
	Kinds      map[string]int `json:"kinds"`             // runs by kind of change
	Unknown    map[string]int `json:"unknown,omitempty"` // runs in which one cannot be ruled out
	Items      int            `json:"questions"`
	Answered   int            `json:"answered"`
	Fuel       uint64         `json:"fuel"`
	FuelNow    uint64         `json:"fuel_now"`
	Millis     float64        `json:"ms"`
	MillisNow  float64        `json:"ms_now"`
	TookMS     float64        `json:"took_ms"`
	Checks     []Check        `json:"gate,omitempty"`
	Results    []*Result      `json:"results"`
}

// Passed tells whether every rule of the gate is held, with at least one run
// replayed where there is a gate: an empty record proves nothing.
func (s *Summary) Passed() bool {
	return len(s.Checks) == 0 || s.Replayed > 0 && !slices.ContainsFunc(s.Checks, func(c Check) bool { return !c.Passed })
}

// Failed says what the gate did not let pass.
func (s *Summary) Failed() string {
	if s.Replayed == 0 {
		return "no run could be replayed"
	}
	var failed []string
	for _, c := range s.Checks {
		if !c.Passed {
			failed = append(failed, fmt.Sprintf("%s is broken by %d of %d runs, %d of them because nobody knows", c.Rule, c.Runs, s.Replayed, c.Unknown))
		}
	}
	return strings.Join(failed, "; ")
}

// Coverage is the part of the questions that the recordings answered, 1 where
// there were none.
func (s *Summary) Coverage() float64 {
	if s.Items == 0 {
		return 1
	}
	return float64(s.Answered) / float64(s.Items)
}

// All folds runs, each through its own variant's target, some at a time, and holds the results against a gate. Read
// returns the i-th of n runs; one that it cannot read is skipped with its
// error's text. All ends early when ctx does.
func All(ctx context.Context, target Target, n, atOnce int, read func(ctx context.Context, i int) (*run.Recorded, error), gate []Rule) (*Summary, error) {
	began := time.Now()
	results := make([]*Result, n)
	var work sync.WaitGroup
	var once sync.Once
	var failure error
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	for range max(1, min(atOnce, n)) {
		work.Go(func() {
			for i := range next {
				result, err := one(ctx, target, i, read)
				if err != nil {
					once.Do(func() { failure = err; cancel(err) })
					continue
				}
				results[i] = result
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	work.Wait()
	if failure == nil && ctx.Err() != nil {
		failure = context.Cause(ctx)
	}
	if failure != nil {
		return nil, failure
	}
	s := sum(target.Policy.Generation(), results, gate)
	s.At, s.TookMS = began.UTC(), float64(time.Since(began).Milliseconds())
	return s, nil
}

func one(ctx context.Context, target Target, i int, read func(ctx context.Context, i int) (*run.Recorded, error)) (*Result, error) {
	rec, err := read(ctx, i)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return &Result{Status: StatusSkipped, Reason: "its log cannot be read: " + err.Error()}, nil
	}
	if own, ok := target.Variants[rec.Variant]; ok {
		target = own
	}
	return Run(ctx, target, rec)
}

func sum(generation string, results []*Result, gate []Rule) *Summary {
	s := &Summary{Generation: generation, Recorded: map[string]int{}, Judged: map[string]int{}, Skipped: map[string]int{}, Kinds: map[string]int{},
		Unknown: map[string]int{}, Runs: len(results), Results: results}
	for _, r := range results {
		s.add(r)
	}
	for _, rule := range gate {
		s.Checks = append(s.Checks, rule.check(results, s.Replayed))
	}
	return s
}

func (s *Summary) add(r *Result) {
	if r.Generation != "" {
		s.Recorded[r.Generation]++
	}
	switch r.Status {
	case StatusSkipped:
		s.Skipped[r.Reason]++
		return
	case StatusSame:
		s.Same++
	case StatusChanged:
		s.Changed++
	case StatusUnanswerable:
		s.Unanswered++
	}
	s.Replayed++
	s.Judged[r.GenerationNow]++
	s.Items, s.Answered = s.Items+r.Items, s.Answered+r.Answered
	s.Fuel, s.FuelNow, s.Millis, s.MillisNow = s.Fuel+r.Fuel, s.FuelNow+r.FuelNow, s.Millis+r.Millis, s.MillisNow+r.MillisNow
	kinds, unknown := map[string]bool{}, map[string]bool{}
	for _, c := range r.Changes {
		kinds[c.Kind] = true
	}
	for i := range r.Unanswered {
		if kind := r.Unanswered[i].Kind(); kind != "" && !kinds[kind] {
			unknown[kind] = true
		}
	}
	for kind := range maps.Keys(kinds) {
		s.Kinds[kind]++
	}
	for kind := range maps.Keys(unknown) {
		s.Unknown[kind]++
	}
}
