package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"weir/cmd/weir/internal/compare"
	"weir/cmd/weir/internal/compare/client"
	"weir/cmd/weir/internal/compare/report"
	"weir/cmd/weir/internal/compare/suite"
	"weir/docs/evaluation"
)

func compareCommands() []command {
	return []command{
		{"compare --log", "[--since 24h] [--config FILE] [--out DIR] [--seed N] [--json]",
			"compare the variants of agent.toml by the runs that a host has recorded, each with the base; exit code 2 when a variant could not be compared",
			"weir compare --log --since 168h --out report", (*weir).compareLog},
		{"compare", "--a URL[,key=KEY|@FILE][,key-env=NAME][,name=NAME] --b URL… [--suite FILE|DIR] [--repeat N] [--out DIR] [--gate] [--json]",
			"ask two agents the same questions, by turns, and say how they differ; exit code 1 with --gate when a suite's gate fails on B, 2 when the comparison itself did not work",
			"weir compare --a http://127.0.0.1:8000,key=@a.key --b http://127.0.0.1:8001,key=@b.key --out report", (*weir).compare},
	}
}

// compareFlags are the command line.
type compareFlags struct {
	a, b, suite, out, prompts string
	tools, mutating           string
	repeat                    int
	seed                      uint64
	gate, asJSON              bool
	client                    client.Options
}

func (c *compareFlags) register(w *weir, f *flag.FlagSet) {
	f.StringVar(&c.a, "a", "", "the first agent: its address; after commas key=KEY or key=@FILE, key-env=NAME, name=NAME")
	f.StringVar(&c.b, "b", "", "the second agent, whose gates decide")
	f.StringVar(&c.suite, "suite", "", "a dataset, or a folder of them; without it the shipped suites")
	f.IntVar(&c.repeat, "repeat", 1, "how often each case is asked")
	f.Uint64Var(&c.seed, "seed", 1, "of the resampling; the same seed gives the same intervals")
	f.StringVar(&c.out, "out", "", "the folder for report.html, result.json and the result files of each suite; without it nothing is written")
	f.StringVar(&c.prompts, "prompts", "", "an evaluator's YAML file, as weir config export-evaluator prints it; both agents' digests are held against it")
	f.StringVar(&c.tools, "tools", w.either("EVALUATION_TOOL_NAMES", "search_tickets,get_ticket"), "names that count as tools, with commas")
	f.StringVar(&c.mutating, "mutating", w.either("EVALUATION_MUTATING_TOOLS", ""), "names of tools that change something, with commas")
	f.StringVar(&c.client.Principal, "principal", w.either("EVALUATION_PRINCIPAL", client.Principal), "who asks")
	f.DurationVar(&c.client.Timeout, "timeout", 6*time.Minute, "of one answer")
	f.IntVar(&c.client.Attempts, "attempts", 4, "tries to get an answer begun")
	f.BoolVar(&c.gate, "gate", false, "exit code 1 when a suite's gate fails on B")
	f.BoolVar(&c.asJSON, "json", false, "print the result as JSON in place of the tables")
}

// either is a variable's value, or a default.
func (w *weir) either(name, value string) string {
	if v, _ := w.env(name); strings.TrimSpace(v) != "" {
		return strings.TrimSpace(v)
	}
	return value
}

// compare asks and reports. Exit code 2 means that the comparison did not work,
// which never looks like a bad score.
func (w *weir) compare(ctx context.Context, args []string) int {
	if rest, ok := without(args, "log"); ok {
		return w.compareLog(ctx, rest)
	}
	f := w.flags("compare")
	var c compareFlags
	c.register(w, f)
	if name := foreign(args, f, w.compareLogFlags(&compareLogFlags{})); name != "" {
		fmt.Fprintf(w.stderr, "weir compare: --%s: expected --log beside it, which compares recorded runs; two agents are --a and --b\n", name)
		return exitUsage
	}
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	result, err := w.comparison(ctx, &c)
	if err == nil {
		err = c.write(result)
	}
	if err == nil {
		print := report.WriteText
		if c.asJSON {
			print = report.WriteJSON
		}
		err = print(w.stdout, result)
	}
	if err != nil {
		fmt.Fprintf(w.stderr, "weir compare: %v\n", err)
		return exitUsage
	}
	if c.out != "" {
		fmt.Fprintf(w.stderr, "report: %s\n", filepath.Join(c.out, "report.html"))
	}
	switch {
	case len(result.Broken) > 0 || result.Passed == nil:
		return exitUsage
	case c.gate && !*result.Passed:
		return exitFailed
	}
	return exitOK
}

