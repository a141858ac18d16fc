package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/plugin/plugintest"
)

// result is what one run of the program left behind.
type result struct {
	code           int
	stdout, stderr string
}

type environment map[string]string

func keys() environment {
	return environment{"NAT_GATEWAY_API_KEY": "gateway-key", "MCP_API_KEY": "mcp-key"}
}

func (e environment) with(more environment) environment {
	maps.Copy(e, more)
	return e
}

func invoke(t *testing.T, env environment, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	w := &weir{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr,
		env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	code := w.run(t.Context(), args)
	return result{code, stdout.String(), stderr.String()}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		args   []string
		code   int
		stdout string // is contained
		stderr string
	}{
		{nil, exitUsage, "", "weir config check"},
		{[]string{"help"}, exitOK, "weir plugin call", ""},
		{[]string{"--help"}, exitOK, "Exit codes:", ""},
		{[]string{"run"}, exitUsage, "", `unknown command "run"`},
		{[]string{"config"}, exitUsage, "", "weir config check [--config FILE]\n"},
		{[]string{"config", "print"}, exitUsage, "", "weir config: unknown command \"print\", expected one of these:\n  weir config check "},
		{[]string{"config", "--help"}, exitOK, "weir config export-evaluator ", ""},
		{[]string{"help", "config"}, exitOK, "weir config export-evaluator ", ""},
		{[]string{"help", "config", "check"}, exitOK, "", "usage: weir config check "},
		{[]string{"help", "help"}, exitOK, "  weir serve ", ""},
		{[]string{"serve", "--help"}, exitOK, "", "usage: weir serve"},
		{[]string{"serve", "--port", "1"}, exitUsage, "", "flag provided but not defined: -port"},
		{[]string{"serve", "agent.toml"}, exitUsage, "", "expected 0 arguments beside the flags, got 1"},
		{[]string{"plugin", "call"}, exitUsage, "", "expected 1 argument beside the flags, got 0"},
		{[]string{"plugin", "call", "x.wasm", "--hook", "check"}, exitUsage, "", `expected --hook with one of describe,`},
		{[]string{"plugin", "call", "x.wasm", "--config", "[]"}, exitUsage, "", `expected a JSON object`},
		{[]string{"plugin", "call", "x.wasm", "--prompt", "text"}, exitUsage, "", `expected NAME=TEXT or NAME=@FILE`},
		{[]string{"version"}, exitOK, "engine wazero/", ""},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			got := invoke(t, nil, "", tt.args...)
			if got.code != tt.code || !strings.Contains(got.stdout, tt.stdout) || !strings.Contains(got.stderr, tt.stderr) {
				t.Errorf("got %+v, want %+v", got, tt)
			}
		})
	}
}

