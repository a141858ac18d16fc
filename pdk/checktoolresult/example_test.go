package checktoolresult_test

import (
	"fmt"
	"strings"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checktoolresult"
)

func init() {
	checktoolresult.Handle(func(q *abi.CheckToolResultRequest) (*abi.Verdict, error) {
		if strings.Contains(q.Result, "BEGIN PRIVATE KEY") {
			return &abi.Verdict{Verdict: abi.VerdictBlock, ReasonCode: "private_key"}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	})
}

func ExampleHandle() {
	reply, err := pdk.Invoke(abi.HookCheckToolResult, []byte(`{"now":0,"seed":"0","tool":"read","arguments":{},"result":"-----BEGIN PRIVATE KEY-----"}`))
	fmt.Println(string(reply), err)
	// Output: {"verdict":"block","reason_code":"private_key"} <nil>
}
