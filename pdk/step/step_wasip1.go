package step

import (
	"unsafe"

	"weir/abi"
	"weir/pdk/internal/guest"
)

//go:wasmexport step
func export(ptr unsafe.Pointer, n uint32) uint64 {
	return guest.Call(abi.HookStep, ptr, n)
}
