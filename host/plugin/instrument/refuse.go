package instrument

import (
	"fmt"
	"strconv"
	"strings"

	"weir/abi"
	"weir/host/fault"
)

// What no module needs and what the decoder would pay for. Engines have limits
// of their own, some of them lower.
const (
	maxTypes    = 1 << 16
	maxImports  = 1 << 12
	maxFuncs    = 1 << 18
	maxParams   = 1000 // and results
	maxLocals   = 50_000
	maxTables   = 16
	maxGlobals  = 1 << 14
	maxExports  = 1 << 16
	maxElements = 1 << 16
	maxEntries  = 1 << 20 // in all element segments
	maxSegments = 1 << 20
	maxLabels   = 1 << 20 // of one br_table
	maxNesting  = 1 << 16
	maxHelpers  = 1 << 12
	maxGrowth   = 4 // code that is mostly calls becomes ten times as long

	pageSize = 64 << 10
)

func refuse(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// check refuses what is valid WebAssembly and not allowed here.
func (m *module) check(o Options) error {
	if m.start {
		return refuse("has a start function; initialisation belongs into the export _initialize")
	}
	for _, e := range m.imports {
		if err := m.checkImport(e, o); err != nil {
			return err
		}
	}
	for _, e := range m.exports {
		if strings.HasPrefix(e.name, abi.ReservedPrefix) {
			return refuse("exports %s, a name that is reserved for the host", quote(e.name))
		}
	}
	if err := m.checkMemory(o); err != nil {
		return err
	}
	return m.checkTables(o)
}

func (m *module) checkImport(e importEntry, o Options) error {
	name := quote(e.module + "." + e.name)
	if strings.HasPrefix(e.module, abi.ReservedPrefix) || strings.HasPrefix(e.name, abi.ReservedPrefix) ||
		e.module == RefuelModule && e.name == RefuelName {
		return refuse("imports %s, a name that is reserved for the host", name)
	}
	if e.kind != KindFunc && !o.linked {
		return refuse("imports the %v %s, expected functions only", e.kind, name)
	}
	i := Import{Module: e.module, Name: e.name, Kind: e.kind}
	if e.kind == KindFunc {
		t := m.types[e.typ]
		i.Params, i.Results = t.params, t.results
	}
	if o.Allow == nil {
		return refuse("imports %s, expected no imports", name)
	}
	if err := o.Allow(i); err != nil {
		return refuse("imports %s: %w", name, err)
	}
	return nil
}

func (m *module) checkMemory(o Options) error {
	for _, l := range m.memories[m.importedMemories:] {
		if l.min > o.MaxMemory {
			return refuse("needs %d pages of memory to begin with, at most %d are allowed", l.min, o.MaxMemory)
		}
	}
	return nil
}

func (m *module) checkTables(o Options) error {
	total := uint64(0)
	for _, t := range m.tables[m.importedTables:] {
		total += uint64(t.min)
	}
	if total > uint64(o.MaxTable) {
		return refuse("has tables of %d elements, at most %d are allowed", total, o.MaxTable)
	}
	return nil
}

// quote shows text of a module: capped, and never more than one line.
func quote(text string) string {
	const limit = 160
	if len(text) > limit {
		return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(strings.ToValidUTF8(text[:limit], "")), len(text))
	}
	return strconv.Quote(text)
}
