package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"weir/host/hosttest"
)

// The shipped binary shows what is in force and where it comes from, without
// keys, and shows none that it has.
func TestProcessConfigShow(t *testing.T) {
	path := filepath.Join(deployment(t), "agent.toml")
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, "file-canary\n")
	cmd := exec.Command(binary(t), "config", "show", "--config", path)
	cmd.Env = append(os.Environ(), "NAT_GATEWAY_API_KEY=env-canary", "MCP_API_KEY_FILE="+file, "AGENT_BIND_ADDRESS=127.0.0.1:9999",
		"GUARDRAILS_INPUT_MAX_CHARS=1000", "OTEL_EXPORTER_OTLP_HEADERS=authorization=header-canary")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"server.listen = \"127.0.0.1:9999\"  # variable AGENT_BIND_ADDRESS\n",
		"server.drain = \"25s\"  # default\n",
		"agent.workflow = \"react\"  # file\n",
		"plugins.input-screen.config.max_chars = 1000  # variable GUARDRAILS_INPUT_MAX_CHARS\n",
		"NAT_GATEWAY_API_KEY = \"[redacted]\"  # variable NAT_GATEWAY_API_KEY\n",
		"MCP_API_KEY = \"[redacted]\"  # variable's file MCP_API_KEY_FILE\n",
		"WEIR_ADMIN_KEY = (not set)  # default\n",
		"OTEL_EXPORTER_OTLP_HEADERS = \"[redacted]\"  # variable OTEL_EXPORTER_OTLP_HEADERS\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "canary") {
		t.Errorf("a secret is printed:\n%s", out)
	}
}

func TestConfigShowAsJSON(t *testing.T) {
	path := filepath.Join(deployment(t), "agent.toml")
	got := invoke(t, keys(), "", "config", "show", "--config", path, "--json")
	var shown struct {
		Path, SHA256 string
		Settings     []struct {
			Key, Source string
			Value       any
			Hot         bool
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil || got.code != exitOK || len(shown.Settings) < 150 || shown.Path != path || len(shown.SHA256) != 64 {
		t.Errorf("%v, %+v", err, got)
	}
	for _, secret := range keys() {
		if strings.Contains(got.stdout, secret) {
			t.Errorf("a key is printed: %s", got.stdout)
		}
	}
	if got := invoke(t, environment{"LLM_MODEL": "x", "HITL_ENABLE_INTERACTIVE": "maybe"}, "", "config", "show", "--config", path); got.code != exitFailed || !strings.Contains(got.stderr, "weir config show: environment HITL_ENABLE_INTERACTIVE: expected ") {
		t.Errorf("a configuration that would be refused: %+v", got)
	}
}

// DECISIONS 9: what an evaluator computes from the export is what /version of
// a running agent shows.
func TestConfigExportAgreesWithVersion(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	var version struct {
		Prompt string `json:"prompt_sha256"`
		Guards string `json:"guardrails_prompts_sha256"`
	}
	if err := json.Unmarshal([]byte(w.Get(t, "/version")), &version); err != nil {
		t.Fatal(err)
	}
	got := invoke(t, environment{}, "", "config", "export-evaluator", "--config", w.ConfigPath())
	var doc struct {
		Workflow struct {
			SystemPrompt string `json:"system_prompt"`
		}
		Guardrails struct{ Prompts any }
	}
	if err := yaml.Unmarshal([]byte(got.stdout), &doc); err != nil || got.code != exitOK || got.stderr != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	prompts, err := json.Marshal(doc.Guardrails.Prompts)
	if err != nil {
		t.Fatal(err)
	}
	if sum(doc.Workflow.SystemPrompt) != version.Prompt || sum(string(prompts)) != version.Guards {
		t.Errorf("/version says %+v; of the export\n%s", version, got.stdout)
	}
	if got := invoke(t, environment{}, "", "config", "export-evaluator", "--config", "config.yml"); got.code != exitFailed || !strings.Contains(got.stderr, "expected a TOML file") {
		t.Errorf("a YAML file: %+v", got)
	}
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}
