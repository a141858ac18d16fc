package pdk_test

import (
	"fmt"
	"strings"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkinput"
	"weir/pdk/checkoutput"
)

func init() {
	checkinput.Handle(func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		if q.Text == strings.ToUpper(q.Text) {
			return &abi.Verdict{Verdict: abi.VerdictBlock, Message: "Please write in lower case."}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	})
	checkoutput.Handle(func(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		return &abi.CheckOutputReply{HoldFrom: len(q.Text) + 1}, nil
	})
}

// Invoke is how a plugin's own tests call it: through the same bytes as the
// host, and with the host's check of the reply.
func ExampleInvoke() {
	reply, err := pdk.Invoke(abi.HookCheckInput, []byte(`{"now":0,"seed":"0","text":"HELP","history":[]}`))
	fmt.Println(string(reply), err)
	_, err = pdk.Invoke(abi.HookCheckOutput, []byte(`{"now":0,"seed":"0","stream_pos":0,"text":"abc"}`))
	fmt.Println(err)
	// Output:
	// {"verdict":"block","message":"Please write in lower case."} <nil>
	// check_output: the host would refuse the reply: hold_from 4: not a rune boundary inside the text of 3 bytes
}

// Natively there is no host to log to, so a plugin's tests may log freely.
func ExampleLog() {
	pdk.Log(abi.LogWarn, "the classifier said neither yes nor no")
	// Output:
}
