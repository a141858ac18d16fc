package plugin

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"weir/host/fault"
)

// RuntimeOptions configure a [Runtime].
type RuntimeOptions struct {
	// CacheDir keeps instrumented modules, compiled code and images of
	// configured plugins between starts; it is created when missing. Empty means
	// that every start makes them again (seconds for each Go guest). Only the
	// host's own account may write there: what it holds is run as machine code.
	// Modules and images have 512 MiB each at most, those used last; compiled
	// code is not bounded.
	CacheDir string
	// TotalMemory bounds the linear memory of all instances together, in
	// bytes: one that runs counts with its plugin's limit, an idle one with
	// its size. Calls wait for it in their order. Default 128 MiB for each
	// processor, at least 1 GiB; below the limit of a plugin that cannot be
	// loaded.
	TotalMemory int64
	// Reset says how instances are put back to their image after a call. The
	// default finds out what works; another is for tests and for comparing.
	Reset Reset
	// Logger gets warnings. Nil drops them.
	Logger *slog.Logger
	// Printed gets the lines of plugins that may log, which may quote a user:
	// it writes to the operator's terminal and nowhere else. Nil is Logger.
	Printed *slog.Logger
	// Failed is told of every call that a plugin failed, with one of the codes
	// of this package, from the goroutine of the call. Nil tells nobody.
	Failed func(plugin, hook, code string)
}

// Runtime compiles and runs plugins. Its methods may be called concurrently.
type Runtime struct {
	log      *slog.Logger
	printed  *slog.Logger
	failed   func(plugin, hook, code string)
	cache    wazero.CompilationCache // nil without a directory
	cacheDir string
	modules  keeper // instrumented ones
	images   keeper
	program  string // which build of the host this is
	engine   wazero.Runtime
	codes    Shared[string, *code]       // by digest
	turns    Shared[string, *sync.Mutex] // to compile, by what wazero is given
	intros   Shared[imageKey, *introduction]
	resetter *resetter
	memory   gate // bytes
	total    int64
	compiled atomic.Int64 // modules, since the start
	made     atomic.Int64 // introductions, since the start

	mu      sync.Mutex
	plain   wazero.Runtime // without the cache; made when the cache fails
	plugins map[*Plugin]struct{}
	closed  bool
}

// NewRuntime returns a runtime that is ready to load plugins.
func NewRuntime(ctx context.Context, opts RuntimeOptions) (*Runtime, error) {
	r := &Runtime{log: opts.Logger, printed: opts.Printed, failed: opts.Failed, cacheDir: opts.CacheDir, plugins: map[*Plugin]struct{}{}}
	r.total = opts.TotalMemory
	if r.total == 0 {
		r.total = max(1<<30, int64(runtime.GOMAXPROCS(0))*128<<20)
	}
	if r.total < 0 {
		return nil, fault.New(fault.Invalid, "plugin: expected a total memory above zero, got %d", r.total)
	}
	r.memory.free = r.total
	r.codes.Free = (*code).close
	r.turns.Free = func(*sync.Mutex) {}
	r.intros.Free = (*introduction).free
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.printed == nil {
		r.printed = r.log
	}
	if r.failed == nil {
		r.failed = func(string, string, string) {}
	}
	var err error
	if r.resetter, err = newResetter(opts.Reset); err != nil {
		return nil, err
	}
	if err := r.start(ctx, opts); err != nil {
		r.resetter.close()
		return nil, err
	}
	return r, nil
}

func (r *Runtime) start(ctx context.Context, opts RuntimeOptions) error {
	if opts.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(opts.CacheDir)
		if err == nil {
			r.cache = cache
			r.program = thisProgram()
			r.modules, r.images = newKeeper(opts.CacheDir, moduleFolder), newKeeper(opts.CacheDir, imageFolder)
		} else { // a read-only file system, as containers have
			r.log.Warn("there is no compilation cache; every start compiles", "error", firstLine(err.Error()))
		}
	}
	engine, err := newEngine(ctx, r.cache)
	if err != nil {
		if r.cache != nil {
			_ = r.cache.Close(ctx)
		}
		return err
	}
	r.engine = engine
	return nil
}

// newEngine makes a wazero runtime with the modules that guests may import.
//
// The memory limit is not set here, because it would hold for every plugin
// alike: each instance gets its own through its allocator (memory.go).
func newEngine(ctx context.Context, cache wazero.CompilationCache) (wazero.Runtime, error) {
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(false)
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	engine := wazero.NewRuntimeWithConfig(ctx, config)
	if err := linkHost(ctx, engine); err != nil {
		_ = engine.Close(ctx)
		return nil, fault.New(fault.Internal, "plugin: host modules: %w", err)
	}
	return engine, nil
}

// Close closes every plugin that is still loaded, waiting for calls in flight,
// and then the runtime. It may be called twice.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	var open []*Plugin
	for p := range r.plugins {
		open = append(open, p)
	}
	r.mu.Unlock()
	for _, p := range open {
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return r.closeEngines(ctx)
}

func (r *Runtime) closeEngines(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resetter.close()
	err := r.engine.Close(ctx)
	if r.plain != nil {
		if e := r.plain.Close(ctx); err == nil {
			err = e
		}
	}
	if r.cache != nil {
		if e := r.cache.Close(ctx); err == nil {
			err = e
		}
	}
	return err
}

// add admits a plugin before anything is compiled for it, so closing finds it.
func (r *Runtime) add(p *Plugin) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fault.New(fault.Unavailable, "plugin %s: the plugin runtime is closed", p.name)
	}
	r.plugins[p] = struct{}{}
	return nil
}

func (r *Runtime) remove(p *Plugin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.plugins, p)
}
