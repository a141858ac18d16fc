package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/host/fault"
)

// minimal is the least that a configuration needs.
const minimal = `
[tools.mcp]
include = ["get_ticket"]
[prompts]
system = "system.md"
[plugins.react]
prompts = ["system"]
`

type vars map[string]string

// keys are the variables without which nothing starts.
func keys() vars {
	return vars{"NAT_GATEWAY_API_KEY": "gateway-key", "MCP_API_KEY": "mcp-key"}
}

func (v vars) with(name, value string) vars {
	v[name] = value
	return v
}

func (v vars) look(name string) (string, bool) {
	s, ok := v[name]
	return s, ok
}

// load writes files into a folder and loads its agent.toml.
func load(t *testing.T, text string, env vars, files ...string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "system.md", "You are helpful.\n")
	for i := 0; i < len(files); i += 2 {
		write(t, dir, files[i], files[i+1])
	}
	write(t, dir, "agent.toml", text)
	return Load(Source{Path: filepath.Join(dir, "agent.toml"), Env: env.look})
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t *testing.T, text string, env vars, files ...string) *Config {
	t.Helper()
	c, err := load(t, text, env, files...)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// wantProblems compares all problems of a refusal, in order.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("Load succeeded, want %q", want)
	}
	if k := fault.Of(err); k != fault.Invalid {
		t.Errorf("kind = %v, want %v", k, fault.Invalid)
	}
	var got []string
	for _, p := range Problems(err) {
		got = append(got, p.Error())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestDefaults(t *testing.T) {
	c := mustLoad(t, minimal, keys())
	got := map[string]any{
		"listen":      c.Server.Listen,
		"mcp url":     c.Tools.MCP.URL,
		"base url":    c.Model.Agent.BaseURL,
		"guard url":   c.Model.Guard.BaseURL,
		"model":       c.Model.Agent.Name,
		"guard model": c.Model.Guard.Name,
		"model key":   c.Model.Agent.APIKey.Reveal(),
		"guard key":   c.Model.Guard.APIKey.Reveal(),
		"effort":      c.Model.Agent.ReasoningEffort,
		"history":     c.Agent.MaxHistory,
		"tool calls":  c.Agent.MaxToolCalls,
		"request":     c.Agent.RequestTimeout,
		"commit":      c.Build.Commit,
		"ask":         c.Guard.AskTimeout,
		"answer":      c.Guard.MaxAnswerChars,
		"memory":      c.Plugins.List[0].Memory,
		"config":      string(c.Plugins.List[0].Config),
		"module":      c.Plugins.List[0].Module,
		"cache":       c.Plugins.Cache,
	}
	want := map[string]any{
		"listen":      "0.0.0.0:8000",
		"mcp url":     "http://mcp-server:8080/mcp",
		"base url":    "http://host.docker.internal:11434/v1",
		"guard url":   "http://host.docker.internal:11434/v1",
		"model":       "qwen3:8b",
		"guard model": "qwen3:8b",
		"model key":   "ollama",
		"guard key":   "ollama",
		"effort":      "",
		"history":     20,
		"tool calls":  20,
		"request":     300 * time.Second,
		"commit":      "unknown",
		"ask":         20 * time.Second,
		"answer":      200000,
		"memory":      64 * MiB,
		"config":      "{}",
		"module":      filepath.Join(c.Dir(), "plugins", "dist", "react.wasm"),
		"cache":       filepath.Join(c.Dir(), "plugins", "dist", ".cache"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
	if len(c.Warnings) != 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// Everything that is wrong is said at once, in the words of the file.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"unknown key", minimal + "[server]\nlissten = \"x\"\n",
			[]string{`agent.toml:9: unknown key [server] lissten, did you mean "listen"?`}},
		{"unknown table", "[sever]\nlisten = 'x'\n" + minimal,
			[]string{`agent.toml:1: unknown key sever, did you mean "server"?`}},
		{"another case is unknown", minimal + "[server]\nListen = '0.0.0.0:1'\n",
			[]string{`agent.toml:9: unknown key [server] Listen, did you mean "listen"?`}},
		{"unknown key of a plugin", minimal + "\n\n# a comment\nretries = 3\n",
			[]string{`agent.toml:11: unknown key [plugins.react] retries`}},
		{"unknown key after a text of several lines", minimal + "[guard]\nblock_message = '''\n[server]\n'''\ncut = 'x'\n",
			[]string{`agent.toml:12: unknown key [guard] cut`}},
		{"unknown keys in odd places", minimal + "\n  [ server ]\nstall = '''\n1s'''\nlog.level = 1\n[[plugins.a.config.list]]\nx = [\n1,\n]\n[[plugins.a.config.list]]\n[plugins.a]\n\"odd key\" = 1\n", []string{
			`agent.toml:19: unknown key [plugins.a] odd key`,
			`agent.toml:12: unknown key [server] log`,
		}},
		{"scalar among the plugins", "[plugins]\npinned = 'warn'\n" + strings.TrimPrefix(minimal, "\n"),
			[]string{`agent.toml:2: unknown key [plugins] pinned`}},
		{"not TOML", "[agent]\nname support\n", []string{`agent.toml:2: expected '.' or '=', but got 's' instead`}},
		{"many at once", minimal + `
[agent]
name = "Upper"
max_history = 0
max_tool_calls = 101
request_timeout = 30
version = "one"
workflow = "plan"
[server]
listen = "8000"
keep_alive = "soon"
[store]
backend = "disk"
[telemetry]
content_max_chars = "many"
`, []string{
			`agent.toml: [agent] request_timeout: expected a duration such as "30s", got a whole number`,
			`agent.toml: [server] keep_alive: expected a duration such as "30s", got "soon"`,
			`agent.toml: [telemetry] content_max_chars: expected a whole number, got a string`,
			`agent.toml: [agent] name: expected a name of a-z, 0-9 and -, at most 63, got "Upper"`,
			`agent.toml: [agent] version: expected a semantic version such as 1.2.3, got "one"`,
			`agent.toml: [agent] max_history: expected at least 1, got 0`,
			`agent.toml: [agent] max_tool_calls: expected 1 to 100, got 101`,
			`agent.toml: [agent] workflow: expected the name of a [plugins.<name>] table, got "plan"`,
			`agent.toml: [server] listen: expected host:port with a port up to 65535, got "8000"`,
			`agent.toml: [store] backend: expected "memory" or "jetstream", got "disk"`,
		}},
		{"tools", strings.Replace(minimal, `["get_ticket"]`, `["a", "a", " "]
url = "http://user:secret@host/mcp"
[tools.mcp.overrides.b]
description = ""`, 1), []string{
			`agent.toml: [tools.mcp] url: expected an http or https URL with a host, without user, password or fragment`,
			`agent.toml: [tools.mcp] include: expected each tool once, got "a" again`,
			`agent.toml: [tools.mcp] include: expected names of tools, entry 3 is blank`,
			`agent.toml: [tools.mcp.overrides] b: expected a tool that [tools.mcp] include lists`,
			`agent.toml: [tools.mcp.overrides.b] description: expected text for the model`,
		}},
		{"no tools", strings.Replace(minimal, `["get_ticket"]`, `[]`, 1),
			[]string{`agent.toml: [tools.mcp] include: expected at least one tool`}},
		{"models", minimal + "[model.agent]\ntemperature = 3\nmax_tokens = 0\nname = ' '\n[model.guard]\nbase_url = 'ftp://x'\n[model]\nconnect_timeout = '0s'\n", []string{
			`agent.toml: [model] connect_timeout: expected a duration above zero, got 0s`,
			`agent.toml: [model.agent] name: expected the name of a model`,
			`agent.toml: [model.agent] temperature: expected 0 to 2, got 3`,
			`agent.toml: [model.agent] max_tokens: expected at least 1, got 0`,
			`agent.toml: [model.guard] base_url: expected an http or https URL with a host, without user, password or fragment`,
		}},
		{"admin, reload and lock", "[plugins]\nlock = 'off'\n" + minimal + "[admin]\nlisten = 'unix:'\n[reload]\nsettle = '0s'\n[server]\nmax_runs = 0\n", []string{
			`agent.toml: [server] max_runs: expected at least 1, got 0`,
			`agent.toml: [plugins] lock: expected "warn" or "require", got "off"`,
			`agent.toml: [admin] listen: expected host:port or unix: and a path, got "unix:"`,
			`agent.toml: [reload] settle: expected a duration above zero, got 0s`,
		}},
		{"mode", minimal + "[plugins.watch]\nmode = 'look'\n",
			[]string{`agent.toml: [plugins.watch] mode: expected "enforce" or "monitor", got "look"`}},
		{"mode of all, said once", minimal + "[plugins.watch]\n[plugins.defaults]\nmode = 'look'\n",
			[]string{`agent.toml: [plugins.defaults] mode: expected "enforce" or "monitor", got "look"`}},
		{"plugins", minimal + "on_error = 'allow'\n[plugins.Bad_Name]\n[plugins.g]\non_error = 'skip'\nmemory = '1KiB'\nreply = '4'\nprompts = ['none', 'system', 'system']\n", []string{
			`agent.toml: [plugins.g] reply: expected a size such as "64MiB", got "4"`,
			`agent.toml: [plugins.react] on_error: expected no such key: it is for guardrails, and this is the workflow`,
			`agent.toml: [plugins] Bad_Name: expected a name of a-z, 0-9 and -, at most 64`,
			`agent.toml: [plugins.g] on_error: expected "block" or "allow", got "skip"`,
			`agent.toml: [plugins.g] memory: expected 1MiB to 4GiB, got 1KiB`,
			`agent.toml: [plugins.g] prompts: expected names that stand in [prompts], got "none"`,
			`agent.toml: [plugins.g] prompts: expected each prompt once, got "system" again`,
		}},
		{"plugin configuration that JSON has not", minimal + "[plugins.g.config]\nlist = [{ since = 2026-01-01 }]\n",
			[]string{`agent.toml: [plugins.g] config: list: element 1: since: expected no date and no time: write it as a string`}},
		{"decision names", minimal + "[guard]\ninput_decision = 'guardrail_output_x_decision'\noutput_decision = 'guardrail_output_x'\nmax_answer_chars = 1023\n", []string{
			`agent.toml: [guard] input_decision: expected a name that begins with guardrail_input_ and ends with _decision, got "guardrail_output_x_decision"`,
			`agent.toml: [guard] output_decision: expected a name that begins with guardrail_output_ and ends with _decision, got "guardrail_output_x"`,
			`agent.toml: [guard] max_answer_chars: expected at least 1024, got 1023`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.text, keys())
			wantProblems(t, err, tt.want...)
		})
	}
}

