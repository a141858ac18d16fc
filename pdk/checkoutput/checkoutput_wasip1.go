package checkoutput

import (
	"unsafe"

	"weir/abi"
	"weir/pdk/internal/guest"
)

//go:wasmexport check_output
func export(ptr unsafe.Pointer, n uint32) uint64 {
	return guest.Call(abi.HookCheckOutput, ptr, n)
}
