//go:build baseline

package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"weir/abi"
	"weir/host/benchtest"
	. "weir/host/plugin/plugintest"
)

// The tests below run what FAULTS P1 to P15 are tried with on wazero as it
// comes, with the options that it has against each:
//
//	go test -tags baseline -run Baseline ./host/plugin
//
// They pass while the fault shows there, so each says what the package adds. One
// that fails tells that wazero has mended it.

// limited is wazero with its own deadline and memory limit.
func limited() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(1024)
}

// finite are the shapes without loops, made so that they end at last.
func finite() []shape {
	var some []shape
	for _, s := range shapes(28, 400) {
		if s.name == "straight line of memory.fill" || s.name == "call tree without loops" {
			some = append(some, s)
		}
	}
	return some
}

// P1: a guest without loops outlives its deadline. P2: while it runs, a
// collection waits for it and everybody for the collection.
func TestBaselineDeadlineAndStall(t *testing.T) {
	for _, s := range finite() {
		t.Run(s.name, func(t *testing.T) {
			p := newPlain(t, s.wasm(), limited(), wazero.NewModuleConfig())
			took := time.Duration(0)
			worst := stall(func() {
				took = elapsed(func() {
					ctx, cancel := context.WithTimeout(context.Background(), p1Limit)
					defer cancel()
					_, _ = p.call(ctx, abi.HookCheckInput, ordinary)
				})
			})
			t.Logf("P1: ended after %v, limit %v; P2: the ticker was late by %v", took, p1Limit, worst)
			if took <= 2*p1Limit {
				t.Errorf("P1: it ended in time, after %v", took)
			}
			if worst <= p2Stall {
				t.Errorf("P2: nobody stalled for more than %v", worst)
			}
		})
	}
}

// P3: a table grows past every limit.
func TestBaselineTableBomb(t *testing.T) {
	p := newPlain(t, tableBomb(), limited(), wazero.NewModuleConfig())
	grown := peakKiB(t, func() {
		if _, err := p.call(context.Background(), abi.HookCheckInput, poison); err != nil {
			t.Error(err)
		}
	})
	t.Logf("P3: %d MiB under a memory limit of 64 MiB", grown>>10)
	if grown < 100<<10 {
		t.Errorf("P3: it grew by %d KiB only", grown)
	}
}

// P4: wazero's own deadline costs a tight loop far more than three times.
func TestBaselineDeadlineIsDear(t *testing.T) {
	wasm := counting(3_000_000)
	time1 := func(config wazero.RuntimeConfig) time.Duration {
		p := newPlain(t, wasm, config, wazero.NewModuleConfig())
		return benchtest.Best(5, 0, func() time.Duration {
			return elapsed(func() { _, _ = p.call(context.Background(), abi.HookCheckInput, ordinary) })
		})
	}
	ratio := float64(time1(limited())) / float64(time1(wazero.NewRuntimeConfig()))
	t.Logf("P4: %.1f times", ratio)
	if ratio < 3 {
		t.Errorf("P4: only %.1f times", ratio)
	}
}

// P6: an instance that trapped is as it was left, and one that ran out of time
// is closed: either way the next caller pays for it.
func TestBaselinePoisonedInstance(t *testing.T) {
	g := NewGuest()
	global := g.Global() // traps when it is not zero: set by a poisoned call that traps
	ok := g.Reply(allow)
	wasm := g.Hook(abi.HookCheckInput, GlobalGet(global), If(Op(OpUnreachable)),
		onPoison(I32(1), GlobalSet(global), Op(OpUnreachable)), ok).Build()
	p := newPlain(t, wasm, limited(), wazero.NewModuleConfig())
	_, first := p.call(context.Background(), abi.HookCheckInput, ordinary)
	_, _ = p.call(context.Background(), abi.HookCheckInput, poison)
	_, after := p.call(context.Background(), abi.HookCheckInput, ordinary)
	if first != nil || after == nil {
		t.Errorf("P6: before %v, after the poison %v", first, after)
	}
	loop := newPlain(t, spinner(), limited(), wazero.NewModuleConfig())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, _ = loop.call(ctx, abi.HookCheckInput, poison)
	if _, err := loop.call(context.Background(), abi.HookCheckInput, ordinary); err == nil {
		t.Error("P6: an instance that was stopped works")
	}
}

