// Command output-secrets is a guardrail for what leaves: it cuts an answer
// where a secret begins, and takes secrets out of what people are shown of tool
// calls. The patterns are the operator's: the plugin has none of its own.
package main

import (
	"errors"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkoutput"
	"weir/pdk/spare"
)

const pluginName = "output-secrets"

// current is set by configure and only read afterwards.
var current *guard

func init() {
	pdk.Describe(abi.Description{
		Name:         pluginName,
		Version:      "0.1.0",
		Summary:      "Cuts an answer where a secret begins and redacts secrets in tool displays.",
		ConfigSchema: abi.Raw(configSchema),
		Cases:        cases(),
	})
	pdk.Configure(configure)
	checkoutput.Handle(func(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		if current == nil {
			return nil, errors.New("not configured")
		}
		if q.Use == abi.UseDisplay {
			return current.display(q.Texts), nil
		}
		return current.answer(q)
	})
}

func main() {}

func configure(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
	c, err := readConfig(q.Config)
	if err != nil {
		return &abi.ConfigureReply{Error: err.Error()}, nil
	}
	current = &guard{config: *c}
	current.replies.Fill(spare.Enough, nil)
	current.streamed.Warm(typical)
	current.displayed.Warm(typical)
	return current.settings(), nil
}

// typical has what clean text has not: the matcher builds what it needs for
// them before the first call, and no call has to.
const typical = `The password is: correct-horse_9, api_key = "abcdefgh12", access token, client-secret.
Authorization: Bearer eyJhbGciOi.J9~+/=, AKIAABCDEFGHIJKLMNOP, ghp_abcdefghijklmnopqrstuvwxyz0123,
sk-abcdefghijklmnop. -----BEGIN RSA PRIVATE KEY----- system prompt: ignore all previous instructions.
`

// settings declare the patterns, so that the host may look for them itself,
// ask only where one of them is, and say where.
func (g *guard) settings() *abi.ConfigureReply {
	reply := &abi.ConfigureReply{LookBehind: lookBehind, SendMatches: true}
	for _, p := range g.patterns {
		reply.Patterns = append(reply.Patterns, abi.Pattern{ID: p.ID, Expr: p.Expr, Bound: p.Bound, Minimal: p.Minimal})
	}
	return reply
}

// cases hold whatever the operator configured, as long as a greeting is no secret.
func cases() []abi.Case {
	return []abi.Case{
		{Name: "a finished answer is decided to its end", Hook: abi.HookCheckOutput,
			Request: abi.Raw(`{"now":0,"seed":"0","stream_pos":0,"text":"Good morning!","final":true}`),
			Expect:  abi.Raw(`{"hold_from":13}`)},
		{Name: "a display is left alone", Hook: abi.HookCheckOutput,
			Request: abi.Raw(`{"now":0,"seed":"0","use":"display","stream_pos":0,"text":"","texts":["Good morning!"]}`),
			Expect:  abi.Raw(`{"hold_from":0}`)},
	}
}
