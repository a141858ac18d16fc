package instrument

import (
	"weir/abi"
)

// Version changes whenever the same module could be rewritten to other bytes.
const Version = "2"

// Names that a rewritten module imports and exports.
const (
	RefuelModule = abi.ImportModule
	RefuelName   = abi.ReservedRefuel
	FuelGlobal   = abi.ReservedPrefix + "fuel"
)

const maxPages = 1 << 16

// Options bound a module. Zero fields mean the defaults.
type Options struct {
	// MaxModule is how many bytes a module may have, and a quarter of how many
	// it may have rewritten. Default 64 MiB.
	MaxModule int
	// MaxMemory is how many pages of 64 KiB a memory may grow to, whatever the
	// module declares. Default 1024 (64 MiB). It becomes part of the code, so
	// a host with another limit for each instance sets the largest one here.
	MaxMemory uint32
	// MaxTable is how many elements all tables together may grow to. Default
	// 131072, which is 1 MiB.
	MaxTable uint32
	// Allow decides about each import. Nil allows none. Its error says what
	// was expected; it is shown after the name of the import.
	Allow func(Import) error

	// For tests only: tables, memories and globals may be imported, and the
	// plan of a function may be replaced.
	linked bool
	replan func(*rewriter, *body)
}

func (o Options) resolved() Options {
	if o.MaxModule <= 0 {
		o.MaxModule = 64 << 20
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = 1024
	}
	o.MaxMemory = min(o.MaxMemory, maxPages)
	if o.MaxTable == 0 {
		o.MaxTable = 1 << 17
	}
	return o
}

// Import is something that a module wants from its host. Params and Results
// are value types as bytes of the binary format, of functions only.
type Import struct {
	Module, Name    string
	Kind            Kind
	Params, Results string
}

// Module is a rewritten module.
type Module struct {
	// Wasm is the module. It imports refuel, (i64) -> (i64), and exports the
	// i64 global FuelGlobal.
	Wasm []byte
	// Globals are the mutable globals of the original that are numbers.
	// Together with the memory they are the whole state of an instance if
	// Resettable.
	Globals []Global
	// Memory is what the memory may grow from and to, in pages. Both are zero
	// without one.
	MemoryMin, MemoryMax uint32
	// TableMax is how many elements all tables may grow to.
	TableMax uint32
	// WritesTables, DropsSegments and OpaqueGlobals say that instances change
	// their tables, forget segments, or have mutable globals that are vectors
	// or references, which a host cannot read and set.
	WritesTables, DropsSegments, OpaqueGlobals bool
	// ReadsSegments says that instances copy data segments at run time.
	ReadsSegments bool
}

// Resettable tells whether an instance can be put back to an earlier state by
// its memory and Globals alone. If not, every call needs a new instance.
func (m *Module) Resettable() bool { return !m.WritesTables && !m.DropsSegments && !m.OpaqueGlobals }

// Global is a mutable global under the name it is exported by.
type Global struct {
	Index uint32
	Name  string
	Type  byte // i32, i64, f32 or f64 as a value type of the binary format
}

// rewriter is the work on one module.
type rewriter struct {
	wasm []byte
	m    *module
	ops  *opTable
	out  *Module
	plan planner
	debt debtor
	in   instr

	replan       func(*rewriter, *body)
	most         int    // bytes of code
	fuel, refuel uint32 // indices
	helpers      []helper
	helperIndex  map[helperKey]uint32
}

// Rewrite returns the module with metering, bounds and exports of its mutable
// state, or a [fault.Invalid] error that says why it is refused. The same
// input gives the same bytes. The input is not changed and not kept.
func Rewrite(wasm []byte, opts Options) (*Module, error) {
	o := opts.resolved()
	if len(wasm) > o.MaxModule {
		return nil, refuse("has %d bytes, at most %d are allowed", len(wasm), o.MaxModule)
	}
	ops := newOpTable()
	m, err := decode(wasm, ops)
	if err != nil {
		return nil, refuse("%w", err)
	}
	if err := m.check(o); err != nil {
		return nil, err
	}
	m.bound(o)
	w := &rewriter{wasm: wasm, m: m, ops: ops, out: m.outline(), replan: o.replan, helperIndex: map[helperKey]uint32{},
		most: maxGrowth * o.MaxModule,
		fuel: uint32(len(m.globals)), refuel: uint32(m.importedFuncs)}
	codes, err := w.functions()
	if err != nil {
		return nil, err
	}
	w.out.Wasm = w.encode(codes)
	return w.out, nil
}

// functions rewrites the code section.
func (w *rewriter) functions() ([]byte, error) {
	w.helper(helperKey{})
	codes := make([]byte, 0, 2*len(w.wasm))
	var one []byte
	for i := range w.m.codes {
		f := &w.m.codes[i]
		if err := w.scan(f); err != nil {
			return nil, refuse("function %d: %w", w.m.importedFuncs+i, err)
		}
		if w.replan != nil {
			w.replan(w, f)
		}
		one = w.emit(one[:0], f)
		codes = appendSized(codes, one)
		if len(codes) > w.most {
			return nil, refuse("has more than %d bytes of code with its charges", w.most)
		}
		if len(w.helpers) > maxHelpers {
			return nil, refuse("uses more than %d different bulk operations", maxHelpers)
		}
	}
	return codes, nil
}

// bound gives the memory and the tables a maximum. Tables share what their
// minima leave of the limit.
func (m *module) bound(o Options) {
	for i := range m.memories[m.importedMemories:] {
		m.memories[m.importedMemories+i].limit(o.MaxMemory)
	}
	tables := m.tables[m.importedTables:]
	left := o.MaxTable
	for _, t := range tables {
		left -= t.min
	}
	for i := range tables {
		tables[i].limit(tables[i].min + left/uint32(len(tables)))
	}
}

func (l *limits) limit(most uint32) {
	if !l.bounded || l.max > most {
		l.bounded, l.max = true, most
	}
}

func (m *module) outline() *Module {
	out := new(Module)
	out.Globals, out.OpaqueGlobals = m.mutableGlobals()
	if len(m.memories) > 0 {
		out.MemoryMin, out.MemoryMax = m.memories[0].min, m.memories[0].max
	}
	for _, t := range m.tables[m.importedTables:] {
		out.TableMax += t.max
	}
	return out
}
