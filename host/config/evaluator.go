package config

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// EvaluatorYAML is what the contract's evaluator reads (section 11.4): a YAML
// file with workflow.system_prompt and guardrails.prompts, from which it
// computes the digests that /version shows. It holds exactly the keys that the
// digests cover.
//
// Every text is a double-quoted scalar, the one form of YAML that keeps all of
// it: a block scalar changes trailing line feeds, leading spaces and the breaks
// that YAML knows beside LF.
func (c *Config) EvaluatorYAML() []byte {
	var b []byte
	b = fmt.Appendf(b, "# Written by `weir config export-evaluator`, for an evaluator; the agent itself reads %s.\n", c.file())
	b = fmt.Appendf(b, "# prompt_sha256: %s\n# guardrails_prompts_sha256: %s\n", c.PromptSHA256(), c.GuardPromptsSHA256())
	b = append(b, "workflow:\n  system_prompt: "...)
	b = appendYAML(b, c.Prompts[SystemPrompt].Text, "    ")
	b = append(b, "\nguardrails:\n  prompts:"...)
	prompts := c.evaluated()
	if len(prompts) == 0 {
		b = append(b, " []"...)
	}
	for _, p := range prompts {
		b = appendYAML(append(b, "\n    - task: "...), p.task, "        ")
		b = appendYAML(append(b, "\n      content: "...), p.content, "        ")
		if p.bounded {
			b = strconv.AppendInt(append(b, "\n      max_tokens: "...), p.maxTokens, 10)
		}
	}
	return append(b, '\n')
}

// appendYAML writes s as a double-quoted scalar with one source line for each
// of its lines. It escapes whatever a reader of YAML 1.1 or 1.2 would refuse,
// fold or take for a line break.
func appendYAML(b []byte, s, indent string) []byte {
	b = append(b, '"')
	first := true // of a source line: a space there would be taken for indentation
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
			if i+1 < len(s) {
				b = append(append(b, "\\\n"...), indent...)
				first = true
				continue
			}
		case r == '\t':
			b = append(b, `\t`...)
		case r == ' ' && first:
			b = append(b, `\x20`...)
		case r < 0x20 || r >= 0x7F && r < 0xA0:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffe' || r == '\uffff':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
		first = false
	}
	return append(b, '"')
}

// evaluatedPrompt is one entry of guardrails.prompts.
type evaluatedPrompt struct {
	task, content string
	maxTokens     int64
	bounded       bool // has max_tokens
}

// evaluated lists the prompts of the guardrails in their order.
func (c *Config) evaluated() []evaluatedPrompt {
	var list []evaluatedPrompt
	for _, g := range c.Guards() {
		for _, name := range g.Prompts {
			p := evaluatedPrompt{task: name, content: c.Prompts[name].Text}
			p.maxTokens, p.bounded = g.config["max_tokens"].(int64)
			list = append(list, p)
		}
	}
	return list
}
