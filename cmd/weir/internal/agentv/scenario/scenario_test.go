package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

const shipped = "../testdata/aes"

func TestShippedLoad(t *testing.T) {
	for file, want := range map[string]struct {
		id    string
		nodes []string
	}{
		"own_edge_pass.json":                          {"edge-1", []string{"n1"}},
		"own_capture_multinode.json":                  {"cap-1", []string{"n1", "n2"}},
		"telecom_13814_home_internet_slow_speed.json": {"13814-home-internet-slow-speed", []string{"task-1", "task-2", "task-3", "task-4"}},
		"luna_demo.json":                              {"luna-demo", []string{"t1_logic_puzzle"}},
		"loan_approval_scenario.json":                 {"scenario-581cd0ef", []string{"task-1", "task-2"}},
		"fintech_11252_recovery.json":                 {"fintech_11252_recovery", []string{"step_1_initiate_trade", "step_2_handle_failure"}},
		"disputed_claim.json":                         {"disputed-claim", []string{"task-1", "task-2", "task-3", "task-4"}},
	} {
		s, err := scenario.Load(filepath.Join(shipped, file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if s.ID != want.id || !slices.Equal(ids(s), want.nodes) {
			t.Errorf("%s: %s %q, want %+v", file, s.ID, ids(s), want)
		}
	}
}

func ids(s *scenario.Scenario) (out []string) {
	for _, n := range s.Nodes {
		out = append(out, n.ID)
	}
	return out
}

func TestDecoded(t *testing.T) {
	s, err := scenario.Load(filepath.Join(shipped, "own_capture_multinode.json"))
	if err != nil {
		t.Fatal(err)
	}
	n := s.Nodes[0]
	tool := s.Tools["get_time"]
	policy := s.Policies["refund"]
	if n.Task != "What time is it? Use get_time." || !slices.Equal(n.RequiredTools, []string{"get_time"}) || !n.ToolsDeclared ||
		len(n.Criteria) != 2 || n.Criteria[1] != (scenario.Criterion{Metric: "state_verification", Threshold: 1}) ||
		n.Outcome[0].Pattern.String() != "done" || n.Changes[0].Path != "seen" || string(n.Changes[0].Value) != "true" ||
		string(tool.Output) != `{"status":"success","utc":"2026-01-01T00:00:00Z"}` || tool.Changes[0].Path != "seen" ||
		!policy.HasLimit || policy.Text != "50" || string(s.InitialState) != `{"seen":false}` ||
		string(s.Declared) != `{"policies":{"refund":{"max_limit":50}},"initial_state":{"seen":false}}` {
		t.Errorf("decoded %+v\n%+v %+v %s", n, tool, policy, s.Declared)
	}
	if s.Nodes[1].ToolsDeclared || len(s.Notices) != 1 || !strings.Contains(s.Notices[0], "judged by their outcomes here: n2") {
		t.Errorf("second node %+v, notices %q", s.Nodes[1], s.Notices)
	}
}

const good = `{"aes_version":1.4,"metadata":{"id":"a","name":"A","compliance_level":"Gold"},"workflow":{"nodes":[%s],"edges":[%s]},"evaluation":{}}`

// Edges decide, then the file's order (agentv.md 2).
func TestOrder(t *testing.T) {
	node := func(id string) string { return `{"id":"` + id + `","task_description":"t"}` }
	nodes := strings.Join([]string{node("d"), node("b"), node("a"), node("c")}, ",")
	for edges, want := range map[string]string{
		``: "d b a c",
		`{"from":"a","to":"b"},{"from":"b","to":"d","condition":"never"}`: "a b d c",
		`{"from":"c","to":"d"},{"from":"c","to":"d"}`:                     "b a c d",
	} {
		s, err := scenario.Parse(fmt.Appendf(nil, good, nodes, edges))
		if err != nil || strings.Join(ids(s), " ") != want {
			t.Errorf("%s: %v, %v, want %s", edges, s, err, want)
		}
	}
}

// Each mistake is told with its path. What the schema refuses is tested there.
func TestRefused(t *testing.T) {
	plain := `{"id":"n","task_description":"t"}`
	if _, err := scenario.Parse(fmt.Appendf(nil, good, plain, "")); err != nil {
		t.Fatalf("the control: %v", err)
	}
	for _, tt := range []struct{ nodes, edges, want string }{
		{"", "", "workflow.nodes: minItems"},
		{plain + "," + plain, "", `workflow.nodes[1].id: expected another than that of nodes[0], got "n"`},
		{plain, `{"from":"n","to":"m"}`, `workflow.edges[0].to: expected the id of a node, got "m"`},
		{plain, `{"from":"m","to":"n"}`, `workflow.edges[0].from: expected the id of a node, got "m"`},
		{plain, `{"from":"n","to":"n"}`, "workflow.edges: expected no cycle"},
		{`{"id":"n","task_description":"t","expected_outcome":[{"target":"message","expected":"(?=x)","mode":"regex"}]}`, "", "workflow.nodes[0].expected_outcome[0].expected: expected a regular expression of RE2"},
		{`{"id":"n","task_description":"t","expected_outcome":[{"target":"reply","expected":"x"}]}`, "", `workflow.nodes[0].expected_outcome[0].target: expected message, state or shim:ID, got "reply"`},
		{`{"id":"n","task_description":"t","expected_outcome":[{"target":"message","expected":"many","mode":"numerical_tolerance"}]}`, "", "workflow.nodes[0].expected_outcome[0].expected: expected a number"},
		{`{"id":"n","task_description":"t","state_hygiene":{"rules":[{"path":"a","op":"~"}]}}`, "", "workflow.nodes[0].state_hygiene.rules[0].op: expected one of"},
		{`{"id":"n","id":"m","task_description":"t"}`, "", `repeated field "id"`},
		{`{"id":"n","task_description":"\ud800"}`, "", "expected JSON: offset"},
	} {
		_, err := scenario.Parse(fmt.Appendf(nil, good, tt.nodes, tt.edges))
		if err == nil || !strings.Contains(err.Error(), tt.want) || fault.Of(err) != fault.Invalid {
			t.Errorf("nodes %s edges %s: %v, want %s", tt.nodes, tt.edges, err, tt.want)
		}
	}
	if _, err := scenario.Load("absent.json"); fault.Of(err) != fault.Invalid {
		t.Errorf("a missing file: %v", err)
	}
}

// No bytes make the loader panic, and what it accepts it can run: every node once.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(shipped + "/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	p, err := scenario.NewParser()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := p.Parse(data)
		if err != nil {
			return
		}
		if s.ID == "" || len(s.Nodes) == 0 || len(slices.Compact(slices.Sorted(slices.Values(ids(s))))) != len(s.Nodes) {
			t.Errorf("accepted without what it needs: %q %q", s.ID, ids(s))
		}
	})
}
