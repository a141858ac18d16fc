package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// screen is a guardrail whose configuration the environment may overrule.
const screen = minimal + `
[plugins.screen.env]
max = { variable = "GUARDRAILS_INPUT_MAX_CHARS", floor = 256 }
text = { variable = "GUARDRAILS_INPUT_BLOCK_MESSAGE" }
on = { variable = "GUARDRAILS_INPUT_DETERMINISTIC_FALLBACK" }
[plugins.screen.config]
max = 32000
text = "no"
on = true
`

// agent-service.md 8.1: what each kind of variable takes, and what it refuses.
func TestVariableKinds(t *testing.T) {
	const badBool = "environment NAT_TRACE_CAPTURE_CONTENT: expected one of 1, true, yes, on, 0, false, no, off, got %q"
	const badInt = "environment GUARDRAILS_PII_MAX_BUFFER_CHARS: expected a whole number that is not negative, got %q"
	content := func(c *Config) any { return c.Telemetry.CaptureContent }
	answer := func(c *Config) any { return c.Guard.MaxAnswerChars }
	effort := func(c *Config) any { return c.Model.Agent.ReasoningEffort }
	tests := []struct {
		name, value string
		get         func(*Config) any
		want        any // a string that begins with "environment": the refusal
	}{
		{"NAT_TRACE_CAPTURE_CONTENT", "", content, true},
		{"NAT_TRACE_CAPTURE_CONTENT", " ", content, true},
		{"NAT_TRACE_CAPTURE_CONTENT", " OFF ", content, false},
		{"NAT_TRACE_CAPTURE_CONTENT", "0", content, false},
		{"NAT_TRACE_CAPTURE_CONTENT", "No", content, false},
		{"NAT_TRACE_CAPTURE_CONTENT", "yes", content, true},
		{"NAT_TRACE_CAPTURE_CONTENT", "Ture", content, fmt.Sprintf(badBool, "Ture")},
		{"NAT_TRACE_CAPTURE_CONTENT", "y", content, fmt.Sprintf(badBool, "y")},
		{"NAT_TRACE_CAPTURE_CONTENT", "2", content, fmt.Sprintf(badBool, "2")},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", " ", answer, 200000},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", " 5000 ", answer, 5000},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", "7", answer, 1024},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", "0", answer, 1024},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", "-1", answer, fmt.Sprintf(badInt, "-1")},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", "1e4", answer, fmt.Sprintf(badInt, "1e4")},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", "0x10", answer, fmt.Sprintf(badInt, "0x10")},
		{"GUARDRAILS_PII_MAX_BUFFER_CHARS", "99999999999999999999", answer, fmt.Sprintf(badInt, "99999999999999999999")},
		{"LLM_REASONING_EFFORT", " none ", effort, "none"},
		{"LLM_REASONING_EFFORT", "", effort, ""},
		{"AGENT_BIND_ADDRESS", "127.0.0.1:8123", func(c *Config) any { return c.Server.Listen }, "127.0.0.1:8123"},
		{"AGENT_BIND_ADDRESS", "127.0.0.1:70000", nil, `environment AGENT_BIND_ADDRESS: expected host:port with a port up to 65535, got "127.0.0.1:70000"`},
		{"TICKETS_MCP_URL", " http://127.0.0.1:1/mcp ", func(c *Config) any { return c.Tools.MCP.URL }, "http://127.0.0.1:1/mcp"},
		{"NAT_GATEWAY_API_KEY", " key ", func(c *Config) any { return c.Server.APIKey.Reveal() }, "key"},
		{"LLM_GUARD_MODEL", "small", func(c *Config) any { return c.Model.Agent.Name + "/" + c.Model.Guard.Name }, "qwen3:8b/small"},
		{"LLM_MODEL", "large", func(c *Config) any { return c.Model.Agent.Name + "/" + c.Model.Guard.Name }, "large/qwen3:8b"},
		{"HITL_INTERACTION_TIMEOUT_SECONDS", "soon", content, true}, // read only where approvals are on
		{"WEIR_STATE_DIR", "runs", func(c *Config) any { return c.StateDir() == filepath.Join(c.Dir(), "runs") }, true},
		{"GUARDRAILS_RAIL_POOL_SIZE", "x", content, true}, // another runtime's
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			c, err := load(t, minimal, keys().with(tt.name, tt.value))
			if want, ok := tt.want.(string); ok && (strings.HasPrefix(want, "environment ") || strings.HasPrefix(want, "agent.toml: ")) {
				wantProblems(t, err, want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.get(c); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// The environment wins over the file, and blank is not set.
func TestPrecedence(t *testing.T) {
	text := minimal + "[server]\nlisten = '127.0.0.1:1'\n[model.agent]\nreasoning_effort = 'low'\nname = 'm'\n"
	c := mustLoad(t, text, keys().with("AGENT_BIND_ADDRESS", "127.0.0.1:2").with("LLM_MODEL", " "))
	if c.Server.Listen != "127.0.0.1:2" || c.Model.Agent.Name != "m" || c.Model.Agent.ReasoningEffort != "low" {
		t.Errorf("listen %q, model %q, effort %q", c.Server.Listen, c.Model.Agent.Name, c.Model.Agent.ReasoningEffort)
	}
	c = mustLoad(t, text, keys().with("LLM_REASONING_EFFORT", ""))
	if c.Model.Agent.ReasoningEffort != "" {
		t.Errorf("an effort that is set but empty leaves the field out, got %q", c.Model.Agent.ReasoningEffort)
	}
}

func TestPluginEnvironment(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"UNRELATED", "x", `{"max":32000,"on":true,"text":"no"}`},
		{"GUARDRAILS_INPUT_MAX_CHARS", " 300 ", `{"max":300,"on":true,"text":"no"}`},
		{"GUARDRAILS_INPUT_MAX_CHARS", "1", `{"max":256,"on":true,"text":"no"}`},
		{"GUARDRAILS_INPUT_MAX_CHARS", "", `{"max":32000,"on":true,"text":"no"}`},
		{"GUARDRAILS_INPUT_BLOCK_MESSAGE", "<é>", `{"max":32000,"on":true,"text":"<é>"}`},
		{"GUARDRAILS_INPUT_DETERMINISTIC_FALLBACK", "off", `{"max":32000,"on":false,"text":"no"}`},
	} {
		c := mustLoad(t, screen, keys().with(tt.name, tt.value))
		if got := string(c.Plugins.Plugin("screen").Config); got != tt.want {
			t.Errorf("%s=%q: %s, want %s", tt.name, tt.value, got, tt.want)
		}
		if (tt.want != `{"max":32000,"on":true,"text":"no"}`) == (string(c.Policy()) == string(mustLoad(t, screen, keys()).Policy())) {
			t.Errorf("%s=%q: the policy does not follow the configuration", tt.name, tt.value)
		}
	}
	_, err := load(t, screen, keys().with("GUARDRAILS_INPUT_MAX_CHARS", "many").with("GUARDRAILS_INPUT_DETERMINISTIC_FALLBACK", "Ture"))
	wantProblems(t, err,
		`environment GUARDRAILS_INPUT_MAX_CHARS: expected a whole number that is not negative, got "many"`,
		`environment GUARDRAILS_INPUT_DETERMINISTIC_FALLBACK: expected one of 1, true, yes, on, 0, false, no, off, got "Ture"`)
}

