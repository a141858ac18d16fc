package host_test

import (
	"os"
	"strings"
	"testing"

	"weir/host"
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
