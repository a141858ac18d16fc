package plugintest

import (
	"slices"

	"weir/abi"
)

// extismImports are the indices of what an Extism guest imports, and of its
// helpers.
type extismImports struct {
	inputLength, inputLoad, alloc, store, outputSet uint32
	read, answer                                    uint32
	linked                                          bool
	bare                                            []string // hooks that are exported as they are
}

// NewExtismGuest returns a guest of the Extism carrier. Hooks are written as
// for the other: they get the place and length of the request and leave those
// of their reply; what the module exports fetches the one and stores the other.
func NewExtismGuest() *Guest {
	g := NewGuest()
	g.extism = &extismImports{
		inputLength: g.Import(abi.ImportExtism, "input_length", "", "l"),
		inputLoad:   g.Import(abi.ImportExtism, "input_load_u64", "l", "l"),
		alloc:       g.Import(abi.ImportExtism, "alloc", "l", "l"),
		store:       g.Import(abi.ImportExtism, "store_u64", "ll", ""),
		outputSet:   g.Import(abi.ImportExtism, "output_set", "ll", ""),
	}
	return g
}

// Status makes a hook of an Extism guest run code that does everything itself
// and leaves its status.
func (g *Guest) Status(hook abi.Hook, code ...[]byte) *Guest {
	g.extism.bare = append(g.extism.bare, string(hook))
	return g.Replace(string(hook), "", "i", code...)
}

// carried returns the function that is exported for a hook.
func (g *Guest) carried(name string, hook uint32) uint32 {
	if g.extism == nil || !slices.Contains(abi.Hooks(), abi.Hook(name)) || slices.Contains(g.extism.bare, name) {
		return hook
	}
	if !g.extism.linked {
		g.linkExtism()
	}
	return g.Func("", "i", 1,
		Call(g.extism.read), Op(0x21, 0), // local.set
		I32(requestAt), Get(0), Call(hook), Call(g.extism.answer), I32(0))
}

const (
	opSet     = 0x21
	opTee     = 0x22
	opBrIf    = 0x0d
	opLtU     = 0x49
	opWrap    = 0xa7 // i32.wrap_i64
	opI64ShrU = 0x88
)

// linkExtism adds what moves 8 bytes at a time, as kits do.
func (g *Guest) linkExtism() {
	x := g.extism
	x.linked = true
	next := slices.Concat(Get(1), I32(8), Op(OpI32Add), Op(opTee, 1), Get(0), Op(opLtU), Op(opBrIf, 0))
	x.read = g.Func("", "i", 2, // 0: length, 1: place
		Call(x.inputLength), Op(opWrap), Op(opSet, 0),
		Get(0), If(Loop(
			Get(1), I32(requestAt), Op(OpI32Add), Get(1), Op(OpExtend), Call(x.inputLoad), Op(0x37, 0, 0), // i64.store
			next)),
		Get(0))
	// 0: length, 1: place, 2: block, 3: reply; the parameter is i64, so it is
	// taken apart by a function of i32s.
	move := g.Func("iiii", "", 0,
		Get(0), If(Loop(
			Get(2), Get(1), Op(OpI32Add), Op(OpExtend), Get(3), Get(1), Op(OpI32Add), Op(0x29, 0, 0), Call(x.store), // i64.load
			next)),
		Get(2), Op(OpExtend), Get(0), Op(OpExtend), Call(x.outputSet))
	x.answer = g.Func("l", "", 0,
		Get(0), Op(opWrap), I32(0),
		Get(0), I64(0xffffffff), Op(0x83), I64(7), Op(OpI64Add), Call(x.alloc), Op(opWrap), // i64.and
		Get(0), I64(32), Op(opI64ShrU), Op(opWrap),
		Call(move))
}