// agent-service.md 8.3: a missing or a blank key refuses the start.
func TestKeysAreRequired(t *testing.T) {
	for _, v := range []vars{{}, {"NAT_GATEWAY_API_KEY": " \t", "MCP_API_KEY": ""}} {
		_, err := load(t, minimal, v)
		wantProblems(t, err,
			"environment NAT_GATEWAY_API_KEY: expected the service key that the gateway presents, it is missing or blank",
			"environment MCP_API_KEY: expected the key for the MCP server, it is missing or blank")
	}
}

// DECISIONS 4: the admin listener has its own key, a long one, and its own
// address, which should not be for everybody.
func TestAdmin(t *testing.T) {
	const key = "0123456789abcdef01234567"
	_, err := load(t, minimal, keys().with("WEIR_ADMIN_KEY", key[1:]))
	wantProblems(t, err, "environment WEIR_ADMIN_KEY: expected at least 24 characters")
	for listen, want := range map[string]struct{ network, address, warning string }{
		"127.0.0.1:9": {"tcp", "127.0.0.1:9", ""},
		"[::1]:9":     {"tcp", "[::1]:9", ""},
		"localhost:9": {"tcp", "localhost:9", ""},
		":9":          {"tcp", ":9", "agent.toml: [admin] listen: :9 can be reached from other machines, and the key travels unencrypted"},
		"unix:/a.s":   {"unix", "/a.s", ""},
	} {
		c, err := load(t, minimal+"[admin]\nlisten = '"+listen+"'\n", keys().with("WEIR_ADMIN_KEY", key))
		if err != nil {
			t.Fatal(err)
		}
		network, address := c.Admin.Network()
		if network != want.network || address != want.address || strings.Join(c.Warnings, "") != want.warning {
			t.Errorf("%s: %s %s, %q", listen, network, address, c.Warnings)
		}
	}
	c, err := load(t, minimal+"[admin]\nlisten = 'unix:run/a.sock'\n", keys())
	if err != nil {
		t.Fatal(err)
	}
	if _, path := c.Admin.Network(); path != filepath.Join(c.Dir(), "run", "a.sock") {
		t.Errorf("the socket's path starts from the folder of agent.toml, got %s", path)
	}
}

