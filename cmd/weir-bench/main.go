// Command weir-bench measures what weir promises about speed, memory and swaps
// and prints one table: what was measured, what it must reach, and whether it
// did.
//
//	weir-bench                    every row
//	weir-bench --rows 'match|pii' rows by their ids
//	weir-bench --quick            shorter; for trying
//	weir-bench --json             the result on stdout as JSON
//
// A row is a line in table.go: a metric of a Go benchmark that lives beside the
// code it measures. The program builds the test binaries, runs one benchmark at
// a time and writes bench/latest.json.
//
// It ends with 1 when a row that decides misses its bound. Ratios decide, and
// so do counts (characters, requests), because both mean the same on every
// machine. Times, sizes and rates decide only with STRICT=1 in the environment.
// A row that could not be measured always decides.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the command line and the environment.
type settings struct {
	rows   *regexp.Regexp
	quick  bool
	json   bool
	strict bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	s := settings{strict: os.Getenv("STRICT") == "1"}
	f := flag.NewFlagSet("weir-bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	rows := f.String("rows", "", "a regular expression; only rows whose id it matches")
	f.BoolVar(&s.quick, "quick", false, "shorter measurements, once")
	f.BoolVar(&s.json, "json", false, "print JSON in place of the table")
	err := f.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
		fmt.Fprintln(stderr, "weir-bench:", err)
	}
	if err == nil {
		if s.rows, err = regexp.Compile(*rows); err != nil {
			fmt.Fprintln(stderr, "weir-bench: --rows:", err)
		}
	}
	return s, err
}

// run is the whole program: 0 when every row that decides is within its bound,
// 1 when not, 2 for a command line that is not understood.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	results, err := s.measure(ctx, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "weir-bench:", err)
		return 1
	}
	return exitCode(results, s.strict)
}

func (s settings) measure(ctx context.Context, stdout, stderr io.Writer) ([]result, error) {
	rows, err := s.chosen(table())
	if err != nil {
		return nil, err
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	shop, err := newWorkshop(root, s.quick, stderr)
	if err != nil {
		return nil, err
	}
	defer shop.close()
	m := thisMachine()
	results := shop.measure(ctx, rows)
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	data, err := json.MarshalIndent(records(results), "", "  ")
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	if s.json {
		_, err = stdout.Write(data)
	} else {
		err = printTable(stdout, m, results, s.strict)
	}
	return results, errors.Join(err, keep(filepath.Join(root, "bench"), data))
}

func (s settings) chosen(all []row) (rows []row, err error) {
	for _, r := range all {
		if s.rows.MatchString(r.id) {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no row's id matches %q", s.rows)
	}
	return rows, nil
}

// keep writes the result where other programs look for it.
func keep(dir string, data []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "latest.json"), data, 0o644)
}

// moduleRoot returns the folder of the go.mod above the current one.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("expected to be run inside weir's source tree: benchmarks are built from it")
		}
	}
}
