package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

const allow = `{"verdict":"allow"}`

// ordinary is a request that every guest below answers; poison is longer by a
// known length and sets off what the guest has in mind.
var (
	ordinary = (&abi.CheckInputRequest{Call: abi.Call{Now: 1, Seed: "7"}, Text: "hello"}).AppendJSON(nil)
	poison   = (&abi.CheckInputRequest{Call: abi.Call{Now: 1, Seed: "7"}, Text: strings.Repeat("poison", 20)}).AppendJSON(nil)
)

// hostile is one way to misbehave in check_input.
type hostile struct {
	name   string
	code   string
	text   string // part of the error
	limits plugin.Limits
	guest  func(g *Guest) []byte // the poisoned code, leaving an i64 or never returning
}

func packed(ptr, size uint32) []byte { return I64(int64(uint64(ptr)<<32 | uint64(size))) }

func hostiles() []hostile {
	fast := plugin.Limits{Timeout: 30 * time.Millisecond}
	return []hostile{
		{name: "loop", code: plugin.CodeTimeout, text: "no reply within its time limit", limits: fast,
			guest: func(*Guest) []byte { return append(Loop(Br(0)), OpUnreachable) }},
		{name: "unreachable", code: plugin.CodeTrap, text: "trap: unreachable",
			guest: func(*Guest) []byte { return Op(OpUnreachable) }},
		{name: "recursion", code: plugin.CodeTrap, text: "trap: stack overflow", limits: plugin.Limits{Timeout: time.Minute},
			guest: func(g *Guest) []byte {
				self := g.Func("", "l", 0, Call(1), I64(1), Op(OpI64Add)) // index 1: proc_exit is 0
				return Call(self)
			}},
		{name: "exit 0", code: plugin.CodeExit, text: "proc_exit(0)", guest: exit(0)},
		{name: "exit 1", code: plugin.CodeExit, text: "proc_exit(1)", guest: exit(1)},
		// The numbers by which wazero tells a deadline and a cancellation.
		{name: "exit as deadline", code: plugin.CodeExit, text: "proc_exit(4026531839)", guest: exit(-268435457)},
		{name: "exit as cancellation", code: plugin.CodeExit, text: "proc_exit(4294967295)", guest: exit(-1)},
		{name: "reply out of range", code: plugin.CodeBadReply, text: "outside of its memory",
			guest: func(*Guest) []byte { return packed(0xfffffff0, 8) }},
		{name: "reply over the end", code: plugin.CodeBadReply, text: "outside of its memory",
			guest: func(*Guest) []byte { return packed(8*65536-4, 8) }},
		{name: "reply wraps", code: plugin.CodeBadReply, text: "outside of its memory",
			guest: func(*Guest) []byte { return packed(16, 0xffffffff) }},
		{name: "empty reply", code: plugin.CodeBadReply, text: "empty reply",
			guest: func(*Guest) []byte { return packed(4096, 0) }},
		{name: "nothing", code: plugin.CodeBadReply, text: "empty reply", guest: func(*Guest) []byte { return I64(0) }},
		{name: "reply too large", code: plugin.CodeTooLarge, text: "reply of 5000 bytes, at most 4096", limits: plugin.Limits{Reply: 4096},
			guest: func(*Guest) []byte { return packed(0, 5000) }},
		{name: "no JSON", code: plugin.CodeBadReply, text: "reply:", guest: answer("allow")},
		{name: "cut JSON", code: plugin.CodeBadReply, text: "reply:", guest: answer(`{"verdict":"all`)},
		{name: "two values", code: plugin.CodeBadReply, text: "reply:", guest: answer(allow + allow)},
		{name: "wrong case", code: plugin.CodeBadReply, text: "reply:", guest: answer(`{"Verdict":"allow"}`)},
		{name: "twice", code: plugin.CodeBadReply, text: "reply:", guest: answer(`{"verdict":"block","verdict":"allow"}`)},
		{name: "unknown verdict", code: plugin.CodeBadReply, text: "reply:", guest: answer(`{"verdict":"alow"}`)},
		{name: "unknown member", code: plugin.CodeBadReply, text: "reply:", guest: answer(`{"verdict":"allow","code":0}`)},
		{name: "another hook's reply", code: plugin.CodeBadReply, text: "reply:", guest: answer(`{"verdict":"require_approval"}`)},
		{name: "zeros", code: plugin.CodeBadReply, text: "reply:", guest: func(*Guest) []byte { return packed(0x20000, 64) }},
		{name: "memory bomb", code: plugin.CodeMemory, text: "out of memory: the limit is 4 MiB", limits: plugin.Limits{Memory: 4 << 20},
			guest: func(*Guest) []byte {
				grow := Loop(I32(1), MemoryGrow, I32(-1), Op(OpI32Eq), Op(0x45), Op(0x0d, 0)) // br_if 0 while not -1
				return append(grow, OpUnreachable)
			}},
		{name: "memory at once", code: plugin.CodeMemory, text: "out of memory", limits: plugin.Limits{Memory: 4 << 20},
			guest: func(*Guest) []byte { return append(append(I32(1000), MemoryGrow...), OpDrop, OpUnreachable) }},
	}
}

