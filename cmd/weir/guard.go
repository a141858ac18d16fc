package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"weir/abi"
	"weir/host"
	"weir/host/guard"
	"weir/host/guard/trial"
)

// manySplits is from where on a proof takes a while: the time that it takes grows
// with the square of the text.
const manySplits = 5000

// guardFlags are what the command guard was asked for.
type guardFlags struct {
	set      host.GuardSetOptions
	chunking trial.Chunking
	prove    bool
	proof    trial.Options
	json     bool
}

// guard runs a text from stdin through output guards and shows every step, or
// proves that no way to cut it makes a difference.
func (w *weir) guard(ctx context.Context, args []string) int {
	opts, code, ok := w.guardFlags(args)
	if !ok {
		return code
	}
	log, err := w.logger(slog.LevelWarn)
	if err != nil {
		return w.refuse("weir guard", err)
	}
	opts.set.Env, opts.set.Logger = w.env, log
	text, err := w.text()
	if err == nil && opts.prove && text == "" {
		err = errors.New("text: expected something to cut on stdin")
	}
	if err != nil {
		return w.refuse("weir guard", err)
	}
	set, err := host.OpenGuards(ctx, opts.set)
	if err != nil {
		return w.refuse("weir guard", err)
	}
	show := w.watch
	if opts.prove {
		show = w.prove
	}
	held, err := show(ctx, set, text, opts)
	if err = errors.Join(err, set.Close(context.WithoutCancel(ctx))); err != nil {
		return w.refuse("weir guard", err)
	}
	if !held {
		return exitFailed
	}
	return exitOK
}

func (w *weir) guardFlags(args []string) (opts guardFlags, code int, ok bool) {
	f := w.flags("guard")
	f.StringVar(&opts.set.Plugin, "plugin", "", "a guardrail's name in agent.toml or a module's file; without it all output guards of agent.toml")
	f.StringVar(&opts.set.ConfigPath, "config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	f.Func("settings", "the configuration of a module's file as JSON, or @FILE", func(text string) (err error) {
		opts.set.Settings, err = jsonArgument(text)
		return err
	})
	opts.chunking, _ = trial.ParseChunking("words")
	f.Func("chunk", "how the text arrives: words (default), each, whole, random:SEED or a number of characters", func(text string) (err error) {
		opts.chunking, err = trial.ParseChunking(text)
		return err
	})
	f.BoolVar(&opts.prove, "prove", false, "try every two-way split, single bytes and random pieces; exit 1 with the smallest counterexample")
	f.IntVar(&opts.proof.Random, "random", 100, "random splits that --prove tries")
	f.IntVar(&opts.proof.Splits, "splits", 0, "two-way splits that --prove tries; 0: all")
	f.Uint64Var(&opts.proof.Seed, "seed", 0, "seed of the random splits")
	f.BoolVar(&opts.json, "json", false, "one JSON object a line")
	_, code, ok = w.parse(f, args, 0)
	return opts, code, ok
}

// maxGuardText is above the longest answer, 200,000 characters.
const maxGuardText = 1 << 20

func (w *weir) text() (string, error) {
	data, err := io.ReadAll(io.LimitReader(w.stdin, maxGuardText+1))
	if err == nil && len(data) > maxGuardText {
		err = errors.New("expected at most 1 MiB")
	}
	if err == nil && !utf8.Valid(data) {
		err = errors.New("expected UTF-8")
	}
	if err != nil {
		return "", fmt.Errorf("text: %w", err)
	}
	return string(data), nil
}

// prove prints the verdict and returns whether the promise held.
func (w *weir) prove(ctx context.Context, set *host.GuardSet, text string, opts guardFlags) (bool, error) {
	if opts.proof.Splits == 0 && len(text) > manySplits {
		fmt.Fprintf(w.stderr, "weir guard: more than %d ways to cut the text; --splits N tries fewer of them\n", len(text))
	}
	proof, err := trial.Prove(ctx, set.Chain, text, opts.proof)
	if err != nil {
		return false, err
	}
	if opts.json {
		w.line(proofLine(proof, set))
		return proof.Broken == nil, nil
	}
	if c := proof.Broken; c != nil {
		fmt.Fprintf(w.stdout, "broken after %d ways to cut the text. The smallest that was found:\n  pieces   %q\n  released %q\n  whole    %q\n",
			proof.Runs, c.Pieces, c.Released, c.Whole)
		return false, nil
	}
	fmt.Fprintf(w.stdout, "holds: %d ways to cut %d characters, each released as the whole (%s)\n",
		proof.Runs, utf8.RuneCountInString(text), strings.Join(set.Names, ", "))
	return true, nil
}

// watch shows what comes of every piece. It returns false when a guard failed.
func (w *weir) watch(ctx context.Context, set *host.GuardSet, text string, opts guardFlags) (bool, error) {
	r := set.Chain.Rehearse(guard.SessionOptions{Stamp: func() abi.Call { return trial.Stamp() }})
	show := w.stepPrinter(opts.json)
	var sum summary
	for i, piece := range opts.chunking.Cut(text) {
		step, err := r.Push(ctx, piece)
		if err != nil {
			return false, err
		}
		sum.add(step)
		show(i+1, piece, step)
		if step.Ended {
			break // the rest is dropped
		}
	}
	step, verdict, err := r.Finish(ctx)
	if err != nil {
		return false, err
	}
	sum.add(step)
	show(0, "", step)
	sum.released, sum.decision = r.Released(), verdict.Decision
	if opts.json {
		w.line(sum.line())
	} else {
		sum.print(w.stdout)
	}
	return sum.failed == nil, sum.failed
}

// summary is what came of all steps.
type summary struct {
	steps, held, most int // steps that saw text, characters held over all of them, most at once
	calls             map[string]int
	released          string
	decision          abi.Raw
	failed            error
}

func (s *summary) add(step guard.Step) {
	n := utf8.RuneCountInString(step.Held)
	s.steps, s.held, s.most = s.steps+1, s.held+n, max(s.most, n)
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	for _, g := range step.Guards {
		s.calls[g.Name] += g.Calls
		if g.Err != nil && s.failed == nil {
			s.failed = fmt.Errorf("guard %s failed: %w", g.Name, g.Err)
		}
	}
}

func (s *summary) mean() float64 { return float64(s.held) / float64(max(1, s.steps)) }
