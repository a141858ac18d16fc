package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/cmd/weir/internal/agentv/harness"
	"weir/host/fault"
)

// agentServer answers the n-th request, counted from 1, and keeps all of them.
type agentServer struct {
	*httptest.Server
	bodies []string
	traces []string
	auths  []string
}

func serve(t *testing.T, answer func(n int, body string) string) *agentServer {
	t.Helper()
	a := &agentServer{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.bodies = append(a.bodies, string(body))
		a.traces = append(a.traces, r.Header.Get("traceparent"))
		a.auths = append(a.auths, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer(len(a.bodies), string(body)))
	}))
	t.Cleanup(a.Close)
	return a
}

// replies answers with one after the other, and with the last for ever.
func replies(all ...string) func(int, string) string {
	return func(n int, _ string) string { return all[min(n, len(all))-1] }
}

const frame = `{"aes_version":1.4,"metadata":{"id":"a/b","name":"A","compliance_level":"Gold"},
"tools":{"look":{"output":{"status":"success","n":1}},"say":{"output":"said"}},"policies":{"pay":{"max_limit":50}},
"initial_state":{"n":1},"workflow":{"nodes":[%s],"edges":[]},"evaluation":{%s}}`

const final = `{"action":"final_answer","summary":"done"}`

func nodes(t *testing.T, evaluation string, all ...string) string {
	t.Helper()
	var out []string
	for i, n := range all {
		out = append(out, fmt.Sprintf(`{"id":"n%d","task_description":"task %d"%s}`, i+1, i+1, n))
	}
	return fmt.Sprintf(frame, strings.Join(out, ","), evaluation)
}

// agentv.md 1.1: the four forms of requests, byte for byte where they are fixed.
func TestPayloads(t *testing.T) {
	const call = `{"action":"call_tool",` + "\n" + `"tool_name":"look"}`
	const seen = `[{"role":"user","content":"task 1"},{"role":"agent","content":{"action":"call_tool","tool_name":"look"}},{"role":"environment","content":{"status":"success","n":1}}]`
	const told = `{"task_description":"{'status': 'success', 'n': 1}"`
	for payload, want := range map[harness.Payload]string{
		harness.V14: told + `,"turn":2,"conversation_history":` + seen + `}`,
		harness.V16: told + `,"protocol":"http","turn":2,"history":` + seen + `,"metadata":{},"input_payload":{"k":[1]}}`,
		harness.V17: told + `}`,
	} {
		a := serve(t, replies(call, final))
		s := parse(t, nodes(t, "", `,"input_payload":{"k": [1]}`))
		if r := run(t, s, a.URL, harness.Options{Payload: payload}); !r.Passed || a.bodies[1] != want || a.traces[1] != "" {
			t.Errorf("%s: second request\n%s\nwant\n%s", payload, a.bodies[1], want)
		}
	}
	a := serve(t, replies(call, final))
	s := parse(t, nodes(t, "", ""))
	r := run(t, s, a.URL, harness.Options{})
	want := told + `,"turn":2,"run_id":"` + r.RunID + `","conversation_history":` + seen + `,"span_context":{"traceparent":"` + a.traces[1] + `"}}`
	if a.bodies[1] != want || a.traces[0] == a.traces[1] || a.traces[0][:36] != a.traces[1][:36] {
		t.Errorf("contract: second request\n%s\nwant\n%s\ntraces %q", a.bodies[1], want, a.traces)
	}
	if want := `{"task_description":"task 1","turn":1,"run_id":"` + r.RunID + `","conversation_history":[{"role":"user","content":"task 1"}],`; !strings.HasPrefix(a.bodies[0], want) {
		t.Errorf("contract: first request\n%s\nwant\n%s", a.bodies[0], want)
	}
}

