package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bound bound
		value float64
		holds bool
	}{
		{atMost(6), 6, true},
		{atMost(6), 6.01, false},
		{atMost(0), 0, true},
		{atLeast(10), 10, true},
		{atLeast(10), 9.99, false},
		{bound{}, 1e9, true},
		{atMost(6), nan(), false},
		{atLeast(6), nan(), false},
		{bound{}, nan(), false},
	} {
		if c.bound.holds(c.value) != c.holds {
			t.Errorf("%v, value %v: holds %v", c.bound, c.value, !c.holds)
		}
	}
	if got := atMost(1.3).String() + atLeast(300).String() + (bound{}).String(); got != "≤ 1.3≥ 300" {
		t.Error(got)
	}
}

func nan() float64 { var zero float64; return zero / zero }

// DECISIONS 12: ratios decide; absolute units decide with STRICT=1 only.
func TestExitCode(t *testing.T) {
	row := func(u unit, b bound, value float64, err error) result {
		return result{row: row{id: "x", unit: u, bound: b}, value: value, err: err}
	}
	good, bad := row(ratio, atMost(3), 2, nil), row(ratio, atMost(3), 4, nil)
	slow := row(micros, atMost(6), 7, nil)
	for name, c := range map[string]struct {
		results       []result
		usual, strict int
	}{
		"none":                  {nil, 0, 0},
		"all kept":              {[]result{good, row(seconds, atMost(1), 1, nil)}, 0, 0},
		"a ratio missed":        {[]result{good, bad, good}, 1, 1},
		"a time missed":         {[]result{good, slow}, 0, 1},
		"a size missed":         {[]result{row(kibibytes, atMost(1), 2, nil)}, 0, 1},
		"a rate missed":         {[]result{row(megaRate, atLeast(15), 2, nil)}, 0, 1},
		"garbage missed":        {[]result{row(bytesUnit, atMost(300), 301, nil)}, 0, 1},
		"a count missed":        {[]result{row(requests, atMost(0), 1, nil)}, 1, 1},
		"characters missed":     {[]result{row(characters, atMost(5), 6, nil)}, 1, 1},
		"without a bound":       {[]result{row(ratio, bound{}, 99, nil)}, 0, 0},
		"a time, not measured":  {[]result{row(micros, atMost(6), 0, errors.New("no"))}, 1, 1},
		"no bound, no measure":  {[]result{row(ratio, bound{}, 0, errors.New("no"))}, 1, 1},
		"times both, one ratio": {[]result{slow, slow, good}, 0, 1},
	} {
		if got := exitCode(c.results, false); got != c.usual {
			t.Errorf("%s: %d, want %d", name, got, c.usual)
		}
		if got := exitCode(c.results, true); got != c.strict {
			t.Errorf("%s, strict: %d, want %d", name, got, c.strict)
		}
	}
}

const output = `goos: linux
cpu: AMD EPYC
BenchmarkEcho/go-2    	     300	     10064 ns/op	         4718 p50-ns	    1829 B/op
BenchmarkEcho/go-2    	     300	     10065 ns/op	         4720 p50-ns	    1829 B/op
BenchmarkEcho/go-back-2 	     300	     1 p50-ns
BenchmarkEcho/gone-2  	     300	     2 p50-ns
--- BENCH: BenchmarkEcho/go-2
PASS
`