// agent-service.md 8.3, the approval matrix.
func TestApprovalMatrix(t *testing.T) {
	const secret = "0123456789abcdef01234567"
	const (
		noSecret = `agent.toml: [actions.change] enabled: true needs a secret to sign approvals with: set HITL_APPROVAL_SECRET, or set this to false`
		noPerson = `agent.toml: [actions.change] enabled: true needs a way to ask a person: set HITL_ENABLE_INTERACTIVE to true, or set this to false`
		noAction = `environment HITL_ENABLE_INTERACTIVE: true needs an action that a person may authorise: set enabled = true in an [actions.<tool>] table, or set this to false`
		short    = `environment HITL_APPROVAL_SECRET: expected at least 24 characters`
	)
	tests := []struct {
		declared    bool
		secret      string
		interactive string
		want        string
	}{
		{false, "", "false", ""},
		{false, secret, "no", ""},
		{false, "", "true", noAction},
		{false, secret, "1", noAction},
		{true, "", "off", noSecret},
		{true, " \t ", "off", noSecret},
		{true, "", "on", noSecret},
		{true, secret, "", noPerson},
		{true, secret, "TRUE", ""},
		{true, secret[:23], "true", short},
		{true, " " + secret[:22] + " ", "true", ""}, // not trimmed: 24 characters
		{false, secret[:23], "false", short},
		{false, strings.Repeat("é", 24), "", ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("declared=%v secret=%d interactive=%q", tt.declared, len(tt.secret), tt.interactive), func(t *testing.T) {
			text := fmt.Sprintf("%s[actions.change]\nenabled = %v\n", minimal, tt.declared)
			c, err := load(t, text, keys().with("HITL_APPROVAL_SECRET", tt.secret).with("HITL_ENABLE_INTERACTIVE", tt.interactive))
			if tt.want != "" {
				wantProblems(t, err, tt.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.ApprovalsOn() != tt.declared {
				t.Errorf("approvals on: %v, want %v", c.ApprovalsOn(), tt.declared)
			}
			if none := string(c.DeclaredActions()) == "{}"; none == tt.declared {
				t.Errorf("declared actions = %s", c.DeclaredActions())
			}
		})
	}
}

func TestTokenLifetime(t *testing.T) {
	for ttl, ok := range map[string]bool{"60s": true, "30m": true, "59s": false, "30m1s": false} {
		_, err := load(t, minimal+"[actions.change]\ntoken_ttl = '"+ttl+"'\n", keys())
		if (err == nil) != ok {
			t.Errorf("token_ttl %s: %v", ttl, err)
		}
	}
}

// Prompts are files whose digest is the same on every machine.
func TestPromptFiles(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"byte order mark", "\ufeffHello\n", "agent.toml: [prompts] system: p.md: expected no byte order mark"},
		{"CRLF", "a\r\nb\r\n", "agent.toml: [prompts] system: p.md: expected lines that end in LF, found CR"},
		{"not UTF-8", "a\xff", "agent.toml: [prompts] system: p.md: expected UTF-8"},
		{"blank", " \n", "agent.toml: [prompts] system: p.md: expected text, the file is blank"},
		{"too long", strings.Repeat("x", maxPrompt+1), "agent.toml: [prompts] system: p.md: expected at most 1 MiB"},
		{"fine", "You are helpful.\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := load(t, strings.Replace(minimal, "system.md", "p.md", 1), keys(), "p.md", tt.text)
			if tt.want != "" {
				wantProblems(t, err, tt.want)
				return
			}
			// The pinned value of section 7.
			if want := "4b4246f390dadec7e7af966a981c1fe88a05388863d468470b2ad9605e21cadf"; err != nil || c.PromptSHA256() != want {
				t.Errorf("prompt_sha256 = %s, %v; want %s", c.PromptSHA256(), err, want)
			}
		})
	}
	_, err := load(t, strings.Replace(minimal, "system.md", "gone.md", 1), keys())
	wantProblems(t, err, "agent.toml: [prompts] system: expected a readable file, gone.md: no such file or directory")
	_, err = load(t, strings.Replace(minimal, `system = "system.md"`, `other = "system.md"`, 1), keys())
	wantProblems(t, err, "agent.toml: [prompts] system: expected the path of the system prompt",
		`agent.toml: [plugins.react] prompts: expected names that stand in [prompts], got "system"`)
}

