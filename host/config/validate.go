package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	agentName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	pluginName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	promptName = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)
	skillID    = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)
	groupName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	eventName  = regexp.MustCompile(`^[a-z0-9_]{1,96}$`)
	semver     = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// checker reports values that are of the right type and wrong all the same.
type checker struct {
	c       *Config
	l       *ledger
	keyless bool
}

func (c *Config) validate(l *ledger, keyless bool) {
	k := checker{c, l, keyless}
	k.agent()
	k.server()
	k.timeouts()
	k.model("agent", &c.Model.Agent)
	k.model("guard", &c.Model.Guard)
	k.tools()
	k.prompts()
	k.guard()
	k.plugins()
	k.approvals()
	k.run()
	k.store()
	k.telemetry()
	k.admin()
	k.positive("reload.settle", c.Reload.Settle)
	k.registry()
	k.contract()
}

// key reports a dotted key unless ok.
func (k checker) key(ok bool, key, format string, args ...any) {
	if !ok {
		k.l.key(k.c.file(), strings.Split(key, "."), format, args...)
	}
}

func (k checker) agent() {
	a := &k.c.Agent
	const name = "expected a name of a-z, 0-9 and -, at most 63, got %q"
	k.key(agentName.MatchString(a.Name), "agent.name", name, shorten(a.Name))
	k.key(agentName.MatchString(a.Type), "agent.type", name, shorten(a.Type))
	k.key(!blank(a.Title), "agent.title", "expected a name that people read")
	k.key(semver.MatchString(a.Version), "agent.version", "expected a semantic version such as 1.2.3, got %q", shorten(a.Version))
	k.key(a.MaxHistory >= 1, "agent.max_history", "expected at least 1, got %d", a.MaxHistory)
	k.key(a.MaxToolCalls >= 1 && a.MaxToolCalls <= 100, "agent.max_tool_calls", "expected 1 to 100, got %d", a.MaxToolCalls)
	k.positive("agent.request_timeout", a.RequestTimeout)
	k.skills()
	k.key(k.c.Plugins.Plugin(a.Workflow) != nil, "agent.workflow", "expected the name of a [plugins.<name>] table, got %q", shorten(a.Workflow))
}

func (k checker) server() {
	s := &k.c.Server
	k.key(socketAddress(s.Listen), "server.listen", "expected host:port with a port up to 65535, got %q", shorten(s.Listen))
	k.positive("server.keep_alive", s.KeepAlive)
	k.positive("server.stall", s.Stall)
	k.key(s.Drain >= 0, "server.drain", "expected a duration that is not negative, got %s", s.Drain)
	k.key(s.MaxRuns >= 1, "server.max_runs", "expected at least 1, got %d", s.MaxRuns)
	if !s.APIKey.Set() && !k.keyless {
		k.l.variable("NAT_GATEWAY_API_KEY", "expected the service key that the gateway presents, it is missing or blank")
	}
}

func (k checker) model(alias string, m *Model) {
	at := func(key string) string { return "model." + alias + "." + key }
	if alias == "agent" || m.BaseURL != k.c.Model.Agent.BaseURL { // the guard's follows the agent's: one mistake, said once
		k.url(at("base_url"), m.BaseURL)
	}
	k.key(!blank(m.Name), at("name"), "expected the name of a model")
	k.key(m.Temperature >= 0 && m.Temperature <= 2, at("temperature"), "expected 0 to 2, got %g", m.Temperature)
	k.key(m.MaxTokens >= 1, at("max_tokens"), "expected at least 1, got %d", m.MaxTokens)
}

func (k checker) timeouts() {
	m := &k.c.Model
	k.positive("model.connect_timeout", m.ConnectTimeout)
	k.positive("model.first_token_timeout", m.FirstTokenTimeout)
	k.positive("model.chunk_timeout", m.ChunkTimeout)
	k.positive("guard.ask_timeout", k.c.Guard.AskTimeout)
}

