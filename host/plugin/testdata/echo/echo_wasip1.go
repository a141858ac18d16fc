package main

import "unsafe"

//go:wasmexport check_input
func checkInput(ptr unsafe.Pointer, n uint32) uint64 {
	return uint64(uintptr(ptr))<<32 | uint64(n)
}