// Section 7 pins the digest of this list.
func TestGuardPromptsDigest(t *testing.T) {
	text := strings.Replace(minimal, "[prompts]", "[prompts]\nself_check_input = 'check.md'", 1) +
		"[plugins.screen]\nprompts = ['self_check_input']\nconfig = { max_tokens = 4 }\n"
	c := mustLoad(t, text, keys(), "check.md", "Answer: é\n")
	if got, want := c.GuardPromptsSHA256(), "79a7cc8ab6d52d287aec0227c1ef20c590773367be1f26df7fcb325bc332106d"; got != want {
		t.Errorf("guardrails_prompts_sha256 = %s, want %s of %s", got, want, c.guardPrompts())
	}
}

func TestPluginsKeepTheirOrder(t *testing.T) {
	text := minimal + `
[plugins.zebra.config]
b = 1
a = [1.0, 0.5, "x", { y = true }]
[plugins.apple]
module = "elsewhere/apple.wasm"
timeout = "1s"
[plugins.defaults]
memory = "32MiB"
[plugins.zebra]
log = true
`
	c := mustLoad(t, text, keys())
	var names []string
	for _, g := range c.Guards() {
		names = append(names, g.Name)
	}
	if want := []string{"zebra", "apple"}; !slices.Equal(names, want) {
		t.Errorf("guards = %q, want the order of first mention %q", names, want)
	}
	zebra, apple := c.Plugins.Plugin("zebra"), c.Plugins.Plugin("apple")
	if got, want := string(zebra.Config), `{"a":[1.0,0.5,"x",{"y":true}],"b":1}`; got != want {
		t.Errorf("config = %s, want %s", got, want)
	}
	if zebra.Memory != 32*MiB || apple.Memory != 32*MiB || apple.Timeout != time.Second || zebra.Timeout != 0 {
		t.Errorf("limits: zebra %+v, apple %+v", zebra.Limits, apple.Limits)
	}
	if want := filepath.Join(c.Dir(), "elsewhere", "apple.wasm"); apple.Module != want {
		t.Errorf("module = %s, want %s", apple.Module, want)
	}
	if want := []string{"agent.toml: [plugins.zebra] log: the plugin's lines go to stderr and may quote what users write"}; !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings = %q, want %q", c.Warnings, want)
	}
}