func exit(code int32) func(*Guest) []byte {
	return func(*Guest) []byte { return append(append(I32(code), Call(0)...), OpUnreachable) }
}

func answer(text string) func(*Guest) []byte { return func(g *Guest) []byte { return g.Reply(text) } }

// build makes a guest that misbehaves on a poisoned request only.
func (h hostile) build() []byte {
	g := NewGuest()
	g.Import(abi.ImportWASI, "proc_exit", "i", "")
	bad := h.guest(g)
	good := g.Reply(allow)
	isPoison := [][]byte{Get(1), I32(int32(len(poison))), Op(OpI32Eq)}
	code := append(isPoison, Op(0x04, 0x7e), bad, Op(0x05), good, Op(0x0b)) // if (result i64) … else … end
	return g.Hook(abi.HookCheckInput, code...).Build()
}

// FAULTS P10, P12, P6: each outcome has its own code, three times in a row; no
// outcome passes for an answer; 1,000 calls after it succeed.
func TestHostileCalls(t *testing.T) {
	for _, h := range hostiles() {
		t.Run(h.name, func(t *testing.T) {
			h.limits.Instances = 1
			p := load(t, plugin.Spec{Name: "bad", Wasm: h.build(), Limits: h.limits})
			for range 3 {
				reply, _, err := p.Call(context.Background(), abi.HookCheckInput, poison)
				if fault.Of(err) != fault.Plugin || fault.CodeOf(err) != h.code {
					t.Fatalf("reply %q, error %v (code %q), want code %q", reply, err, fault.CodeOf(err), h.code)
				}
				if !strings.HasPrefix(err.Error(), "plugin bad: check_input: ") || !strings.Contains(err.Error(), h.text) {
					t.Fatalf("error text %q", err)
				}
			}
			for n := range 1000 {
				reply, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
				if err != nil || string(reply) != allow {
					t.Fatalf("call %d after it: %q, %v", n, reply, err)
				}
			}
		})
	}
}

func TestHostileAllocator(t *testing.T) {
	for _, c := range []struct {
		name, code, text string
		body             []byte
	}{
		{"out of range", plugin.CodeBadReply, "weir_alloc answered 4294967280", I32(-16)},
		{"over the end", plugin.CodeBadReply, "outside of its memory", I32(8*65536 - 2)},
		{"traps", plugin.CodeTrap, "weir_alloc: trap: unreachable", Op(OpUnreachable)},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := uint32(0) // the guest's first global counts: describe and configure may pass
			g := NewGuest().Answer(abi.HookCheckInput, allow)
			g.Global()
			g.Replace(abi.ExportAlloc, "i", "i",
				GlobalGet(calls), I32(2), Op(OpI32Eq), Op(0x04, 0x7f), c.body, Op(0x05),
				GlobalGet(calls), I32(1), Op(OpI32Add), GlobalSet(calls), I32(0x10000), Op(0x0b))
			p := load(t, plugin.Spec{Wasm: g.Build(), Limits: plugin.Limits{Instances: 1}})
			_, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary)
			if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v (code %q), want %q, %q", err, fault.CodeOf(err), c.code, c.text)
			}
		})
	}
}

