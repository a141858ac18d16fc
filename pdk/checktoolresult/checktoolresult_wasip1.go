package checktoolresult

import (
	"unsafe"

	"weir/abi"
	"weir/pdk/internal/guest"
)

//go:wasmexport check_tool_result
func export(ptr unsafe.Pointer, n uint32) uint64 {
	return guest.Call(abi.HookCheckToolResult, ptr, n)
}
