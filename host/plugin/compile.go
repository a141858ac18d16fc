package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"weir/host/fault"
	"weir/host/plugin/instrument"
)

// Engine and Instrumenter say how modules are run; both are part of a
// generation's identity. EngineVersion is held against go.mod by a test, since
// a binary does not always know the versions of its modules.
const (
	EngineVersion = "1.12.0"
	Engine        = "wazero/" + EngineVersion
	Instrumenter  = instrument.Version
)

// code is the compiled form of one module, shared by all plugins of its digest.
type code struct {
	digest string
	refs   int           // under Runtime.mu
	ready  chan struct{} // closed when module or err is set
	engine wazero.Runtime
	module wazero.CompiledModule
	err    error
}

func digestOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return hex.EncodeToString(sum[:])
}

// compile returns the code of a module that inspect has accepted. One digest
// is compiled once, however many ask for it at the same time; every successful
// call needs one release.
func (r *Runtime) compile(ctx context.Context, digest string, wasm []byte) (*code, error) {
	c, first := r.claim(digest)
	if first {
		c.err = r.make(ctx, c, wasm)
		close(c.ready)
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		r.release(c)
		return nil, fault.Coded(fault.Plugin, CodeCancelled, "compile: %w", context.Cause(ctx))
	}
	if c.err != nil {
		r.release(c)
		return nil, c.err
	}
	return c, nil
}

// make instruments and compiles. The module's imports were looked at before.
func (r *Runtime) make(ctx context.Context, c *code, wasm []byte) error {
	m, err := instrument.Rewrite(wasm, instrument.Options{
		MaxModule: maxModule,
		MaxMemory: maxMemory / pageSize, // each instance has a limit of its own
		MaxTable:  maxTable,
		Allow:     func(instrument.Import) error { return nil },
	})
	if err != nil {
		return err
	}
	c.engine, c.module, err = r.build(ctx, m.Wasm)
	return err
}

func (r *Runtime) claim(digest string) (c *code, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.codes[digest]
	if !ok {
		c = &code{digest: digest, ready: make(chan struct{})}
		r.codes[digest] = c
	}
	c.refs++
	return c, !ok
}

// release gives code back; the last one frees it. Instances must be closed.
func (r *Runtime) release(c *code) {
	r.mu.Lock()
	c.refs--
	last := c.refs == 0
	if last {
		delete(r.codes, c.digest)
	}
	r.mu.Unlock()
	if !last {
		return
	}
	<-c.ready
	if c.module != nil {
		_ = c.module.Close(context.Background())
	}
}

// build compiles with the cache and, when that fails, without it: a corrupt or
// full cache must not decide whether a module is good.
func (r *Runtime) build(ctx context.Context, wasm []byte) (wazero.Runtime, wazero.CompiledModule, error) {
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