// FAULTS P3: table.grow cannot take what no limit counts.
func TestTableBomb(t *testing.T) {
	g := NewGuest()
	g.Table(1, -1)
	ok := g.Reply(allow)
	grow := [][]byte{Op(0xd0, 0x70), I32(1 << 20), TableGrow, I32(-1), Op(OpI32Eq)} // ref.null func
	p := load(t, plugin.Spec{Wasm: g.Hook(abi.HookCheckInput,
		append(grow, Op(0x04, 0x7e), ok, Op(0x05), Op(OpUnreachable), Op(0x0b))...).Build()})
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
		t.Errorf("a table grew by a million elements: %v", err)
	}
}

// FAULTS P13: what a guest prints is counted, bounded, attributed and marked
// when cut.
func TestPrintBomb(t *testing.T) {
	const rounds, chunk = 2000, 64 << 10
	g := NewGuest()
	write := g.Import(abi.ImportWASI, "fd_write", "iiii", "i")
	g.Data(64, []byte{0, 0, 2, 0, 0, 0, 1, 0}) // iovec: 64 KiB at 0x20000
	g.Data(0x20000, bytes.Repeat([]byte("0123456789abcde\n"), chunk/16))
	code := [][]byte{
		Loop(I32(1), I32(64), I32(1), I32(72), Call(write), Op(OpDrop),
			Get(2), I32(1), Op(OpI32Add), Op(0x22, 2), I32(rounds), Op(0x49, 0x0d, 0)), // local.tee; i32.lt_u; br_if
		g.Reply(allow),
	}
	wasm := g.Hook(abi.HookCheckInput, code...).Build()
	for _, logs := range []bool{false, true} {
		t.Run(fmt.Sprint("log=", logs), func(t *testing.T) {
			out := new(lines)
			p, err := newRuntimeWith(t, plugin.RuntimeOptions{Logger: out.logger()}).Load(context.Background(),
				plugin.Spec{Name: "loud", Wasm: wasm, Log: logs, Limits: plugin.Limits{Timeout: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
				t.Fatal(err)
			}
			total, dropped := p.Printed()
			if total != rounds*chunk || dropped < total-32<<10 {
				t.Errorf("printed %d, dropped %d", total, dropped)
			}
			text := out.String()
			if len(text) > 256<<10 {
				t.Errorf("the log has %d bytes", len(text))
			}
			if logs != strings.Contains(text, `name=loud text=0123456789abcde`) || logs != strings.Contains(text, "bytes_dropped") {
				t.Errorf("the log begins %.300q", text)
			}
		})
	}
}

func TestPrintedLines(t *testing.T) {
	out := new(lines)
	p, err := newRuntimeWith(t, plugin.RuntimeOptions{CacheDir: CacheDir(t), Logger: out.logger()}).Load(context.Background(),
		plugin.Spec{Name: "loud", Wasm: Build(t, "host/plugin/testdata/probe"), Log: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, "print"); err != nil {
		t.Fatal(err)
	}
	_, err = probe(t, p, abi.Call{Now: 1, Seed: "1"}, "error")
	if err == nil || !strings.Contains(err.Error(), `it printed "check_input: the handler's own words"`) {
		t.Errorf("error %v", err)
	}
	want := `level=INFO msg=plugin name=loud text="one line"
level=INFO msg=plugin name=loud text=` + strings.Repeat("long", 256) + ` cut=true
level=INFO msg=plugin name=loud text="no end"
level=WARN msg=plugin name=loud text="a warning"
level=ERROR msg=plugin name=loud text="check_input: the handler's own words"
`
	if got := out.String(); got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
}
