package checktoolcall_test

import (
	"fmt"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checktoolcall"
)

func init() {
	checktoolcall.Handle(func(q *abi.CheckToolCallRequest) (*abi.Verdict, error) {
		if q.ReadOnly {
			return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictRequireApproval, ReasonCode: "writes"}, nil
	})
}

func ExampleHandle() {
	reply, err := pdk.Invoke(abi.HookCheckToolCall, []byte(`{"now":0,"seed":"0","tool":"close_ticket","arguments":{"id":7},"read_only":false,"text":"Close it"}`))
	fmt.Println(string(reply), err)
	// Output: {"verdict":"require_approval","reason_code":"writes"} <nil>
}
