package plugintest

import (
	"weir/abi"
)

const (
	requestAt = 0x10000 // where a hand-written guest takes requests
	replyAt   = 0x1000  // where its fixed replies begin
)

// Guest is a hand-written plugin. It answers describe and configure properly
// and takes requests of up to 448 KiB; what else it does is up to the test.
// Its index space is open: imports must be added before the first hook.
type Guest struct {
	Asm
	Description abi.Description // Kind is found by the hooks, ABI, Name and Version have defaults
	Settings    abi.ConfigureReply
	Pages       int // of memory to begin with; default 8

	extism *extismImports // of a guest of the Extism carrier

	omit  map[string]bool
	hooks map[string]func() uint32
	order []string
	next  int // where the next fixed reply goes
}

// NewGuest returns a guest without a check.
func NewGuest() *Guest {
	return &Guest{omit: map[string]bool{}, hooks: map[string]func() uint32{}, next: replyAt}
}

// Answer makes a hook answer the same reply for every request.
func (g *Guest) Answer(hook abi.Hook, reply string) *Guest { return g.Hook(hook, g.Reply(reply)) }

// Reply stores a text in the guest and returns code that answers it.
func (g *Guest) Reply(text string) []byte {
	at := g.next
	g.next += len(text)
	g.Data(at, []byte(text))
	return I64(int64(at)<<32 | int64(len(text)))
}

// Hook makes a hook run code that leaves the i64 that it answers. Locals 0 and
// 1 are the request's place and length, two more are free.
func (g *Guest) Hook(hook abi.Hook, code ...[]byte) *Guest {
	return g.Replace(string(hook), "ii", "l", code...)
}

// Echo makes a hook answer its request.
func (g *Guest) Echo(hook abi.Hook) *Guest {
	return g.Hook(hook, Get(0), Op(OpExtend), I64(32), Op(OpI64Shl), Get(1), Op(OpExtend), Op(OpI64Or))
}

// Replace makes an export of any name run code.
func (g *Guest) Replace(name, params, results string, code ...[]byte) *Guest {
	if _, ok := g.hooks[name]; !ok {
		g.order = append(g.order, name)
	}
	g.hooks[name] = func() uint32 { return g.Func(params, results, 2, code...) }
	return g
}

// Omit leaves an export out.
func (g *Guest) Omit(name string) *Guest {
	g.omit[name] = true
	return g
}

// Build returns the module. It may be called once.
func (g *Guest) Build() []byte {
	g.fill()
	if g.Pages == 0 {
		g.Pages = 8
	}
	if len(g.memory) == 0 {
		g.Memory(g.Pages, -1)
	}
	if !g.omit[abi.ExportMemory] {
		g.Export(abi.ExportMemory, KindMemory, 0)
	}
	for _, name := range g.order {
		if !g.omit[name] {
			g.Export(name, KindFunc, g.carried(name, g.hooks[name]()))
		}
	}
	return g.Bytes()
}

// fill gives the guest what the test has not given it.
func (g *Guest) fill() {
	d := &g.Description
	if d.Name == "" {
		d.Name, d.Version, d.ABI = "by-hand", "1.0.0", abi.Version
	}
	if d.Kind == "" {
		d.Kind = abi.KindGuardrail
		if _, ok := g.hooks[string(abi.HookStep)]; ok {
			d.Kind = abi.KindWorkflow
		}
	}
	if _, ok := g.hooks[string(abi.HookDescribe)]; !ok {
		g.Answer(abi.HookDescribe, string(d.AppendJSON(nil)))
	}
	if _, ok := g.hooks[string(abi.HookConfigure)]; !ok {
		g.Answer(abi.HookConfigure, string(g.Settings.AppendJSON(nil)))
	}
	if g.extism != nil {
		return
	}
	if _, ok := g.hooks[abi.ExportMarker]; !ok {
		g.Replace(abi.ExportMarker, "", "")
	}
	if _, ok := g.hooks[abi.ExportAlloc]; !ok {
		g.Replace(abi.ExportAlloc, "i", "i", I32(requestAt))
	}
}