// The policy is the same wherever the process stands, and differs with
// whatever defines behaviour.
func TestPolicyIdentity(t *testing.T) {
	base := mustLoad(t, minimal, keys())
	same := map[string]struct {
		text string
		env  vars
	}{
		"another folder, keys and addresses": {minimal, vars{"NAT_GATEWAY_API_KEY": "other", "MCP_API_KEY": "other",
			"LLM_BASE_URL": "https://models.example/v1", "AGENT_BIND_ADDRESS": "127.0.0.1:1", "TICKETS_MCP_URL": "http://x/mcp"}},
		"defaults written out": {minimal + "[agent]\nmax_history = 20\n[plugins.defaults]\nmemory = '64MiB'\n", keys()},
		"telemetry":            {minimal + "[telemetry]\nuser_id = true\n", keys()},
	}
	for name, tt := range same {
		if got := mustLoad(t, tt.text, tt.env); string(got.Policy()) != string(base.Policy()) {
			t.Errorf("%s: policy differs:\n%s\n%s", name, got.Policy(), base.Policy())
		}
	}
	for name, text := range map[string]string{
		"budget":        minimal + "[agent]\nmax_tool_calls = 5\n",
		"override":      minimal + "[tools.mcp.overrides.get_ticket]\ndescription = 'x'\n",
		"plugin config": minimal + "[plugins.react.config]\nx = 1\n",
		"guard":         minimal + "[plugins.g]\n",
	} {
		if got := mustLoad(t, text, keys()); string(got.Policy()) == string(base.Policy()) {
			t.Errorf("%s: policy is the same", name)
		}
	}
	one := mustLoad(t, minimal+"[plugins.a]\n[plugins.b]\n", keys())
	other := mustLoad(t, minimal+"[plugins.b]\n[plugins.a]\n", keys())
	if string(one.Policy()) == string(other.Policy()) {
		t.Error("the order of guardrails does not change the policy")
	}
}

func TestWhichFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "system.md", "x\n")
	write(t, dir, "agent.toml", minimal+"[agent]\ntitle = 'default'\n")
	write(t, dir, "env.toml", minimal+"[agent]\ntitle = 'env'\n")
	write(t, dir, "flag.toml", minimal+"[agent]\ntitle = 'flag'\n")
	for _, tt := range []struct{ flag, env, want string }{
		{"", "", "default"},
		{"", "env.toml", "env"},
		{"flag.toml", "env.toml", "flag"},
		{"flag.toml", "", "flag"},
	} {
		c, err := Load(Source{Path: tt.flag, Env: keys().with(PathVariable, tt.env).look})
		if err != nil || c.Agent.Title != tt.want {
			t.Errorf("--config %q, %s=%q: %v, want %s", tt.flag, PathVariable, tt.env, err, tt.want)
		}
	}
	_, err := Load(Source{Path: "missing.toml", Env: keys().look})
	wantProblems(t, err, "missing.toml: expected a readable configuration file: no such file or directory")
	_, err = Load(Source{Env: keys().with(PathVariable, "/app/config.yml").look})
	if err == nil || !strings.Contains(err.Error(), "`weir config export-evaluator`") {
		t.Errorf("a YAML file: %v", err)
	}
}
