package main

import (
	"testing"

	"weir/abi"
	"weir/host/plugin/twintest"
)

// The module answers what the native code answers, byte by byte.
func TestWasmAnswersEqual(t *testing.T) {
	t.Cleanup(func() { current = nil })
	p := twintest.Load(t, pluginName, abi.Raw(`{"extra":[{"name":"own","expr":"canary"}]}`))
	for _, text := range append(append(lines(t, "prose.txt"), lines(t, "attacks.txt")...), "a canary", "") {
		for _, form := range forms(text) {
			q := request(form)
			q.Call = abi.Call{Now: 1, Seed: "2"}
			p.Same(t, abi.HookCheckToolResult, q.AppendJSON(nil))
		}
	}
}
