package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"weir/host/benchtest"
)

// bench is a Go benchmark and how long it runs.
type bench struct {
	pkg  string // folder, from the module's root
	name string // as the go command prints it, without Benchmark
	time string // -benchtime
	// quick is that of --quick; empty: the same.
	quick string
	// repeat is how often it runs; the median of each metric counts.
	repeat int
}

// workshop builds and runs benchmarks, one at a time.
type workshop struct {
	root  string
	quick bool
	notes io.Writer
	dir   string             // of the test binaries
	built map[string]error   // by package
	runs  map[bench]*figures // that were run
}

// figures are the metrics of one benchmark, each with one value a repetition.
type figures struct {
	values map[string][]float64
	err    error
}

func newWorkshop(root string, quick bool, notes io.Writer) (*workshop, error) {
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		return nil, err
	}
	return &workshop{root: root, quick: quick, notes: notes, dir: dir,
		built: map[string]error{}, runs: map[bench]*figures{}}, nil
}

func (w *workshop) close() { _ = os.RemoveAll(w.dir) }

// measure takes the rows in their order. Rows of one benchmark share its run.
func (w *workshop) measure(ctx context.Context, rows []row) []result {
	results := make([]result, 0, len(rows))
	for _, r := range rows {
		value, err := w.value(ctx, r)
		results = append(results, result{row: r, value: value, err: err})
	}
	return results
}

func (w *workshop) value(ctx context.Context, r row) (float64, error) {
	f, ok := w.runs[r.bench]
	if !ok {
		fmt.Fprintf(w.notes, "measuring %s %s\n", r.bench.pkg, r.bench.name)
		f = w.run(ctx, r.bench)
		w.runs[r.bench] = f
	}
	if f.err != nil {
		return 0, f.err
	}
	values := f.values[r.metric]
	if len(values) == 0 {
		return 0, fmt.Errorf("benchmark %s did not report %s", r.bench.name, r.metric)
	}
	per := r.per
	if per == 0 {
		per = 1
	}
	return benchtest.Quantile(values, 0.5) / per, nil
}

func (w *workshop) run(ctx context.Context, b bench) *figures {
	if err := w.build(ctx, b.pkg); err != nil {
		return &figures{err: err}
	}
	cmd := exec.CommandContext(ctx, w.binary(b.pkg), w.flags(b)...)
	cmd.Dir = filepath.Join(w.root, filepath.FromSlash(b.pkg))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return &figures{err: fmt.Errorf("benchmark %s: %w\n%s", b.name, err, tail(out))}
	}
	return &figures{values: metrics(out, b.name)}
}

func (w *workshop) flags(b bench) []string {
	time, repeat := b.time, max(b.repeat, 1)
	if w.quick {
		repeat = 1
		if b.quick != "" {
			time = b.quick
		}
	}
	return []string{"-test.run=^$", "-test.bench=" + pattern(b.name), "-test.benchtime=" + time,
		"-test.count=" + strconv.Itoa(repeat), "-test.benchmem", "-test.timeout=30m"}
}

// build makes a package's test binary, once.
func (w *workshop) build(ctx context.Context, pkg string) error {
	if err, done := w.built[pkg]; done {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", w.binary(pkg), "./"+pkg)
	cmd.Dir = w.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, tail(out))
	}
	w.built[pkg] = err
	return err
}

func (w *workshop) binary(pkg string) string {
	return filepath.Join(w.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// pattern is the -bench expression that matches one benchmark.
func pattern(name string) string {
	parts := strings.Split("Benchmark"+name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// metrics reads what the lines of one benchmark report: pairs of a value and
// its name, behind the benchmark's name and the number of its runs.
func metrics(out []byte, name string) map[string][]float64 {
	values := map[string][]float64{}
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || !isRun(fields[0], name) {
			continue
		}
		for pairs := fields[2:]; len(pairs) >= 2; pairs = pairs[2:] {
			if v, err := strconv.ParseFloat(pairs[0], 64); err == nil {
				values[pairs[1]] = append(values[pairs[1]], v)
			}
		}
	}
	return values
}

// isRun tells whether the first word of a line names the benchmark; the number
// of processors may stand behind it.
func isRun(word, name string) bool {
	rest, ok := strings.CutPrefix(word, "Benchmark"+name)
	if !ok || rest == "" {
		return ok
	}
	_, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
	return rest[0] == '-' && err == nil
}

// tail is the end of an output, for an error.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