// agentv.md 2 and 1.2: the conversation over two nodes, with tools, a pause and
// polls; turns begin again with each node and the history does not.
func TestConversation(t *testing.T) {
	a := serve(t, replies(
		`{"action":"call_multiple_tools","tool_calls":[{"tool":"look"},{"tool":"say"}]}`,
		`{"action":"call_tool","tool_name":"pay","tool_params":{"amount":51}}`,
		`{"action":"processing"}`,
		`{"action":"hitl_pause","reason":"Sure?"}`,
		final,
		final,
	))
	s := parse(t, nodes(t, "", "", ""))
	r := run(t, s, a.URL, harness.Options{Poll: time.Millisecond, Human: func(_ context.Context, prompt string) (string, error) { return "approve " + prompt, nil }})
	if !r.Passed || len(a.bodies) != 6 || r.Tries[0].Nodes[0].Turns != 5 || strings.Join(r.Tries[0].Nodes[0].Tools, " ") != "look say pay" {
		t.Fatalf("%d requests, %+v", len(a.bodies), r)
	}
	type request struct {
		Task    string `json:"task_description"`
		Turn    int
		History []struct {
			Role    string
			Content json.RawMessage
		} `json:"conversation_history"`
	}
	var got []request
	for _, body := range a.bodies {
		var q request
		if err := json.Unmarshal([]byte(body), &q); err != nil {
			t.Fatal(err)
		}
		got = append(got, q)
	}
	for i, want := range []struct {
		task    string
		turn    int
		history string
	}{
		{"task 1", 1, "user"},
		{`Tools returned: [{"status": "success", "n": 1}, "said"]`, 2, "user agent environment"},
		{"{'status': 'policy_violation', 'violation': 'Amount 51 exceeds limit of 50'}", 3, "user agent environment agent environment"},
		{"{'status': 'policy_violation', 'violation': 'Amount 51 exceeds limit of 50'}", 4, "user agent environment agent environment agent"},
		{"approve Sure?", 5, "user agent environment agent environment agent agent human"},
		{"task 2", 1, "user agent environment agent environment agent agent human agent user"},
	} {
		var roles []string
		for _, h := range got[i].History {
			roles = append(roles, h.Role)
		}
		if got[i].Task != want.task || got[i].Turn != want.turn || strings.Join(roles, " ") != want.history {
			t.Errorf("request %d: %q turn %d %q, want %+v", i+1, got[i].Task, got[i].Turn, roles, want)
		}
	}
	verify(t, s, r)
	all := events(t, r)
	for name, want := range map[string]int{"hitl_pause": 1, "hitl_resume": 1, "tool_call": 3, "tool_result": 3, "agent_response": 6, "node_end": 2, "run_end": 1} {
		if got := len(of(all, name)); got != want {
			t.Errorf("%d events %s, want %d", got, name, want)
		}
	}
}

// What an agent does wrong is a failure with a reason, the nodes behind it are
// not run, and the ledger holds all the same.
func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct{ reply, reason string }{
		"garbage":    {`{"action":`, "Agent Node Error: reply: expected a JSON object"},
		"list":       {`[1]`, "Agent Node Error: reply: expected a JSON object"},
		"empty":      {``, "Agent Node Error: agent: expected an answer, got an empty body"},
		"no action":  {`{}`, "Unknown Agent Action: ''"},
		"unknown":    {`{"action":"dance"}`, "Unknown Agent Action: 'dance'"},
		"error":      {`{"action":"error","message":"out of\u001b[2J order"}`, `the agent says: "out of\x1b[2J order"`},
		"no tool":    {`{"action":"call_tool"}`, "Agent Node Error: reply: expected tool_name"},
		"for ever":   {`{"action":"call_tool","tool_name":"look"}`, "expected a final answer within 3 turns"},
		"processing": {`{"action":"processing"}`, "expected a final answer within 3 turns"},
		"too many":   {`{"action":"call_multiple_tools","tool_names":["a"` + strings.Repeat(`,"a"`, 128) + `]}`, "expected at most 128 tool calls in a reply, got 129"},
		"too large":  {`{"action":"final_answer","summary":"` + strings.Repeat("x", 5000) + `"}`, "Agent Node Error: agent: expected an answer of at most 5000 bytes"},
	} {
		a := serve(t, replies(tt.reply))
		s := parse(t, nodes(t, "", "", ""))
		r := run(t, s, a.URL, harness.Options{MaxTurns: 3, Poll: time.Millisecond, Agent: agent.Options{MaxReply: 5000}})
		got := r.Tries[0].Nodes
		if r.Passed || r.Status != "failure" || len(got) != 1 || len(got[0].Reasons) != 1 || !strings.HasPrefix(got[0].Reasons[0], tt.reason) {
			t.Errorf("%s: %+v, want %s", name, got, tt.reason)
		}
		if errors := of(events(t, r), "error"); len(errors) != 1 {
			t.Errorf("%s: events %v", name, errors)
		}
		verify(t, s, r)
	}
	// The control.
	if r := run(t, parse(t, nodes(t, "", "", "")), serve(t, replies(final)).URL, harness.Options{MaxTurns: 3}); !r.Passed {
		t.Errorf("the control: %+v", r)
	}
}

