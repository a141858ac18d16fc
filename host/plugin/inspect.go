package plugin

import (
	"fmt"
	"strconv"
	"strings"

	"weir/abi"
	"weir/host/fault"
)

const (
	// maxModule bounds the file: the largest Go guests have a few megabytes.
	maxModule = 64 << 20
	// maxTable bounds the elements of all tables together (8 bytes each); a
	// large Go guest has some 20,000.
	maxTable = 1 << 17
	// maxTables bounds how many tables there are.
	maxTables = 16

	pageSize = 64 << 10
)

var (
	allocType = signature{"\x7f", "\x7f"}
	hookType  = signature{"\x7f\x7f", "\x7e"}
	noneType  = signature{}
)

// inspect reads a module and holds it against the ABI and the limits. Its
// errors name what was expected and never depend on running the module.
func inspect(wasm []byte, limits Limits) (*outline, error) {
	if len(wasm) > maxModule {
		return nil, refuse("has %d bytes, at most %d are allowed", len(wasm), maxModule)
	}
	o, err := parseModule(wasm)
	if err != nil {
		return nil, refuse("%w", err)
	}
	if o.carrier() == CarrierExtism {
		return o, o.checkExtism(limits)
	}
	for _, check := range []func() error{o.checkImports, o.checkTables, o.checkStart, o.checkExports} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return o, o.checkMemory(limits.Memory)
}

func refuse(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

func (o *outline) checkImports() error {
	for _, e := range o.imports {
		if err := o.checkImport(e); err != nil {
			return err
		}
	}
	return nil
}

func (o *outline) checkImport(e importEntry) error {
	name := quote(e.module + "." + e.name)
	if strings.HasPrefix(e.name, abi.ReservedPrefix) || strings.HasPrefix(e.module, abi.ReservedPrefix) ||
		e.module == abi.ImportModule && e.name == abi.ReservedRefuel {
		return refuse("imports %s, a name that is reserved for the host", name)
	}
	want, known := hostSignature(e.module, e.name)
	if !known || e.kind != kindFunc {
		return refuse("imports %s: a module may import %s.%s and functions of %s, nothing else",
			name, abi.ImportModule, abi.ImportLog, abi.ImportWASI)
	}
	got, ok := o.signature(e.typ)
	if !ok {
		return refuse("import %s has a type that does not exist", name)
	}
	if got != want {
		return refuse("imports %s as %v, expected %v", name, got, want)
	}
	return nil
}

func (o *outline) checkTables() error {
	if len(o.tables) > maxTables {
		return refuse("has %d tables, at most %d are allowed", len(o.tables), maxTables)
	}
	total := uint64(0)
	for _, t := range o.tables {
		total += uint64(t.min)
	}
	if total > maxTable {
		return refuse("has tables of %d elements, at most %d are allowed", total, maxTable)
	}
	return nil
}

func (o *outline) checkStart() error {
	if o.start {
		return refuse("has a start function; initialisation belongs into the export _initialize")
	}
	return nil
}

func (o *outline) checkMemory(limit int) error {
	if len(o.memories) != 1 {
		return refuse("has %d memories, expected exactly one", len(o.memories))
	}
	if size := uint64(o.memories[0].min) * pageSize; size > uint64(limit) {
		return refuse("needs %d MiB of memory to begin with, its limit is %d MiB", (size+1<<20-1)>>20, limit>>20)
	}
	return nil
}

func (o *outline) checkExports() error {
	byName := make(map[string]exportEntry, len(o.exports))
	for _, e := range o.exports {
		if strings.HasPrefix(e.name, abi.ReservedPrefix) {
			return refuse("exports %s, a name that is reserved for the host", quote(e.name))
		}
		if _, twice := byName[e.name]; twice {
			return refuse("exports %s twice", quote(e.name))
		}
		byName[e.name] = e
	}
	names := make([]string, len(o.exports))
	for i, e := range o.exports {
		names[i] = e.name
	}
	if _, err := abi.VersionOf(names); err != nil {
		return refuse("%w", err)
	}
	if _, ok := byName["_start"]; ok {
		return refuse("exports _start: it was built as a command, expected a library (Go: -buildmode=c-shared)")
	}
	if e, ok := byName[abi.ExportMemory]; !ok || e.kind != kindMemory || e.index != 0 {
		return refuse("does not export its memory as %q", abi.ExportMemory)
	}
	return o.checkFunctions(byName)
}

// exportRule is what an export must be.
type exportRule struct {
	name     string
	want     signature
	required bool
}

func (o *outline) checkFunctions(exports map[string]exportEntry) error {
	rules := []exportRule{
		{abi.ExportMarker, noneType, true},
		{abi.ExportAlloc, allocType, true},
		{"_initialize", noneType, false},
	}
	for _, h := range abi.Hooks() {
		rules = append(rules, exportRule{string(h), hookType, h == abi.HookDescribe})
	}
	return o.checkRules(exports, rules)
}

func (o *outline) checkRules(exports map[string]exportEntry, rules []exportRule) error {
	for _, r := range rules {
		e, ok := exports[r.name]
		if !ok && r.required {
			return refuse("does not export %s %v", r.name, r.want)
		}
		if !ok {
			continue
		}
		got, isFunc := o.function(e.index)
		if e.kind != kindFunc || !isFunc {
			return refuse("exports %s as something that is not a function, expected %v", r.name, r.want)
		}
		if got != r.want {
			return refuse("exports %s as %v, expected %v", r.name, got, r.want)
		}
	}
	return nil
}

// hooks lists the hooks that a module with a valid outline exports.
func (o *outline) hooks() map[abi.Hook]bool {
	found := make(map[abi.Hook]bool)
	for _, h := range abi.Hooks() {
		for _, e := range o.exports {
			if e.name == string(h) {
				found[h] = true
			}
		}
	}
	return found
}

// exportsInit tells whether there is something to initialise.
func (o *outline) exportsInit() bool {
	for _, e := range o.exports {
		if e.name == "_initialize" {
			return true
		}
	}
	return false
}

// quote shows text of a guest: capped, and never more than one line.
func quote(text string) string {
	const limit = 160
	if len(text) > limit {
		return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(strings.ToValidUTF8(text[:limit], "")), len(text))
	}
	return strconv.Quote(text)
}
