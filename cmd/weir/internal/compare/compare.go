// Package compare asks two agents the same questions in one run and says how
// they differ: in scores, in time, and case by case. It knows agents by the
// agent-service contract alone, so whose they are does not matter.
//
// A harness that does not work is told from an agent that answers badly: a
// question without a readable answer has no score, the suite it belongs to is
// incomplete, and no gate speaks about it.
package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"weir/cmd/weir/internal/compare/client"
	"weir/cmd/weir/internal/compare/score"
	"weir/cmd/weir/internal/compare/suite"
)

// Options of a run; the zero value works.
type Options struct {
	Repeat   int      // how often each case is asked, 1 by default, at most 100
	Seed     uint64   // of the resampling, 1 by default
	Mutating []string // tools that change something
	Prompts  *Prompts // what the agents' digests are held against; nil: nothing
	Harness  Harness
	// Progress is told after every answer; nil: nobody is.
	Progress func(Progress)
	// Now is the clock of generated_at; time.Now by default.
	Now func() time.Time
}

func (o Options) validate() (Options, error) {
	if o.Repeat == 0 {
		o.Repeat = 1
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Repeat < 1 || o.Repeat > 100 {
		return o, errors.New("expected 1 to 100 repetitions")
	}
	return o, nil
}

// Party is one of the two agents.
type Party struct {
	Name  string // for people; its address by default
	Agent *client.Agent
}

// Progress is one question that was put.
type Progress struct {
	Done, Total int
	Side        string // A or B
	Suite       suite.Kind
	Case        string
	Passed      bool   // by the gate's metric
	Broken      string // why there is no answer
	Latency     time.Duration
}

// patience is how many answers in a row one agent may fail to give before the
// run is given up: more would only take time.
const patience = 3

// run is a comparison in progress.
type run struct {
	opts    Options
	parties [2]Party
	scorer  *score.Scorer
	result  *Result
	total   int
	done    int
	misses  [2]int // in a row
}

// errGivenUp ends the asking; the reason stands in the result.
var errGivenUp = errors.New("given up")

// Run compares. The questions are put one at a time, A B A B; with repetitions
// every second round goes B A B A, so that neither agent is always the one that
// finds a shared model's cache warm. The result is complete as far as it went
// when [Result.Broken] is not empty. An error says that the run was cancelled
// or could not begin.
func Run(ctx context.Context, a, b Party, suites []suite.Suite, opts Options) (*Result, error) {
	opts, err := opts.validate()
	if err != nil {
		return nil, err
	}
	r := &run{opts: opts, parties: [2]Party{a, b}, scorer: score.New(score.Options{Mutating: opts.Mutating})}
	r.result = &Result{
		GeneratedAt: opts.Now().UTC().Format(time.RFC3339), Mode: "compare", Suite: "all", RunID: uuid.NewString(),
		Repeat: opts.Repeat, Seed: opts.Seed, Harness: opts.Harness, Broken: []string{}, Notes: []string{},
	}
	for i, p := range r.parties {
		if p.Name == "" {
			r.parties[i].Name = p.Agent.Origin()
		}
	}
	for _, s := range suites {
		r.total += 2 * opts.Repeat * len(s.Cases)
	}
	before := r.versions(ctx)
	if err := r.ask(ctx, suites); err != nil && !errors.Is(err, errGivenUp) {
		return nil, err
	}
	r.provenance(before, r.versions(ctx))
	r.result.summarize(suites, opts.Seed)
	return r.result, nil
}

func (r *run) ask(ctx context.Context, suites []suite.Suite) error {
	for _, s := range suites {
		cases := make([]CaseResult, len(s.Cases))
		for i := range s.Cases {
			cases[i] = newCase(s.Kind, &s.Cases[i])
		}
		err := r.rounds(ctx, s, cases)
		r.result.Cases = append(r.result.Cases, cases...)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) rounds(ctx context.Context, s suite.Suite, cases []CaseResult) error {
	for round := range r.opts.Repeat {
		for i := range cases {
			for turn := range 2 {
				side := (turn + round) % 2
				t, err := r.try(ctx, s.Kind, side, &s.Cases[i])
				if err != nil {
					return err
				}
				cases[i].add(side, t)
				if err := r.note(s.Kind, side, &s.Cases[i], t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// try asks one agent one question. Its error is the caller's cancellation.
func (r *run) try(ctx context.Context, kind suite.Kind, side int, c *suite.Case) (Trial, error) {
	got, err := r.parties[side].Agent.Ask(ctx, c.ID, c.Question)
	var broken *client.Broken
	if errors.As(err, &broken) {
		return Trial{Broken: broken.Reason, Calls: []Call{}, Metrics: []Metric{}, final: broken.Final}, nil
	}
	if err != nil {
		return Trial{}, err
	}
	return newTrial(got, r.scorer.Judge(kind, c, got)), nil
}

// note tells the progress and decides whether it makes sense to go on.
func (r *run) note(kind suite.Kind, side int, c *suite.Case, t Trial) error {
	r.done++
	name := sideNames[side]
	r.opts.Progress(Progress{
		Done: r.done, Total: r.total, Side: name, Suite: kind, Case: c.ID,
		Passed: t.Broken == "" && t.Metrics[0].Pass, Broken: t.Broken, Latency: time.Duration(t.Latency * float64(time.Second)),
	})
	if t.Broken == "" {
		r.misses[side] = 0
		return nil
	}
	r.misses[side]++
	r.result.Broken = append(r.result.Broken, fmt.Sprintf("%s, case %s: %s", name, c.ID, t.Broken))
	if t.final || r.misses[side] == patience {
		r.result.Broken = append(r.result.Broken, fmt.Sprintf("given up after %d of %d questions because of %s", r.done, r.total, name))
		return errGivenUp
	}
	return nil
}

var sideNames = [2]string{"A", "B"}
