package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"weir/host/plugin/instrument"
)

// Engine and Instrumenter say how modules are run; both are part of a
// generation's identity. EngineVersion is held against go.mod by a test, since
// a binary does not always know the versions of its modules.
const (
	EngineVersion = "1.12.0"
	Engine        = "wazero/" + EngineVersion + " extism/" + ExtismVersion
	Instrumenter  = instrument.Version
)

// code is the compiled form of one module, shared by all plugins of its
// digest. It is the instrumented module without its data: the host puts that
// into an instance's memory itself, or maps an image that has it. So one
// compilation serves first instances and later ones.
type code struct {
	engine  wazero.Runtime
	module  wazero.CompiledModule
	globals []string // the mutable globals, by the names of their exports
	// resettable: memory and globals are the whole state of an instance.
	resettable bool
	sdk        *sdkCode // of an Extism module, which has nothing of the above
}

func digestOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

// compile returns the code of a module that inspect has accepted. One digest
// is compiled once, however many ask for it at the same time; every successful
// call needs one r.codes.Put.
func (r *Runtime) compile(ctx context.Context, digest string, wasm []byte) (*code, error) {
	return r.codes.Get(ctx, digest, func() (*code, error) { return r.newCode(ctx, digest, wasm) })
}

// newCode instruments, or takes what was instrumented before, and compiles. The
// module's imports were looked at before.
func (r *Runtime) newCode(ctx context.Context, digest string, wasm []byte) (*code, error) {
	carrier := CarrierDirect
	if o, err := parseModule(wasm); err == nil {
		carrier = o.carrier()
	}
	key := keepKey(digest, carrier, rewriteOptions())
	if content, ok := r.modules.get(key); ok {
		if m, ok := readRewritten(content); ok {
			if c, err := r.compileRewritten(ctx, carrier, m); err == nil {
				return c, nil
			}
		}
	}
	m, err := rewrite(carrier, wasm)
	if err != nil {
		return nil, err
	}
	c, err := r.compileRewritten(ctx, carrier, m)
	if err != nil {
		return nil, err
	}
	if err := r.modules.put(key, m.append(nil)); err != nil {
		r.log.Warn("an instrumented module is not kept; the next start makes it again", "error", firstLine(err.Error()))
	}
	return c, nil
}

func rewrite(carrier string, wasm []byte) (*rewritten, error) {
	if carrier == CarrierExtism {
		return rewriteExtism(wasm)
	}
	m, err := instrument.Rewrite(wasm, rewriteOptions())
	if err != nil {
		return nil, err
	}
	own := &rewritten{wasm: m.Bare(), resettable: m.Resettable()}
	for _, g := range m.Globals {
		own.globals = append(own.globals, g.Name)
	}
	return own, nil
}

func (r *Runtime) compileRewritten(ctx context.Context, carrier string, m *rewritten) (c *code, err error) {
	if carrier == CarrierExtism {
		return r.compileExtism(ctx, m.wasm)
	}
	c = &code{resettable: m.resettable, globals: m.globals}
	c.engine, c.module, err = r.build(ctx, m.wasm)
	return c, err
}

// rewriteOptions are those of modules whose imports were looked at before.
func rewriteOptions() instrument.Options {
	return instrument.Options{
		MaxModule: maxModule,
		MaxMemory: maxMemory / pageSize, // each instance has a limit of its own
		MaxTable:  maxTable,
		Allow:     func(instrument.Import) error { return nil },
	}
}

func (c *code) close() {
	if c.sdk != nil {
		c.sdk.close()
		return
	}
	_ = c.module.Close(context.Background())
}

// build compiles with the cache and, when that fails, without it: a corrupt or
// full cache must not decide whether a module is good.
func (r *Runtime) build(ctx context.Context, wasm []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	r.compiled.Add(1)
	alone, err := r.alone(ctx, wasm)
	if err != nil {
		return nil, nil, err
	}
	defer alone()
	module, cacheErr := compileIn(ctx, r.engine, wasm)
	if cacheErr == nil {
		return r.engine, module, nil
	}
	if r.cache == nil {
		return nil, nil, refuse("is not valid WebAssembly: %s", firstLine(cacheErr.Error()))
	}
	plain, err := r.uncached(ctx)
	if err != nil {
		return nil, nil, err
	}
	if module, err = compileIn(ctx, plain, wasm); err != nil {
		return nil, nil, refuse("is not valid WebAssembly: %s", firstLine(err.Error()))
	}
	r.log.Warn("the compilation cache does not work; compiled without it", "error", firstLine(cacheErr.Error()))
	return plain, module, nil
}

// alone waits until nobody compiles these bytes, which modules of several
// digests have in common when they differ in their data alone: wazero shows
// what it takes from its cache to the next who asks before it is complete.
func (r *Runtime) alone(ctx context.Context, wasm []byte) (done func(), err error) {
	key := digestOf(wasm)
	turn, err := r.turns.Get(ctx, key, func() (*sync.Mutex, error) { return new(sync.Mutex), nil })
	if err != nil {
		return nil, err
	}
	turn.Lock()
	return func() { turn.Unlock(); r.turns.Put(key) }, nil
}

func (r *Runtime) uncached(ctx context.Context) (wazero.Runtime, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plain == nil { // closing waits for the plugin that asks
		plain, err := newEngine(ctx, nil)
		if err != nil {
			return nil, err
		}
		r.plain = plain
	}
	return r.plain, nil
}

// compileIn compiles a module. A panic of the compiler is the module's fault
// and not a reason to end the host.
func compileIn(ctx context.Context, engine wazero.Runtime, wasm []byte) (m wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("the compiler gave up: %v", p)
		}
	}()
	ctx = experimental.WithCompilationWorkers(context.WithoutCancel(ctx), runtime.GOMAXPROCS(0))
	return engine.CompileModule(ctx, wasm)
}
