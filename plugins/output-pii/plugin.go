// Command output-pii is a guardrail for what leaves: it masks personal data in
// answers and in what people are shown of tool calls. Recognisers and their
// checksums are built in; the operator chooses among them.
package main

import (
	"errors"
	"strings"

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
	g.scanner.Warm(typical, numbers())
	return g.settings(), nil
}

// typical has what clean text has not: the matcher builds what it needs for
// them before the first call, and no call has to.
const typical = `Write to renee.castillo@example.com or J_Doe-42+x@mail.example.co.uk, call (415) 555-0132,
+44 20 7946 0958, +1 (415) 555-0132, 415.555.0132 or 212-555-0100. Cards: 4111 1111 1111 1111,
5500-0000-0000-0004, 4222222222222 and 378282246310005. Accounts: GB82 WEST 1234 5698 7654 32,
DE89370400440532013000, MT84MALT011000012345MTLCAST001S. Hosts: 192.168.10.24, 10.0.0.1:8080,
2001:db8::8a2e:370:7334, fe80::1ff:fe23:4567:890a, ::1, ::ffff:192.168.10.24, std::vector<int>.
Wallets: 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2, bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq. Numbers:
078-05-1120, 899.99.9999, 2026-09-15T09:20:00Z, 14:05:00, $4,250.75, 20260914.7 and 1 000 000.
`

// numbers has forms of numbers with each sort of digit that a pattern asks for
// at the beginning of a group, and a word behind.
func numbers() string {
	var b strings.Builder
	for _, form := range [...]string{"?15-?55-?132", "(?15) ?55-?132", "?15.?55.?132", "+?4 ?0 ?946 ?958", "?78-?5-?120", "?111 ?111 ?111 ?111"} {
		for _, digit := range [...]string{"0", "1", "2", "5"} {
			number := strings.ReplaceAll(form, "?", digit)
			b.WriteString("call " + number + " now, " + number + ". Or " + number + "\n")
		}
	}
	return b.String()
}

// settings declare the patterns, so that the host may look for them itself,
// ask only where one of them is, and say where.
func (g *guard) settings() *abi.ConfigureReply {
	reply := &abi.ConfigureReply{LookBehind: lookBehind, SendMatches: true}
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
