package instrument

// Section ids of the binary format, in the order of their numbers.
const (
	sectionCustom byte = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

// Kind is what an import or export is.
type Kind byte

// The kinds, with the numbers of the binary format.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

func (k Kind) String() string {
	switch k {
	case KindFunc:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return "unknown kind"
}

// Value types of the binary format.
const (
	typeI32       byte = 0x7f
	typeI64       byte = 0x7e
	typeF32       byte = 0x7d
	typeF64       byte = 0x7c
	typeV128      byte = 0x7b
	typeFuncref   byte = 0x70
	typeExternref byte = 0x6f
)

// module is a decoded module. Bytes in it alias the input.
type module struct {
	types    []funcType
	imports  []importEntry
	funcs    []uint32 // type of each function, imported ones first
	tables   []table  // imported ones first, like memories and globals
	memories []limits
	globals  []global
	exports  []export
	start    bool
	elements []element
	codes    []body
	data     []segment

	hasDataCount bool
	dataCount    uint32

	importedFuncs, importedTables, importedMemories, importedGlobals int
}

// funcType is a function type: value types as bytes of the format.
type funcType struct{ params, results string }

type importEntry struct {
	module, name string
	kind         Kind
	desc         []byte // as it stands after the kind, in the shortest form
	typ          uint32 // functions
}

type limits struct {
	min, max uint32
	bounded  bool // max is given
}

type table struct {
	elem byte
	limits
}

type global struct {
	typ     byte
	mutable bool
	init    instr
}

type export struct {
	name  string
	kind  Kind
	index uint32
}

// element is an element segment. flags are those of the format and say which
// fields are used.
type element struct {
	flags  uint32
	table  uint32
	offset instr
	kind   byte     // reference type, or the element kind zero
	funcs  []uint32 // flags 0 to 3
	exprs  []instr  // flags 4 to 7
}

// segment is a data segment.
type segment struct {
	flags  uint32
	offset instr
	bytes  []byte
}

// body is the code of one function: from and to are offsets of the
// instructions in the module.
type body struct {
	locals   []localGroup
	from, to int
}

type localGroup struct {
	n   uint32
	typ byte
}