// A plugin's configuration never holds a secret, and never a key of no known type.
func TestPluginEnvironmentRefusals(t *testing.T) {
	for binding, want := range map[string]string{
		`k = { variable = "LLM_API_KEY" }`:               "agent.toml: [plugins.g.env] k: expected a variable without a secret: a plugin's configuration never holds one",
		`k = { variable = "HITL_APPROVAL_SECRET_FILE" }`: "agent.toml: [plugins.g.env] k: expected a variable without a secret: a plugin's configuration never holds one",
		`k = { variable = "Other_Token" }`:               "agent.toml: [plugins.g.env] k: expected a variable without a secret: a plugin's configuration never holds one",
		`k = { floor = 1 }`:                              `agent.toml: [plugins.g.env] k: expected { variable = "NAME" }`,
		`x = { variable = "X" }`:                         "agent.toml: [plugins.g.env] x: expected a key that stands in [plugins.g.config], so that its type is known",
		`l = { variable = "X" }`:                         "agent.toml: [plugins.g.env] l: expected a key that is a string, a whole number, or true or false, got an array",
		`k = { variable = "X", floor = 1 }`:              "agent.toml: [plugins.g.env] k: expected no floor: the key is a string",
		`n = { variable = "X", floor = 9 }`:              "agent.toml: [plugins.g.config] n: expected at least 9, got 1",
		`k = "X"`:                                        "agent.toml: [plugins.g.env] k: expected a table, got a string",
	} {
		text := minimal + "[plugins.g.env]\n" + binding + "\n[plugins.g.config]\nk = 'v'\nl = []\nn = 1\n"
		_, err := load(t, text, keys())
		t.Run(binding, func(t *testing.T) { wantProblems(t, err, want) })
	}
}

