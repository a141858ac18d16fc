package ledger

import (
	"encoding/json"
	"fmt"
)

// tally counts what the events of a ledger say, to hold run_end against it.
type tally struct {
	attempts map[int]*attempt
	wrong    string
}

type attempt struct {
	ended, success, failedCheck bool
}

func newTally() tally { return tally{attempts: make(map[int]*attempt)} }

func (t *tally) add(f record) {
	var n int
	if json.Unmarshal(f["attempt"], &n) != nil || n < 1 {
		return
	}
	a := t.attempts[n]
	if a == nil {
		a = &attempt{}
		t.attempts[n] = a
	}
	switch f.text("event") {
	case "evaluation":
		t.evaluation(f, a)
	case "node_end":
		a.failedCheck = a.failedCheck || f.text("status") != "success"
	case "phase_end":
		a.ended, a.success = true, f.text("status") == "success"
	}
}

func (t *tally) evaluation(f record, a *attempt) {
	var value, threshold float64
	var success bool
	for name, into := range map[string]any{"value": &value, "threshold": &threshold, "success": &success} {
		if json.Unmarshal(f[name], into) != nil {
			return // the schema has said so
		}
	}
	if success != (value >= threshold) && t.wrong == "" {
		t.wrong = fmt.Sprintf("evaluation %s of %s: %v with a threshold of %v is called %v", f.text("metric"), f.text("task_id"), value, threshold, success)
	}
	a.failedCheck = a.failedCheck || !success
}

// outcome holds run_end against the events before it. Ledgers of other harnesses
// do not number their attempts and are not held against anything.
func (v *verifier) outcome() {
	if len(v.tally.attempts) == 0 || v.end == nil {
		v.add("outcome", Absent, "this ledger does not number its attempts")
		return
	}
	succeeded := 0
	for n := range v.tally.attempts {
		a := v.tally.attempts[n]
		if a.success {
			succeeded++
		}
		if a.success && a.failedCheck && v.tally.wrong == "" {
			v.tally.wrong = fmt.Sprintf("attempt %d is called a success and holds a failure", n)
		}
	}
	var total, successful int
	if json.Unmarshal(v.end["total_attempts"], &total) != nil || json.Unmarshal(v.end["successful_attempts"], &successful) != nil ||
		total != len(v.tally.attempts) || successful != succeeded {
		v.add("outcome", Failed, fmt.Sprintf("expected %d attempts with %d successes, run_end says %s with %s",
			len(v.tally.attempts), succeeded, v.end["total_attempts"], v.end["successful_attempts"]))
		return
	}
	if v.tally.wrong != "" {
		v.add("outcome", Failed, v.tally.wrong)
		return
	}
	v.add("outcome", OK, fmt.Sprintf("%d of %d attempts", succeeded, total))
}