func (k checker) tools() {
	m := &k.c.Tools.MCP
	k.url("tools.mcp.url", m.URL)
	k.key(groupName.MatchString(m.FunctionGroup), "tools.mcp.function_group", "expected a name of letters, digits, _ and -, got %q", shorten(m.FunctionGroup))
	k.key(len(m.Include) > 0, "tools.mcp.include", "expected at least one tool")
	for i, name := range m.Include {
		k.key(!blank(name), "tools.mcp.include", "expected names of tools, entry %d is blank", i+1)
		k.key(slices.Index(m.Include, name) == i, "tools.mcp.include", "expected each tool once, got %q again", shorten(name))
	}
	k.positive("tools.mcp.call_timeout", m.CallTimeout)
	k.key(m.ConnectAttempts >= 1, "tools.mcp.connect_attempts", "expected at least 1, got %d", m.ConnectAttempts)
	k.positive("tools.mcp.connect_interval", m.ConnectInterval)
	for _, name := range slices.Sorted(maps.Keys(m.Overrides)) {
		path := []string{"tools", "mcp", "overrides", name}
		if !slices.Contains(m.Include, name) {
			k.l.key(k.c.file(), path, "expected a tool that [tools.mcp] include lists")
		}
		if blank(m.Overrides[name].Description) {
			k.l.key(k.c.file(), append(path, "description"), "expected text for the model")
		}
	}
	if !m.APIKey.Set() && !k.keyless {
		k.l.variable("MCP_API_KEY", "expected the key for the MCP server, it is missing or blank")
	}
}

func (k checker) prompts() {
	if _, ok := k.c.Prompts[SystemPrompt]; !ok {
		k.key(false, "prompts."+SystemPrompt, "expected the path of the system prompt")
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.Prompts)) {
		k.key(promptName.MatchString(name), "prompts."+name, "expected a name of a-z, 0-9 and _, at most 64")
	}
}

func (k checker) guard() {
	g := &k.c.Guard
	k.decision("guard.input_decision", g.InputDecision, "guardrail_input_")
	k.decision("guard.output_decision", g.OutputDecision, "guardrail_output_")
	k.key(!blank(g.BlockMessage), "guard.block_message", "expected text for the user")
	k.key(!blank(g.CutNotice), "guard.cut_notice", "expected text for the user")
	k.key(!blank(g.OversizeNotice), "guard.oversize_notice", "expected text for the user")
	k.key(g.MaxAnswerChars >= 1024, "guard.max_answer_chars", "expected at least 1024, got %d", g.MaxAnswerChars)
}

func (k checker) decision(key, name, prefix string) {
	ok := eventName.MatchString(name) && strings.HasPrefix(name, prefix) && strings.HasSuffix(name, "_decision")
	k.key(ok, key, "expected a name that begins with %s and ends with _decision, got %q", prefix, shorten(name))
}

func (k checker) plugins() {
	p := &k.c.Plugins
	k.key(!blank(p.Dir), "plugins.dir", "expected a folder")
	k.key(p.Lock == LockWarn || p.Lock == LockRequire, "plugins.lock", `expected "warn" or "require", got %q`, shorten(p.Lock))
	k.key(p.TotalMemory == 0 || p.TotalMemory >= MiB, "plugins.total_memory", "expected at least 1MiB, or 0B for the default, got %s", p.TotalMemory)
	k.policy("plugins.defaults", p.Defaults.OnError, p.Defaults.Mode)
	k.limits("plugins.defaults", p.Defaults.Limits)
	for i := range p.List {
		e := &p.List[i]
		at := "plugins." + e.Name
		if !pluginName.MatchString(e.Name) {
			k.l.key(k.c.file(), []string{"plugins", e.Name}, "expected a name of a-z, 0-9 and -, at most 64")
			continue
		}
		if e.OnError != p.Defaults.OnError || e.Mode != p.Defaults.Mode {
			k.policy(at, e.OnError, e.Mode)
		}
		if e.Limits != p.Defaults.Limits {
			k.limits(at, e.Limits)
		}
		for j, name := range e.Prompts {
			_, known := k.c.Prompts[name]
			k.key(known, at+".prompts", "expected names that stand in [prompts], got %q", shorten(name))
			k.key(slices.Index(e.Prompts, name) == j, at+".prompts", "expected each prompt once, got %q again", shorten(name))
		}
		if e.Name == k.c.Agent.Workflow {
			for _, key := range guardKeys() {
				k.key(!e.written[key], at+"."+key, "expected no such key: it is for guardrails, and this is the workflow")
			}
		}
		if e.Log {
			k.c.warn(fmt.Sprintf("%s: [%s] log: the plugin's lines go to stderr and may quote what users write", k.c.file(), at))
		}
		if e.OnError == OnErrorAllow && e.Mode == ModeEnforce && e.Name != k.c.Agent.Workflow {
			k.c.warn(fmt.Sprintf("%s: [%s] on_error: when this guardrail fails, what it would have judged passes unjudged", k.c.file(), at))
		}
	}
}

