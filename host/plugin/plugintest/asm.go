package plugintest

import (
	"encoding/binary"
	"slices"
)

// Asm assembles a WebAssembly module. Function indices count imports first, so
// every Import comes before the first Func. It checks nothing: tests want
// modules that are wrong, too.
//
// Types of values are written as letters: i for i32, l for i64.
type Asm struct {
	types   [][]byte
	imports [][]byte
	funcs   []uint32 // type of each function of the module's own
	tables  [][]byte
	memory  [][]byte
	globals [][]byte
	exports [][]byte
	start   []byte
	bodies  [][]byte
	data    [][]byte
	counted bool // a data count section is needed
}

// Kinds of an import or export.
const (
	KindFunc   = 0
	KindTable  = 1
	KindMemory = 2
	KindGlobal = 3
)

func (a *Asm) typ(params, results string) uint32 {
	t := append(append([]byte{0x60}, valueTypes(params)...), valueTypes(results)...)
	for i, have := range a.types {
		if slices.Equal(have, t) {
			return uint32(i)
		}
	}
	a.types = append(a.types, t)
	return uint32(len(a.types) - 1)
}

func valueTypes(letters string) []byte {
	b := leb(uint64(len(letters)))
	for _, c := range letters {
		if c == 'l' {
			b = append(b, 0x7e)
		} else {
			b = append(b, 0x7f)
		}
	}
	return b
}

// Import imports a function and returns its index.
func (a *Asm) Import(module, name, params, results string) uint32 {
	b := append(str(module), str(name)...)
	a.imports = append(a.imports, append(append(b, KindFunc), leb(uint64(a.typ(params, results)))...))
	return uint32(len(a.imports) - 1)
}

// ImportMemory imports a memory of one page.
func (a *Asm) ImportMemory(module, name string) {
	a.imports = append(a.imports, append(append(str(module), str(name)...), KindMemory, 0, 1))
}

// Func adds a function with that many i32 locals and returns its index. The
// code needs no final end.
func (a *Asm) Func(params, results string, locals int, code ...[]byte) uint32 {
	body := []byte{0}
	if locals > 0 {
		body = append(append([]byte{1}, leb(uint64(locals))...), 0x7f)
	}
	body = append(append(body, slices.Concat(code...)...), 0x0b)
	a.funcs = append(a.funcs, a.typ(params, results))
	a.bodies = append(a.bodies, append(leb(uint64(len(body))), body...))
	return uint32(len(a.imports) + len(a.funcs) - 1)
}

// Memory adds a memory; a negative maximum is none.
func (a *Asm) Memory(minPages, maxPages int) { a.memory = append(a.memory, limits(minPages, maxPages)) }

// Table adds a table of functions; a negative maximum is none.
func (a *Asm) Table(size, most int) {
	a.tables = append(a.tables, append([]byte{0x70}, limits(size, most)...))
}

// Global adds a mutable i32 that begins at zero and returns its index.
func (a *Asm) Global() uint32 {
	a.globals = append(a.globals, []byte{0x7f, 1, 0x41, 0, 0x0b})
	return uint32(len(a.globals) - 1)
}

// GlobalOf adds a global from its bytes: type, mutability and initial value.
func (a *Asm) GlobalOf(raw ...byte) uint32 {
	a.globals = append(a.globals, append(raw, 0x0b))
	return uint32(len(a.globals) - 1)
}

// Passive adds a data segment that only memory.init copies, and returns its
// index.
func (a *Asm) Passive(content []byte) uint32 {
	a.counted = true
	a.data = append(a.data, append(append([]byte{1}, leb(uint64(len(content)))...), content...))
	return uint32(len(a.data) - 1)
}

// Data puts bytes into memory.
func (a *Asm) Data(at int, content []byte) {
	b := append(append([]byte{0}, I32(int32(at))...), 0x0b)
	a.data = append(a.data, append(append(b, leb(uint64(len(content)))...), content...))
}