func (w *weir) comparison(ctx context.Context, c *compareFlags) (*compare.Result, error) {
	suites, notes, err := loadSuites(c.suite)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		fmt.Fprintf(w.stderr, "weir compare: %s\n", report.Clean(n))
	}
	c.client.Tools = split(c.tools)
	a, err := w.party("--a", c.a, c.client)
	if err != nil {
		return nil, err
	}
	defer a.Agent.Close()
	b, err := w.party("--b", c.b, c.client)
	if err != nil {
		return nil, err
	}
	defer b.Agent.Close()
	opts := compare.Options{Repeat: c.repeat, Seed: c.seed, Mutating: split(c.mutating), Harness: thisHarness(), Progress: w.progress(c.asJSON)}
	if c.prompts != "" {
		data, err := os.ReadFile(c.prompts)
		if err != nil {
			return nil, err
		}
		if opts.Prompts, err = compare.ReadPrompts(data); err != nil {
			return nil, fmt.Errorf("%s: %w", c.prompts, err)
		}
	}
	result, err := compare.Run(ctx, a, b, suites, opts)
	if err != nil {
		return nil, err
	}
	result.Notes = append(result.Notes, notes...)
	return result, nil
}

func loadSuites(name string) ([]suite.Suite, []string, error) {
	if name == "" {
		return suite.Load(evaluation.Suites(), ".")
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, nil, err
	}
	return suite.Load(os.DirFS(filepath.Dir(abs)), filepath.Base(abs))
}

func split(names string) []string {
	var out []string
	for _, n := range strings.Split(names, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// party reads URL[,key=…][,key-env=…][,name=…]. A command line is read by
// everybody on a machine, so a file or a variable is better for the key; what
// is wrong with one is said without it.
func (w *weir) party(flag, spec string, opts client.Options) (p compare.Party, err error) {
	parts := strings.Split(spec, ",")
	if strings.TrimSpace(parts[0]) == "" {
		return p, fmt.Errorf("%s: expected an address such as http://127.0.0.1:8000", flag)
	}
	key, _ := w.env(conformKey)
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		switch strings.TrimSpace(name) {
		case "key":
			key = value
		case "key-env":
			var set bool
			if key, set = w.env(value); !set {
				return p, fmt.Errorf("%s: the variable %s is not set", flag, value)
			}
		case "name":
			p.Name = value
		default:
			return p, fmt.Errorf("%s: expected key=, key-env= or name= after the address; a key with a comma has to come from a file or a variable", flag)
		}
	}
	if path, ok := strings.CutPrefix(key, "@"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return p, fmt.Errorf("%s: %w", flag, err)
		}
		key = string(data)
	}
	if key = strings.TrimSpace(key); key == "" {
		return p, fmt.Errorf("%s: expected a key: key=@FILE, key-env=NAME or the variable %s", flag, conformKey)
	}
	if p.Agent, err = client.New(strings.TrimSpace(parts[0]), key, opts); err != nil {
		return p, fmt.Errorf("%s: %w", flag, err)
	}
	return p, nil
}

// thisHarness is this program, by its build's own record.
func thisHarness() compare.Harness {
	h := compare.Harness{Version: "development"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return h
	}
	if info.Main.Version != "" {
		h.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			h.Commit = s.Value
		case "vcs.modified":
			dirty := s.Value == "true"
			h.Dirty = &dirty
		}
	}
	return h
}

// progress shows on stderr what is being asked: one line that is written over
// on a terminal, elsewhere one for each suite. What is broken is always said.
func (w *weir) progress(quiet bool) func(compare.Progress) {
	file, _ := w.stderr.(*os.File)
	terminal := false
	if file != nil {
		info, err := file.Stat()
		terminal = err == nil && info.Mode()&fs.ModeCharDevice != 0
	}
	last := suite.Kind("")
	return func(p compare.Progress) {
		if p.Broken != "" {
			fmt.Fprintf(w.stderr, "%s %s %s: no readable answer: %s\n", p.Side, p.Suite, p.Case, report.Clean(p.Broken))
		}
		switch {
		case quiet:
		case terminal:
			fmt.Fprintf(w.stderr, "\r\x1b[K%d of %d  %s  %s  %s", p.Done, p.Total, p.Suite, p.Side, p.Case)
			if p.Done == p.Total {
				fmt.Fprint(w.stderr, "\r\x1b[K")
			}
		case p.Suite != last:
			fmt.Fprintf(w.stderr, "%s (%d of %d)\n", p.Suite, p.Done, p.Total)
			last = p.Suite
		}
	}
}

// write puts the files into the folder.
func (c *compareFlags) write(r *compare.Result) error {
	if c.out == "" {
		return nil
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	files := map[string]func(*os.File) error{
		"result.json": func(f *os.File) error { return report.WriteJSON(f, r) },
		"report.html": func(f *os.File) error { return report.WriteHTML(f, r) },
	}
	for name, write := range files {
		if err := create(filepath.Join(c.out, name), write); err != nil {
			return err
		}
	}
	for _, side := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(c.out, side), 0o755); err != nil {
			return err
		}
		for _, one := range r.Files(side) {
			name := filepath.Join(c.out, side, string(one.Suite)+"-latest.json")
			if err := create(name, func(f *os.File) error { return report.WriteSuite(f, one) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func create(name string, write func(*os.File) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
