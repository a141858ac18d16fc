package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"

	"weir/cmd/weir/internal/agentv/harness"
)

func (w *weir) printResult(r *harness.Result) {
	out := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "scenario\t%s (%s)\n", r.Scenario, printable(r.ScenarioName))
	who := printable(r.Agent)
	if r.AgentName != r.Agent {
		who = r.AgentName + " at " + who
	}
	fmt.Fprintf(out, "agent\t%s\n\n", who)
	_ = out.Flush()
	fmt.Fprint(out, "attempt\tnode\tturns\tms\ttools\tmetrics\tresult\n")
	for _, t := range r.Tries {
		for _, n := range t.Nodes {
			fmt.Fprintf(out, "%d\t%s\t%d\t%d\t%s\t%s\t%s\n", t.Attempt, printable(n.ID), n.Turns, n.Millis, printable(strings.Join(n.Tools, " ")), metrics(n.Metrics), passed(n.Success))
		}
		if len(t.Metrics) > 0 {
			fmt.Fprintf(out, "%d\t(all)\t\t\t\t%s\t%s\n", t.Attempt, metrics(t.Metrics), passed(t.Success))
		}
	}
	_ = out.Flush()
	for _, t := range r.Tries {
		for _, n := range t.Nodes {
			for _, reason := range n.Reasons {
				fmt.Fprintf(w.stdout, "attempt %d, %s: %s\n", t.Attempt, printable(n.ID), printable(reason))
			}
		}
	}
	for _, text := range r.Notices {
		fmt.Fprintf(w.stdout, "note: %s\n", printable(text))
	}
	for _, text := range r.Oddities {
		fmt.Fprintf(w.stdout, "note: AgentV's harness 1.7.3 would fail here: %s\n", printable(text))
	}
	fmt.Fprintf(out, "\n%s\t%d of %d attempts, %.0f %%\n", r.Status, r.Successful, r.Attempts, 100*r.PassRate)
	fmt.Fprintf(out, "ledger\t%s\nhead\t%s\n", r.Ledger, r.Head)
	_ = out.Flush()
}

func metrics(all []harness.Evaluation) string {
	var out []string
	for _, m := range all {
		out = append(out, fmt.Sprintf("%s %.2f", m.Metric, m.Value))
	}
	return strings.Join(out, ", ")
}

func passed(ok bool) string {
	if ok {
		return "pass"
	}
	return "FAIL"
}

// printable keeps what others wrote from moving the cursor, from beginning a
// line, and from changing the direction of what stands around it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text)
}
