// Package checktoolresult gives a plugin the hook check_tool_result: the check of a tool's result, before the model sees it.
// A module exports the hook as soon as this package is linked, and the host
// then calls it, so only a plugin that takes part imports it.
package checktoolresult

import (
	"weir/abi"
	"weir/pdk/internal/guest"
)

// Handle makes f the plugin's check_tool_result. It is called once, in the plugin's init.
// An error of f is a failure of the plugin: the host logs its text, capped, and
// applies the operator's failure policy. f owns the request, which shares no
// memory with the carrier's buffers.
func Handle(f func(*abi.CheckToolResultRequest) (*abi.Verdict, error)) {
	guest.Register(abi.HookCheckToolResult, f, nil)
}