func TestMetrics(t *testing.T) {
	got := metrics([]byte(output), "Echo/go")
	want := map[string][]float64{"ns/op": {10064, 10065}, "p50-ns": {4718, 4720}, "B/op": {1829, 1829}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	one := metrics([]byte("BenchmarkX 	 1	 5 ns/op\n"), "X") // one processor
	if diff := cmp.Diff(map[string][]float64{"ns/op": {5}}, one); diff != "" {
		t.Error(diff)
	}
	if got := metrics([]byte("--- FAIL: BenchmarkX\nFAIL\n"), "X"); len(got) > 0 {
		t.Error(got)
	}
}

func TestPattern(t *testing.T) {
	if got := pattern("Metering/go/all"); got != "^BenchmarkMetering$/^go$/^all$" {
		t.Error(got)
	}
}

// A repeated benchmark counts by its median, and rows of one share a run.
func TestValue(t *testing.T) {
	b := bench{pkg: "p", name: "B"}
	w := &workshop{notes: io.Discard, runs: map[bench]*figures{b: {values: map[string][]float64{"p50-ns": {9000, 2000, 3000}}}}}
	rows := []row{{bench: b, metric: "p50-ns", per: 1e3}, {bench: b, metric: "p50-ns"}, {bench: b, metric: "other"}}
	got := w.measure(t.Context(), rows)
	if got[0].value != 3 || got[1].value != 3000 || got[2].err == nil {
		t.Errorf("%+v", got)
	}
}

func TestReport(t *testing.T) {
	results := []result{
		{row: row{id: "a", what: "first", unit: ratio, bound: atMost(3)}, value: 2.4567},
		{row: row{id: "bb", what: "a time that is too long", unit: micros, bound: atMost(6)}, value: 12.34},
		{row: row{id: "c", what: "beside", unit: ratio}, value: 345.6},
		{row: row{id: "d", what: "broken", unit: seconds, bound: atMost(1)}, err: errors.New("it broke")},
	}
	var b bytes.Buffer
	if err := printTable(&b, machine{cpu: "C", cores: 2, kernel: "Linux 6", golang: "go1"}, results, false); err != nil {
		t.Fatal(err)
	}
	want := `id  what                     value  unit  bound  ok
a   first                     2.46  ×     ≤ 3    yes
bb  a time that is too long   12.3  µs    ≤ 6    (no)
c   beside                     346  ×
d   broken                       -  s     ≤ 1    not measured

d: it broke
1 of 3 bounds are kept; 1 of the misses decide.
`
	machineLine, table, _ := strings.Cut(b.String(), "\n\n")
	if diff := cmp.Diff(want, table); diff != "" || !strings.HasPrefix(machineLine, "C, 2 cores, Linux 6, go1 (") {
		t.Error(machineLine, diff)
	}
	data, err := json.Marshal(records(results))
	if err != nil {
		t.Fatal(err)
	}
	const wantJSON = `[{"id":"a","value":2.46,"unit":"×","bound":"≤ 3","ok":true},` +
		`{"id":"bb","value":12.3,"unit":"µs","bound":"≤ 6","ok":false},` +
		`{"id":"c","value":346,"unit":"×","bound":"","ok":true},` +
		`{"id":"d","value":null,"unit":"s","bound":"≤ 1","ok":false}]`
	if diff := cmp.Diff(wantJSON, string(data)); diff != "" {
		t.Error(diff)
	}
}

// Ids are names that others rely on, and every benchmark of the table exists.
func TestTable(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, r := range table() {
		if !id.MatchString(r.id) || seen[r.id] {
			t.Errorf("id %q: twice, or not of small letters, digits and hyphens", r.id)
		}
		seen[r.id] = true
		if r.what == "" || r.unit == "" || r.metric == "" || r.bench.time == "" {
			t.Errorf("%s: %+v", r.id, r)
		}
		name, _, _ := strings.Cut(r.bench.name, "/")
		if !declares(t, filepath.Join(root, filepath.FromSlash(r.bench.pkg)), "func Benchmark"+name+"(") {
			t.Errorf("%s: %s has no Benchmark%s", r.id, r.bench.pkg, name)
		}
	}
}

func declares(t *testing.T, dir, text string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

func TestCommandLine(t *testing.T) {
	var stderr bytes.Buffer
	for _, args := range [][]string{{"extra"}, {"--rows", "("}, {"--unknown"}} {
		if code := run(t.Context(), args, io.Discard, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%q: exit code %d, %q", args, code, &stderr)
		}
		stderr.Reset()
	}
	if code := run(t.Context(), []string{"--rows", "no such row"}, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "no row's id matches") {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
	if code := run(t.Context(), []string{"--help"}, io.Discard, &stderr); code != 0 {
		t.Errorf("help: exit code %d", code)
	}
}
