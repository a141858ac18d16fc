package config

import (
	"fmt"
	"slices"

	"weir/abi"
	"weir/abi/strictjson"
)

// Policy is everything here that defines how the agent behaves, as canonical
// JSON with defaults filled in: the part of a generation's identity that comes
// from configuration. It holds no path, address or secret, so it is the same on
// every replica. Prompts and modules enter an identity by their digests, and
// actions by [Config.DeclaredActions].
func (c *Config) Policy() abi.Raw {
	return canonical(map[string]any{
		"agent": map[string]any{
			"workflow":           c.Agent.Workflow,
			"max_history":        int64(c.Agent.MaxHistory),
			"max_tool_calls":     int64(c.Agent.MaxToolCalls),
			"request_timeout_ms": c.Agent.RequestTimeout.Milliseconds(),
		},
		"model": map[string]any{
			"agent": c.Model.Agent.policy(),
			"guard": c.Model.Guard.policy(),
		},
		"tools":   c.Tools.MCP.policy(),
		"guard":   c.Guard.policy(),
		"plugins": c.Plugins.policy(c.Agent.Workflow),
	})
}

// DeclaredActions is what a person may authorise, as canonical JSON: an object
// of the enabled actions.
func (c *Config) DeclaredActions() abi.Raw {
	actions := map[string]any{}
	for name, a := range c.Actions {
		if a.Enabled {
			actions[name] = a.policy()
		}
	}
	return canonical(actions)
}

func (m *Model) policy() map[string]any {
	return map[string]any{
		"name":             m.Name,
		"reasoning_effort": m.ReasoningEffort,
		"temperature":      m.Temperature,
		"max_tokens":       int64(m.MaxTokens),
	}
}

func (m *MCP) policy() map[string]any {
	overrides := map[string]any{}
	for name, o := range m.Overrides {
		overrides[name] = o.Description
	}
	return map[string]any{
		"function_group": m.FunctionGroup,
		"include":        list(m.Include),
		"overrides":      overrides,
	}
}

func (g *Guard) policy() map[string]any {
	return map[string]any{
		"input_decision":   g.InputDecision,
		"output_decision":  g.OutputDecision,
		"block_message":    g.BlockMessage,
		"cut_notice":       g.CutNotice,
		"oversize_notice":  g.OversizeNotice,
		"max_answer_chars": int64(g.MaxAnswerChars),
		"ask_timeout_ms":   g.AskTimeout.Milliseconds(),
	}
}

// policy keeps the guardrails' order, which is part of what they do, and sets
// the workflow apart, whose place in the file means nothing.
func (p *Plugins) policy(workflow string) map[string]any {
	guards := []any{}
	var loop any = map[string]any{}
	for i := range p.List {
		e := &p.List[i]
		entry := map[string]any{
			"name":               e.Name,
			"memory":             int64(e.Memory),
			"reply":              int64(e.Reply),
			"timeout_ms":         e.Timeout.Milliseconds(),
			"timeout_per_kib_us": e.TimeoutPerKiB.Microseconds(),
			"fuel":               int64(e.Fuel),
			"prompts":            list(e.Prompts),
			"config":             e.config,
		}
		if e.Name == workflow {
			loop = entry
			continue
		}
		entry["on_error"], entry["mode"], entry["roles"] = e.OnError, e.Mode, e.Roles
		guards = append(guards, entry)
	}
	return map[string]any{"workflow": loop, "guards": guards}
}

func list(names []string) []any {
	out := make([]any, len(names))
	for i, n := range slices.All(names) {
		out[i] = n
	}
	return out
}

// canonical writes a value made of what TOML has.
func canonical(v map[string]any) abi.Raw {
	raw, err := appendJSON(nil, v)
	if err == nil {
		raw, err = strictjson.Canonical(nil, raw)
	}
	if err != nil {
		panic(fmt.Sprintf("config: a checked value is not JSON: %v", err))
	}
	return raw
}