// Section 5 of the architecture: two calls on one instance see each other's
// memory.
func TestBaselineStateLeaks(t *testing.T) {
	p := newPlain(t, keeper(), limited(), wazero.NewModuleConfig())
	_, _ = p.call(context.Background(), abi.HookCheckInput, []byte(secretOf(1)))
	reply, err := p.call(context.Background(), abi.HookCheckInput, []byte(secretOf(2)))
	if err != nil || !strings.Contains(string(reply), secretOf(1)) {
		t.Errorf("the second call found %q, %v", reply, err)
	}
}

// P10: a guest that exits with the right number passes for a time-out.
// P12: one that exits with zero has an error without a failure in it.
func TestBaselineExitPassesForTimeout(t *testing.T) {
	for code, name := range map[int32]string{-268435457: "P10: a time-out", 0: "P12: success"} {
		h := hostile{guest: exit(code)}
		p := newPlain(t, h.build(), limited(), wazero.NewModuleConfig())
		_, err := p.call(context.Background(), abi.HookCheckInput, poison)
		var e *sys.ExitError
		if !errors.As(err, &e) || code != 0 && e.ExitCode() != sys.ExitCodeDeadlineExceeded || code == 0 && e.ExitCode() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// P11: the memory limit is that of a runtime, so one plugin's holds for all.
func TestBaselineLimitIsShared(t *testing.T) {
	p := newPlain(t, memoryBomb(), limited(), wazero.NewModuleConfig())
	if _, err := p.call(context.Background(), abi.HookCheckInput, poison); err != nil {
		t.Fatal(err)
	}
	if size := p.module.Memory().Size(); size != 64<<20 {
		t.Errorf("P11: the instance has %d bytes", size)
	}
}

// P12: a reply outside of the memory is an empty one to whoever does not look.
func TestBaselineReplyOutOfRange(t *testing.T) {
	h := hostile{guest: func(*Guest) []byte { return packed(0xfffffff0, 8) }}
	p := newPlain(t, h.build(), limited(), wazero.NewModuleConfig())
	if reply, err := p.call(context.Background(), abi.HookCheckInput, poison); err != nil || len(reply) != 0 {
		t.Errorf("P12: %q, %v", reply, err)
	}
}

// P13: what a guest prints is all kept, if anything is.
func TestBaselinePrintBomb(t *testing.T) {
	g := NewGuest()
	write := g.Import(abi.ImportWASI, "fd_write", "iiii", "i")
	g.Data(64, []byte{0, 0, 2, 0, 0, 0, 1, 0}) // iovec: 64 KiB at 0x20000
	ok := g.Reply(allow)
	wasm := g.Hook(abi.HookCheckInput, Loop(I32(1), I32(64), I32(1), I32(72), Call(write), Op(OpDrop),
		Get(2), I32(1), Op(OpI32Add), Op(0x22, 2), I32(2000), Op(0x49, 0x0d, 0)), ok).Build()
	var out bytes.Buffer
	p := newPlain(t, wasm, limited(), wazero.NewModuleConfig().WithStdout(&out))
	_, err := p.call(context.Background(), abi.HookCheckInput, ordinary)
	if out.Len() != 2000*64<<10 {
		t.Errorf("P13: %d bytes, %v", out.Len(), err)
	}
}

// P15: a corrupt cache decides that a good module is bad.
func TestBaselineCorruptCache(t *testing.T) {
	dir := t.TempDir()
	compile := func() error {
		ctx := context.Background()
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close(ctx)
		r := wazero.NewRuntimeWithConfig(ctx, limited().WithCompilationCache(cache))
		defer r.Close(ctx)
		_, err = r.CompileModule(ctx, checker().Build())
		return err
	}
	if err := compile(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, b[:len(b)/2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := compile(); len(files) == 0 || err == nil {
		t.Error("P15: wazero compiles with a corrupt cache")
	}
}
