package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unit is what a value counts.
type unit string

const (
	ratio      unit = "×"
	characters unit = "chars"
	deltas     unit = "deltas"
	requests   unit = "requests"

	micros    unit = "µs"
	millis    unit = "ms"
	seconds   unit = "s"
	bytesUnit unit = "B"
	kibibytes unit = "KiB"
	megaRate  unit = "MB/s"
	runRate   unit = "runs/s"
)

// absolute units depend on the machine; the others mean the same on every one.
func (u unit) absolute() bool {
	switch u {
	case ratio, characters, deltas, requests:
		return false
	}
	return true
}

// bound is what a value must reach. The zero bound is none: the row stands
// beside another for comparison.
type bound struct {
	sign  string
	limit float64
}

func atMost(limit float64) bound  { return bound{"≤", limit} }
func atLeast(limit float64) bound { return bound{"≥", limit} }

func (b bound) holds(value float64) bool {
	switch b.sign {
	case "≤":
		return value <= b.limit
	case "≥":
		return value >= b.limit
	}
	return !math.IsNaN(value)
}

func (b bound) String() string {
	if b.sign == "" {
		return ""
	}
	return b.sign + " " + strconv.FormatFloat(b.limit, 'f', -1, 64)
}

// result is a row that was measured, or that could not be.
type result struct {
	row
	value float64
	err   error
}

func (r result) ok() bool { return r.err == nil && r.bound.holds(r.value) }

// decides tells whether a miss of this row fails the run.
func (r result) decides(strict bool) bool { return r.err != nil || strict || !r.unit.absolute() }

// exitCode is that of the program: DECISIONS, section 12.
func exitCode(results []result, strict bool) int {
	for _, r := range results {
		if !r.ok() && r.decides(strict) {
			return 1
		}
	}
	return 0
}

// record is a row in bench/latest.json. Value is null when it could not be
// measured.
type record struct {
	ID    string   `json:"id"`
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
	Bound string   `json:"bound"` // "≤ 6", "≥ 10"; empty for rows without one
	OK    bool     `json:"ok"`
}

func records(results []result) []record {
	out := make([]record, 0, len(results))
	for _, r := range results {
		rec := record{ID: r.id, Unit: string(r.unit), Bound: r.bound.String(), OK: r.ok()}
		if r.err == nil {
			value, _ := strconv.ParseFloat(figure(r.value), 64)
			rec.Value = &value
		}
		out = append(out, rec)
	}
	return out
}

// figure writes three significant digits, and all of those before the point.
func figure(v float64) string {
	switch size := math.Abs(v); {
	case size == math.Trunc(size) || size >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// printTable prints the machine, the rows and what they come to.
func printTable(w io.Writer, m machine, results []result, strict bool) error {
	lines := [][]string{{"id", "what", "value", "unit", "bound", "ok"}}
	for _, r := range results {
		value := "-"
		if r.err == nil {
			value = figure(r.value)
		}
		lines = append(lines, []string{r.id, r.what, value, string(r.unit), r.bound.String(), r.verdict(strict)})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", m)
	writeColumns(&b, lines)
	b.WriteString("\n" + summary(results, strict) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// verdict is the last column: a miss in brackets does not fail the run.
func (r result) verdict(strict bool) string {
	switch {
	case r.err != nil:
		return "not measured"
	case r.bound.sign == "":
		return ""
	case r.ok():
		return "yes"
	case r.decides(strict):
		return "NO"
	}
	return "(no)"
}

func writeColumns(b *strings.Builder, lines [][]string) {
	var widths [6]int
	for _, l := range lines {
		for i, cell := range l {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, l := range lines {
		text := ""
		for i, cell := range l {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 2 { // values stand at the right
				text += pad + cell + "  "
			} else {
				text += cell + pad + "  "
			}
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
}

func summary(results []result, strict bool) string {
	bounded, missed, deciding := 0, 0, 0
	text := ""
	for _, r := range results {
		if r.err != nil {
			text += fmt.Sprintf("%s: %v\n", r.id, r.err)
		}
		if r.bound.sign != "" || r.err != nil {
			bounded++
		}
		if !r.ok() {
			missed++
			if r.decides(strict) {
				deciding++
			}
		}
	}
	return fmt.Sprintf("%s%d of %d bounds are kept; %d of the misses decide.", text, bounded-missed, bounded, deciding)
}
