// Command output-pii is a guardrail for what leaves: it masks personal data in
// answers and in what people are shown of tool calls. Recognisers and their
// checksums are built in; the operator chooses among them.
package main

import (
	"errors"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkoutput"
)

const pluginName = "output-pii"

// current is set by configure and only read afterwards.
var current *guard

func init() {
	pdk.Describe(abi.Description{
		Name:         pluginName,
		Version:      "0.1.0",
		Summary:      "Masks e-mail addresses, phone, card, account and social security numbers, IP addresses and wallets.",
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
	g, err := readConfig(q.Config)
	if err != nil {
		return &abi.ConfigureReply{Error: err.Error()}, nil
	}
	current = g
	g.set.Warm()
	return g.settings(), nil
}

// settings declare the patterns, so that the host may look for them itself and
// ask only where one of them is.
func (g *guard) settings() *abi.ConfigureReply {
	reply := &abi.ConfigureReply{LookBehind: lookBehind}
	for _, p := range g.patterns() {
		reply.Patterns = append(reply.Patterns, abi.Pattern{ID: p.ID, Expr: p.Expr})
	}
	return reply
}

// cases hold whatever the operator configured.
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
