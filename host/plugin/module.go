package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Section ids and external kinds of the WebAssembly binary format.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionExport    = 7
	sectionStart     = 8
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12

	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3

	typeI32 = 0x7f
	typeI64 = 0x7e
)

// outline is what the host needs to know of a module before it compiles it.
// Function bodies are not in it; wazero validates those.
type outline struct {
	types    []signature
	imports  []importEntry
	funcs    []uint32 // type of each function, imported ones first
	tables   []limitEntry
	memories []limitEntry
	exports  []exportEntry
	data     []segment // active ones; their bytes are the module's
	start    bool
}

// signature is a function type: value types as the bytes of the format.
type signature struct{ params, results string }

type importEntry struct {
	module, name string
	kind         byte
	typ          uint32 // kindFunc
}

type exportEntry struct {
	name  string
	kind  byte
	index uint32
}

// limitEntry is the size of a table (in elements) or a memory (in pages).
type limitEntry struct {
	elem     byte // tables: the element type
	min, max uint32
	bounded  bool // max is given
}

func (s signature) String() string {
	return "(" + valueTypes(s.params) + ") -> (" + valueTypes(s.results) + ")"
}

func valueTypes(types string) string {
	names := map[byte]string{typeI32: "i32", typeI64: "i64", 0x7d: "f32", 0x7c: "f64",
		0x7b: "v128", 0x70: "funcref", 0x6f: "externref"}
	var b bytes.Buffer
	for i := range len(types) {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == 8 {
			b.WriteString("…")
			break
		}
		if name, ok := names[types[i]]; ok {
			b.WriteString(name)
		} else {
			fmt.Fprintf(&b, "0x%02x", types[i])
		}
	}
	return b.String()
}

var errShort = errors.New("the file ends too early")

// parseModule reads the outline of a module in the binary format, version 1.
func parseModule(wasm []byte) (*outline, error) {
	if len(wasm) < 8 || string(wasm[:4]) != "\x00asm" {
		return nil, errors.New("expected a WebAssembly module: the file does not begin with \\0asm")
	}
	if string(wasm[4:8]) != "\x01\x00\x00\x00" {
		return nil, errors.New("expected the WebAssembly core format, version 1 (components are not supported)")
	}
	o, r, last := new(outline), &reader{data: wasm, at: 8}, 0
	for !r.done() {
		from := r.at
		id := r.byte()
		body := r.bytes(r.u32())
		if r.err != nil {
			return nil, r.err
		}
		if id != sectionCustom {
			rank := sectionRank(id)
			if rank == 0 {
				return nil, fmt.Errorf("offset %d: unknown section %d", from, id)
			}
			// A second table or export section would make our reading of the
			// module differ from the compiler's.
			if rank <= last {
				return nil, fmt.Errorf("offset %d: section %d is repeated or out of order", from, id)
			}
			last = rank
		}
		if err := o.section(id, body); err != nil {
			return nil, fmt.Errorf("section %d: %w", id, err)
		}
	}
	return o, nil
}

// sectionRank gives the order in which sections stand; 0 is unknown. The data
// count stands before the code although its number is larger.
func sectionRank(id byte) int {
	switch {
	case id == sectionDataCount:
		return sectionCode
	case id == sectionCode, id == sectionData:
		return int(id) + 1
	case id > sectionDataCount:
		return 0
	}
	return int(id)
}

func (o *outline) section(id byte, body []byte) error {
	r := &reader{data: body}
	switch id {
	case sectionType:
		r.vector(func() { o.types = append(o.types, r.signature()) })
	case sectionImport:
		r.vector(func() { o.addImport(r) })
	case sectionFunction:
		r.vector(func() { o.funcs = append(o.funcs, r.u32()) })
	case sectionTable:
		r.vector(func() { o.tables = append(o.tables, r.table()) })
	case sectionMemory:
		r.vector(func() { o.memories = append(o.memories, r.limits()) })
	case sectionExport:
		r.vector(func() { o.exports = append(o.exports, exportEntry{r.name(), r.byte(), r.u32()}) })
	case sectionData:
		r.vector(func() {
			if s, active := r.segment(); active {
				o.data = append(o.data, s)
			}
		})
	case sectionStart:
		o.start = true
		r.u32()
	default:
		return nil
	}
	if r.err == nil && !r.done() {
		return errors.New("has bytes after its last entry")
	}
	return r.err
}

func (o *outline) addImport(r *reader) {
	e := importEntry{module: r.name(), name: r.name(), kind: r.byte()}
	switch e.kind {
	case kindFunc:
		e.typ = r.u32()
		o.funcs = append(o.funcs, e.typ)
	case kindTable:
		r.table()
	case kindMemory:
		r.limits()
	case kindGlobal:
		r.byte()
		r.byte()
	default:
		r.fail(fmt.Errorf("import %d has the unknown kind %d", len(o.imports), e.kind))
	}
	o.imports = append(o.imports, e)
}

// function returns the type of the function with that index.
func (o *outline) function(index uint32) (signature, bool) {
	if uint64(index) >= uint64(len(o.funcs)) {
		return signature{}, false
	}
	return o.signature(o.funcs[index])
}

func (o *outline) signature(typ uint32) (signature, bool) {
	if uint64(typ) >= uint64(len(o.types)) {
		return signature{}, false
	}
	return o.types[typ], true
}

// reader reads the binary format. After the first error it yields zeros.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) done() bool { return r.err != nil || r.at >= len(r.data) }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) byte() byte {
	if r.done() {
		r.fail(errShort)
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

func (r *reader) bytes(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(len(r.data)-r.at) {
		r.fail(errShort)
		return nil
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

// u32 reads an unsigned LEB128 number of at most 5 bytes.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.fail(errors.New("a number is larger than 32 bits"))
	return 0
}

func (r *reader) name() string { return string(r.bytes(r.u32())) }

func (r *reader) vector(entry func()) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		entry()
	}
}

func (r *reader) signature() signature {
	if form := r.byte(); r.err == nil && form != 0x60 {
		r.fail(fmt.Errorf("expected a function type, got form 0x%02x", form))
	}
	return signature{params: r.name(), results: r.name()}
}

func (r *reader) table() limitEntry {
	elem := r.byte()
	if r.err == nil && elem != 0x70 && elem != 0x6f {
		r.fail(fmt.Errorf("a table has the unknown element type 0x%02x", elem))
	}
	l := r.limits()
	l.elem = elem
	return l
}

func (r *reader) limits() (l limitEntry) {
	switch flags := r.byte(); flags {
	case 0:
		l.min = r.u32()
	case 1:
		l.bounded = true
		l.min, l.max = r.u32(), r.u32()
	default:
		r.fail(fmt.Errorf("limits have the flags 0x%02x: shared and 64-bit memories are refused", flags))
	}
	return l
}
