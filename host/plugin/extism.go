package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"weir/abi"
	"weir/host/plugin/instrument"
)

// The Extism carrier: modules that import extism:host/env are compiled,
// instantiated and called by the Extism Go SDK.
//
//	module ─ inspect ─ rename imports ─ instrument ─► SDK ─► guest ─► its imports
//	         extism_inspect.go                         │             extism_env.go
//	                                                   └─► kernel    extism_heap.go
//
// The SDK keeps the request, the reply and whatever the guest allocates in the
// memory of a second module, its kernel. It gives guests functions to read and
// write there, and WASI as wazero has it; neither knows of fuel. So a guest's
// imports are renamed, and the functions that it gets under the new names are
// ours: the same as those of the direct carrier for WASI, and for the kernel
// functions that pay, and that write only into blocks which the guest has.
//
// The SDK does not show the guest's module, so there is no image: every call
// has an instance of its own, which queue.go prepares ahead.

// ExtismVersion is held against go.mod by a test, as EngineVersion is.
const ExtismVersion = "1.7.1"

// Namespaces of the functions that a renamed module imports.
const (
	extismEnv  = "weir:extism"
	extismWASI = "weir:wasi"
)

// sdkCode is the compiled form of an Extism module. The SDK makes a runtime for
// each, and never frees what that compiled; closing a cache of its own does.
type sdkCode struct {
	plugin *extism.CompiledPlugin
	cache  wazero.CompilationCache
}

func (c *sdkCode) close() {
	_ = c.plugin.Close(context.Background())
	_ = c.cache.Close(context.Background())
}

// rewriteExtism renames a module's imports and instruments it.
func rewriteExtism(wasm []byte) (*rewritten, error) {
	renamed, err := renameImports(wasm, map[string]string{abi.ImportExtism: extismEnv, abi.ImportWASI: extismWASI})
	if err != nil {
		return nil, refuse("%w", err)
	}
	m, err := instrument.Rewrite(renamed, rewriteOptions())
	if err != nil {
		return nil, err
	}
	return &rewritten{wasm: m.Wasm}, nil
}

// compileExtism has the SDK compile an instrumented module.
func (r *Runtime) compileExtism(ctx context.Context, wasm []byte) (*code, error) {
	r.compiled.Add(1)
	c, cacheErr := compileSDK(ctx, r.cacheDir, wasm)
	if cacheErr == nil {
		return &code{sdk: c}, nil
	}
	if r.cacheDir != "" {
		if c, err := compileSDK(ctx, "", wasm); err == nil {
			r.log.Warn("the compilation cache does not work; compiled without it", "error", firstLine(cacheErr.Error()))
			return &code{sdk: c}, nil
		}
	}
	return nil, refuse("is not valid WebAssembly: %s", firstLine(cacheErr.Error()))
}

func compileSDK(ctx context.Context, dir string, wasm []byte) (c *sdkCode, err error) {
	cache := wazero.NewCompilationCache()
	if dir != "" {
		if cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the compiler gave up: %v", p)
		}
		if err != nil {
			_ = cache.Close(context.Background())
		}
	}()
	ctx = experimental.WithCompilationWorkers(context.WithoutCancel(ctx), runtime.GOMAXPROCS(0))
	ctx = experimental.WithFunctionListenerFactory(ctx, introducer{})
	plugin, err := extism.NewCompiledPlugin(ctx,
		extism.Manifest{
			Wasm:   []extism.Wasm{extism.WasmData{Data: wasm, Name: "main"}},
			Memory: &extism.ManifestMemory{}, // no variables and responses of the SDK's own
		},
		extism.PluginConfig{
			RuntimeConfig: wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).
				WithDebugInfoEnabled(false).WithCompilationCache(cache),
			EnableWasi: true, // or the SDK does not initialise guests
		}, sdkFunctions())
	if err != nil {
		return nil, err
	}
	return &sdkCode{plugin: plugin, cache: cache}, nil
}

// introducer shows us the guest's module, which the SDK hides: the first thing
// that an instrumented guest does is to ask for fuel, and a listener of that
// function is told who asks.
type introducer struct{}

// NewFunctionListener implements experimental.FunctionListenerFactory.
func (introducer) NewFunctionListener(def api.FunctionDefinition) experimental.FunctionListener {
	if def.GoFunction() == nil || def.ModuleName() != instrument.RefuelModule {
		return nil
	}
	return introducer{}
}

// Before implements experimental.FunctionListener.
func (introducer) Before(ctx context.Context, m api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	sessionOf(ctx).sdk.meet(m)
}

