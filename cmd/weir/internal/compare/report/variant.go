package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"weir/cmd/weir/internal/compare/variant"
)

//go:embed variant.html.tmpl
var variantPage string

// WriteVariantsHTML writes the report of a comparison of variants.
func WriteVariantsHTML(w io.Writer, r *variant.Result) error {
	return write(w, variantPage, r, template.FuncMap{
		"percent": percent, "seconds": seconds, "short": short, "value": value, "change": change, "rates": rates, "timeOf": timeOf,
		"generations": generations, "curvesTo": curvesTo, "differs": func(r variant.Row) bool { return r.Difference.Decided },
	})
}

// WriteVariantsJSON writes the result, indented.
func WriteVariantsJSON(w io.Writer, r *variant.Result) error { return writeJSON(w, r) }

// value is a metric's value in its unit.
func value(unit string, v float64, users int) string {
	if users == 0 {
		return "–"
	}
	switch unit {
	case variant.UnitRate:
		return percent(v)
	case variant.UnitSeconds:
		return seconds(v)
	}
	return count(v)
}

// timeOf is a time of a group's, if it has any.
func timeOf(g variant.Group, v float64) string { return value(variant.UnitSeconds, v, g.Time.N) }

// count is a mean of counts, with as many places as are of use.
func count(v float64) string {
	places := 2
	if math.Abs(v) >= 1000 {
		places = 0
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}

// change is a difference with its interval: of rates in points of a hundred, of
// times in milliseconds.
func change(r variant.Row) string {
	d := r.Difference
	if d.UsersA == 0 || d.UsersB == 0 {
		return "–"
	}
	factor, places, unit := 1.0, 2, ""
	switch {
	case r.Unit == variant.UnitRate:
		factor, places = 100, 1
	case r.Unit == variant.UnitSeconds:
		factor, places, unit = 1000, 1, " ms"
	case math.Abs(d.Mean) >= 1000 || math.Abs(d.High) >= 1000 || math.Abs(d.Low) >= 1000:
		places = 0
	}
	return fmt.Sprintf("%s%s [%s, %s]", signedAs(factor*d.Mean, places), unit, signedAs(factor*d.Low, places), signedAs(factor*d.High, places))
}

// generations are those of a group, the one with the most runs first.
func generations(g variant.Group) string {
	ids := slices.SortedFunc(maps.Keys(g.Generations), func(a, b string) int {
		if n := g.Generations[b] - g.Generations[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for i, id := range ids {
		ids[i] = short(Clean(id))
	}
	return strings.Join(ids, ", ")
}

// rates is the plot of a comparison's rates: those that either group has.
func rates(c variant.Comparison) forestPlot {
	p := forestPlot{Width: plotWidth, Left: labels + 50, Right: plotWidth - margin}
	scale := func(v float64) float64 { return p.Left + (v+1)/2*(p.Right-p.Left) }
	p.Zero = scale(0)
	for _, v := range []float64{-1, -0.5, 0, 0.5, 1} {
		p.Ticks = append(p.Ticks, tick{scale(v), strings.TrimSuffix(signed(v), ".0")})
	}
	for _, r := range c.Rows {
		d := r.Difference
		if r.Unit != variant.UnitRate || d.UsersA == 0 || d.UsersB == 0 || d.A == 0 && d.B == 0 {
			continue
		}
		p.Rows = append(p.Rows, forestRow{Label: r.Name, Y: 28 + 30*float64(len(p.Rows)), Low: scale(d.Low), Mean: scale(d.Mean), High: scale(d.High),
			Decided: d.Decided, Text: change(r)})
	}
	p.Base = 28 + 30*float64(len(p.Rows))
	p.Height = p.Base + 24
	return p
}

// curvesTo are the running times of the base and of a variant.
func curvesTo(r *variant.Result, name string) curvePlot {
	base := r.Groups[0].Times()
	for i := range r.Groups {
		if r.Groups[i].Name == name {
			return curvesOf(atLeast(base), atLeast(r.Groups[i].Times()))
		}
	}
	return curvesOf(nil, nil)
}

// atLeast moves times below the log's own resolution up to it: the axis is
// logarithmic and has no zero.
func atLeast(times []float64) []float64 {
	for i, t := range times {
		times[i] = max(t, 0.001)
	}
	return times
}

// WriteVariantsText writes the comparison as tables.
func WriteVariantsText(w io.Writer, r *variant.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs of the last %s; times are the running times of completed runs\n\n", r.Runs, r.Since)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "variant\tshare\truns\tusers\tmin\tp50\tp95\tmax\tgeneration")
	for _, g := range r.Groups {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", Clean(g.Name), percent(g.Share), g.Runs, g.Users,
			timeOf(g, g.Time.Min), timeOf(g, g.Time.P50), timeOf(g, g.Time.P95), timeOf(g, g.Time.Max), generations(g))
	}
	_ = t.Flush() // a strings.Builder takes everything
	for _, c := range r.Comparisons {
		b.WriteString("\n")
		t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "%s\tbase\t%s\t%s − base, 95 %%\tshows\n", "metric", Clean(c.Variant), Clean(c.Variant))
		for _, row := range c.Rows {
			d := row.Difference
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", row.Name, value(row.Unit, d.A, d.UsersA), value(row.Unit, d.B, d.UsersB), change(row), Clean(row.Verdict))
		}
		_ = t.Flush()
	}
	for _, reason := range r.Broken {
		fmt.Fprintf(&b, "\nnot compared: %s", Clean(reason))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s", Clean(note))
	}
	if len(r.Broken)+len(r.Notes) > 0 {
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