// An agent that nobody can reach is a failure of the run, not of the harness.
func TestUnreachable(t *testing.T) {
	s := load(t, "own_edge_pass.json")
	r := run(t, s, "unix:"+filepath.Join(t.TempDir(), "s"), harness.Options{})
	if r.Passed || !strings.HasPrefix(r.Tries[0].Nodes[0].Reasons[0], "Agent Node Error: agent: expected a connection") || r.AgentName != r.Agent {
		t.Errorf("%+v", r)
	}
	verify(t, s, r)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := serve(t, func(int, string) string { cancel(); return `{"action":"processing"}` })
	address, err := agent.ParseAddress(a.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, nodes(t, "", ""))
	r, err := harness.Run(ctx, s, harness.Target{Address: address}, harness.Options{Out: t.TempDir(), Attempts: 3, Poll: time.Hour})
	if err != nil || r.Passed || r.Status != "cancelled" || r.Attempts != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	verify(t, s, r)
}

// Attempts are told apart by their run id; a rate decides; the name is the
// agent's own, then the flag's, then the address.
func TestAttempts(t *testing.T) {
	flaky := func(n int, _ string) string {
		if n == 2 {
			return `{"action":"error"}`
		}
		return final
	}
	for _, tt := range []struct {
		rate   float64
		passed bool
	}{{0, false}, {0.75, true}, {0.8, false}} {
		a := serve(t, flaky)
		s := parse(t, nodes(t, "", ""))
		r := run(t, s, a.URL, harness.Options{Attempts: 4, PassRate: tt.rate, AgentName: "flagged"})
		if r.Passed != tt.passed || r.PassRate != 0.75 || r.Successful != 3 || r.PassAtK != 1 || r.AgentName != "flagged" {
			t.Errorf("rate %v: %+v", tt.rate, r)
		}
		for i, body := range a.bodies {
			want := r.RunID
			if i > 0 {
				want = fmt.Sprintf("%s-%d", r.RunID, i+1)
			}
			if !strings.Contains(body, `"run_id":"`+want+`"`) {
				t.Errorf("attempt %d: %s, want the run id %s", i+1, body, want)
			}
		}
		verify(t, s, r)
	}
	r := run(t, parse(t, nodes(t, "", "")), serve(t, replies(`{"action":"completed","metadata":{"model":"m"},"name":"n"}`)).URL, harness.Options{AgentName: "flagged"})
	start := of(events(t, r), "run_start")[0]["metadata"].(map[string]any)
	if r.AgentName != "m" || start["agent_name"] != "m" {
		t.Errorf("the agent's own name: %s, in run_start %v", r.AgentName, start["agent_name"])
	}
}

