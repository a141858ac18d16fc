package config

import (
	"slices"
	"strings"
	"time"
)

// Succeed returns next as a process that was started with c can apply it: keys
// that only a start reads have c's values. It also names those that differ, as
// people find them; they wait for a restart. Neither configuration is changed.
func (c *Config) Succeed(next *Config) (applied *Config, waiting []string) {
	copied := *next
	for _, k := range startKeys() {
		if k.keep(&copied, c) {
			waiting = append(waiting, k.name)
		}
	}
	copied.Variants = slices.Clone(next.Variants)
	for i := range copied.Variants {
		v := &copied.Variants[i]
		v.Config, _ = c.Succeed(v.Config) // keys that wait are the base's
	}
	return &copied, waiting
}

// startKey is one key, or environment variable, that only a start reads.
type startKey struct {
	key  string // dotted, empty for a variable
	name string
	keep func(next, started *Config) (differs bool)
}

// startKeys lists them all. Every other key is hot, which a test holds against
// the whole of Config: a new key belongs into one of the two lists.
func startKeys() []startKey {
	return []startKey{
		start("agent.name", func(c *Config) *string { return &c.Agent.Name }),
		start("agent.title", func(c *Config) *string { return &c.Agent.Title }),
		start("agent.type", func(c *Config) *string { return &c.Agent.Type }),
		start("agent.description", func(c *Config) *string { return &c.Agent.Description }),
		start("agent.version", func(c *Config) *string { return &c.Agent.Version }),
		start("server", func(c *Config) *Server { return &c.Server }),
		start("model.connect_timeout", func(c *Config) *time.Duration { return &c.Model.ConnectTimeout }),
		start("model.first_token_timeout", func(c *Config) *time.Duration { return &c.Model.FirstTokenTimeout }),
		start("model.chunk_timeout", func(c *Config) *time.Duration { return &c.Model.ChunkTimeout }),
		start("model.agent.base_url", func(c *Config) *string { return &c.Model.Agent.BaseURL }),
		start("model.guard.base_url", func(c *Config) *string { return &c.Model.Guard.BaseURL }),
		start("tools.mcp.url", func(c *Config) *string { return &c.Tools.MCP.URL }),
		start("tools.mcp.function_group", func(c *Config) *string { return &c.Tools.MCP.FunctionGroup }),
		start("tools.mcp.call_timeout", func(c *Config) *time.Duration { return &c.Tools.MCP.CallTimeout }),
		start("tools.mcp.connect_attempts", func(c *Config) *int { return &c.Tools.MCP.ConnectAttempts }),
		start("tools.mcp.connect_interval", func(c *Config) *time.Duration { return &c.Tools.MCP.ConnectInterval }),
		start("plugins.cache", func(c *Config) *string { return &c.Plugins.Cache }),
		start("plugins.total_memory", func(c *Config) *Size { return &c.Plugins.TotalMemory }),
		start("approvals.on_disconnect", func(c *Config) *string { return &c.Approvals.OnDisconnect }),
		start("approvals.max_pending", func(c *Config) *int { return &c.Approvals.MaxPending }),
		start("approvals.timeout", func(c *Config) *time.Duration { return &c.Approvals.Timeout }),
		start("run", func(c *Config) *Run { return &c.Run }),
		start("store", func(c *Config) *Store { return &c.Store }),
		start("telemetry", func(c *Config) *Telemetry { return &c.Telemetry }),
		start("admin", func(c *Config) *Admin { return &c.Admin }),
		start("registry", func(c *Config) *Registry { return &c.Registry }),
		start("reload", func(c *Config) *Reload { return &c.Reload }),
		{key: "contract", name: "[contract]", keep: keepContract},
		variable("LLM_API_KEY", func(c *Config) *Secret { return &c.Model.Agent.APIKey }),
		variable("LLM_GUARD_API_KEY", func(c *Config) *Secret { return &c.Model.Guard.APIKey }),
		variable("MCP_API_KEY", func(c *Config) *Secret { return &c.Tools.MCP.APIKey }),
		variable("HITL_ENABLE_INTERACTIVE", func(c *Config) *bool { return &c.Approvals.Interactive }),
		variable("HITL_APPROVAL_SECRET", func(c *Config) *Secret { return &c.Approvals.Secret }),
		variable("AGENT_BUILD_COMMIT", func(c *Config) *string { return &c.Build.Commit }),
	}
}

func start[T comparable](key string, at func(*Config) *T) startKey {
	path := strings.Split(key, ".")
	name := keyName(path)
	if len(path) == 1 { // a whole table
		name = "[" + key + "]"
	}
	return startKey{key: key, name: name, keep: keep(at)}
}

func variable[T comparable](name string, at func(*Config) *T) startKey {
	return startKey{name: "environment " + name, keep: keep(at)}
}

// keep copies a value from started to next and tells whether they differed.
func keep[T comparable](at func(*Config) *T) func(next, started *Config) bool {
	return func(next, started *Config) bool {
		to, from := at(next), at(started)
		differs := *to != *from
		*to = *from
		return differs
	}
}
