// Package report shows what a comparison found: as a table on a terminal and as
// one HTML file that needs nothing beside it, no network and no script. Answers
// and whatever else comes from an agent is foreign text: the template escapes
// it, the page's own policy allows no script and no request, and the terminal
// gets no control characters.
package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"weir/cmd/weir/internal/compare"
	"weir/cmd/weir/internal/compare/score"
	"weir/cmd/weir/internal/compare/stat"
)

// Parts of the pages.
var (
	//go:embed report.html.tmpl
	page string
	//go:embed curves.html.tmpl
	curvesPart string
	//go:embed style.css
	styles string
)

// WriteHTML writes the report.
func WriteHTML(w io.Writer, r *compare.Result) error {
	return write(w, page, r, template.FuncMap{
		"percent": percent, "signed": signed, "seconds": seconds, "gap": gap, "interval": interval, "short": short,
		"verdict": compare.Verdict, "outcome": outcome, "forest": forest, "curves": curves, "metrics": metricRows,
		"pairs": pairs, "tally": tally, "pretty": pretty, "tristate": tristate, "gate": func(s compare.SuiteResult) string { return score.Gate(s.Suite) },
		"casesOf": casesOf, "less": func() bool { return true }, "more": func() bool { return false }, "add": func(a, b int) int { return a + b },
	})
}

// write fills a page in.
func write(w io.Writer, page string, data any, funcs template.FuncMap) error {
	t := template.New("report").Funcs(funcs).Funcs(template.FuncMap{"style": func() template.CSS { return template.CSS(styles) }})
	for _, text := range []string{page, curvesPart} {
		if _, err := t.Parse(text); err != nil {
			return err
		}
	}
	return t.Execute(w, data)
}

// WriteJSON writes the result, indented.
func WriteJSON(w io.Writer, r *compare.Result) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

func signed(v float64) string { return signedAs(100*v, 1) }

// interval is a difference of scores in points of a hundred.
func interval(d stat.Difference) string {
	if d.Pairs == 0 {
		return "–"
	}
	return fmt.Sprintf("%s [%s, %s]", signed(d.Mean), signed(d.Low), signed(d.High))
}

// gap is a difference of times.
func gap(d stat.Difference) string {
	if d.Pairs == 0 {
		return "–"
	}
	ms := func(v float64) string { return signedAs(1000*v, 1) }
	return fmt.Sprintf("%s ms [%s, %s]", ms(d.Mean), ms(d.Low), ms(d.High))
}

// signedAs is a number with its sign and so many places.
func signedAs(v float64, places int) string {
	text := strconv.FormatFloat(v, 'f', places, 64)
	if v > 0 {
		text = "+" + text
	}
	return strings.Replace(text, "-", "−", 1)
}

func seconds(v float64) string {
	if v < 1 {
		return strconv.FormatFloat(1000*v, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(v, 'f', 2, 64) + " s"
}

func short(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	if digest == "" {
		return "–"
	}
	return digest
}

// outcome of a gate.
func outcome(passed *bool) string {
	switch {
	case passed == nil:
		return "incomplete"
	case *passed:
		return "pass"
	}
	return "fail"
}

func tristate(v *bool) string {
	switch {
	case v == nil:
		return "not checked"
	case *v:
		return "yes"
	}
	return "no"
}

// metricRow is one metric of both agents.
type metricRow struct {
	Name   string
	A, B   string
	Fault  bool
	Differ bool
}

func metricRows(s compare.SuiteResult) []metricRow {
	var names []string
	for _, side := range []compare.Side{s.A, s.B} {
		for name := range side.Counts {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	gate := score.Gate(s.Suite)
	slices.SortFunc(names, func(a, b string) int {
		if (a == gate) != (b == gate) {
			if a == gate {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	value := func(side compare.Side, name string) string {
		if side.Counts[name] == 0 {
			return "–"
		}
		return fmt.Sprintf("%s of %d", percent(side.Metrics[name+"/mean"]), side.Counts[name])
	}
	var rows []metricRow
	for _, name := range names {
		a, b := value(s.A, name), value(s.B, name)
		rows = append(rows, metricRow{name, a, b, slices.Contains(s.A.Faults, name) || slices.Contains(s.B.Faults, name), a != b})
	}
	return rows
}

func casesOf(r *compare.Result, s compare.SuiteResult) []compare.CaseResult {
	return slices.DeleteFunc(slices.Clone(r.Cases), func(c compare.CaseResult) bool { return c.Suite != s.Suite })
}

// pair is the two answers of one repetition with their words marked.
type pair struct {
	N    int
	A, B *shown
}

type shown struct {
	compare.Trial
	Words []word
}

func pairs(c compare.CaseResult) []pair {
	var out []pair
	for i := range max(len(c.A), len(c.B)) {
		p := pair{N: i + 1}
		var a, b string
		if i < len(c.A) {
			p.A, a = &shown{Trial: c.A[i]}, c.A[i].Answer
		}
		if i < len(c.B) {
			p.B, b = &shown{Trial: c.B[i]}, c.B[i].Answer
		}
		x, y := diff(a, b)
		if p.A != nil {
			p.A.Words = x
		}
		if p.B != nil {
			p.B.Words = y
		}
		out = append(out, p)
	}
	return out
}

// tally is how many of a case's answers passed its gate.
func tally(trials []compare.Trial) string {
	passed, broken := 0, 0
	for _, t := range trials {
		switch {
		case t.Broken != "":
			broken++
		case t.Metrics[0].Pass:
			passed++
		}
	}
	switch {
	case len(trials) == 0 || broken == len(trials):
		return "none"
	case passed == len(trials):
		return "pass"
	case passed == 0:
		return "fail"
	}
	return fmt.Sprintf("%d of %d", passed, len(trials))
}

// pretty is JSON for people, bounded.
func pretty(v any) string {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	const most = 20_000
	if len(data) > most {
		return strings.ToValidUTF8(string(data[:most]), "") + "\n… (cut)"
	}
	return string(data)
}

// WriteSuite writes the result file of one agent and one suite.
func WriteSuite(w io.Writer, f compare.File) error { return writeJSON(w, f) }
