// Command everycheck is a guardrail with every check and every way to fail.
package main

import (
	"errors"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk"
	"weir/pdk/checkinput"
	"weir/pdk/checkoutput"
	"weir/pdk/checktoolcall"
	"weir/pdk/checktoolresult"
)

// word is what configure was given; it has to be there in every later call.
var word string

func init() {
	pdk.Describe(abi.Description{Name: "everycheck", Version: "0.1.0"})
	pdk.Configure(configure)
	checkinput.Handle(checkInput)
	checkoutput.Handle(checkOutput)
	checktoolcall.Handle(func(q *abi.CheckToolCallRequest) (*abi.Verdict, error) {
		if q.ReadOnly {
			return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictRequireApproval, ReasonCode: "writes"}, nil
	})
	checktoolresult.Handle(func(q *abi.CheckToolResultRequest) (*abi.Verdict, error) {
		return &abi.Verdict{Verdict: abi.VerdictBlock, Message: q.Result}, nil
	})
}

func configure(q *abi.ConfigureRequest) (*abi.ConfigureReply, error) {
	d := strictjson.NewDecoder(q.Config)
	if err := d.Object(func(name string) (err error) {
		if name != "word" {
			return strictjson.Unknown(name)
		}
		word, err = d.String()
		return err
	}); err != nil {
		return &abi.ConfigureReply{Error: err.Error()}, nil
	}
	return &abi.ConfigureReply{LookBehind: len(word)}, nil
}

func checkInput(q *abi.CheckInputRequest) (*abi.Verdict, error) {
	switch q.Text {
	case "error":
		pdk.Log(abi.LogInfo, "about to fail")
		return nil, errors.New("it failed: " + word)
	case "nothing":
		return nil, nil
	case "panic":
		panic("on purpose")
	}
	return &abi.Verdict{Verdict: abi.VerdictBlock, Message: word + " " + q.Text}, nil
}

func checkOutput(q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
	return &abi.CheckOutputReply{HoldFrom: len(q.Text), State: q.State}, nil
}

func main() {}
