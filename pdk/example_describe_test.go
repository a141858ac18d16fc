package pdk_test

import (
	"fmt"

	"weir/abi"
	"weir/pdk"
)

func init() {
	pdk.Describe(abi.Description{
		Name:    "no-shouting",
		Version: "1.0.0",
		Summary: "Refuses capitals.",
		Cases: []abi.Case{{
			Name:    "shouting is blocked",
			Hook:    abi.HookCheckInput,
			Request: abi.Raw(`{"now":0,"seed":"0","text":"HELP","history":[]}`),
			Expect:  abi.Raw(`{"verdict":"block"}`),
		}},
	})
}

// A plugin describes itself in init; the kit fills in the version of the ABI
// and, by the hooks that are handled, the kind.
func ExampleDescribe() {
	reply, err := pdk.Invoke(abi.HookDescribe, []byte(`{"now":0,"seed":"0"}`))
	if err != nil {
		panic(err)
	}
	var d abi.Description
	if err := d.DecodeJSON(reply); err != nil {
		panic(err)
	}
	fmt.Println(d.Name, d.Version, d.Kind, "for ABI", d.ABI)
	// Output: no-shouting 1.0.0 guardrail for ABI 1
}