// Export exports something by its index.
func (a *Asm) Export(name string, kind byte, index uint32) {
	a.exports = append(a.exports, append(append(str(name), kind), leb(uint64(index))...))
}

// Start names the start function.
func (a *Asm) Start(index uint32) { a.start = leb(uint64(index)) }

// Bytes returns the module.
func (a *Asm) Bytes() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	var funcs [][]byte
	for _, t := range a.funcs {
		funcs = append(funcs, leb(uint64(t)))
	}
	b = section(b, 1, a.types)
	b = section(b, 2, a.imports)
	b = section(b, 3, funcs)
	b = section(b, 4, a.tables)
	b = section(b, 5, a.memory)
	b = section(b, 6, a.globals)
	b = section(b, 7, a.exports)
	if a.start != nil {
		b = append(append(append(b, 8), leb(uint64(len(a.start)))...), a.start...)
	}
	if a.counted {
		n := leb(uint64(len(a.data)))
		b = append(append(append(b, 12), leb(uint64(len(n)))...), n...)
	}
	b = section(b, 10, a.bodies)
	return section(b, 11, a.data)
}

func section(b []byte, id byte, entries [][]byte) []byte {
	if len(entries) == 0 {
		return b
	}
	body := append(leb(uint64(len(entries))), slices.Concat(entries...)...)
	return append(append(append(b, id), leb(uint64(len(body)))...), body...)
}

func limits(low, high int) []byte {
	if high < 0 {
		return append([]byte{0}, leb(uint64(low))...)
	}
	return append(append([]byte{1}, leb(uint64(low))...), leb(uint64(high))...)
}

func str(s string) []byte { return append(leb(uint64(len(s))), s...) }

func leb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// sleb encodes a signed number.
func sleb(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Instructions. Those without operands are constants.

// I32 pushes an i32.
func I32(v int32) []byte { return append([]byte{0x41}, sleb(int64(v))...) }

// I64 pushes an i64.
func I64(v int64) []byte { return append([]byte{0x42}, sleb(v)...) }

// Call calls a function.
func Call(index uint32) []byte { return append([]byte{0x10}, leb(uint64(index))...) }

// Get pushes a local.
func Get(local uint32) []byte { return append([]byte{0x20}, leb(uint64(local))...) }

// GlobalGet pushes a global.
func GlobalGet(global uint32) []byte { return append([]byte{0x23}, leb(uint64(global))...) }

// GlobalSet pops a global.
func GlobalSet(global uint32) []byte { return append([]byte{0x24}, leb(uint64(global))...) }

// Loop runs code until it does not branch to it; Br(0) inside it does.
func Loop(code ...[]byte) []byte {
	return append(append([]byte{0x03, 0x40}, slices.Concat(code...)...), 0x0b)
}

// Br branches to a label.
func Br(label uint32) []byte { return append([]byte{0x0c}, leb(uint64(label))...) }

// If runs code when the popped i32 is not zero.
func If(code ...[]byte) []byte {
	return append(append([]byte{0x04, 0x40}, slices.Concat(code...)...), 0x0b)
}

// Op is raw instruction bytes.
func Op(b ...byte) []byte { return b }

// Opcodes for Op.
const (
	OpUnreachable = 0x00
	OpDrop        = 0x1a
	OpI32Eq       = 0x46
	OpI32Add      = 0x6a
	OpI64Add      = 0x7c
	OpI64Shl      = 0x86
	OpI64Or       = 0x84
	OpExtend      = 0xad // i64.extend_i32_u
)

// Bulk and table operations, and memory.grow.
var (
	MemoryGrow = []byte{0x40, 0}
	TableGrow  = []byte{0xfc, 15, 0}
	MemoryFill = []byte{0xfc, 11, 0}
	MemoryCopy = []byte{0xfc, 10, 0, 0}
)
