package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/host"
	"weir/host/auth"
	"weir/host/fault"
	"weir/host/hosttest"
)

// What the turn contract cannot be served with is refused before anything is
// started, by a check, a start and an agent for it alone alike.
func TestTurnIsChecked(t *testing.T) {
	const good = "[[contract.turn.tools]]\nname = 'a'\ndescription = 'does a'\n"
	for name, tt := range map[string]struct{ config, want string }{
		"nothing":          {"", ""},
		"tools":            {good, ""},
		"a scenario":       {"scenario = 'aes.json'\n", ""},
		"no scenario":      {"scenario = 'gone.json'\n", "[contract.turn] scenario: expected a readable file"},
		"another file":     {"scenario = 'agent.toml'\n", "[contract.turn] scenario: scenario: expected JSON"},
		"a loose schema":   {good + `schema = '{"type":"object","oneOf":[]}'` + "\n", `keyword "oneOf" is not supported`},
		"a reserved name":  {good + `schema = '{"type":"object","properties":{"approved":{"type":"boolean"}}}'` + "\n", "the name is reserved"},
		"no keys":          {"identity = 'require'\ntrust_root = 'keys'\n", "[contract.turn] trust_root"},
		"everything wrong": {"identity = 'require'\ntrust_root = 'keys'\nscenario = 'gone.json'\n", "trust_root"},
	} {
		t.Run(name, func(t *testing.T) {
			config := "[contract.turn]\nenabled = true\n" + tt.config
			w := hosttest.Prepare(t, hosttest.Options{Config: config})
			w.WriteFile(t, "aes.json", []byte(`{"tools":{"get_time":{"parameters":{"zone":"string"}}}}`))
			opts := w.Options(w.Env(), nil, nil)
			_, checked := host.Check(t.Context(), opts)
			env := w.Env()
			delete(env, "NAT_GATEWAY_API_KEY")
			delete(env, "MCP_API_KEY")
			agent, alone := host.StartTurn(t.Context(), host.TurnOptions{Options: w.Options(env, nil, nil), Listener: "stdio"})
			started := w.Boot(t)
			for what, err := range map[string]error{"check": checked, "start": started, "alone": alone} {
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: %v, want %q", what, err, tt.want)
				}
			}
			if agent == nil {
				return
			}
			var out strings.Builder
			if err := agent.Lines(t.Context(), strings.NewReader(`{"task_description":"hello"}`), &out); err != nil || !strings.Contains(out.String(), `"summary":"answer-a"`) {
				t.Errorf("answered %q, %v", &out, err)
			}
			if err := agent.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(w.Dir + "/state"); err == nil {
				t.Error("an agent without a caller keeps files")
			}
		})
	}
}

// sessionOf asks and returns the session that answered.
func sessionOf(t *testing.T, reply string) string {
	t.Helper()
	var m struct {
		Metadata struct {
			Session string `json:"session_id"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(reply), &m); err != nil || m.Metadata.Session == "" {
		t.Fatalf("%q, %v", reply, err)
	}
	return m.Metadata.Session
}

// Whoever nobody has authenticated is nobody that could be: a user with the very
// name of a listener finds none of its sessions.
func TestListenersAreNoUsers(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: "[contract.turn]\nenabled = true\nlisten = '127.0.0.1:0'\n[[contract.turn.tools]]\nname = 'a'\ndescription = 'does a'\n"})
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	post := func(addr, user string) string {
		return sessionOf(t, executeTask(t, "http://"+addr, user, `{"task_description":"hello","run_id":"r"}`))
	}
	listener, again := post(w.Host.TurnAddr().String(), ""), post(w.Host.TurnAddr().String(), "")
	if listener != again {
		t.Errorf("the control: %s and %s", listener, again)
	}
	if user := post(w.Host.Addr().String(), "agentv:http"); user == listener {
		t.Error("a user shares the listener's session")
	}
	// Every name that a listener may have is one that authentication refuses.
	gate, err := auth.New(hosttest.ServiceKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"agentv:http": true, host.LocalUser("http"): false, host.LocalUser("stdio"): false} {
		header := http.Header{"Authorization": {"Bearer " + hosttest.ServiceKey}}
		header.Set(auth.HeaderUserID, name)
		if _, err := gate.Authenticate(header); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a user says is in no file of the store, though the session that holds it
// goes on (DECISIONS 5, and W4's promise about text that guards block).
func TestTurnsAreInNoFile(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: "[store]\nbackend = \"jetstream\"\ndir = \"state\"\n[contract.turn]\nenabled = true\n"})
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	ask := func() string {
		return sessionOf(t, executeTask(t, "http://"+w.Host.Addr().String(), "someone",
			`{"task_description":"hello, says canary-turn","run_id":"r"}`))
	}
	session := ask()
	w.Stop(t)
	if host.InFiles(t, filepath.Join(w.Dir, "state", "jetstream", "$G", "streams", "weir_1_value"), "canary-turn") {
		t.Error("what the user said is in the files")
	}
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	if again := ask(); again != session {
		t.Errorf("the control: the session does not go on, %s and %s", session, again)
	}
}

// Two processes of one parent at once: the second begins when the first has
// ended, with what that left, or says why it does not.
func TestProcessesOfOneParent(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: "[contract.turn]\nanswer_timeout = '60s'\n[[contract.turn.tools]]\nname = 'a'\ndescription = 'does a'\n"})
	start := func(caller string) (*host.TurnAgent, error) {
		return host.StartTurn(t.Context(), host.TurnOptions{Options: w.Options(w.Env(), nil, nil), Listener: "stdio", Caller: caller})
	}
	ask := func(a *host.TurnAgent) string {
		var out strings.Builder
		if err := a.Lines(t.Context(), strings.NewReader(`{"task_description":"hello"}`), &out); err != nil {
			t.Fatal(err)
		}
		return sessionOf(t, out.String())
	}
	stop := func(a *host.TurnAgent) {
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	first, err := start("one")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := start("two"); err != nil {
		t.Errorf("another parent's: %v", err)
	} else {
		stop(other)
	}
	edit(t, w, "answer_timeout = '60s'", "answer_timeout = '1s'") // which is how long it waits
	if second, err := start("one"); err == nil {
		t.Error("a second one starts while the first is at work")
		stop(second)
	} else if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "--forget") {
		t.Errorf("while the first is at work: %v", err)
	}
	edit(t, w, "answer_timeout = '1s'", "answer_timeout = '60s'")
	session := ask(first)
	next := make(chan string)
	go func() {
		defer close(next)
		if second, err := start("one"); err != nil {
			t.Error(err)
		} else {
			next <- ask(second)
			stop(second)
		}
	}()
	time.Sleep(50 * time.Millisecond) // so that it most likely waits; either way it must go on
	stop(first)
	if got := <-next; got != session {
		t.Errorf("the next process has session %s, want %s", got, session)
	}
	<-next
	if left, err := filepath.Glob(filepath.Join(w.Dir, "state", "agentv", "*")); err != nil || len(left) != 2 {
		t.Errorf("what stays is %q, %v", left, err)
	}
}

// executeTask sends a request of the turn contract, with the service key where
// there is a user, and returns the answer.
func executeTask(t *testing.T, url, user, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/execute_task", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if user != "" {
		req.Header.Set("Authorization", "Bearer "+hosttest.ServiceKey)
		req.Header.Set("x-authenticated-user-id", user)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", resp.StatusCode, answer, err)
	}
	return string(answer)
}
