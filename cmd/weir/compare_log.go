package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/cmd/weir/internal/compare/report"
	"weir/cmd/weir/internal/compare/variant"
	"weir/cmd/weir/internal/sample"
	"weir/host/fault"
)

// compareLogFlags are the command line.
type compareLogFlags struct {
	config, out string
	since       time.Duration
	seed        uint64
	asJSON      bool
}

// compareLog compares variants by recorded runs. Exit code 2 means that one of
// them, or the base, could not be compared.
func (w *weir) compareLog(ctx context.Context, args []string) int {
	var c compareLogFlags
	f := w.compareLogFlags(&c)
	other := w.flags("compare")
	new(compareFlags).register(w, other)
	if name := foreign(args, f, other); name != "" {
		fmt.Fprintf(w.stderr, "weir compare --log: --%s: expected no such flag beside --log, which reads recorded runs and asks nobody\n", name)
		return exitUsage
	}
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	return w.compareLogs(ctx, &c)
}

func (w *weir) compareLogFlags(c *compareLogFlags) *flag.FlagSet {
	f := w.flags("compare --log")
	f.StringVar(&c.config, "config", "", "agent.toml that names the host, its store and the variants; wins over AGENT_CONFIG_PATH")
	f.DurationVar(&c.since, "since", 24*time.Hour, "compare the runs that began in this last while")
	f.StringVar(&c.out, "out", "", "the folder for report.html and result.json; without it nothing is written")
	f.Uint64Var(&c.seed, "seed", 1, "of the resampling; the same seed gives the same intervals")
	f.BoolVar(&c.asJSON, "json", false, "print the result as JSON in place of the tables")
	return f
}

// without takes a flag that has no value out of the arguments, and tells whether
// it was there.
func without(args []string, name string) (rest []string, found bool) {
	for _, arg := range args {
		if arg == "-"+name || arg == "--"+name {
			found = true
		} else {
			rest = append(rest, arg)
		}
	}
	return rest, found
}

// foreign is the first flag of the arguments that is not one of own and one of
// the other command's.
func foreign(args []string, own, other *flag.FlagSet) string {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && own.Lookup(name) == nil && other.Lookup(name) != nil {
			return name
		}
	}
	return ""
}

func (w *weir) compareLogs(ctx context.Context, c *compareLogFlags) int {
	result, err := w.compareRecorded(ctx, c)
	if err == nil {
		err = c.write(result)
	}
	if err == nil && c.asJSON {
		err = report.WriteVariantsJSON(w.stdout, result)
	} else if err == nil {
		err = report.WriteVariantsText(w.stdout, result)
	}
	if err != nil {
		w.refuse("weir compare --log", err)
		return exitUsage
	}
	if c.out != "" {
		fmt.Fprintf(w.stderr, "report: %s\n", filepath.Join(c.out, "report.html"))
	}
	if len(result.Broken) > 0 {
		return exitUsage
	}
	return exitOK
}

func (w *weir) compareRecorded(ctx context.Context, c *compareLogFlags) (*variant.Result, error) {
	if c.since <= 0 {
		return nil, errors.New("--since: expected a positive duration")
	}
	cfg, source, err := w.recordings(ctx, c.config)
	if err != nil {
		return nil, err
	}
	defer source.close()
	ids, err := source.list(ctx, c.since)
	if err != nil {
		return nil, err
	}
	var samples []variant.Sample
	var unread unreadable
	for _, id := range ids {
		log, err := source.log(ctx, id)
		if err == nil {
			var s variant.Sample
			if s, err = sample.Read(log); err == nil {
				samples = append(samples, s)
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			unread.add(id, err)
		}
	}
	opts := variant.Options{Config: cfg.Path, Since: c.since, Seed: c.seed, Harness: thisHarness()}
	for _, v := range cfg.Variants {
		opts.Variants = append(opts.Variants, variant.Declared{Name: v.Name, Share: v.Share})
	}
	result := variant.Compare(samples, opts)
	result.Notes = append(result.Notes, unread.all()...)
	return result, nil
}

// unreadable are the logs that cannot be read. Of each kind of fault the first
// ones are named, since a store that is damaged or away has one for every run.
type unreadable struct {
	named []string
	count map[fault.Kind]int
}

// maxUnreadable is how many logs are named of each kind of fault.
const maxUnreadable = 20

func (u *unreadable) add(id string, err error) {
	if u.count == nil {
		u.count = map[fault.Kind]int{}
	}
	kind := fault.Of(err)
	u.count[kind]++
	if u.count[kind] <= maxUnreadable {
		u.named = append(u.named, fmt.Sprintf("a log cannot be read: %s: %v", id, err))
	}
}

// all are the notes, with the number of those that are not named.
func (u *unreadable) all() []string {
	notes := u.named
	for _, kind := range slices.Sorted(maps.Keys(u.count)) {
		if more := u.count[kind] - maxUnreadable; more > 0 {
			notes = append(notes, fmt.Sprintf("and %d more logs cannot be read: %s", more, kind))
		}
	}
	return notes
}

// write puts the files into the folder.
func (c *compareLogFlags) write(r *variant.Result) error {
	if c.out == "" {
		return nil
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	return errors.Join(
		create(filepath.Join(c.out, "result.json"), func(f *os.File) error { return report.WriteVariantsJSON(f, r) }),
		create(filepath.Join(c.out, "report.html"), func(f *os.File) error { return report.WriteVariantsHTML(f, r) }))
}
