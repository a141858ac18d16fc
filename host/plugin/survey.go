package plugin

import (
	"context"
	"fmt"

	"weir/abi"
	"weir/host/fault"
)

// Facts are what a module is without running it.
type Facts struct {
	Digest    string // SHA-256 in hex digits
	Size      int    // bytes of the file
	Carrier   string // by which it would be run, one of the Carrier constants
	ABI       int    // by the marker; 0: none, or more than one, or an Extism module, which has none
	Imports   []string
	Exports   []string
	Hooks     []abi.Hook
	MemoryMin int // bytes to begin with
	MemoryMax int // bytes that it declares as its most; 0: none
}

// Survey reads a module's outline. It says what is there and judges nothing but
// the binary format; whether a host would take the module is for Load to say.
func Survey(wasm []byte) (*Facts, error) {
	if len(wasm) > maxModule {
		return nil, refuse("has %d bytes, at most %d are allowed", len(wasm), maxModule)
	}
	o, err := parseModule(wasm)
	if err != nil {
		return nil, refuse("%w", err)
	}
	f := &Facts{Digest: digestOf(wasm), Size: len(wasm), Carrier: o.carrier()}
	for _, e := range o.imports {
		f.Imports = append(f.Imports, o.entry(e.module+"."+e.name, e.kind, e.typ))
	}
	names := make([]string, len(o.exports))
	hooks := o.hooks()
	for i, e := range o.exports {
		names[i] = e.name
		typ := uint32(0)
		if e.kind == kindFunc && int(e.index) < len(o.funcs) {
			typ = o.funcs[e.index]
		}
		f.Exports = append(f.Exports, o.entry(e.name, e.kind, typ))
	}
	if version, err := abi.VersionOf(names); err == nil {
		f.ABI = version
	}
	for _, h := range abi.Hooks() {
		if hooks[h] {
			f.Hooks = append(f.Hooks, h)
		}
	}
	if len(o.memories) > 0 {
		f.MemoryMin, f.MemoryMax = int(o.memories[0].min)*pageSize, int(o.memories[0].max)*pageSize
	}
	return f, nil
}

// entry is an import or export as people read it; names of a guest are capped.
func (o *outline) entry(name string, kind byte, typ uint32) string {
	name = quote(name)
	name = name[1 : len(name)-1]
	switch kind {
	case kindFunc:
		if s, ok := o.signature(typ); ok {
			return name + " " + s.String()
		}
	case kindTable:
		return name + " table"
	case kindMemory:
		return name + " memory"
	case kindGlobal:
		return name + " global"
	}
	return name
}

// Case runs one of the self-check cases of the description, as Load does where
// the caller has not left them to itself.
func (p *Plugin) Case(ctx context.Context, n int) error {
	cases := p.Description().Cases
	if n < 0 || n >= len(cases) {
		return fault.New(fault.Invalid, "plugin %s: expected a case from 0 to %d, got %d", p.name, len(cases)-1, n)
	}
	if err := p.runCase(ctx, &cases[n]); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("plugin %s: %w", p.name, context.Cause(ctx))
	}
	return nil
}
