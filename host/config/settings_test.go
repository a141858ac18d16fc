package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// settings are the settings by key; a key that stands twice fails.
func settings(t *testing.T, c *Config) map[string]Setting {
	t.Helper()
	out := map[string]Setting{}
	for _, s := range c.Settings() {
		if _, twice := out[s.Key]; twice {
			t.Errorf("%s stands twice", s.Key)
		}
		out[s.Key] = s
	}
	return out
}

// Every value says whether it is a default, or stands in the file, a variable
// or a variable's file.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "key", "mcp-canary\n")
	env := keys().with("MCP_API_KEY", "").with("MCP_API_KEY_FILE", filepath.Join(dir, "key")).
		with("LLM_MODEL", "larger").with("A_BOUND", "7").with("OTEL_SERVICE_NAME", "me")
	c := mustLoad(t, "[agent]\nmax_history = 3\n[plugins.defaults]\nmemory = '32MiB'\n"+minimal+
		"[plugins.g]\nfuel = 5\n[plugins.g.env]\nbound = { variable = 'A_BOUND', floor = 2 }\n[plugins.g.config]\nbound = 3\nname = 'x'\n", env)
	got := settings(t, c)
	for _, want := range []Setting{
		{"agent.name", "support-tickets-agent", SourceDefault, "", false},
		{"agent.max_history", 3, SourceFile, "", true},
		{"agent.request_timeout", "5m", SourceDefault, "", true},
		{"agent.skills", []any{}, SourceDefault, "", true},
		{"model.agent.name", "larger", SourceVariable, "LLM_MODEL", true},
		{"model.agent.base_url", defaultModelURL, SourceDefault, "", false},
		{"registry.url", "", SourceDefault, "", false},
		{"plugins.defaults.memory", "32MiB", SourceFile, "", true},
		{"plugins.g.memory", "32MiB", SourceFile, "plugins.defaults.memory", true},
		{"plugins.g.reply", "4MiB", SourceDefault, "", true},
		{"plugins.g.fuel", 5, SourceFile, "", true},
		{"plugins.g.env.bound.variable", "A_BOUND", SourceFile, "", true},
		{"plugins.g.config.bound", int64(7), SourceVariable, "A_BOUND", true},
		{"plugins.g.config.name", "x", SourceFile, "", true},
		{"MCP_API_KEY", redacted, SourceVariableFile, "MCP_API_KEY_FILE", false},
		{"NAT_GATEWAY_API_KEY", redacted, SourceVariable, "NAT_GATEWAY_API_KEY", false},
		{"LLM_API_KEY", nil, SourceDefault, "", false},
		{"OTEL_SERVICE_NAME", "me", SourceVariable, "OTEL_SERVICE_NAME", false},
		{"HITL_ENABLE_INTERACTIVE", nil, SourceDefault, "", false},
	} {
		if d := cmp.Diff(want, got[want.Key]); d != "" {
			t.Errorf("%s (-want +got):\n%s", want.Key, d)
		}
	}
	for _, none := range []string{"LLM_MODEL", "RUST_LOG", "plugins.react.on_error", "agent.skills.id"} {
		if _, there := got[none]; there {
			t.Errorf("%s stands there", none)
		}
	}
}

// Whatever holds a secret, and wherever it comes from, nothing of it is shown.
func TestSettingsShowNoSecret(t *testing.T) {
	const canary = "canary-0123456789-0123456789"
	dir := t.TempDir()
	write(t, dir, "secret", canary)
	variables := 0
	for _, fromFile := range []bool{false, true} {
		env := keys()
		for _, v := range Variables() {
			if v.secret() {
				variables++
				env[v.Name] = canary
				if fromFile {
					env[v.Name], env[v.Name+fileSuffix] = "", filepath.Join(dir, "secret")
				}
			}
		}
		env["OTEL_EXPORTER_OTLP_HEADERS"] = "authorization=" + canary
		env["OTEL_EXPORTER_OTLP_LOGS_HEADERS"] = "authorization=" + canary
		env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "https://user:" + canary + "@collector/v1?token=" + canary
		env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = "https://collector/%zz" + canary
		env["LLM_BASE_URL"] = "http://model/v1?key=" + canary
		c := mustLoad(t, minimal+"[plugins.g.config]\napi_key = '"+canary+"'\nnested = [{ password = '"+canary+"' }]\nplain = 'shown'\n", env)
		all, err := json.Marshal(c.Settings())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(all), "canary") {
			t.Errorf("a secret is shown:\n%s", all)
		}
		if !strings.Contains(string(all), `"shown"`) || !strings.Contains(string(all), `https://[redacted]@collector/v1`) {
			t.Errorf("what is no secret is not shown:\n%s", all)
		}
	}
	if variables < 12 {
		t.Errorf("only %d secrets were tried", variables)
	}
}
