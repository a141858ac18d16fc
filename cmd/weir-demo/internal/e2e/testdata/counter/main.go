// Command counter is a guardrail that takes part in every check and shows that
// it did.
package main

import (
	"strings"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkinput"
	"weir/pdk/checkoutput"
	"weir/pdk/checktoolcall"
	"weir/pdk/checktoolresult"
)

func init() {
	pdk.Describe(abi.Description{Name: "counter", Version: "1.0.0"})
	checkinput.Handle(func(*abi.CheckInputRequest) (*abi.Verdict, error) {
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	})
	checktoolcall.Handle(func(q *abi.CheckToolCallRequest) (*abi.Verdict, error) {
		if strings.Contains(string(q.Arguments), "TKT-1002") {
			return &abi.Verdict{Verdict: abi.VerdictBlock, ReasonCode: "second"}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	})
	checktoolresult.Handle(func(*abi.CheckToolResultRequest) (*abi.Verdict, error) {
		return &abi.Verdict{Verdict: abi.VerdictBlock, ReasonCode: "first"}, nil
	})
	checkoutput.Handle(checkOutput)
}

// checkOutput writes a word in capitals; it holds a possible beginning of it.
func checkOutput(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
	const word = "parcel"
	if q.Use == abi.UseDisplay {
		return &abi.CheckOutputReply{}, nil
	}
	r := &abi.CheckOutputReply{HoldFrom: len(q.Text)}
	if i := strings.Index(q.Text, word); i >= 0 {
		r.Edits = []abi.Edit{{Start: i, End: i + len(word), Replace: strings.ToUpper(word), Label: "WORD"}}
		return r, nil
	}
	for n := min(len(word)-1, len(q.Text)); n > 0 && !q.Final; n-- {
		if strings.HasSuffix(q.Text, word[:n]) {
			r.HoldFrom -= n
			break
		}
	}
	return r, nil
}

func main() {}
