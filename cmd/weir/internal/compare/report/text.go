package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"weir/cmd/weir/internal/compare"
	"weir/cmd/weir/internal/compare/stat"
)

// Clean makes a foreign text safe for a terminal: one line, without control
// characters.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}

// WriteText writes the summary as tables.
func WriteText(w io.Writer, r *compare.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A  %s\nB  %s\n", party(r.Provenance.A), party(r.Provenance.B))
	for _, p := range []struct {
		name string
		p    compare.Provenance
	}{{"A", r.Provenance.A}, {"B", r.Provenance.B}} {
		for _, reason := range p.p.Reasons {
			fmt.Fprintf(&b, "%s is not consistent: %s\n", p.name, Clean(reason))
		}
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "suite\tcases\tmetric\tA\tB\tB − A, 95 %\tshows\tgate on B")
	for _, s := range r.Suites {
		verdict := compare.Verdict(s.Difference, false)
		if s.A.Broken+s.B.Broken > 0 {
			verdict = "incomplete"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Suite, s.Cases, strings.TrimSuffix(s.RequiredMetric, "/mean"),
			score1(s.A, s.RequiredMetric), score1(s.B, s.RequiredMetric), interval(s.Difference), verdict, outcome(s.Passed))
	}
	_ = t.Flush() // a strings.Builder takes everything
	b.WriteString("\n")
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "time\tagent\tn\tmin\tp50\tp95\tmax\tB − A, 95 %\tshows")
	times(t, "whole answer", r.Latency, gap(r.LatencyGap), compare.Verdict(r.LatencyGap, true))
	times(t, "first fragment", r.First, gap(r.FirstGap), compare.Verdict(r.FirstGap, true))
	_ = t.Flush()
	for _, reason := range r.Broken {
		fmt.Fprintf(&b, "\nbroken: %s", Clean(reason))
	}
	if len(r.Broken) > 0 {
		b.WriteString("\nThe harness did not work, so nothing is said about these answers.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func score1(s compare.Side, metric string) string {
	if s.Counts[strings.TrimSuffix(metric, "/mean")] == 0 {
		return "–"
	}
	return percent(s.Metrics[metric])
}

func party(p compare.Provenance) string {
	parts := []string{Clean(p.Name)}
	if p.Name != p.URL {
		parts = append(parts, Clean(p.URL))
	}
	parts = append(parts, Clean(p.Runtime))
	for _, v := range []struct{ name, value string }{{"model", p.Model}, {"commit", p.BuildCommit}, {"generation", p.Generation}} {
		if v.value != "" {
			parts = append(parts, v.name+" "+short(Clean(v.value)))
		}
	}
	return strings.Join(parts, ", ")
}

func times(w io.Writer, what string, p compare.Pair[stat.Summary], difference, verdict string) {
	for i, s := range []stat.Summary{p.A, p.B} {
		name, end := "A", "\t"
		if i == 1 {
			name, what, end = "B", "", difference+"\t"+verdict
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", what, name, s.N, seconds(s.Min), seconds(s.P50), seconds(s.P95), seconds(s.Max), end)
	}
}
