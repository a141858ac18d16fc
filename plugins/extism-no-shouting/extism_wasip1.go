package main

import (
	"github.com/extism/go-pdk"

	"weir/abi"
)

//go:wasmexport describe
func exportDescribe() int32 { return run(abi.HookDescribe) }

//go:wasmexport check_input
func exportCheckInput() int32 { return run(abi.HookCheckInput) }

// run is a hook as Extism has it: input and output are the SDK's, and anything
// but zero is failure.
func run(hook abi.Hook) int32 {
	reply, err := answer(hook, pdk.Input())
	if err != nil {
		pdk.SetError(err)
		return 1
	}
	pdk.Output(reply)
	return 0
}
