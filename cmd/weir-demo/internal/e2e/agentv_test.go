package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/host/plugin/plugintest"
)

// scenarioPath is a shipped scenario.
func scenarioPath(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(plugintest.Root(t), "cmd", "weir", "internal", "agentv", "testdata", "aes", name+".json")
}

// turning serves the turn contract with the tools of a scenario.
func turning(t testing.TB, scenario string, more ...string) func(string) string {
	return func(c string) string {
		before, rest, ok := strings.Cut(c, "[contract.turn]\n")
		_, after, end := strings.Cut(rest, "# Who is told that the agent is there")
		if !ok || !end {
			t.Fatal("[contract.turn] stands elsewhere")
		}
		table := fmt.Sprintf("enabled = true\nlisten = '127.0.0.1:0'\nscenario = '%s'\n%s\n", scenarioPath(t, scenario), strings.Join(more, "\n"))
		return before + "[contract.turn]\n" + table + "\n#" + after
	}
}

// evaluated is what `weir agentv run --json` prints.
type evaluated struct {
	Passed   bool    `json:"passed"`
	PassRate float64 `json:"pass_rate"`
	Agent    string  `json:"agent_name"`
	Tries    []struct {
		Nodes []struct {
			ID      string   `json:"id"`
			Turns   int      `json:"turns"`
			Tools   []string `json:"tools"`
			Reasons []string `json:"reasons"`
		} `json:"nodes"`
	} `json:"attempts"`
	Oddities []string `json:"oddities"`
	Ledger   string   `json:"ledger"`
}

// evaluate runs a scenario against an agent.
func evaluate(t testing.TB, env map[string]string, scenario string, args ...string) evaluated {
	t.Helper()
	all := append([]string{"agentv", "run", "--json", "--scenario", scenarioPath(t, scenario)}, args...)
	c := launch(t, env, nil, all...)
	code := c.wait(t, 2*time.Minute)
	var e evaluated
	if err := json.Unmarshal([]byte(c.stdout.String()), &e); err != nil {
		t.Fatalf("code %d, %v: %s\n%s", code, err, c.stdout, c.stderr)
	}
	if e.Passed != (code == 0) {
		t.Errorf("code %d, passed %v", code, e.Passed)
	}
	return e
}

func mustPass(t testing.TB, e evaluated) {
	t.Helper()
	if !e.Passed || e.PassRate != 1 || len(e.Oddities) > 0 || e.Agent != "support-tickets-agent" {
		t.Errorf("%+v", e)
	}
}

// DECISIONS 7 and agentv.md: the harness drives the shipped workflow and passes
// 100 % over HTTP, with the key and on loopback without one, in every era of the
// contract in which the caller can be told from others.
func TestAgentV(t *testing.T) {
	for scenario, payloads := range map[string][]string{"own_edge_pass": {"contract", "1.4", "1.6", "1.7"}, "own_capture_multinode": {"contract", "1.7"}} {
		t.Run(scenario, func(t *testing.T) {
			w := start(t, setup{config: turning(t, scenario)})
			for _, payload := range payloads {
				if payload != "1.7" { // which has nothing but the text
					mustPass(t, evaluate(t, nil, scenario, "--agent", w.url+"/execute_task", "--payload", payload, "--attempts", "2",
						"--header", "Authorization: Bearer "+serviceKey, "--header", "x-authenticated-user-id: "+userID))
				}
				mustPass(t, evaluate(t, nil, scenario, "--agent", "http://"+w.host.TurnAddr().String()+"/execute_task", "--payload", payload))
			}
			c := launch(t, map[string]string{"NAT_GATEWAY_API_KEY": serviceKey}, nil, "conform", "--url", w.url, "--spec", "agentv", "--ask", "Use get_time.")
			if code := c.wait(t, time.Minute); code != 0 || !strings.Contains(c.stdout.String(), "resume") {
				t.Errorf("conform: code %d\n%s%s", code, c.stdout, c.stderr)
			}
			if status, body := w.post(t, "GET", "/version", ""); status != 200 || !strings.Contains(body, `"tool_dna_hash":"`) {
				t.Errorf("/version: %d %s", status, body)
			}
		})
	}
}

