package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/host/plugin/plugintest"
)

// weir plugin call runs a hook of each shipped module as it lies on the disk.
func TestPluginCallOfShippedModules(t *testing.T) {
	dir := filepath.Dir(deployment(t, nil, nil))
	cache := plugintest.CacheDir(t)
	patterns := `{"patterns":["\\bAKIA[0-9A-Z]{16}\\b"],"notice":"no"}`
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		want  string // in the reply
	}{
		"input-screen": {[]string{"--hook", "check_input", "--prompt", "self_check_input=Block? {{ user_input }}", "--config",
			`{"critical_patterns":[{"name":"p","expr":"ignore"}]}`}, `{"text":"hello","history":[]}`, `"verdict":"ask_model"`},
		"output-secrets": {[]string{"--hook", "check_output", "--config", patterns}, `{"text":"it is AKIAABCDEFGHIJKLMNOP","stream_pos":0,"final":true}`, `"cut":{"at":6,`},
		"output-pii": {[]string{"--hook", "check_output", "--config", `{"entities":["EMAIL_ADDRESS"]}`},
			`{"text":"to a@example.org","stream_pos":0,"final":true}`, `"replace":"<EMAIL_ADDRESS>"`},
		"react": {[]string{"--hook", "step", "--prompt", "system=Use {tool_names}.", "--config", `{}`},
			`{"event":{"type":"start","turns":[{"role":"user","content":"hi"}],"tools":[],"tool_calls_left":20,"model_calls_left":21},"state":null}`, `"type":"model"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"plugin", "call", filepath.Join(dir, "plugins", "dist", name+".wasm"), "--cache", cache}, tc.args...)
			c := launch(t, nil, strings.NewReader(tc.stdin), args...)
			if code := c.wait(t, time.Minute); code != 0 || !json.Valid([]byte(c.stdout.String())) || !strings.Contains(c.stdout.String(), tc.want) {
				t.Errorf("code %d, %s\n%s", code, c.stdout, c.stderr)
			}
			bad := launch(t, nil, strings.NewReader(`{"text":`), args...)
			if code := bad.wait(t, hang); code != 1 || bad.stdout.String() != "" || !strings.Contains(bad.stderr.String(), "weir plugin call: ") {
				t.Errorf("a broken request: code %d, %s\n%s", code, bad.stdout, bad.stderr)
			}
		})
	}
}

// Every command says what is wrong: 1 where it was refused, 2 where the line is
// not understood.
func TestCommandsRefuse(t *testing.T) {
	t.Parallel()
	path := deployment(t, nil, nil)
	module := filepath.Join(filepath.Dir(path), "plugins", "dist", "output-pii.wasm")
	keys := map[string]string{"NAT_GATEWAY_API_KEY": serviceKey, "MCP_API_KEY": mcpKey, "WEIR_LOG_LEVEL": "warn"}
	for _, tc := range []struct {
		args []string
		env  map[string]string
		code int
		want string
	}{
		{nil, nil, 2, "Commands:"},
		{[]string{"help"}, nil, 0, ""},
		{[]string{"version"}, nil, 0, ""},
		{[]string{"version", "x"}, nil, 2, "expected 0 arguments"},
		{[]string{"sreve"}, nil, 2, `unknown command "sreve"`},
		{[]string{"config"}, nil, 2, "weir config check"},
		{[]string{"serve", "--prot", "1"}, keys, 2, "flag provided but not defined"},
		{[]string{"serve", "x"}, keys, 2, "expected 0 arguments"},
		{[]string{"config", "check", "--config", path}, keys, 0, ""},
		{[]string{"config", "check"}, keys, 1, "agent.toml: expected a readable configuration file"},
		{[]string{"config", "check", "--config", filepath.Dir(path)}, keys, 1, "weir config check: "},
		{[]string{"config", "check", "--config", path}, nil, 1, "NAT_GATEWAY_API_KEY"},
		{[]string{"plugin", "call"}, nil, 2, "expected 1 argument"},
		{[]string{"plugin", "call", module}, nil, 2, "--hook"},
		{[]string{"plugin", "call", module, "--hook", "chekc"}, nil, 2, "expected --hook with one of"},
		{[]string{"plugin", "call", "gone.wasm", "--hook", "describe"}, nil, 1, "gone.wasm"},
		{[]string{"plugin", "call", path, "--hook", "describe"}, nil, 1, "weir plugin call: "},
		{[]string{"plugin", "call", module, "--hook", "check_output", "--config", "@gone.json"}, nil, 2, "gone.json"},
		{[]string{"plugin", "call", module, "--cache", plugintest.CacheDir(t), "--hook", "check_output", "--config", `{"entities":[]}`}, nil, 1, "entities"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			c := launch(t, tc.env, strings.NewReader("{}"), tc.args...)
			if code := c.wait(t, time.Minute); code != tc.code || !strings.Contains(c.stderr.String(), tc.want) {
				t.Errorf("code %d, want %d with %q\n%s", code, tc.code, tc.want, c.stderr)
			}
			noSecrets(t, "the output", c.stdout.String()+c.stderr.String())
		})
	}
}
