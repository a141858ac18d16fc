package plugin

import (
	"encoding/binary"
	"strings"

	"weir/abi"
)

// Carriers of the ABI.
const (
	CarrierDirect = "direct" // on wazero itself
	CarrierExtism = "extism" // by the Extism SDK
)

// extismHookType is the type of a hook of an Extism module; anything but zero
// is failure.
var extismHookType = signature{results: "\x7f"}

// kernelMemory is what the SDK's kernel begins with for each instance.
const kernelMemory = 16 * pageSize

// carrier tells by which carrier a module is to be run.
func (o *outline) carrier() string {
	for _, e := range o.imports {
		if e.module == abi.ImportExtism {
			return CarrierExtism
		}
	}
	return CarrierDirect
}

// checkExtism holds an Extism module against the ABI and the limits.
func (o *outline) checkExtism(limits Limits) error {
	for _, e := range o.imports {
		if err := o.checkExtismImport(e); err != nil {
			return err
		}
	}
	for _, check := range []func() error{o.checkTables, o.checkStart, o.checkExtismExports} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := o.checkMemory(limits.Memory); err != nil {
		return err
	}
	if size := uint64(o.memories[0].min)*pageSize + kernelMemory; size > uint64(limits.Memory) {
		return refuse("needs %d MiB of memory to begin with, 1 MiB of it for Extism's kernel, its limit is %d MiB",
			(size+1<<20-1)>>20, limits.Memory>>20)
	}
	return nil
}

func (o *outline) checkExtismImport(e importEntry) error {
	name := quote(e.module + "." + e.name)
	want, known := sdkSignature(e.module, e.name)
	if !known || e.kind != kindFunc {
		return refuse("imports %s: a module of the Extism carrier may import functions of %s that its kits use, and of %s, nothing else",
			name, abi.ImportExtism, abi.ImportWASI)
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

func (o *outline) checkExtismExports() error {
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
	rules := []exportRule{{"_initialize", noneType, false}}
	for _, h := range abi.Hooks() {
		rules = append(rules, exportRule{string(h), extismHookType, h == abi.HookDescribe})
	}
	return o.checkRules(byName, rules)
}

// sdkSignature returns the type of a function that an Extism module may import.
func sdkSignature(module, name string) (signature, bool) {
	if module == abi.ImportExtism {
		for _, f := range envFunctions() {
			if f.name == name {
				return f.typ, true
			}
		}
	}
	if module == abi.ImportWASI {
		return hostSignature(module, name)
	}
	return signature{}, false
}

// renameImports returns a module whose imported functions come from other
// modules. Imports that are no functions were refused before.
func renameImports(wasm []byte, names map[string]string) ([]byte, error) {
	o, err := parseModule(wasm)
	if err != nil {
		return nil, err
	}
	body := binary.AppendUvarint(nil, uint64(len(o.imports)))
	for _, e := range o.imports {
		module := e.module
		if other, ok := names[module]; ok {
			module = other
		}
		body = appendName(appendName(body, module), e.name)
		body = binary.AppendUvarint(append(body, kindFunc), uint64(e.typ))
	}
	renamed := append(make([]byte, 0, len(wasm)+len(body)), wasm[:8]...)
	for r := (&reader{data: wasm, at: 8}); !r.done(); {
		id := r.byte()
		section := r.bytes(r.u32())
		if id == sectionImport {
			section = body
		}
		renamed = append(binary.AppendUvarint(append(renamed, id), uint64(len(section))), section...)
	}
	return renamed, nil
}

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}