func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "key", " gateway \n")
	write(t, dir, "secret", " 0123456789abcdef0123456\n")
	write(t, dir, "blank", "\n")
	env := vars{"NAT_GATEWAY_API_KEY": " ", "NAT_GATEWAY_API_KEY_FILE": filepath.Join(dir, "key"), "MCP_API_KEY": "m",
		"HITL_APPROVAL_SECRET_FILE": filepath.Join(dir, "secret")}
	c := mustLoad(t, minimal, env)
	if got := c.Server.APIKey.Reveal(); got != "gateway" {
		t.Errorf("key = %q, want it trimmed", got)
	}
	if got := c.Approvals.Secret.Reveal(); got != " 0123456789abcdef0123456" {
		t.Errorf("secret = %q, want it without the line's end only", got)
	}
	env["NAT_GATEWAY_API_KEY"] = "x"
	env["MCP_API_KEY"], env["MCP_API_KEY_FILE"] = "", filepath.Join(dir, "blank")
	env["LLM_API_KEY_FILE"] = filepath.Join(dir, "gone")
	_, err := load(t, minimal, env)
	wantProblems(t, err,
		"environment NAT_GATEWAY_API_KEY_FILE: expected one of NAT_GATEWAY_API_KEY and NAT_GATEWAY_API_KEY_FILE, got both",
		"environment MCP_API_KEY_FILE: expected a secret in the file, it is blank",
		"environment LLM_API_KEY_FILE: expected a readable file: no such file or directory",
		"environment NAT_GATEWAY_API_KEY: expected the service key that the gateway presents, it is missing or blank",
		"environment MCP_API_KEY: expected the key for the MCP server, it is missing or blank")
}

// The agent's key is for the agent's endpoint only.
func TestGuardKey(t *testing.T) {
	elsewhere := minimal + "[model.guard]\nbase_url = 'http://guard.example/v1'\n"
	env := func() vars { return keys().with("LLM_API_KEY", "agent-key") }
	for _, tt := range []struct {
		text string
		env  vars
		want string
	}{
		{minimal, env(), "agent-key"},
		{elsewhere, env(), "ollama"},
		{elsewhere, env().with("LLM_GUARD_API_KEY", "guard-key"), "guard-key"},
		{minimal, env().with("LLM_GUARD_API_KEY", "guard-key"), "guard-key"},
	} {
		if got := mustLoad(t, tt.text, tt.env).Model.Guard.APIKey.Reveal(); got != tt.want {
			t.Errorf("guard key = %q, want %q", got, tt.want)
		}
	}
}

func TestSwitchesWithoutEffectWarn(t *testing.T) {
	for name, value := range map[string]string{
		"HITL_STRICT_INTERACTION_OWNERSHIP":   "false",
		"GUARDRAILS_TRACE_CAPTURE_RAW_OUTPUT": "true",
		"AGENT_TRACE_CAPTURE_MODEL_CONTENT":   "true",
	} {
		c := mustLoad(t, minimal, keys().with(name, value))
		if len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], "environment "+name+": ") {
			t.Errorf("%s=%s: warnings %q", name, value, c.Warnings)
		}
	}
}

// No way of printing a configuration shows a secret.
func TestSecretsNeverPrint(t *testing.T) {
	const canary = "canary-0123456789abcdef-canary"
	env := vars{}
	for _, v := range Variables() {
		if v.Kind == KindKey || v.Kind == KindSecret {
			env[v.Name] = canary
		}
	}
	c := mustLoad(t, minimal, env)
	if c.Server.APIKey.Reveal() != canary || c.Approvals.Secret.Reveal() != canary {
		t.Fatal("the secrets were not read")
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", c.Server.APIKey, "config", c)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", c.Server.APIKey, "config", c)
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		log.String(), string(asJSON), string(c.Policy()),
		fmt.Sprintf("%v %+v %#v %s", c, c, c, c.Server.APIKey),
		fmt.Sprintf("%v %+v %#v %q %x", *c, c.Server, c.Approvals, c.Server.APIKey, c.Server.APIKey),
	} {
		if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) {
			t.Errorf("a secret is printed: %.300s", text)
		}
	}
}

// FuzzLoad: whatever stands in agent.toml is read or refused with a text that
// names the file, and the same bytes give the same policy.
func FuzzLoad(f *testing.F) {
	shipped, err := os.ReadFile("../../agent.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("[[variant]]\nname = \"x\"\nshare = 0.5\nguards = []\n[variant.model.agent]\nname = \"y\"\n[variant.plugins.react.config]\na = 1\n")
	f.Add(string(shipped))
	f.Add(minimal)
	f.Add(screen)
	f.Add("[plugins]\ndir = 1\n[plugins.a.config]\nx = [[1], [2.5, inf]]")
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "system.md"), []byte("x"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		decode := func() (*Config, *ledger) {
			c, l := defaults(), &ledger{}
			c.Path = filepath.Join(dir, "agent.toml")
			if c.decode([]byte(text), l) {
				c.applyEnvironment(environment{keys().look}, l)
				c.resolve()
				c.validate(l, false)
				c.Variants.layOver(c, l, false)
			}
			return c, l
		}
		c, l := decode()
		for _, err := range l.errs {
			if !strings.HasPrefix(err.Error(), "agent.toml:") {
				t.Errorf("a refusal does not name the file: %v", err)
			}
		}
		if len(l.errs) > 0 {
			return
		}
		again, _ := decode()
		if string(c.Policy()) != string(again.Policy()) {
			t.Errorf("two policies of one file:\n%s\n%s", c.Policy(), again.Policy())
		}
	})
}