// Metrics decide, those of nodes and those of the whole.
func TestMetricsDecide(t *testing.T) {
	const clear, looked = `,"success_criteria":[{"metric":"communication_clarity","threshold":1}]`, `,"required_tools":["look"]`
	for _, tt := range []struct {
		node, evaluation, summary string
		passed                    bool
		values                    int // events
	}{
		{clear, "", "long enough", true, 1},
		{clear, "", "short", false, 1},
		{looked, `"metrics":["tool_call_correctness",{"metric":"communication_clarity","threshold":0}]`, "long enough", false, 2},
		{"", `"metrics":["tool_call_correctness"]`, "short", true, 1},
		{`,"state_hygiene":{"rules":[{"path":"n","op":"==","expected":2}]}`, "", "never asked", false, 0},
		{`,"state_hygiene":{"rules":[{"path":"n","op":"==","expected":1}]}`, "", "asked", true, 0},
	} {
		a := serve(t, replies(`{"action":"final_answer","summary":"`+tt.summary+`"}`))
		s := parse(t, nodes(t, tt.evaluation, tt.node))
		r := run(t, s, a.URL, harness.Options{})
		if r.Passed != tt.passed || len(of(events(t, r), "evaluation")) != tt.values {
			t.Errorf("%s %s %q: %+v", tt.node, tt.evaluation, tt.summary, r)
		}
		verify(t, s, r)
	}
}

// A route's template replaces the body (agentv.md 1.1); headers go to the agent
// and nowhere else.
func TestTemplateAndHeader(t *testing.T) {
	a := serve(t, replies(final))
	address, err := agent.ParseAddress(a.URL+"/?key=canary", "")
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, nodes(t, "", `,"input_payload":{"k":1}`))
	target := harness.Target{Address: address, Template: []byte(`{"agent": "x", "input": "{task_description}", "context": ["{input_payload}", 1.50]}`)}
	r, err := harness.Run(t.Context(), s, target, harness.Options{Out: t.TempDir(), Agent: agent.Options{Header: http.Header{"Authorization": {"canary"}}}})
	if err != nil || !r.Passed || a.bodies[0] != `{"agent":"x","input":"task 1","context":[{"k":1},1.50]}` || a.auths[0] != "canary" {
		t.Errorf("%v, %q %q", err, a.bodies, a.auths)
	}
	data, err := os.ReadFile(r.Ledger)
	if err != nil || strings.Contains(string(data), "canary") {
		t.Errorf("a credential is in the ledger (%v):\n%s", err, data)
	}
}

// The harness's own faults are errors, before anybody is asked.
func TestBroken(t *testing.T) {
	a := serve(t, replies(final))
	address, err := agent.ParseAddress(a.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		node string
		opts harness.Options
		kind fault.Kind
	}{
		"attempts": {"", harness.Options{Attempts: 51}, fault.Invalid},
		"rate":     {"", harness.Options{PassRate: 1.5}, fault.Invalid},
		"payload":  {"", harness.Options{Payload: "2.0"}, fault.Invalid},
		"metric":   {`,"success_criteria":[{"metric":"luna_judge_score","threshold":1}]`, harness.Options{}, fault.Invalid},
		"registry": {"", harness.Options{Registry: []byte("[]")}, fault.Invalid},
		"folder":   {"", harness.Options{Out: file}, fault.Unavailable},
	} {
		if tt.opts.Out == "" {
			tt.opts.Out = t.TempDir()
		}
		r, err := harness.Run(t.Context(), parse(t, nodes(t, "", tt.node)), harness.Target{Address: address}, tt.opts)
		if err == nil || fault.Of(err) != tt.kind {
			t.Errorf("%s: %+v, %v, want kind %v", name, r, err, tt.kind)
		}
	}
	if len(a.bodies) > 0 {
		t.Errorf("the agent was asked: %q", a.bodies)
	}
}

// Whoever may not read the folder does not learn what the agent said.
func TestFolder(t *testing.T) {
	s := parse(t, nodes(t, "", ""))
	r := run(t, s, serve(t, replies(final)).URL, harness.Options{})
	for path, want := range map[string]os.FileMode{filepath.Dir(r.Ledger): 0o700, r.Ledger: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	copied, err := os.ReadFile(filepath.Join(filepath.Dir(r.Ledger), harness.ScenarioName))
	if err != nil || !slices.Equal(copied, s.Source) || !strings.HasPrefix(r.RunID, "run-a-b-") {
		t.Errorf("the scenario's copy: %v, run %s", err, r.RunID)
	}
}
