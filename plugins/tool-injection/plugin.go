// Command tool-injection is a guardrail for what tools bring: it flags results
// in which somebody speaks to the model and not to people. Its rules are built in
// and deterministic, and rather miss an attack than stop an ordinary ticket; the
// operator chooses among them and adds more.
package main

import (
	"errors"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checktoolresult"
)

const pluginName = "tool-injection"

// current is set by configure and only read afterwards.
var current *guard

func init() {
	pdk.Describe(abi.Description{
		Name:         pluginName,
		Version:      "0.1.0",
		Summary:      "Flags instructions to the model inside tool results.",
		ConfigSchema: abi.Raw(configSchema),
		Cases:        cases(),
	})
	pdk.Configure(configure)
	checktoolresult.Handle(func(q *abi.CheckToolResultRequest) (*abi.Verdict, error) {
		if current == nil {
			return nil, errors.New("not configured")
		}
		return current.check(q), nil
	})
}

func main() {}

func configure(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
	g, err := readConfig(q.Config)
	if err != nil {
		return &abi.ConfigureReply{Error: err.Error()}, nil
	}
	current = g
	return &abi.ConfigureReply{}, nil
}

// cases hold whatever the operator configured, as long as a greeting is no attack.
func cases() []abi.Case {
	return []abi.Case{
		{Name: "an ordinary result is allowed", Hook: abi.HookCheckToolResult,
			Request: abi.Raw(`{"now":0,"seed":"0","tool":"get","arguments":{},"result":"{\"note\":\"Good morning!\"}"}`),
			Expect:  abi.Raw(`{"verdict":"allow"}`)},
	}
}
