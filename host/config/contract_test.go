package config

import (
	"strings"
	"testing"
)

// Every refusal of [contract.turn] beside what is allowed.
func TestTurn(t *testing.T) {
	for _, tt := range []struct{ toml, want string }{
		{"enabled = true\nlisten = '127.0.0.1:5001'\naliases = ['input']\ninfer = 'single'\naccept_auto = true", ""},
		{"listen = '[::1]:0'", ""},
		{"listen = '0.0.0.0:5001'", "loopback"},
		{"listen = '5001'", "loopback"},
		{"infer = 'any'", `expected "off" or "single"`},
		{"aliases = ['task_description']", "names of members"},
		{"aliases = ['a b']", "names of members"},
		{"identity = 'verify'", "folder of public keys"},
		{"identity = 'verify'\ntrust_root = 'keys'", ""},
		{"identity = 'always'", `"ignore", "verify" or "require"`},
		{"answer_timeout = '1ms'", "expected 100ms"},
		{"session_timeout = '0s'", "expected 1s"},
		{"scenario = 'a.json'", ""},
		{"scenario = 'a.json'\n[[contract.turn.tools]]\nname = 'a'\ndescription = 'b'", "either a scenario"},
		{"[[contract.turn.tools]]\nname = 'a'\ndescription = 'b'\nschema = '{}'", ""},
		{"[[contract.turn.tools]]\nname = 'a b'\ndescription = 'b'", "names of letters"},
		{"[[contract.turn.tools]]\nname = 'a'", "a description for the model"},
		{"[[contract.turn.tools]]\nname = 'a'\ndescription = 'b'\nschema = '{'", "expected JSON in schema"},
		{"[[contract.turn.tools]]\nname = 'a'\ndescription = 'b'\n[[contract.turn.tools]]\nname = 'a'\ndescription = 'c'", "each tool once"},
	} {
		dir := t.TempDir()
		write(t, dir, "system.md", "You help.\n")
		write(t, dir, "agent.toml", minimal+"\n[contract.turn]\n"+tt.toml+"\n")
		_, err := Load(Source{Path: dir + "/agent.toml", Env: keys().look})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.toml, err, tt.want)
		}
	}
}
