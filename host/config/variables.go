package config

import (
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Kind says how an environment variable's text is read.
type Kind string

// Kinds of variable. A blank value of any kind but KindEffort means "not set".
const (
	KindText    Kind = "text"    // as it stands
	KindBool    Kind = "bool"    // 1 true yes on, 0 false no off, in any case
	KindInt     Kind = "int"     // a whole number; one below Floor is raised to it
	KindEffort  Kind = "effort"  // text; set but empty leaves the field out
	KindKey     Kind = "key"     // a secret, trimmed; also from the file that NAME_FILE names
	KindSecret  Kind = "secret"  // a secret, not trimmed; also by NAME_FILE
	KindIgnored Kind = "ignored" // known from other runtimes; not read here
	KindDirect  Kind = "direct"  // read by the program before or beside the configuration
)

// Variable is one environment variable that the host reads.
type Variable struct {
	Name  string
	Kind  Kind
	Key   string               // of agent.toml that it overrules, dotted; empty: environment only
	Floor int                  // of a KindInt
	About string               // one sentence
	Value string               // what it is when it is not set, where it overrules no key and is no secret
	when  func(c *Config) bool // nil: always read
	set   func(c *Config, v value)
}

// fileSuffix makes the name of the variable that names a secret's file.
const fileSuffix = "_FILE"

// secret tells whether the variable's value is one.
func (v Variable) secret() bool { return v.Kind == KindKey || v.Kind == KindSecret }

// value is a variable's text as its kind reads it.
type value struct {
	text string
	n    int
	on   bool
}

// Variables lists every variable that the host reads, in the order of the
// contract's section 8.1, OpenTelemetry's last. Those that belong to a plugin stand in agent.toml,
// in [plugins.<name>.env].
func Variables() []Variable {
	list := []Variable{
		{Name: "NAT_GATEWAY_API_KEY", Kind: KindKey, About: "Service key that the gateway presents. Required.",
			set: func(c *Config, v value) { c.Server.APIKey = NewSecret(v.text) }},
		{Name: "MCP_API_KEY", Kind: KindKey, About: "Key for the MCP server. Required.",
			set: func(c *Config, v value) { c.Tools.MCP.APIKey = NewSecret(v.text) }},
		{Name: "TICKETS_MCP_URL", Kind: KindText, Key: "tools.mcp.url", About: "Address of the MCP server.",
			set: func(c *Config, v value) { c.Tools.MCP.URL = strings.TrimSpace(v.text) }},
		{Name: "LLM_BASE_URL", Kind: KindText, Key: "model.agent.base_url", About: "Address of the model endpoint, before /chat/completions.",
			set: func(c *Config, v value) { c.Model.Agent.BaseURL = strings.TrimSpace(v.text) }},
		{Name: "LLM_API_KEY", Kind: KindKey, About: "Key for the model endpoint; default \"ollama\".",
			set: func(c *Config, v value) { c.Model.Agent.APIKey = NewSecret(v.text) }},
		{Name: "LLM_GUARD_API_KEY", Kind: KindKey, About: "Key for the guard model where it has an address of its own.",
			set: func(c *Config, v value) { c.Model.Guard.APIKey = NewSecret(v.text) }},
		{Name: "LLM_MODEL", Kind: KindText, Key: "model.agent.name", About: "Name of the agent's model.",
			set: func(c *Config, v value) { c.Model.Agent.Name = v.text }},
		{Name: "LLM_GUARD_MODEL", Kind: KindText, Key: "model.guard.name", About: "Name of the guard's model; it does not follow LLM_MODEL.",
			set: func(c *Config, v value) { c.Model.Guard.Name = v.text }},
		{Name: "LLM_REASONING_EFFORT", Kind: KindEffort, Key: "model.agent.reasoning_effort", About: "Sent with the agent's requests; set but empty leaves the field out.",
			set: func(c *Config, v value) { c.Model.Agent.ReasoningEffort = v.text }},
		{Name: "LLM_GUARD_REASONING_EFFORT", Kind: KindEffort, Key: "model.guard.reasoning_effort", About: "The same for the guard's requests.",
			set: func(c *Config, v value) { c.Model.Guard.ReasoningEffort = v.text }},
		{Name: "HITL_APPROVAL_SECRET", Kind: KindSecret, About: "Signs approvals; at least 24 characters when set.",
			set: func(c *Config, v value) { c.Approvals.Secret = NewSecret(v.text) }},
		{Name: "HITL_ENABLE_INTERACTIVE", Kind: KindBool, Value: "false", About: "Switches questions to people on.",
			set: func(c *Config, v value) { c.Approvals.Interactive = v.on }},
		{Name: "HITL_INTERACTION_TIMEOUT_SECONDS", Kind: KindInt, Key: "approvals.timeout", Floor: 5, About: "How long a person has for one answer; read only where approvals are on.",
			when: (*Config).ApprovalsOn,
			set:  func(c *Config, v value) { c.Approvals.Timeout = time.Duration(v.n) * time.Second }},
		{Name: "HITL_STRICT_INTERACTION_OWNERSHIP", Kind: KindBool, Value: "true", About: "Ownership is always enforced; false only warns.",
			set: func(c *Config, v value) {
				if !v.on {
					c.warn("environment HITL_STRICT_INTERACTION_OWNERSHIP: false has no effect, ownership is always enforced")
				}
			}},
		{Name: "GUARDRAILS_INPUT_BLOCK_MESSAGE", Kind: KindText, Key: "guard.block_message", About: "The refusal when an input guard failed.",
			set: func(c *Config, v value) { c.Guard.BlockMessage = v.text }},
		{Name: "GUARDRAILS_TRACE_CAPTURE_CONTENT", Kind: KindBool, Key: "telemetry.guard_content", About: "Puts the question, redacted, on guardrail spans.",
			set: func(c *Config, v value) { c.Telemetry.GuardContent = v.on }},
		{Name: "GUARDRAILS_TRACE_CAPTURE_RAW_OUTPUT", Kind: KindBool, Value: "false", About: "Unguarded text never reaches a span; true only warns.",
			set: func(c *Config, v value) { c.warnRaw("GUARDRAILS_TRACE_CAPTURE_RAW_OUTPUT", v.on) }},
		{Name: "GUARDRAILS_TRACE_MAX_CHARS", Kind: KindInt, Key: "telemetry.guard_max_chars", Floor: 256, About: "Bounds content on guardrail spans.",
			set: func(c *Config, v value) { c.Telemetry.GuardMaxChars = v.n }},
		{Name: "GUARDRAILS_PII_MAX_BUFFER_CHARS", Kind: KindInt, Key: "guard.max_answer_chars", Floor: 1024, About: "Bounds an answer's length in characters.",
			set: func(c *Config, v value) { c.Guard.MaxAnswerChars = v.n }},
		{Name: "GUARDRAILS_RAIL_POOL_SIZE", Kind: KindIgnored, About: "Of another runtime."},
		{Name: "DEPLOYMENT_ENVIRONMENT", Kind: KindDirect, Value: "local", About: "The resource's deployment.environment, default local."},
		{Name: "NAT_TRACE_CAPTURE_CONTENT", Kind: KindBool, Key: "telemetry.capture_content", About: "Puts the question, redacted, and the released answer on spans.",
			set: func(c *Config, v value) { c.Telemetry.CaptureContent = v.on }},
		{Name: "NAT_TRACE_CONTENT_MAX_CHARS", Kind: KindInt, Key: "telemetry.content_max_chars", Floor: 256, About: "Bounds each of them.",
			set: func(c *Config, v value) { c.Telemetry.ContentMaxChars = v.n }},
		{Name: "OTEL_TRACE_USER_ID", Kind: KindBool, Key: "telemetry.user_id", About: "Puts a pseudonym of the user on the root span.",
			set: func(c *Config, v value) { c.Telemetry.UserID = v.on }},
		{Name: "AGENT_TRACE_CAPTURE_MODEL_CONTENT", Kind: KindBool, Value: "false", About: "Unguarded text never reaches a span; true only warns.",
			set: func(c *Config, v value) { c.warnRaw("AGENT_TRACE_CAPTURE_MODEL_CONTENT", v.on) }},
		{Name: "WEIR_STATE_DIR", Kind: KindText, Key: "store.dir", About: "Folder of what has to outlive the process.",
			set: func(c *Config, v value) { c.Store.Dir = strings.TrimSpace(v.text) }},
		{Name: "WEIR_STORE_CLUSTER_PASSWORD", Kind: KindKey, About: "What the servers of a [store.cluster] show each other.",
			set: func(c *Config, v value) { c.Store.Cluster.Password = NewSecret(v.text) }},
		{Name: "WEIR_ADMIN_KEY", Kind: KindKey, About: "Key of the admin listener, at least 24 characters; without it there is none.",
			set: func(c *Config, v value) { c.Admin.APIKey = NewSecret(v.text) }},
		{Name: "AGENT_BUILD_COMMIT", Kind: KindText, Value: "unknown", About: "Commit of the build, for /version.",
			set: func(c *Config, v value) { c.Build.Commit = v.text }},
		{Name: PathVariable, Kind: KindDirect, About: "Path of agent.toml; --config wins."},
		{Name: "AGENT_BIND_ADDRESS", Kind: KindText, Key: "server.listen", About: "host:port to listen on.",
			set: func(c *Config, v value) { c.Server.Listen = strings.TrimSpace(v.text) }},
		{Name: "REGISTRY_URL", Kind: KindText, Key: "registry.url", About: "Base address of the agent gateway that is told of this agent; empty tells nobody.",
			set: func(c *Config, v value) { c.Registry.URL = strings.TrimSpace(v.text) }},
		{Name: "AGENT_SELF_URL", Kind: KindText, Key: "registry.self_url", About: "Where the gateway finds this agent.",
			set: func(c *Config, v value) { c.Registry.SelfURL = strings.TrimSpace(v.text) }},
		{Name: LogLevelVariable, Kind: KindDirect, Value: "info", About: "debug, info, warn or error; default info."},
		{Name: "RUST_LOG", Kind: KindIgnored, About: "Of another runtime."},
	}
	return append(list, telemetryVariables()...)
}

// LogLevelVariable sets the level of the log on stderr.
const LogLevelVariable = "WEIR_LOG_LEVEL"

func (c *Config) warn(text string) { c.Warnings = append(c.Warnings, text) }

func (c *Config) warnRaw(name string, on bool) {
	if on {
		c.warn("environment " + name + ": true has no effect, text that has not passed the guards never reaches a span")
	}
}

func (c *Config) applyEnvironment(env environment, l *ledger) {
	for _, v := range Variables() {
		if v.set == nil || v.when != nil && !v.when(c) {
			continue
		}
		if val, ok := env.read(v, l); ok {
			v.set(c, val)
			if v.Key != "" {
				l.overrule(v.Key, v.Name)
			}
		}
	}
	for i := range c.Plugins.List {
		c.Plugins.List[i].applyEnvironment(c.file(), env, l)
	}
}

// environment looks variables up.
type environment struct {
	look func(string) (string, bool)
}

func (e environment) get(name string) (string, bool) {
	if e.look == nil {
		return "", false
	}
	return e.look(name)
}

// read returns a variable's value, and false if it is not set or wrong.
func (e environment) read(v Variable, l *ledger) (value, bool) {
	text, ok := e.get(v.Name)
	if v.secret() {
		text, ok = e.secret(v, text, l)
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case !ok:
		return value{}, false
	case v.Kind == KindEffort:
		return value{text: trimmed}, true
	case trimmed == "":
		return value{}, false
	}
	switch v.Kind {
	case KindBool:
		on, err := parseBool(trimmed)
		if err {
			l.variable(v.Name, "expected one of 1, true, yes, on, 0, false, no, off, got %q", shorten(trimmed))
		}
		return value{on: on}, !err
	case KindInt:
		n, err := strconv.ParseUint(trimmed, 10, 31)
		if err != nil {
			l.variable(v.Name, "expected a whole number that is not negative, got %q", shorten(trimmed))
			return value{}, false
		}
		return value{n: max(int(n), v.Floor)}, true
	case KindKey:
		return value{text: trimmed}, true
	}
	if !utf8.ValidString(text) {
		l.variable(v.Name, "expected UTF-8")
		return value{}, false
	}
	return value{text: text}, true
}

// secret reads NAME or the file that NAME_FILE names. The last line's end is
// not part of the secret. Its errors never show what was read.
func (e environment) secret(v Variable, text string, l *ledger) (string, bool) {
	fileVariable := v.Name + fileSuffix
	path, _ := e.get(fileVariable)
	path = strings.TrimSpace(path)
	if path == "" {
		return text, text != ""
	}
	if strings.TrimSpace(text) != "" {
		l.variable(fileVariable, "expected one of %s and %s, got both", v.Name, fileVariable)
		return "", false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.variable(fileVariable, "expected a readable file: %s", reason(err))
		return "", false
	}
	text = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if strings.TrimSpace(text) == "" {
		l.variable(fileVariable, "expected a secret in the file, it is blank")
		return "", false
	}
	return text, true
}

// parseBool reads the contract's strict booleans; the second result is an error.
func parseBool(s string) (on, bad bool) {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true, false
	case "0", "false", "no", "off":
		return false, false
	}
	return false, true
}
