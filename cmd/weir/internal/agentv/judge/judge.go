// Package judge decides what an agent's work was worth: expected outcomes, rules
// about the state, and the metrics of AgentV that need no language model. Every
// verdict is a function of the evidence.
//
// Upstream names its metrics and does not define them; where its code was seen to
// do something, the same is done here, and the rest is said at each metric.
package judge

import (
	"fmt"
	"slices"
	"strings"

	"weir/cmd/weir/internal/agentv/sandbox"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

// Evidence is what there is to judge about one node, or about a whole attempt.
type Evidence struct {
	Node  scenario.Node
	Text  string // what the agent answered in the end
	Reply []byte // the whole of that reply; nil when there is none
	State *sandbox.State
	Used  []string       // every tool called so far in the attempt, sorted
	Calls []sandbox.Call // those of this node
	Same  int            // attempts so far, this one included, with the same calls
	Tries int            // attempts so far
}

// Whole joins the nodes of a scenario for its global metrics.
func Whole(s *scenario.Scenario) scenario.Node {
	whole := scenario.Node{ID: "global"}
	for _, n := range s.Nodes {
		whole.RequiredTools = append(whole.RequiredTools, n.RequiredTools...)
		whole.ToolsDeclared = whole.ToolsDeclared || n.ToolsDeclared
		whole.Changes = append(whole.Changes, n.Changes...)
		whole.Outcome = append(whole.Outcome, n.Outcome...)
		whole.Keywords = append(whole.Keywords, n.Keywords...)
		whole.ShouldRefuse = whole.ShouldRefuse || n.ShouldRefuse
	}
	return whole
}

// Check refuses metrics that cannot be computed, unless they are among those to
// skip, and says which of the others have nothing in the scenario to be held
// against. The error names the path.
func Check(s *scenario.Scenario, skip []string) (notices []string, err error) {
	check := func(path string, criteria []scenario.Criterion, n scenario.Node) error {
		for i, c := range criteria {
			m, ok := metrics()[c.Metric]
			switch {
			case slices.Contains(skip, c.Metric):
				notices = append(notices, fmt.Sprintf("%s[%d]: %s is skipped", path, i, c.Metric))
			case !ok:
				return fault.New(fault.Invalid, "%s[%d].metric: expected one of %s, got %q: others need a judge; --skip-metric leaves one out",
					path, i, strings.Join(Metrics(), ", "), c.Metric)
			case m.against != nil && !m.against(n):
				notices = append(notices, fmt.Sprintf("%s[%d]: %s always holds, because %s", path, i, c.Metric, m.lack))
			}
		}
		return nil
	}
	for _, n := range s.Nodes {
		if err := check("node "+n.ID+": success_criteria", n.Criteria, n); err != nil {
			return nil, err
		}
	}
	err = check("evaluation.metrics", s.Metrics, Whole(s))
	return notices, err
}
