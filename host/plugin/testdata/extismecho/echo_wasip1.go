package main

import "github.com/extism/go-pdk"

//go:wasmexport describe
func describe() int32 {
	pdk.OutputString(`{"name":"echo","version":"1.0.0","abi":1,"kind":"guardrail"}`)
	return 0
}

//go:wasmexport check_input
func checkInput() int32 {
	pdk.Output(pdk.Input())
	return 0
}