func TestVersionAsJSON(t *testing.T) {
	var v struct {
		Commit, Engine, Go, Platform string
		ABI                          int
	}
	got := invoke(t, nil, "", "version", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || v.ABI != abi.Version || v.Engine == "" {
		t.Errorf("version --json: %+v, %v, %+v", got, err, v)
	}
}

// agent-service.md 8.3: every reason on stderr, exit code 1, nothing on stdout.
func TestServeRefuses(t *testing.T) {
	dir := deployment(t)
	config := filepath.Join(dir, "agent.toml")
	broken := filepath.Join(dir, "broken.toml")
	write(t, broken, "[server]\nlisen = 1\n")
	tests := []struct {
		name string
		args []string
		env  environment
		want []string
	}{
		{"no keys", []string{"--config", config}, environment{}, []string{
			"weir refused to start: environment NAT_GATEWAY_API_KEY: expected ",
			"weir refused to start: environment MCP_API_KEY: expected ",
		}},
		{"no file", nil, keys().with(environment{"AGENT_CONFIG_PATH": filepath.Join(dir, "gone.toml")}), []string{
			"weir refused to start: " + filepath.Join(dir, "gone.toml") + ": expected a readable configuration file: no such file or directory",
		}},
		{"YAML", nil, keys().with(environment{"AGENT_CONFIG_PATH": "config.yml"}), []string{
			"weir refused to start: config.yml: expected a TOML file such as agent.toml; ",
		}},
		{"--config wins", []string{"--config", broken}, keys().with(environment{"AGENT_CONFIG_PATH": config}), []string{
			`weir refused to start: broken.toml:2: unknown key [server] lisen, did you mean "listen"?`,
		}},
		{"short secret", []string{"--config", config}, keys().with(environment{"HITL_APPROVAL_SECRET": "short"}), []string{
			"weir refused to start: environment HITL_APPROVAL_SECRET: expected at least 24 characters",
		}},
		{"no module", []string{"--config", config}, keys(), []string{
			"weir refused to start: plugin react: ",
		}},
		{"log level", []string{"--config", config}, keys().with(environment{"WEIR_LOG_LEVEL": "loud"}), []string{
			"weir refused to start: environment WEIR_LOG_LEVEL: expected debug, info, warn or error",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := invoke(t, tt.env, "", append([]string{"serve"}, tt.args...)...)
			if got.code != exitFailed || got.stdout != "" {
				t.Errorf("code %d, stdout %q", got.code, got.stdout)
			}
			for _, want := range tt.want {
				if !strings.Contains("\n"+got.stderr, "\n"+want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
				}
			}
		})
	}
}

func TestConfigCheck(t *testing.T) {
	dir := deployment(t)
	args := []string{"config", "check", "--config", filepath.Join(dir, "agent.toml")}

	got := invoke(t, environment{}, "", args...)
	if got.code != exitFailed || got.stdout != "" || strings.Count(got.stderr, "weir config check: environment ") != 2 {
		t.Errorf("without keys: %+v", got)
	}

	got = invoke(t, keys(), "", args...)
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "ok ") || strings.Contains(got.stdout, "generation") ||
		strings.Count(got.stdout, "it was not checked and a start is refused") != 5 {
		t.Errorf("without modules: %+v", got)
	}

	for _, name := range []string{"react", "input-screen", "output-secrets", "output-pii", "tool-injection"} {
		write(t, filepath.Join(dir, "plugins", "dist", name+".wasm"), string(plugintest.Build(t, "plugins/"+name)))
	}
	got = invoke(t, keys(), "", args...)
	if got.code != exitOK || got.stderr != "" {
		t.Fatalf("with modules: %+v", got)
	}
	rest := "\n" + got.stdout
	for _, want := range []string{"ok ", "agent ", "prompt     self_check_input sha256 ", "prompt     system sha256 ",
		"plugin     react ", "plugin     input-screen ", "plugin     output-secrets ", "plugin     output-pii ", "plugin     tool-injection ", "generation "} {
		_, after, found := strings.Cut(rest, "\n"+want)
		if !found {
			t.Fatalf("no line begins with %q, or not in this order:\n%s", want, got.stdout)
		}
		rest = after
	}
	for _, secret := range keys() {
		if strings.Contains(got.stdout, secret) {
			t.Errorf("a key is printed:\n%s", got.stdout)
		}
	}

	// What a plugin says against its configuration is a refusal too.
	write(t, filepath.Join(dir, "agent.toml"), strings.Replace(read(t, filepath.Join(dir, "agent.toml")), `"US_SSN"`, `"SHOE_SIZE"`, 1))
	got = invoke(t, keys(), "", args...)
	if got.code != exitFailed || !strings.Contains(got.stderr, "weir config check: plugin output-pii: configure: ") {
		t.Errorf("an unknown entity: %+v", got)
	}
}

