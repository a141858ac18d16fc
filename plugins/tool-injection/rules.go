package main

import "strings"

// rule is one way to speak to a model. Its weight says how sure a match is: a
// text is flagged when the weights of the rules that match it reach enough.
type rule struct {
	name   string
	weight int
	expr   string // (?i) stands before it, unless it says otherwise
}

// enough flags a text: one sign that has no innocent reading, or two that have
// one each but hardly together.
const enough = 2

// rules returns those that are built in, by weight and then by name.
//
// Some that seem obvious are missing because people write them: "System:
// Windows 11", "please ignore my previous message", "the app prints the API key
// in plain text", "do not tell the customer yet".
func rules() []rule {
	return []rule{
		// Nobody writes these to a help desk.
		{"becomes_another", 2, `\byou\s+are\s+now\s+(?:in\s+)?(?:an?\s+)?(?:unrestricted|unfiltered|jailbroken|developer|debug|maintenance|admin|god)\b`},
		{"hidden_text", 2, `[\x{E0020}-\x{E007E}]{9,}`}, // a flag of three letters has at most six
		{"overrides_instructions", 2, `\b(?:ignore|disregard|forget|override|bypass)\s+(?:(?:all|any|every|the|your|of|these|those)\s+){0,4}` +
			`(?:(?:previous|prior|above|earlier|preceding|system|developer)\s+){1,2}(?:instructions?|prompts?|rules|guidelines|directives|constraints)\b`},
		{"reveals_prompt", 2, `\b(?:reveal|print|show|repeat|output|display|dump|leak|recite|quote)\s+(?:me\s+)?(?:(?:your|its|the|all|full|entire|complete|original|initial)\s+){1,3}` +
			`(?:system\s+prompt|(?:hidden|system|initial|secret)\s+instructions|developer\s+(?:message|prompt))\b`},
		{"role_marker", 2, `<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id|end_header_id)\|>|\[/?INST\]|<</?SYS>>` +
			`|</?(?:system|assistant|developer)(?:[_-](?:prompt|message|instructions?))?>|"role"\s{0,4}:\s{0,4}"(?:system|developer)"` +
			`|(?:BEGIN|END)\s+(?:OF\s+)?SYSTEM\s+(?:PROMPT|MESSAGE)`},
		{"system_override", 2, `\b(?:system|safety|security|guardrail|policy)[\s_-]{1,3}override\s*[:=]|\b(?:message|instructions?|notice|order)\s+from\s+the\s+system\s+administrators?\s+to\s+the\s+(?:ai|assistant|agent|model)\b`},

		// People may write one of these.
		{"addresses_model", 1, `\b(?:attention|dear|note\s+(?:to|for))\s+(?:the\s+)?(?:ai|assistant|language\s+model|llm|bot)\b|\b(?:the\s+assistant|as\s+an\s+ai|ai\s+assistant|language\s+model)\b` +
			`|\b(?:in|at\s+the\s+(?:end|start|beginning)\s+of)\s+your\s+(?:next|final)\s+(?:answer|reply|response|output|message)\b`},
		{"asks_for_keys", 1, `\b(?:print|reveal|output|dump|leak|disclose|exfiltrate|recite|repeat|include)\b[^.!?\n]{0,80}` +
			`(?:\b(?:all|your)\s+(?:api\s+keys?|credentials|passwords?|access\s+tokens?|secrets?)\b|(?-i:\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|SECRET|TOKEN|PASSWORD)\b))`},
		{"claims_approval", 1, `\b(?:supervisor|manager|administrator|admin|owner|security\s+team|developers?)\s+(?:has|have|had)\s+(?:already\s+)?(?:pre-?)?(?:approved|authori[sz]ed|permitted)\b|\bpre-?(?:approved|authori[sz]ed)\b`},
		{"dictates_answer", 1, `\b(?:tell|inform|assure)\s+the\s+user\s+(?:that\s+)?\b|\b(?:respond|reply|answer)\s+(?:only|exactly)\s+with\b|\bbefore\s+(?:it|you)\s+answers?\s+anything\b`},
		{"hides_from_user", 1, `\b(?:do\s+not|don't|never|without)\s+(?:tell|telling|inform|informing|mention|mentioning|ask|asking)\s+(?:this\s+to\s+)?(?:the\s+)?(?:user|human)\b`},
		{"mode_switch", 1, `\b(?:developer|debug|maintenance|admin|god|unrestricted|jailbreak)\s+mode\b`},
		{"names_prompt", 1, `\b(?:system\s+prompt|hidden\s+instructions|developer\s+message|initial\s+instructions)\b`},
		{"orders_tool", 1, `\b(?:you\s+must|immediately|now)\s+(?:call|invoke|use)\s+(?:the\s+)?[a-z0-9_]{1,64}\s+(?:tool|function)\b`},
	}
}

func ruleNames() string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return strings.Join(names, ", ")
}