// After implements experimental.FunctionListener.
func (introducer) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort implements experimental.FunctionListener.
func (introducer) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// sdkGuest is what an instance of an Extism module has beside the session.
type sdkGuest struct {
	plugin  *extism.Plugin
	session *session
	memory  *sdkMemory
	module  api.Module // the guest's; nil until it has run
	first   *firstFuel // until then
	kernel  kernel
	heap    heap

	input    uint64 // bytes of the request
	inputAt  uint64 // where it stands in the kernel's memory
	entered  bool   // the guest has called the kernel in this call
	vars     int    // bytes of the variables
	reply    int    // limit of the reply
	answered bool
	failed   bool // the guest has set an error
	why      any  // what a host function ended the call with; the SDK may lose it
}

// instantiateSDK makes an instance of an Extism module, which has run nothing.
func (p *Plugin) instantiateSDK() (*instance, error) {
	memory := &sdkMemory{limit: uint64(p.limits.Memory), flags: &linearMemory{}}
	s := &session{printer: printer{log: p.printed}}
	g := &sdkGuest{session: s, memory: memory, first: &firstFuel{}, reply: p.limits.Reply}
	s.sdk, s.meter.fuel = g, g.first
	i := &instance{memory: memory.flags, session: s, limits: p.limits, sdk: g}
	i.ctx.session = s
	plugin, err := newSDKInstance(p.code.sdk.plugin, memory)
	if err != nil {
		memory.free()
		return nil, i.ended(err)
	}
	plugin.SetLogger(func(extism.LogLevel, string) {})
	g.plugin = plugin
	return i, nil
}

func newSDKInstance(c *extism.CompiledPlugin, memory *sdkMemory) (plugin *extism.Plugin, err error) {
	defer func() {
		if p := recover(); p != nil { // wazero has no other way to say that there is no memory
			err = failed(CodeMemory, "no memory is to be had: %v", p)
		}
	}()
	ctx := experimental.WithMemoryAllocator(context.Background(), memory)
	return c.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig()})
}

// exchange hands request to the guest and appends its reply to dst.
func (g *sdkGuest) exchange(i *instance, hook abi.Hook, request, dst []byte) ([]byte, error) {
	if !g.begin(len(request)) {
		return nil, failed(CodeMemory, "the request of %d bytes does not fit into its memory: the limit is %d MiB",
			len(request), i.limits.Memory>>20)
	}
	g.session.meter.pay(byteUnits(len(request)))
	status, reply, err := g.plugin.CallWithContext(&i.ctx, string(hook), request)
	switch {
	case err != nil || g.why != nil:
		return nil, i.ended(err)
	case status != 0:
		return nil, failed(CodeTrap, "returned %d, which is failure", status)
	case g.failed:
		return nil, failed(CodeTrap, "set an error and returned 0")
	case !g.answered || len(reply) == 0:
		return nil, failed(CodeBadReply, "empty reply")
	}
	if dst == nil {
		return reply, nil // the SDK's own copy
	}
	return append(dst, reply...), nil
}

// cause is why a guest function did not return. The SDK makes text of what ends
// an initialisation.
func (g *sdkGuest) cause(err error) error {
	switch why := g.why.(type) {
	case nil:
		if text, ok := strings.CutPrefix(err.Error(), "failed to initialize runtime: "); ok {
			return errors.New(text)
		}
		return err
	case error:
		return why
	default:
		return fmt.Errorf("%v", why)
	}
}

// begin prepares for a call. It is false when the request does not fit: the SDK
// would write it over the kernel's own state.
func (g *sdkGuest) begin(request int) bool {
	g.input, g.entered, g.answered, g.failed, g.why = uint64(request), false, false, false, nil
	g.heap = heap{count: 1} // of the request
	return g.memory.fits(uint64(request))
}

// meet takes the guest's module when it runs for the first time.
func (g *sdkGuest) meet(m api.Module) {
	if g.module == nil {
		g.module = m
	}
}

// refuel is weir.refuel. On the first time it hands the guest what it was given
// when the call began.
func (g *sdkGuest) refuel(left int64) int64 {
	m := &g.session.meter
	if g.first != nil {
		fuel, ok := g.module.ExportedGlobal(instrument.FuelGlobal).(api.MutableGlobal)
		if !ok {
			panic(errors.New("the instrumented module has no fuel"))
		}
		m.fuel, left = fuel, left+int64(g.first.value)
		g.first = nil
		if left >= 0 {
			return left
		}
	}
	return m.refuel(left)
}

// firstFuel stands for the guest's fuel before the guest is known.
type firstFuel struct {
	api.MutableGlobal
	value uint64
}

func (f *firstFuel) Get() uint64  { return f.value }
func (f *firstFuel) Set(v uint64) { f.value = v }

func (g *sdkGuest) close() {
	_ = g.plugin.CloseWithContext(context.Background())
	g.memory.free()
}
