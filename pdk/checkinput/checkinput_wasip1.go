package checkinput

import (
	"unsafe"

	"weir/abi"
	"weir/pdk/internal/guest"
)

//go:wasmexport check_input
func export(ptr unsafe.Pointer, n uint32) uint64 {
	return guest.Call(abi.HookCheckInput, ptr, n)
}