// The shipped scenarios whose outcomes are prose end with an answer to the
// question, in forms that every harness understands, and not with an error.
func TestAgentVShippedScenarios(t *testing.T) {
	w := start(t, setup{config: turning(t, "own_edge_pass")})
	for _, scenario := range []string{"telecom_13814_home_internet_slow_speed", "fintech_11252_recovery", "loan_approval_scenario", "disputed_claim", "luna_demo"} {
		e := evaluate(t, nil, scenario, "--agent", "http://"+w.host.TurnAddr().String()+"/execute_task", "--skip-metric", "luna_judge_score")
		if len(e.Tries) != 1 || len(e.Tries[0].Nodes) == 0 || len(e.Oddities) > 0 {
			t.Errorf("%s: %+v", scenario, e)
			continue
		}
		for _, n := range e.Tries[0].Nodes {
			for _, reason := range n.Reasons {
				if strings.Contains(reason, "agent:") || strings.Contains(reason, "reply:") || strings.Contains(reason, "error") {
					t.Errorf("%s, %s: %s", scenario, n.ID, reason)
				}
			}
		}
	}
}

// The same over a process for each turn and one for all, and over sockets with a
// connection for each turn and one for all.
func TestAgentVProcessesAndSockets(t *testing.T) {
	const scenario = "own_edge_pass"
	s := setup{config: turning(t, scenario, `infer = "single"`)}
	path := deployment(t, s.edit(t), nil)
	env, _ := neighbours(t, s)
	delete(env, "NAT_GATEWAY_API_KEY") // nothing of them is needed
	delete(env, "MCP_API_KEY")
	env["WEIR_STATE_DIR"] = t.TempDir()
	stdio := []string{"--agent", binary(t) + " agentv stdio --config " + path}
	for _, payload := range []string{"contract", "1.7"} {
		t.Run("stdio, "+payload, func(t *testing.T) {
			mustPass(t, evaluate(t, env, scenario, append(stdio, "--payload", payload)...))
		})
	}
	t.Run("stdio, persistent", func(t *testing.T) {
		mustPass(t, evaluate(t, env, scenario, append(stdio, "--payload", "1.7", "--persistent")...))
	})
	for _, address := range []string{"tcp:127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "a.sock")} {
		agent := launch(t, env, nil, "agentv", "socket", "--config", path, "--listen", address)
		at := listening(t, agent)
		for _, payload := range []string{"contract", "1.7"} {
			t.Run(address[:4]+", "+payload, func(t *testing.T) {
				mustPass(t, evaluate(t, nil, scenario, "--agent", at, "--payload", payload))
				mustPass(t, evaluate(t, nil, scenario, "--agent", at, "--payload", payload, "--persistent"))
			})
		}
		interrupt(t, agent)
		if code := agent.wait(t, hang); code != 0 {
			t.Errorf("%s: ended with %d:\n%s", address, code, agent.stderr)
		}
	}
}

// listening waits until a socket's agent listens and returns the address.
func listening(t testing.TB, c *child) (at string) {
	t.Helper()
	eventually(t, func() bool {
		select {
		case <-c.ended:
			t.Fatalf("it ended with %d:\n%s", c.code, c.stderr)
		default:
		}
		_, rest, ok := strings.Cut(c.stderr.String(), "msg=listening address=")
		at, _, _ = strings.Cut(rest, "\n")
		return ok && at != ""
	})
	return at
}

// post asks a route as a user with the key.
func (w *world) post(t testing.TB, method, path, body string) (int, string) {
	t.Helper()
	resp, err := client.Do(w.as(t.Context(), t, userID, method, path, body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The policy is one: a stream and an action object of the same host name the
// same generation, and the workflow of that is the module that was built, digest
// by digest. A turn's generation with another workflow would name another.
func TestOneWorkflowServesBothContracts(t *testing.T) {
	w := start(t, setup{config: turning(t, "own_edge_pass")})
	built := fmt.Sprintf("%x", sha256.Sum256(plugintest.Build(t, "plugins/react")))
	served := func(contract, reply string) string {
		_, rest, ok := strings.Cut(reply, `"generation":"`)
		generation, _, _ := strings.Cut(rest, `"`)
		active := w.host.Status().Active
		if !ok || generation != active.Generation {
			t.Fatalf("%s: the generation is %q, want %s", contract, generation, active.Generation)
		}
		for _, p := range active.Plugins {
			if p.Name == "react" {
				return p.Digest
			}
		}
		t.Fatalf("%s: the generation has no react: %+v", contract, active.Plugins)
		return ""
	}
	stream := w.ask(t, user("Show me my open tickets."))
	if got := served("stream", string(stream.raw)); got != built || !strings.Contains(stream.text(), "TKT-1001") {
		t.Errorf("a stream is served by the workflow %s, want %s:\n%s", got, built, stream.raw)
	}
	status, body := w.post(t, "POST", "/execute_task", `{"task_description":"What time is it? Use get_time."}`)
	if got := served("turn", body); got != built || status != 200 || !strings.Contains(body, `"tool_name":"get_time"`) {
		t.Errorf("an action object is served by the workflow %s, want %s: %d %s", got, built, status, body)
	}
}
