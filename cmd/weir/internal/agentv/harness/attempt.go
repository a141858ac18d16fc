package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/cmd/weir/internal/agentv/judge"
	"weir/cmd/weir/internal/agentv/ledger"
	"weir/cmd/weir/internal/agentv/sandbox"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/dna"
)

// Words of AgentV's schema for what came of something.
const (
	success   = "success"
	failure   = "failure"
	cancelled = "cancelled"
)

func status(ok bool) string {
	if ok {
		return success
	}
	return failure
}

// attempt is one passage through all nodes, in one session with the agent.
type attempt struct {
	*run
	number  int
	id      string // the run id that the agent is told
	session agent.Session
	box     *sandbox.Sandbox
	trace   string
	history [][]byte
}

// attempt runs every node until one fails. An error is the harness's own.
func (r *run) attempt(ctx context.Context, number int) (Try, error) {
	box, err := sandbox.New(r.scenario, r.opts.AgentName)
	if err != nil {
		return Try{}, err
	}
	session, err := agent.Open(r.target.Address, r.opts.Agent)
	if err != nil {
		return Try{}, err
	}
	a := &attempt{run: r, number: number, id: r.result.RunID, session: session, box: box, trace: trace(r.scenario.Traceparent)}
	if number > 1 {
		// An agent that keeps sessions by run id must not take this for the first.
		a.id = fmt.Sprintf("%s-%d", a.id, number)
	}
	r.ledger.Append("phase_start", ledger.F("phase", "attempt"), ledger.F("attempt", number), ledger.F("agent_run_id", a.id))
	t := Try{Attempt: number, Success: true}
	var last judge.Evidence
	for _, n := range r.scenario.Nodes {
		var out Node
		out, last = a.node(ctx, n)
		t.Nodes = append(t.Nodes, out)
		if !out.Success {
			t.Success = false
			break
		}
	}
	t.Metrics = a.whole(last)
	t.Success = t.Success && all(t.Metrics)
	if err := session.Close(); err != nil {
		r.trouble("agent", err.Error())
	}
	r.ledger.Append("phase_end", ledger.F("phase", "attempt"), ledger.F("attempt", number), ledger.F("status", status(t.Success)))
	r.opts.Progress(Progress{Attempt: number, Attempts: r.opts.Attempts, What: status(t.Success)})
	return t, nil
}

// whole computes the scenario's own metrics, over all nodes.
func (a *attempt) whole(last judge.Evidence) []Evaluation {
	if len(a.scenario.Metrics) == 0 {
		return nil
	}
	e := last
	e.Node, e.Calls, e.Used = judge.Whole(a.scenario), a.box.Calls(), a.box.Used()
	e.Text = a.text()
	e.Same, e.Tries = a.same(e.Node.ID, e.Calls)
	return a.evaluate(e.Node.ID, a.scenario.Metrics, e)
}

// text is what the agent answered in the whole attempt.
func (a *attempt) text() string {
	var all []string
	for _, h := range a.history {
		if text, ok := answered(h); ok {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n")
}

// node runs one node and judges it.
func (a *attempt) node(ctx context.Context, n scenario.Node) (Node, judge.Evidence) {
	a.ledger.Append("maneuver_start", ledger.F("node_id", n.ID), ledger.F("task", n.Task), ledger.F("attempt", a.number))
	a.ledger.Append("subtask_start", ledger.F("subtask_id", "subtask-"+n.ID), ledger.F("task_description", n.Task))
	begun, before := time.Now(), len(a.box.Calls())
	out := Node{ID: n.ID}
	reply := a.talk(ctx, n, &out)
	calls := a.box.Calls()[before:]
	for _, c := range calls {
		out.Tools = append(out.Tools, c.Tool)
	}
	e := judge.Evidence{Node: n, State: a.box.State(), Used: a.box.Used(), Calls: calls}
	if reply != nil {
		e.Text, e.Reply = reply.Text, reply.Object
	}
	e.Same, e.Tries = a.same(n.ID, calls)
	if reply != nil {
		out.Reasons = append(out.Reasons, judge.Outcome(e)...)
	}
	if len(n.Outcome) > 0 {
		out.Metrics = append(out.Metrics, a.parity(n, e, reply != nil))
	}
	out.Metrics = append(out.Metrics, a.evaluate(n.ID, n.Criteria, e)...)
	for _, m := range out.Metrics {
		if !m.Success && m.Metric != parityMetric {
			out.Reasons = append(out.Reasons, fmt.Sprintf("%s: expected at least %v, got %v", m.Metric, m.Threshold, m.Value))
		}
	}
	out.Success = reply != nil && all(out.Metrics)
	out.Millis = time.Since(begun).Milliseconds()
	a.ledger.Append("node_end", ledger.F("node_id", n.ID), ledger.F("attempt", a.number), ledger.F("status", status(out.Success)), ledger.F("reasons", append([]string{}, out.Reasons...)))
	a.ledger.Append("subtask_end", ledger.F("subtask_id", "subtask-"+n.ID))
	a.ledger.Append("maneuver_end", ledger.F("node_id", n.ID), ledger.F("task", n.Task), ledger.F("attempt", a.number))
	return out, e
}

// parityMetric is how the parity of expected outcomes stands among the metrics.
const parityMetric = "outcome_parity"

func (a *attempt) parity(n scenario.Node, e judge.Evidence, answered bool) Evaluation {
	m := Evaluation{Metric: parityMetric, Threshold: 1}
	if answered && len(judge.Outcome(e)) == 0 {
		m.Value, m.Success = 1, true
	}
	a.evaluation(n.ID, m)
	return m
}

// same counts the attempts so far that made the same calls in a node as this one.
func (a *attempt) same(node string, calls []sandbox.Call) (same, tries int) {
	var b strings.Builder
	for _, c := range calls {
		params, err := dna.Canonical(nil, c.Params)
		if err != nil {
			params = c.Params
		}
		fmt.Fprintf(&b, "%q %s\n", c.Tool, params)
	}
	if len(a.made[node]) < a.number {
		a.made[node] = append(a.made[node], b.String())
	}
	for _, other := range a.made[node] {
		if other == b.String() {
			same++
		}
	}
	return same, len(a.made[node])
}

// evaluate computes metrics and writes each down.
func (a *attempt) evaluate(task string, criteria []scenario.Criterion, e judge.Evidence) []Evaluation {
	var out []Evaluation
	for _, c := range criteria {
		if slices.Contains(a.opts.Skip, c.Metric) {
			continue
		}
		m := Evaluation{Metric: c.Metric, Value: judge.Value(c.Metric, e), Threshold: c.Threshold}
		m.Success = m.Value >= m.Threshold
		a.evaluation(task, m)
		out = append(out, m)
	}
	return out
}

func (a *attempt) evaluation(task string, m Evaluation) {
	a.ledger.Append("evaluation", ledger.F("task_id", task), ledger.F("attempt", a.number), ledger.F("metric", m.Metric),
		ledger.F("value", m.Value), ledger.F("threshold", m.Threshold), ledger.F("success", m.Success))
}

func all(metrics []Evaluation) bool {
	return !slices.ContainsFunc(metrics, func(m Evaluation) bool { return !m.Success })
}