func (k checker) policy(at, onError, mode string) {
	k.key(onError == OnErrorBlock || onError == OnErrorAllow, at+".on_error", `expected "block" or "allow", got %q`, shorten(onError))
	k.key(mode == ModeEnforce || mode == ModeMonitor, at+".mode", `expected "enforce" or "monitor", got %q`, shorten(mode))
}

func (k checker) limits(at string, l Limits) {
	k.key(l.Memory >= MiB && l.Memory <= 4*GiB, at+".memory", "expected 1MiB to 4GiB, got %s", l.Memory)
	k.key(l.Reply >= KiB && l.Reply <= 64*MiB, at+".reply", "expected 1KiB to 64MiB, got %s", l.Reply)
	k.between(at+".timeout", l.Timeout, 0, 5*time.Minute)
	k.between(at+".timeout_per_kib", l.TimeoutPerKiB, 0, time.Second)
	k.between(at+".setup_timeout", l.SetupTimeout, time.Millisecond, 5*time.Minute)
	k.between(at+".wait", l.Wait, time.Millisecond, 5*time.Minute)
	k.key(l.Fuel >= 1 && l.Fuel <= 1_000_000_000_000, at+".fuel", "expected 1 to 1000000000000, got %d", l.Fuel)
	k.key(l.Instances >= 0 && l.Instances <= 1024, at+".instances", "expected 0 to 1024, got %d", l.Instances)
}

func (k checker) run() {
	k.positive("run.keep_events", k.c.Run.KeepEvents)
	k.key(k.c.Run.MaxPerUser >= 1, "run.max_per_user", "expected at least 1, got %d", k.c.Run.MaxPerUser)
}

func (k checker) telemetry() {
	t := &k.c.Telemetry
	k.key(t.ContentMaxChars >= 256, "telemetry.content_max_chars", "expected at least 256, got %d", t.ContentMaxChars)
	k.key(t.GuardMaxChars >= 256, "telemetry.guard_max_chars", "expected at least 256, got %d", t.GuardMaxChars)
}

// admin checks the address also where there is no key yet: setting one must
// not be what finds the mistake.
func (k checker) admin() {
	a := &k.c.Admin
	_, path := a.Network()
	ok := path != "" && a.socket() || socketAddress(a.Listen)
	k.key(ok, "admin.listen", "expected host:port or unix: and a path, got %q", shorten(a.Listen))
	if !a.APIKey.Set() {
		return
	}
	if utf8.RuneCountInString(a.APIKey.Reveal()) < minSecretChars {
		k.l.variable("WEIR_ADMIN_KEY", "expected at least %d characters", minSecretChars)
	}
	if ok && !a.local() {
		k.c.warn(fmt.Sprintf("%s: [admin] listen: %s can be reached from other machines, and the key travels unencrypted", k.c.file(), a.Listen))
	}
}

func (k checker) registry() {
	r := &k.c.Registry
	const base = "expected an http or https URL with a host, without user, password, query or fragment"
	k.key(r.URL == "" || baseAddress(r.URL), "registry.url", base)
	k.key(baseAddress(r.SelfURL), "registry.self_url", base)
	k.key(r.Attempts >= 3 && r.Attempts <= 1000, "registry.attempts", "expected 3 to 1000, got %d", r.Attempts)
}

func (k checker) skills() {
	seen := map[string]bool{}
	for i, s := range k.c.Agent.Skills {
		at := fmt.Sprintf("agent.skills.%d.", i+1)
		k.key(skillID.MatchString(s.ID), at+"id", "expected a name of a-z, 0-9, _ and -, at most 64, got %q", shorten(s.ID))
		k.key(!seen[s.ID], at+"id", "expected each skill once, got %q again", shorten(s.ID))
		k.key(!blank(s.Name), at+"name", "expected a name that people read")
		k.key(!blank(s.Description), at+"description", "expected a sentence about the skill")
		seen[s.ID] = true
	}
}

func (k checker) positive(key string, d time.Duration) {
	k.key(d > 0, key, "expected a duration above zero, got %s", d)
}

func (k checker) between(key string, d, low, high time.Duration) {
	k.key(d >= low && d <= high, key, "expected %s to %s, got %s", low, high, d)
}

// url never quotes the address: a wrong one may hold a password.
func (k checker) url(key, text string) {
	k.key(webAddress(text), key, "expected an http or https URL with a host, without user, password or fragment")
}

func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

// baseAddress is an address that a path can be joined to.
func baseAddress(text string) bool {
	return webAddress(text) && !strings.Contains(text, "?")
}

func socketAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
