// Command noshouting is the guardrail of package pdk's documentation.
package main

import (
	"strings"

	"weir/abi"
	"weir/pdk"
	"weir/pdk/checkinput"
)

func init() {
	pdk.Describe(abi.Description{Name: "no-shouting", Version: "1.0.0"})
	checkinput.Handle(func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
		if q.Text == strings.ToUpper(q.Text) && q.Text != strings.ToLower(q.Text) {
			return &abi.Verdict{Verdict: abi.VerdictBlock, Message: "Please write in lower case."}, nil
		}
		return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
	})
}

func main() {}
