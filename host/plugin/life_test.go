package plugin_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// spinner prints a line and then runs until it is stopped; an ordinary request
// it allows.
func spinner() []byte {
	g := NewGuest()
	log := g.Import("weir", "log", "iii", "")
	g.Data(64, []byte("begun"))
	ok := g.Reply(allow)
	return g.Hook(abi.HookCheckInput, Get(1), I32(int32(len(poison))), Op(OpI32Eq), Op(0x04, 0x7e),
		I32(0), I32(64), I32(5), Call(log), Loop(Br(0)), Op(OpUnreachable), Op(0x05), ok, Op(0x0b)).Build()
}

// onLine is a log that calls a function for each line.
type onLine struct {
	slog.Handler
	call func()
}

func (o onLine) Handle(context.Context, slog.Record) error { o.call(); return nil }
func (o onLine) WithAttrs([]slog.Attr) slog.Handler        { return o }

func onLineLogger(call func()) *slog.Logger {
	return slog.New(onLine{slog.NewTextHandler(nil, nil), call})
}

func spinning(t *testing.T, limits plugin.Limits, begun func()) *plugin.Plugin {
	t.Helper()
	logger := onLineLogger(begun)
	p, err := newRuntimeWith(t, plugin.RuntimeOptions{Logger: logger}).Load(context.Background(),
		plugin.Spec{Name: "spin", Wasm: spinner(), Log: true, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// FAULTS P10: cancelling works every time and is not a time-out; a caller's own
// deadline is a time-out.
func TestCancelled(t *testing.T) {
	var cancel context.CancelFunc
	p := spinning(t, plugin.Limits{Timeout: time.Minute, Instances: 1}, func() { cancel() })
	for range 3 {
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.Background())
		_, _, err := p.Call(ctx, abi.HookCheckInput, poison)
		if fault.Of(err) != fault.Plugin || fault.CodeOf(err) != plugin.CodeCancelled {
			t.Fatalf("error %v, code %q", err, fault.CodeOf(err))
		}
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
			t.Fatal(err)
		}
	}
	cancel = func() {}
	for range 3 {
		ctx, done := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_, _, err := p.Call(ctx, abi.HookCheckInput, poison)
		done()
		if fault.CodeOf(err) != plugin.CodeTimeout || !strings.Contains(err.Error(), "the caller's deadline") {
			t.Fatalf("error %v, code %q", err, fault.CodeOf(err))
		}
	}
	ctx, done := context.WithCancel(context.Background())
	done()
	if _, _, err := p.Call(ctx, abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeCancelled {
		t.Errorf("cancelled before the call: %v", err)
	}
}

// A full pool makes callers wait up to their deadline, and no longer.
func TestUnavailable(t *testing.T) {
	begun := make(chan struct{})
	p := spinning(t, plugin.Limits{Timeout: time.Minute, Instances: 1}, func() { close(begun) })
	hold, free := context.WithCancel(context.Background())
	held := make(chan error)
	go func() {
		_, _, err := p.Call(hold, abi.HookCheckInput, poison)
		held <- err
	}()
	<-begun
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_, _, err := p.Call(ctx, abi.HookCheckInput, ordinary)
		cancel()
		if fault.Of(err) != fault.Plugin || fault.CodeOf(err) != plugin.CodeUnavailable {
			t.Errorf("error %v, code %q", err, fault.CodeOf(err))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := p.Call(ctx, abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeCancelled {
		t.Errorf("cancelled while waiting: %v", err)
	}
	free()
	if err := <-held; fault.CodeOf(err) != plugin.CodeCancelled {
		t.Error(err)
	}
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
		t.Error(err)
	}
}

// How long a call waits is a limit of its own.
func TestWait(t *testing.T) {
	begun := make(chan struct{})
	p := spinning(t, plugin.Limits{Timeout: time.Minute, Wait: 20 * time.Millisecond, Instances: 1}, func() { close(begun) })
	hold, free := context.WithCancel(context.Background())
	held := make(chan error)
	go func() {
		_, _, err := p.Call(hold, abi.HookCheckInput, poison)
		held <- err
	}()
	<-begun
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("error %v, code %q", err, fault.CodeOf(err))
	}
	free()
	<-held
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
		t.Error(err)
	}
}

// FAULTS P9: closing waits for the call in flight and refuses the next one.
func TestCloseWaits(t *testing.T) {
	begun := make(chan struct{})
	p := spinning(t, plugin.Limits{Timeout: time.Minute}, func() { close(begun) })
	hold, free := context.WithCancel(context.Background())
	held := make(chan error)
	go func() {
		_, _, err := p.Call(hold, abi.HookCheckInput, poison)
		held <- err
	}()
	<-begun
	short, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("impatient"))
	if err := p.Close(short); err == nil || !strings.Contains(err.Error(), "calls are in flight: impatient") {
		t.Errorf("close: %v", err)
	}
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); fault.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("call after close: %v", err)
	}
	free()
	if err := <-held; fault.CodeOf(err) != plugin.CodeCancelled {
		t.Error(err)
	}
	for range 2 {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// FAULTS P8: 64 goroutines use one plugin, and load the same bytes at once.
func TestConcurrent(t *testing.T) {
	r := newRuntime(t)
	wasm := Build(t, "host/plugin/testdata/probe")
	var wg sync.WaitGroup
	plugins := make([]*plugin.Plugin, 4)
	for n := range plugins {
		wg.Go(func() {
			p, err := r.Load(context.Background(), plugin.Spec{Name: "p", Wasm: wasm, Limits: plugin.Limits{Timeout: time.Minute}})
			if err != nil {
				t.Error(err)
			}
			plugins[n] = p
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for n := range 64 {
		wg.Go(func() {
			p := plugins[n%len(plugins)]
			for k := range 20 {
				what := "time"
				if n%8 == 0 && k%10 == 5 {
					what = "panic"
				}
				v, _, err := p.CheckInput(context.Background(), &abi.CheckInputRequest{
					Call: abi.Call{Now: int64(n*100 + k), Seed: "1"}, Text: what})
				if (what == "panic") != (fault.CodeOf(err) == plugin.CodeTrap) {
					t.Errorf("%s: %+v, %v", what, v, err)
				}
			}
		})
	}
	wg.Wait()
}

// FAULTS P7: an instance that cannot be made closes nothing that others use.
func TestFailedInstanceIsAlone(t *testing.T) {
	r := newRuntime(t)
	good, err := r.Load(context.Background(), plugin.Spec{Name: "good", Wasm: checker().Build()})
	if err != nil {
		t.Fatal(err)
	}
	outside := checker()
	outside.Data(0x7fffff00, []byte("outside of the memory"))
	for name, c := range map[string]struct {
		wasm []byte
		code string
	}{
		"trap":      {checker().Replace("_initialize", "", "", Op(OpUnreachable)).Build(), plugin.CodeTrap},
		"loop":      {checker().Replace("_initialize", "", "", Loop(Br(0))).Build(), plugin.CodeTimeout},
		"data":      {outside.Build(), plugin.CodeTrap},
		"describe":  {checker().Hook(abi.HookDescribe, Op(OpUnreachable)).Build(), plugin.CodeTrap},
		"configure": {checker().Hook(abi.HookConfigure, Loop(Br(0)), Op(OpUnreachable)).Build(), plugin.CodeTimeout},
	} {
		for range 3 {
			_, err := r.Load(context.Background(), plugin.Spec{Name: name, Wasm: c.wasm, Limits: plugin.Limits{Setup: 20 * time.Millisecond}})
			if fault.Of(err) != fault.Plugin || fault.CodeOf(err) != c.code {
				t.Errorf("%s: %v (code %q), want %q", name, err, fault.CodeOf(err), c.code)
			}
			if _, _, err := good.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
				t.Fatalf("after %s: %v", name, err)
			}
		}
	}
}

// FAULTS P15: a corrupt cache costs time, not the start.
func TestCorruptCache(t *testing.T) {
	dir := t.TempDir()
	loadOnce := func() string {
		out := new(lines)
		r, err := plugin.NewRuntime(context.Background(), plugin.RuntimeOptions{CacheDir: dir, Logger: out.logger()})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(context.Background())
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: checker().Build()})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if text := loadOnce(); text != "" {
		t.Errorf("cold: %s", text)
	}
	if text := loadOnce(); text != "" {
		t.Errorf("warm: %s", text)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the cache holds %v, %v", files, err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { return []byte("x") },
		func(b []byte) []byte { b[len(b)/2] ^= 0xff; return b },
	} {
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if text := loadOnce(); !strings.Contains(text, "the compilation cache does not work") {
			t.Errorf("damaged: %q", text)
		}
	}
}

// A context that ends while the reply is read takes neither the reply nor the
// instance with it.
func TestContextEndsAfterTheReply(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: checker().Build(), Limits: plugin.Limits{Instances: 1}})
	ctx, cancel := context.WithCancel(context.Background())
	err := plugin.CallDecoding(p, ctx, abi.HookCheckInput, ordinary, func([]byte) error { cancel(); return nil })
	if err != nil {
		t.Errorf("a reply that had come is lost: %v", err)
	}
	if plugin.Idle(p) != 1 {
		t.Error("the instance is not in the pool")
	}
	if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
		t.Error(err)
	}
}

// FAULTS P5: what fails, closes and leaves takes nothing with it.
func TestNothingLeaks(t *testing.T) {
	r := newRuntime(t)
	wasm, bad := checker().Build(), checker().Hook(abi.HookDescribe, Op(OpUnreachable)).Build()
	for range 200 {
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Call(context.Background(), abi.HookCheckInput, ordinary); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Load(context.Background(), plugin.Spec{Name: "y", Wasm: bad}); err == nil {
			t.Fatal("loaded")
		}
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if plugin.Loaded(r) != 0 || plugin.Codes(r) != 0 {
		t.Errorf("%d plugins and %d compiled modules are left", plugin.Loaded(r), plugin.Codes(r))
	}
}
