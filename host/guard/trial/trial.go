// Package trial tries out a chain's output guards: it cuts texts into pieces and
// holds what the real sink releases of them against the promise of package guard,
// that a guarded stream equals the guarded whole.
package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"weir/abi"
	"weir/host/guard"
)

// Options bound a proof. The zero value is the default.
type Options struct {
	// Splits is how many two-way splits are tried, spread evenly when there are
	// more. Default: all.
	Splits int
	// Random is how many random splits are tried. Default 100.
	Random int
	// Seed of the random splits.
	Seed uint64
	// Shrink is how many runs may be spent on making a counterexample smaller.
	// Default 2000.
	Shrink int
}

// Proof is what came of trying.
type Proof struct {
	Whole  string // what is released of the text in one piece
	Cut    bool
	Runs   int             // ways to cut the text that were tried
	Broken *Counterexample // nil: all of them agree
}

// Counterexample is pieces whose guarded stream is not the guarded whole.
type Counterexample struct {
	Pieces   []string
	Released string
	Whole    string // what is released of the pieces put together
}

// Prove tries a text whole, in every two-way split, byte by byte, one character at
// a time and in random splits, each through a sink of its own. A guard that fails
// is an error: the promise says nothing about failures.
func Prove(ctx context.Context, chain *guard.Chain, text string, opts Options) (*Proof, error) {
	if opts.Random == 0 {
		opts.Random = 100
	}
	if opts.Shrink == 0 {
		opts.Shrink = 2000
	}
	whole, err := stream(ctx, chain, []string{text})
	if err != nil {
		return nil, err
	}
	p := &Proof{Whole: whole.text, Cut: whole.cut, Runs: 1}
	for pieces := range ways(text, opts) {
		got, err := stream(ctx, chain, pieces)
		if err != nil {
			return nil, err
		}
		p.Runs++
		if got != whole {
			p.Broken, err = shrink(ctx, chain, pieces, opts.Shrink)
			return p, err
		}
	}
	return p, nil
}

// ways yields the ways to cut a text, the simplest first.
func ways(text string, opts Options) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		step := 1
		if n := len(text); opts.Splits > 0 && n > opts.Splits {
			step = (n + opts.Splits - 1) / opts.Splits
		}
		for i := step; i < len(text); i += step {
			if !yield([]string{text[:i], text[i:]}) {
				return
			}
		}
		if !yield(runs(text, 1)) || !yield(bytewise(text)) {
			return
		}
		r := rand.New(rand.NewPCG(opts.Seed, 1))
		for range opts.Random {
			if !yield(Random(r, text)) {
				return
			}
		}
	}
}

func bytewise(text string) []string {
	pieces := make([]string, len(text))
	for i := range pieces {
		pieces[i] = text[i : i+1]
	}
	return pieces
}

// outcome is what a client is left with.
type outcome struct {
	text string
	cut  bool
}

// stream sends pieces through a sink, every one looked at before the next comes.
func stream(ctx context.Context, chain *guard.Chain, pieces []string) (outcome, error) {
	var out strings.Builder
	var fails failures
	s := chain.Session(guard.SessionOptions{
		Context: ctx, Stamp: Stamp, Observer: &fails,
		Release: func(text string) { out.WriteString(text) },
	})
	for _, p := range pieces {
		s.Sink().Push(p)
		if err := s.Sink().Sync(ctx); err != nil {
			s.Sink().Finish(ctx)
			return outcome{}, err
		}
	}
	v := s.Sink().Finish(ctx)
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	return outcome{out.String(), v.Cut}, fails.err()
}

// Stamp is the clock and seed of every call: the same for all, so that what a
// guard answers depends on the text alone.
func Stamp() abi.Call { return abi.Call{Now: 0, Seed: "0"} }

// failures collects the guards' failures.
type failures struct {
	mu   sync.Mutex
	errs []error
}

func (f *failures) GuardVerdict(v guard.Verdict) {
	if v.Err == nil || v.Monitor {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, fmt.Errorf("guard %s failed: %w", v.Guard, v.Err))
}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}

// shrink makes a counterexample smaller for as long as it stays one: fewer
// pieces, then less text.
func shrink(ctx context.Context, chain *guard.Chain, pieces []string, runs int) (*Counterexample, error) {
	best, err := compare(ctx, chain, pieces)
	if err != nil {
		return nil, err
	}
	for smaller := true; smaller; {
		smaller = false
		for candidate := range reductions(best.Pieces) {
			if runs--; runs < 0 {
				return best, nil
			}
			c, err := compare(ctx, chain, candidate)
			if err != nil {
				return best, nil // a failure is no counterexample
			}
			if c.Released != c.Whole {
				best, smaller = c, true
				break
			}
		}
	}
	return best, nil
}

func compare(ctx context.Context, chain *guard.Chain, pieces []string) (*Counterexample, error) {
	got, err := stream(ctx, chain, pieces)
	if err != nil {
		return nil, err
	}
	whole, err := stream(ctx, chain, []string{strings.Join(pieces, "")})
	return &Counterexample{Pieces: pieces, Released: got.text, Whole: whole.text}, err
}

// reductions yields smaller forms of pieces, the boldest first.
func reductions(pieces []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for i := range pieces {
			if len(pieces) > 1 && !yield(slices.Delete(slices.Clone(pieces), i, i+1)) {
				return
			}
		}
		for i := range len(pieces) - 1 {
			joined := slices.Clone(pieces)
			joined[i] += joined[i+1]
			if len(pieces) > 2 && !yield(slices.Delete(joined, i+1, i+2)) {
				return
			}
		}
		for i, p := range pieces {
			for n := len(p) / 2; n > 0; n /= 2 {
				for _, shorter := range []string{p[n:], p[:len(p)-n]} {
					if shorter == "" {
						continue
					}
					less := slices.Clone(pieces)
					less[i] = shorter
					if !yield(less) {
						return
					}
				}
			}
		}
	}
}
