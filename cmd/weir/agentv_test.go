package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/agenttest"
	"weir/cmd/weir/internal/agentv/scenario"
)

const edge = "internal/agentv/testdata/aes/own_edge_pass.json"

// serveScript serves an agent that follows a scenario, or answers nonsense.
func serveScript(t *testing.T, file string, right bool) string {
	t.Helper()
	s, err := scenario.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	script := agenttest.Astray(t, s)
	if right {
		script = agenttest.Follow(t, s)
	}
	server := httptest.NewServer(script)
	t.Cleanup(server.Close)
	return server.URL
}

// Exit codes tell a failing agent from a broken evaluation.
func TestAgentVRun(t *testing.T) {
	right, wrong := serveScript(t, edge, true), serveScript(t, edge, false)
	routes := filepath.Join(t.TempDir(), "routes.json")
	write(t, routes, `{"mappings":{"telecom_support_agent":{"protocol":"http","endpoint":"`+right+`"}}}`)
	broken := filepath.Join(t.TempDir(), "broken.json")
	write(t, broken, strings.Replace(readAll(t, edge), `"task_description"`, `"task"`, 1))
	const telecom = "internal/agentv/testdata/aes/telecom_13814_home_internet_slow_speed.json"
	for _, tt := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string // are contained
	}{
		{"right", []string{"--scenario", edge, "--agent", right, "--attempts", "2"}, exitOK, "success  2 of 2 attempts, 100 %", ""},
		{"wrong", []string{"--scenario", edge, "--agent", wrong}, exitFailed, `attempt 1, n1: expected_outcome[0]: expected message regex "12:00", got "I would rather not say."`, ""},
		{"by capability", []string{"--scenario", telecom, "--routes", routes}, exitFailed, "agent     " + right + "\n", ""},
		{"no scenario", []string{"--agent", right}, exitUsage, "", "expected --scenario with a file"},
		{"no agent", []string{"--scenario", edge}, exitBroken, "", "weir agentv run: agent: expected --agent"},
		{"broken scenario", []string{"--scenario", broken, "--agent", right}, exitBroken, "", "workflow.nodes[0]: missing property 'task_description'"},
		{"broken routes", []string{"--scenario", edge, "--routes", edge}, exitBroken, "", "mappings.aes_version: "},
		{"attempts", []string{"--scenario", edge, "--agent", right, "--attempts", "51"}, exitBroken, "", "attempts: expected 1 to 50, got 51"},
		{"human", []string{"--scenario", edge, "--agent", right, "--human", "maybe"}, exitUsage, "", "expected --human with ask, approve, reject, auto or skip"},
		{"header", []string{"--scenario", edge, "--agent", right, "--header", "nonsense"}, exitUsage, "", "expected NAME: VALUE"},
		{"header to a stranger", []string{"--scenario", telecom, "--header", "Authorization: canary"}, exitBroken, "", "may not choose who gets a credential"},
		{"environment", []string{"--scenario", edge, "--agent", right}, exitBroken, "", "environment AES_SHIM_RESOURCES_JSON: expected a JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := environment{}
			if tt.name == "environment" {
				env["AES_SHIM_RESOURCES_JSON"] = "[]"
			}
			got := invoke(t, env, "", append([]string{"agentv", "run", "--out", t.TempDir()}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.stdout, tt.stdout) || !strings.Contains(got.stderr, tt.stderr) || strings.Contains(got.stderr, "canary") {
				t.Errorf("got %+v, want %+v", got, tt)
			}
		})
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// agentv verify finds what was changed, and says what it cannot tell.
func TestAgentVVerify(t *testing.T) {
	routes := filepath.Join(t.TempDir(), "routes.json")
	write(t, routes, `{"x":{"endpoint":"http://x","api_key":"canary"}}`)
	got := invoke(t, nil, "", "agentv", "run", "--json", "--scenario", edge, "--agent", serveScript(t, edge, true), "--routes", routes, "--out", t.TempDir())
	var run struct{ Ledger, Head string }
	if err := json.Unmarshal([]byte(got.stdout), &run); err != nil || got.code != exitOK || strings.Count(got.stdout, "\n") != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	dir := filepath.Dir(run.Ledger)
	if strings.Contains(readAll(t, run.Ledger), "canary") {
		t.Errorf("a secret is in the ledger")
	}
	for _, tt := range []struct {
		args   []string
		code   int
		stdout string
	}{
		{[]string{dir, "--routes", routes, "--head", run.Head}, exitOK, "the ledger holds\n"},
		{[]string{run.Ledger, "--routes", routes}, exitOK, "the ledger holds\n"},
		{[]string{dir}, exitOK, "the ledger holds as far as could be told: 1 open\n"},
		{[]string{dir, "--head", strings.Repeat("0", 64)}, exitFailed, "the ledger does not hold\n"},
		{[]string{dir, "--scenario", "internal/agentv/testdata/aes/luna_demo.json", "--routes", routes}, exitFailed, "failed  topology_hash"},
		{[]string{dir, "--routes", routes, "--json"}, exitOK, `"holds":true`},
	} {
		got := invoke(t, nil, "", append([]string{"agentv", "verify"}, tt.args...)...)
		if got.code != tt.code || !strings.Contains(got.stdout, tt.stdout) {
			t.Errorf("%q: %+v, want %+v", tt.args, got, tt)
		}
	}
	write(t, run.Ledger, strings.Replace(readAll(t, run.Ledger), "12:00 UTC", "13:00 UTC", 1))
	if got := invoke(t, nil, "", "agentv", "verify", dir, "--routes", routes); got.code != exitFailed || !strings.Contains(got.stdout, "failed  chain") && !strings.Contains(got.stdout, "failed  environmental_snapshot") {
		t.Errorf("a changed ledger: %+v", got)
	}
	if got := invoke(t, nil, "", "agentv", "verify", filepath.Join(dir, "absent")); got.code != exitBroken {
		t.Errorf("no ledger: %+v", got)
	}
}

// agentv.md 1.2: who answers a pause, in AgentV's words.
func TestAgentVHuman(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		env   environment
		stdin string
		want  string // what the agent is told; empty: the node fails
	}{
		{nil, nil, "", "Skipped (non-interactive, no TTY): Sure?"},
		{nil, environment{"CI": "true"}, "", "Auto-approved (CI-Override): Sure?"},
		{[]string{"--human", "approve"}, nil, "", "approve"},
		{[]string{"--human", "reject"}, environment{"CI": "true"}, "", "reject"},
		{[]string{"--human", "ask"}, nil, "go on\n", "go on"},
		{[]string{"--human", "ask"}, nil, "exit\n", ""},
		{[]string{"--human", "ask"}, nil, "", ""},
	} {
		told := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var q struct {
				Task string `json:"task_description"`
			}
			_ = json.Unmarshal(body, &q)
			w.Header().Set("Content-Type", "application/json")
			if strings.HasPrefix(q.Task, "What time") {
				_, _ = io.WriteString(w, `{"action":"hitl_pause","prompt":"Sure?"}`)
				return
			}
			told = q.Task
			_, _ = io.WriteString(w, `{"action":"error"}`)
		}))
		got := invoke(t, tt.env, tt.stdin, append([]string{"agentv", "run", "--scenario", edge, "--agent", server.URL, "--out", t.TempDir()}, tt.args...)...)
		server.Close()
		if told != tt.want || got.code != exitFailed {
			t.Errorf("%q %v %q: told %q, %+v, want %q", tt.args, tt.env, tt.stdin, told, got, tt.want)
		}
	}
}

// Where a socket may not be is said before anything is loaded.
func TestAgentVSocketRefuses(t *testing.T) {
	for _, address := range []string{"tcp:0.0.0.0:9000", "socket://10.0.0.1:9", "9000"} {
		got := invoke(t, nil, "", "agentv", "socket", "--listen", address, "--config", filepath.Join(t.TempDir(), "absent.toml"))
		if got.code != exitFailed || got.stdout != "" || !strings.HasPrefix(got.stderr, "weir refused to start: socket: expected tcp:HOST:PORT on loopback or unix:PATH") {
			t.Errorf("%s: %+v", address, got)
		}
	}
}
