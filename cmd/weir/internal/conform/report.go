package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Report is what came of all clauses.
type Report struct {
	URL, Dir string
	Results  []Result
}

// Failed tells whether a MUST failed.
func (r *Report) Failed() bool { return r.count(Failed, Must) > 0 }

func (r *Report) count(o Outcome, levels ...Level) (n int) {
	for _, x := range r.Results {
		for _, l := range levels {
			if x.Outcome == o && x.Level == l {
				n++
			}
		}
	}
	return n
}

// WriteText writes a line for each clause and one that sums up.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	spec := ""
	for _, x := range r.Results {
		if x.Spec != spec {
			spec = x.Spec
			fmt.Fprintf(&b, "%s\n", spec)
		}
		outcome := string(x.Outcome)
		if x.Outcome == NotApplicable {
			outcome = "n/a"
		}
		fmt.Fprintf(&b, "  %-4s %-6s %-5s %-24s %s\n", outcome, x.Level, x.Section, x.ID, x.Text)
		if x.Reason != "" {
			fmt.Fprintf(&b, "       %s\n", x.Reason)
		}
	}
	fmt.Fprintf(&b, "%d passed, %d not applicable, %d failed: %d MUST, %d SHOULD\n",
		r.count(Passed, Must, Should), r.count(NotApplicable, Must, Should), r.count(Failed, Must, Should),
		r.count(Failed, Must), r.count(Failed, Should))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes one object on one line.
func (r *Report) WriteJSON(w io.Writer) error {
	type result struct {
		Spec    string  `json:"spec"`
		ID      string  `json:"id"`
		Section string  `json:"section"`
		Level   Level   `json:"level"`
		Text    string  `json:"text"`
		Outcome Outcome `json:"outcome"`
		Reason  string  `json:"reason,omitempty"`
	}
	out := struct {
		URL     string   `json:"url,omitempty"`
		Dir     string   `json:"dir,omitempty"`
		OK      bool     `json:"ok"`
		Passed  int      `json:"passed"`
		NA      int      `json:"not_applicable"`
		Must    int      `json:"failed_must"`
		Should  int      `json:"failed_should"`
		Clauses []result `json:"clauses"`
	}{r.URL, r.Dir, !r.Failed(), r.count(Passed, Must, Should), r.count(NotApplicable, Must, Should),
		r.count(Failed, Must), r.count(Failed, Should), nil}
	for _, x := range r.Results {
		out.Clauses = append(out.Clauses, result{x.Spec, x.ID, x.Section, x.Level, x.Text, x.Outcome, x.Reason})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(out)
}
