package pdk

import (
	"unsafe"

	"weir/abi"
	"weir/pdk/internal/guest"
)

//go:wasmexport describe
func describe(ptr unsafe.Pointer, n uint32) uint64 {
	return guest.Call(abi.HookDescribe, ptr, n)
}

//go:wasmexport configure
func configure(ptr unsafe.Pointer, n uint32) uint64 {
	return guest.Call(abi.HookConfigure, ptr, n)
}
