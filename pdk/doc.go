// Package pdk is the kit for plugins written in Go. A plugin is a main package
// that registers in init what it does; one package per hook, because a module
// exports a hook as soon as its package is linked. A complete guardrail:
//
//	package main
//
//	import (
//		"strings"
//
//		"weir/abi"
//		"weir/pdk"
//		"weir/pdk/checkinput"
//	)
//
//	func init() {
//		pdk.Describe(abi.Description{Name: "no-shouting", Version: "1.0.0"})
//		checkinput.Handle(func(q *abi.CheckInputRequest) (*abi.Verdict, error) {
//			if q.Text == strings.ToUpper(q.Text) && q.Text != strings.ToLower(q.Text) {
//				return &abi.Verdict{Verdict: abi.VerdictBlock, Message: "Please write in lower case."}, nil
//			}
//			return &abi.Verdict{Verdict: abi.VerdictAllow}, nil
//		})
//	}
//
//	func main() {}
//
// As plugins/no-shouting/plugin.go of this module it becomes a WebAssembly module
// by `make plugins`, elsewhere by
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o no-shouting.wasm .
//
// It is tested like any other Go code, through [Invoke] or beside it. A module
// has no files, no environment, no network, and its clock and randomness are
// the request's. Goroutines work, but nothing should outlive the call: the next
// one may be another user's, and may find the instance put back.
//
// The messages come with their codecs (see package abi), so a plugin that also
// keeps away from fmt, regexp and encoding/json has about 2.1 MB, of which the
// Go runtime is 1.8. Where each microsecond counts, allocate little: package
// spare has objects that configure made. A handler's error, a panic and a reply that breaks the ABI
// are failures of the plugin, and the operator's on_error decides what they mean.
package pdk