func TestPluginCall(t *testing.T) {
	dir := t.TempDir()
	module := filepath.Join(dir, "input-screen.wasm")
	write(t, module, string(plugintest.Build(t, "plugins/input-screen")))
	settings := filepath.Join(dir, "config.json")
	write(t, settings, `{"critical_patterns":[{"name":"p","expr":"ignore"}],"max_chars":300}`)
	call := func(stdin string, args ...string) result {
		return invoke(t, environment{"WEIR_LOG_LEVEL": "warn"}, stdin, append([]string{"plugin", "call", module, "--cache", plugintest.CacheDir(t), "--prompt", "self_check_input=Block? {{ user_input }}"}, args...)...)
	}

	var d abi.Description
	got := call("", "--hook", "describe", "--config", "@"+settings)
	if err := d.DecodeJSON([]byte(got.stdout)); err != nil || d.Kind != abi.KindGuardrail {
		t.Errorf("describe: %+v, %v", got, err)
	}

	var v abi.Verdict
	got = call(`{"text":"hello","history":[]}`, "--config", "@"+settings, "--hook", "check_input")
	if err := v.DecodeJSON([]byte(got.stdout)); err != nil || v.Verdict != abi.VerdictAskModel || got.stderr != "" {
		t.Errorf("a question: %+v, %v", got, err)
	}
	again := call(`{"text":"hello","history":[]}`, "--config", "@"+settings, "--hook", "check_input")
	if again.stdout != got.stdout {
		t.Errorf("the same call twice:\n%s%s", got.stdout, again.stdout)
	}

	got = call(`{"text":"`+strings.Repeat("x", 301)+`","history":[],"now":5,"seed":"6"}`, "--config", "@"+settings, "--hook", "check_input")
	v = abi.Verdict{}
	if err := v.DecodeJSON([]byte(got.stdout)); err != nil || v.Verdict != abi.VerdictBlock {
		t.Errorf("a long question: %+v, %v", got, err)
	}

	for name, got := range map[string]result{
		"a hook that it does not export": call(`{}`, "--config", "@"+settings, "--hook", "step"),
		"a request that is not JSON":     call(`{"text":`, "--config", "@"+settings, "--hook", "check_input"),
		"a request with another field":   call(`{"text":"x","history":[],"user":"me"}`, "--config", "@"+settings, "--hook", "check_input"),
		"a configuration that it has not": call(`{"text":"x","history":[]}`, "--hook", "check_input",
			"--config", `{"patterns":[]}`),
	} {
		if got.code != exitFailed || got.stdout != "" || !strings.Contains("\n"+got.stderr, "\nweir plugin call: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestCompleteRequest(t *testing.T) {
	for in, want := range map[string]string{
		"":                                `{"now":0,"seed":"0"}`,
		" {} ":                            `{"now":0,"seed":"0"} `,
		`{"text":"x"}`:                    `{"now":0,"seed":"0","text":"x"}`,
		"\n{\"now\":3,\"text\":\"{\"}":    `{"seed":"0","now":3,"text":"{"}`,
		`{"seed":"1","now":3,"text":"x"}`: `{"seed":"1","now":3,"text":"x"}`,
	} {
		w := &weir{stdin: strings.NewReader(in)}
		got, err := w.request()
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", in, got, err, want)
		}
	}
}

// An interrupted command ends at once and says so.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	module := filepath.Join(dir, "react.wasm")
	write(t, module, string(plugintest.Build(t, "plugins/react")))
	var stdout, stderr bytes.Buffer
	w := &weir{stdin: strings.NewReader("{}"), stdout: &stdout, stderr: &stderr, env: os.LookupEnv}
	if code := w.run(ctx, []string{"plugin", "call", module, "--hook", "describe", "--prompt", "system=x"}); code != exitFailed {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
}

// deployment is a folder with the shipped configuration and prompts, and no
// modules.
func deployment(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "prompts"), os.DirFS("../../prompts")); err != nil {
		t.Fatal(err)
	}
	text := read(t, "../../agent.toml")
	// Compiled code outlives the test, so that only its first run compiles.
	text = strings.Replace(text, "[plugins]\n", "[plugins]\ncache = '"+plugintest.CacheDir(t)+"'\n", 1)
	write(t, filepath.Join(dir, "agent.toml"), text)
	if err := os.MkdirAll(filepath.Join(dir, "plugins", "dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
