package plugin

import (
	"bytes"
	"context"

	extism "github.com/extism/go-sdk"

	"weir/abi"
	"weir/host/plugin/instrument"
)

// envFunction is one function of extism:host/env. Its arguments stand in args,
// of which the first takes the result.
type envFunction struct {
	name string
	typ  signature
	do   func(g *sdkGuest, k *kernel, args []uint64)
}

// Levels of Extism's log functions, and the one that a guest is told.
const (
	extismInfo = 2

	maxName     = 4 << 10 // bytes of a variable's name
	maxVars     = 1 << 20 // bytes of all variables of an instance
	varOverhead = 64      // bytes that each counts with
)

// envFunctions lists what an Extism module may import. What the kits do not use
// (reset, input_set, error_get and the like belong to the host) is not there.
// Functions for what is never granted are linked, because kits import much that
// is never called.
func envFunctions() []envFunction {
	const i, l = "\x7f", "\x7e"
	return append([]envFunction{
		{"alloc", signature{l, l}, envAlloc},
		{"free", signature{params: l}, envFree},
		{"length", signature{l, l}, envLength},
		{"length_unsafe", signature{l, l}, envLength},
		{"load_u8", signature{l, i}, envLoad8},
		{"load_u64", signature{l, l}, envLoad64},
		{"store_u8", signature{params: l + i}, envStore8},
		{"store_u64", signature{params: l + l}, envStore64},
		{"input_length", signature{results: l}, func(g *sdkGuest, _ *kernel, args []uint64) { args[0] = g.input }},
		{"input_offset", signature{results: l}, func(g *sdkGuest, _ *kernel, args []uint64) { args[0] = g.inputAt }},
		{"input_load_u8", signature{l, i}, envInput8},
		{"input_load_u64", signature{l, l}, envInput64},
		{"output_set", signature{params: l + l}, envOutput},
		{"error_set", signature{params: l}, envError},
		{"config_get", signature{l, l}, envNothing},
		{"var_get", signature{l, l}, envVarGet},
		{"var_set", signature{params: l + l}, envVarSet},
		{"http_request", signature{l + l, l}, func(*sdkGuest, *kernel, []uint64) {
			panic(failed(CodeTrap, "called http_request: a plugin has no access to any host"))
		}},
		{"http_status_code", signature{results: i}, envNothing},
		{"http_headers", signature{results: l}, envNothing},
		{"get_log_level", signature{results: i}, func(_ *sdkGuest, _ *kernel, args []uint64) { args[0] = extismInfo }},
	}, logFunctions()...)
}

func logFunctions() []envFunction {
	var functions []envFunction
	for name, level := range map[string]int{"log_trace": abi.LogDebug, "log_debug": abi.LogDebug,
		"log_info": abi.LogInfo, "log_warn": abi.LogWarn, "log_error": abi.LogError} {
		functions = append(functions, envFunction{name, signature{params: "\x7e"}, func(g *sdkGuest, k *kernel, args []uint64) {
			text := g.text(k, args[0])
			g.session.meter.charge(printUnits(len(text)))
			g.session.printer.line(level, text)
		}})
	}
	return functions
}

// sdkFunctions lists the functions that a renamed module imports, as the SDK
// takes them.
func sdkFunctions() []extism.HostFunction {
	refuel := hostFunctionOf(instrument.RefuelModule, instrument.RefuelName, signature{"\x7e", "\x7e"},
		func(_ context.Context, s *session, stack []uint64) {
			stack[0] = uint64(s.sdk.refuel(int64(stack[0])))
		})
	functions := []extism.HostFunction{refuel}
	for _, f := range wasiFunctions() {
		answers := len(f.typ.results) > 0
		functions = append(functions, hostFunctionOf(extismWASI, f.name, f.typ,
			func(_ context.Context, s *session, stack []uint64) {
				s.meter.charge(hostCall)
				if errno := f.do(s, s.sdk.module.Memory(), stack); answers {
					stack[0] = uint64(errno)
				}
			}))
	}
	for _, f := range envFunctions() {
		functions = append(functions, hostFunctionOf(extismEnv, f.name, f.typ,
			func(ctx context.Context, s *session, stack []uint64) {
				s.meter.charge(hostCall)
				f.do(s.sdk, s.sdk.kernelOf(ctx), stack)
			}))
	}
	return functions
}

// hostFunctionOf binds a function for the SDK. What it panics with is kept,
// because the SDK makes text of what ends an initialisation.
func hostFunctionOf(module, name string, typ signature, do func(context.Context, *session, []uint64)) extism.HostFunction {
	f := extism.NewHostFunctionWithStack(name, func(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
		s := sessionOf(ctx)
		defer s.sdk.keep()
		do(ctx, s, stack)
	}, []byte(typ.params), []byte(typ.results))
	f.SetNamespace(module)
	return f
}

func (g *sdkGuest) keep() {
	if why := recover(); why != nil {
		g.why = why
		panic(why)
	}
}

// envAlloc is alloc (size) -> place; zero means that there is no room.
func envAlloc(g *sdkGuest, k *kernel, args []uint64) { args[0] = g.alloc(k, args[0]) }

func (g *sdkGuest) alloc(k *kernel, size uint64) uint64 {
	if size == 0 {
		return 0
	}
	if size > g.memory.limit { // the kernel's sums would overflow
		g.memory.flags.refused = true
		return 0
	}
	g.session.meter.charge(g.heap.walkUnits())
	before := g.memory.used
	at := k.call(k.alloc, size, 0)
	g.session.meter.charge(byteUnits(int(g.memory.used - before)))
	if at != 0 {
		g.heap.add(at, size)
	}
	return at
}

