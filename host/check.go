package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"weir/abi"
	"weir/host/config"
	"weir/host/lock"
	"weir/host/plugin"
)

// Report is what a check found out about a configuration that would start.
type Report struct {
	Config     *config.Config
	Generation string         // 64 hex digits; empty when a module is missing
	Plugins    []PluginReport // in the order of the configuration
	Variants   []VariantReport
	Notes      []string // what an operator should know
}

// PluginReport is one plugin as it would run.
type PluginReport struct {
	Settings config.Plugin
	Missing  bool          // there is no such file; the rest is then empty
	Digest   string        // of the module
	Kind     string        // abi.KindGuardrail or abi.KindWorkflow
	Version  string        // as the module says
	Carrier  string        // how it is run, one of plugin's Carrier constants
	Hooks    []abi.Hook    // that a run calls
	Limits   plugin.Limits // in force
	Summary  string        // as the module says
	Lock     string        // what agent.lock says of the module: LockPinned and so on
	Err      error         // why it would be refused; of List only
}

// VariantReport is one variant that somebody gets.
type VariantReport struct {
	Name       string
	Share      float64
	Generation string // 64 hex digits
}

// What agent.lock says of a module.
const (
	LockPinned  = "pinned"
	LockDiffers = "differs"
	LockMissing = "not pinned"
)

// List loads every plugin of a configuration by itself and says what it is, or
// why it would be refused. It needs no keys and no network.
func List(ctx context.Context, opts Options) (*Report, error) {
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env, Keyless: true})
	if err != nil {
		return nil, err
	}
	pinned, err := lock.Read(cfg.Plugins.LockPath())
	if errors.Is(err, fs.ErrNotExist) {
		pinned, err = &lock.File{}, nil
	}
	if err != nil {
		return nil, err
	}
	runtime, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: cfg.Plugins.Cache, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	report := &Report{Config: cfg, Notes: cfg.Warnings}
	report.look()
	for i := range report.Plugins {
		p := &report.Plugins[i]
		if !p.Missing {
			p.Err = p.load(ctx, runtime, cfg)
			p.pin(pinned)
		}
	}
	return report, runtime.Close(ctx)
}

func (r *PluginReport) pin(f *lock.File) {
	r.Lock = LockPinned
	for _, p := range f.Compare(lock.File{Modules: map[string]string{r.Settings.Name: r.Digest}}) {
		r.Lock = LockDiffers
		if p.Pinned == "" {
			r.Lock = LockMissing
		}
	}
}

// Check does what a start does before it needs a network: it reads the
// configuration, loads every plugin, configures it and runs its self-checks.
// Its error joins everything that would refuse the start, except a module that
// was not built: that one is marked in the report.
func Check(ctx context.Context, opts Options) (*Report, error) {
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env})
	if err != nil {
		return nil, err
	}
	if turns(cfg) {
		if err := checkTurn(cfg); err != nil {
			return nil, err
		}
	}
	report := &Report{Config: cfg, Notes: cfg.Warnings}
	missing := report.look()
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	runtime, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: cfg.Plugins.Cache, Logger: logger})
	if err != nil {
		return nil, err
	}
	if missing {
		err = report.loadSome(ctx, runtime)
	} else {
		err = report.loadAll(ctx, runtime)
	}
	if err = errors.Join(err, runtime.Close(ctx)); err != nil {
		return nil, err
	}
	return report, nil
}

// look lists the plugins and tells whether a module is missing.
func (r *Report) look() (missing bool) {
	for _, p := range r.Config.Plugins.List {
		_, err := os.Stat(p.Module)
		gone := errors.Is(err, fs.ErrNotExist)
		missing = missing || gone
		r.Plugins = append(r.Plugins, PluginReport{Settings: p, Missing: gone})
	}
	return missing
}

func (r *Report) loadAll(ctx context.Context, runtime *plugin.Runtime) error {
	if err := r.loadSome(ctx, runtime); err != nil {
		return err
	}
	d, err := newDraft(r.Config)
	if err != nil {
		return err
	}
	r.Notes = d.notes
	p, err := load(ctx, runtime, d, nil)
	if err != nil {
		return err
	}
	r.Generation = p.Generation()
	for _, v := range p.variants {
		r.Variants = append(r.Variants, VariantReport{v.named, v.variant.Share, v.Generation()})
	}
	return p.close(ctx)
}

// loadSome loads the modules that are there one by one, so that every refusal
// is said and not just the first.
func (r *Report) loadSome(ctx context.Context, runtime *plugin.Runtime) error {
	var errs []error
	for i := range r.Plugins {
		if !r.Plugins[i].Missing {
			errs = append(errs, r.Plugins[i].load(ctx, runtime, r.Config))
		}
	}
	return errors.Join(errs...)
}

func (r *PluginReport) load(ctx context.Context, runtime *plugin.Runtime, cfg *config.Config) error {
	spec, err := specOf(cfg, &r.Settings)
	if err != nil {
		return err
	}
	r.Digest = lock.Digest(spec.Wasm)
	p, err := runtime.Load(ctx, spec)
	if err != nil {
		return err
	}
	r.Limits, r.Summary = p.Limits(), p.Description().Summary
	r.Kind, r.Version, r.Carrier = p.Description().Kind, p.Description().Version, p.Carrier()
	for _, h := range abi.Hooks() {
		if p.Has(h) && h != abi.HookDescribe && h != abi.HookConfigure {
			r.Hooks = append(r.Hooks, h)
		}
	}
	return p.Close(ctx)
}
