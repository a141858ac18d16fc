// Package replay writes what a replay said as one page that a reviewer can read
// and sign: it needs no network, runs no script and escapes every text.
package replay

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"

	"weir/host/run/replay"
)

//go:embed report.html.tmpl
var page string

// Report is a summary with what its reader has to know of it.
type Report struct {
	*replay.Summary
	Tried string // which configuration, with what in place of its files
}

// Write writes the page.
func Write(w io.Writer, r Report) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"kinds": replay.Kinds, "short": short, "sorted": sorted, "percent": percent, "millis": millis,
		"changed": func(r *replay.Result) bool {
			return r.Status == replay.StatusChanged || r.Status == replay.StatusUnanswerable
		},
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

func short(id string) string { return fmt.Sprintf("%.12s", id) }

func percent(part float64) string { return strconv.FormatFloat(part*100, 'f', 1, 64) + " %" }

func millis(ms float64) string { return strconv.FormatFloat(ms, 'f', 1, 64) + " ms" }

// pair is an entry of a map, for a page that is the same each time.
type pair struct {
	Name string
	N    int
}

func sorted(m map[string]int) []pair {
	var out []pair
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, pair{name, m[name]})
	}
	return out
}
