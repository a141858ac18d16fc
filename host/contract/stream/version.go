package stream

import (
	"slices"
	"strconv"

	"weir/abi/strictjson"
)

// Version is the provenance that /version shows (section 7): names and digests
// of the current generation, never a prompt, a key or a secret.
type Version struct {
	Available              bool
	Framework              string // what runs plugins
	FrameworkVersion       string
	MCPSDK                 string
	MCPSDKVersion          string
	AgentVersion           string
	Model                  string
	GuardModel             string
	ReasoningEffort        string // empty when omitted
	GuardReasoningEffort   string
	BuildCommit            string
	ConfigPath             string
	ConfigSHA256           string // empty when the file cannot be read: null
	PromptSHA256           string
	GuardrailsPromptSHA256 string
	ToolsExposed           []string // in any order
	Generation             string
	Variants               []Variant // in agent.toml's order
	ToolDNA                string    // of the tools that callers perform; empty: nobody does
}

// Variant is what a share of the users gets.
type Variant struct {
	Name       string
	Share      float64
	Generation string
}

// encode returns the JSON, its members in the contract's order.
func (v Version) encode() []byte {
	b := strictjson.AppendBool([]byte(`{"available":`), v.Available)
	for _, m := range []struct{ name, value string }{
		{"agent_runtime", Runtime},
		{"agent_framework", v.Framework},
		{"agent_framework_version", v.FrameworkVersion},
		{"mcp_sdk", v.MCPSDK},
		{"mcp_sdk_version", v.MCPSDKVersion},
		{"agent_version", v.AgentVersion},
		{"model", v.Model},
		{"guard_model", v.GuardModel},
		{"reasoning_effort", v.ReasoningEffort},
		{"guard_reasoning_effort", v.GuardReasoningEffort},
		{"build_commit", v.BuildCommit},
		{"config_path", v.ConfigPath},
	} {
		b = appendPair(b, `,"`+m.name+`":`, m.value)
	}
	b = append(b, `,"config_sha256":`...)
	if v.ConfigSHA256 == "" {
		b = append(b, "null"...)
	} else {
		b = strictjson.AppendString(b, v.ConfigSHA256)
	}
	b = appendPair(b, `,"prompt_sha256":`, v.PromptSHA256)
	b = appendPair(b, `,"guardrails_prompts_sha256":`, v.GuardrailsPromptSHA256)
	b = append(b, `,"guardrails_prompts_digest":"canonical-json","tools_exposed":[`...)
	for i, name := range slices.Sorted(slices.Values(v.ToolsExposed)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, name)
	}
	b = appendPair(append(b, ']'), `,"generation":`, v.Generation)
	b = appendVariants(b, v.Variants)
	if v.ToolDNA != "" {
		b = appendPair(b, `,"tool_dna_hash":`, v.ToolDNA)
	}
	return append(b, '}')
}

// appendVariants writes the member variants, if there are any.
func appendVariants(b []byte, list []Variant) []byte {
	if len(list) == 0 {
		return b
	}
	for i, v := range list {
		before := `},`
		if i == 0 {
			before = `,"variants":[`
		}
		b = appendPair(append(b, before...), `{"name":`, v.Name)
		b = strconv.AppendFloat(append(b, `,"share":`...), v.Share, 'f', -1, 64)
		b = appendPair(b, `,"generation":`, v.Generation)
	}
	return append(b, "}]"...)
}
