package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// A running call counts with its plugin's limit, so another plugin waits, up
// to its own time; idle instances make room.
func TestTotalMemory(t *testing.T) {
	begun := make(chan struct{})
	logger := onLineLogger(func() { close(begun) })
	r := newRuntimeWith(t, plugin.RuntimeOptions{TotalMemory: 16 << 20, Logger: logger})
	loadIn := func(name string, wasm []byte, memory int) (*plugin.Plugin, error) {
		return r.Load(context.Background(), plugin.Spec{Name: name, Wasm: wasm, Log: true,
			Limits: plugin.Limits{Memory: memory, Timeout: 20 * time.Millisecond, TimeoutPerKiB: 1}})
	}
	if _, err := loadIn("large", checker().Build(), 17<<20); fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), "above what all plugins may have together, 16 MiB") {
		t.Errorf("larger than everything: %v", err)
	}
	var all []*plugin.Plugin
	for n := range 40 { // their idle instances alone are more than the total
		p, err := loadIn(fmt.Sprint("p", n), checker().Build(), 8<<20)
		if err != nil {
			t.Fatal(n, err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
			t.Fatal(err)
		}
	}
	if held := plugin.MemoryHeld(r); held > 16<<20 {
		t.Errorf("%d bytes are held", held)
	}
	spin, err := r.Load(context.Background(), plugin.Spec{Name: "spin", Wasm: spinner(), Log: true,
		Limits: plugin.Limits{Memory: 16 << 20, Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	hold, free := context.WithCancel(context.Background())
	held := make(chan error)
	go func() {
		_, _, err := spin.Call(hold, abi.HookCheckInput, poison)
		held <- err
	}()
	<-begun
	if _, _, err := all[0].Call(context.Background(), abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("while another has all memory: %v", err)
	}
	free()
	<-held
	if _, _, err := all[0].Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
		t.Error(err)
	}
	for _, p := range append(all, spin) {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if held := plugin.MemoryHeld(r); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
}

// No more instances run at once than the limit says, whatever comes.
func TestInstancesAreBounded(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: counting(100_000), Limits: plugin.Limits{Instances: 3, Timeout: time.Minute}})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 20 {
				if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := plugin.Idle(p); n < 1 || n > 3 {
		t.Errorf("%d instances", n)
	}
}

// held is what a process holds of everything that could leak.
type held struct{ heap, goroutines, mappings, files int }

func holding(t *testing.T) held {
	t.Helper()
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h := held{heap: int(m.HeapAlloc), goroutines: runtime.NumGoroutine()}
	if text, err := os.ReadFile("/proc/self/maps"); err == nil {
		h.mappings = bytes.Count(text, []byte("\n"))
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		h.files = len(files)
	}
	return h
}

func (h held) flat(t *testing.T, before held) {
	t.Helper()
	if h.heap > before.heap+before.heap/20+1<<20 || h.goroutines > before.goroutines+2 ||
		h.mappings > before.mappings+before.mappings/10+20 || h.files > before.files+2 {
		t.Errorf("half-way %+v, at the end %+v", before, h)
	}
}

// FAULTS P5: reloads, with failures among them, leave nothing: neither modules
// nor images, mappings, files or goroutines.
func TestReloadsAreFlat(t *testing.T) {
	r := newRuntimeWith(t, plugin.RuntimeOptions{})
	reloads := 200
	if soak(t, 1) > 1 {
		reloads = 2000
	}
	var half held
	for n := range reloads {
		if n == reloads/2 {
			half = holding(t)
		}
		config := abi.Raw(fmt.Sprintf(`{"n":%d}`, n))
		g := checker()
		g.Data(0x40000, []byte(fmt.Sprint("another module ", n)))
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: g.Build(), Config: config})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
			t.Fatal(err)
		}
		bad := checker()
		bad.Data(0x40000, []byte(fmt.Sprint("a bad one ", n)))
		switch n % 3 {
		case 0:
			bad.Hook(abi.HookDescribe, Op(OpUnreachable))
		case 1:
			bad.Hook(abi.HookConfigure, Loop(Br(0)), Op(OpUnreachable))
		case 2:
			bad.Data(0x7fffff00, []byte("outside of the memory"))
		}
		if _, err := r.Load(context.Background(), plugin.Spec{Name: "y", Wasm: bad.Build(),
			Limits: plugin.Limits{Setup: time.Millisecond}}); err == nil {
			t.Fatal("loaded")
		}
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	holding(t).flat(t, half)
	if plugin.Loaded(r) != 0 || plugin.Codes(r) != 0 || plugin.Images(r) != 0 || plugin.MemoryHeld(r) != 0 {
		t.Errorf("%d plugins, %d modules, %d images and %d bytes are left",
			plugin.Loaded(r), plugin.Codes(r), plugin.Images(r), plugin.MemoryHeld(r))
	}
}

// The host's stack of a call that went deep is not kept with its instance.
func TestDeepStacksAreGivenBack(t *testing.T) {
	g := NewGuest()
	ok := g.Reply(allow)
	f := g.Func("i", "", 0, Get(0), If(Get(0), I32(-1), Op(OpI32Add), Call(0)))
	wasm := g.Hook(abi.HookCheckInput, onPoison(I32(500_000), Call(f)), ok).Build()
	p := load(t, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Instances: 4, Timeout: time.Minute}})
	before := holding(t)
	for range 3 {
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, poison); err != nil {
			t.Fatal(err)
		}
	}
	if plugin.Idle(p) != 1 || plugin.Discarded(p) != 0 {
		t.Errorf("%d idle, %d discarded", plugin.Idle(p), plugin.Discarded(p))
	}
	if more := holding(t).heap - before.heap; more > 1<<20 {
		t.Errorf("%d bytes are kept", more)
	}
}

// FAULTS P5: calls, of which some fail, time out or are cancelled.
func TestCallsAreFlat(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: spinner(), Limits: plugin.Limits{Instances: 2, Timeout: time.Millisecond}})
	calls := soak(t, 10_000)
	var half held
	for n := range calls {
		if n == calls/2 {
			half = holding(t)
		}
		request, ctx, cancel := ordinary, context.Background(), context.CancelFunc(func() {})
		switch n % 100 {
		case 33:
			request = poison
		case 66:
			ctx, cancel = context.WithCancel(ctx)
			cancel()
		}
		_, _, err := p.Call(ctx, abi.HookCheckInput, request)
		cancel()
		if (n%100 == 33 || n%100 == 66) != (err != nil) {
			t.Fatal(n, err)
		}
	}
	holding(t).flat(t, half)
}