func envFree(g *sdkGuest, k *kernel, args []uint64) {
	if g.heap.remove(args[0]) {
		g.session.meter.charge(g.heap.walkUnits())
		k.call(k.free, args[0], 0)
	}
}

func envLength(g *sdkGuest, _ *kernel, args []uint64) {
	if args[0] == g.inputAt {
		args[0] = g.input
		return
	}
	args[0] = g.heap.size(args[0])
}

func envNothing(_ *sdkGuest, _ *kernel, args []uint64) { args[0] = 0 }

func envLoad8(_ *sdkGuest, k *kernel, args []uint64) {
	b, ok := k.memory.ReadByte(place(args[0], 1))
	if !ok {
		panic(failed(CodeTrap, "reads at %d, outside of the memory of Extism's kernel", args[0]))
	}
	args[0] = uint64(b)
}

func envLoad64(_ *sdkGuest, k *kernel, args []uint64) {
	v, ok := k.memory.ReadUint64Le(place(args[0], 8))
	if !ok {
		panic(failed(CodeTrap, "reads at %d, outside of the memory of Extism's kernel", args[0]))
	}
	args[0] = v
}

// place turns 64 bits into a place in a memory of 32, where what is beyond is
// beyond.
func place(at, size uint64) uint32 {
	if at > 1<<32-size {
		return 1<<32 - 1
	}
	return uint32(at)
}

func envStore8(g *sdkGuest, k *kernel, args []uint64) {
	g.mayWrite(args[0], 1)
	k.memory.WriteByte(uint32(args[0]), byte(args[1]))
}

func envStore64(g *sdkGuest, k *kernel, args []uint64) {
	g.mayWrite(args[0], 8)
	k.memory.WriteUint64Le(uint32(args[0]), args[1])
}

func (g *sdkGuest) mayWrite(at, size uint64) {
	if !g.heap.holds(at, size) {
		panic(failed(CodeTrap, "writes %d bytes at %d, outside of its blocks", size, at))
	}
}

func envInput8(g *sdkGuest, k *kernel, args []uint64) {
	if args[0] >= g.input {
		args[0] = 0
		return
	}
	b, _ := k.memory.ReadByte(uint32(g.inputAt + args[0]))
	args[0] = uint64(b)
}

// envInput64 reads 8 bytes, of which the last may lie behind the request.
func envInput64(g *sdkGuest, k *kernel, args []uint64) {
	if args[0] >= g.input {
		args[0] = 0
		return
	}
	v, _ := k.memory.ReadUint64Le(uint32(g.inputAt + args[0]))
	args[0] = v
}

// envOutput is output_set (place, size).
func envOutput(g *sdkGuest, k *kernel, args []uint64) {
	at, size := args[0], args[1]
	switch {
	case size > uint64(k.memory.Size()) || at > uint64(k.memory.Size())-size:
		panic(failed(CodeBadReply, "reply of %d bytes at %d, outside of the memory of Extism's kernel, %d", size, at, k.memory.Size()))
	case size > uint64(g.reply):
		panic(failed(CodeTooLarge, "reply of %d bytes, at most %d are allowed", size, g.reply))
	}
	g.session.meter.charge(byteUnits(int(size)))
	g.answered = size > 0
	k.call(k.output, at, size)
}

// envError is error_set (place). The text is the plugin's, so it goes where its
// lines go.
func envError(g *sdkGuest, k *kernel, args []uint64) {
	text := g.text(k, args[0])
	g.session.meter.charge(printUnits(len(text)))
	g.session.printer.line(abi.LogError, text)
	g.failed = args[0] != 0
}

// text is the content of a block, which is the guest's.
func (g *sdkGuest) text(k *kernel, at uint64) []byte {
	view, _ := k.memory.Read(uint32(at), uint32(g.heap.size(at)))
	return view
}

func (g *sdkGuest) nameAt(k *kernel, at uint64) string {
	name := g.text(k, at)
	if len(name) > maxName {
		panic(failed(CodeTrap, "names a variable with %d bytes, at most %d are allowed", len(name), maxName))
	}
	return string(name)
}

// Variables live as long as the instance: from its configuration to the end of
// its one call.

func envVarGet(g *sdkGuest, k *kernel, args []uint64) {
	value, ok := g.plugin.Var[g.nameAt(k, args[0])]
	args[0] = 0
	if !ok {
		return
	}
	g.session.meter.charge(byteUnits(len(value)))
	if at := g.alloc(k, uint64(len(value))); at != 0 {
		k.memory.Write(uint32(at), value)
		args[0] = at
	}
}

func envVarSet(g *sdkGuest, k *kernel, args []uint64) {
	name := g.nameAt(k, args[0])
	g.vars -= varSize(name, g.plugin.Var)
	delete(g.plugin.Var, name)
	if args[1] == 0 {
		return
	}
	value := g.text(k, args[1])
	if g.vars += len(name) + len(value) + varOverhead; g.vars > maxVars {
		panic(failed(CodeMemory, "out of memory: its variables have more than %d bytes", maxVars))
	}
	g.session.meter.charge(byteUnits(len(value)))
	g.plugin.Var[name] = bytes.Clone(value)
}

func varSize(name string, vars map[string][]byte) int {
	value, ok := vars[name]
	if !ok {
		return 0
	}
	return len(name) + len(value) + varOverhead
}
