package host

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"weir/abi"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/guard"
	"weir/host/plugin"
)

// GuardSetOptions choose the output guards that are opened.
type GuardSetOptions struct {
	Options
	// Plugin is a guardrail of the configuration, by its name, or the file of a
	// module. Empty: all guardrails of the configuration that take part in the
	// output.
	Plugin string
	// Settings is the configuration of a module that is given as a file.
	Settings abi.Raw
}

// GuardSet is output guards without a host around them, to try texts on. It
// needs no key and no network.
type GuardSet struct {
	Chain *guard.Chain
	Names []string // in chain order

	runtime *plugin.Runtime
}

// OpenGuards loads the guards. One that was chosen enforces, whatever mode the
// configuration gives it.
func OpenGuards(ctx context.Context, opts GuardSetOptions) (set *GuardSet, err error) {
	cfg, chosen, err := choose(opts)
	if err != nil {
		return nil, err
	}
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	set = &GuardSet{}
	if set.runtime, err = plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: cfg.Plugins.Cache, Logger: logger}); err != nil {
		return nil, err
	}
	if err := set.load(ctx, cfg, chosen, opts.Plugin != ""); err != nil {
		return nil, errors.Join(err, set.Close(context.WithoutCancel(ctx)))
	}
	return set, nil
}

// CheckGuardrail says why no chain takes a plugin that loads: how it wants to be
// driven. Of a workflow nothing is asked here.
func CheckGuardrail(p *plugin.Plugin) error {
	if p.Description().Kind != abi.KindGuardrail {
		return nil
	}
	_, err := guard.New([]guard.Guard{guardrail(p, config.Plugin{Name: p.Name()})}, guard.Options{})
	return err
}

// choose returns the configuration and those plugins that are wanted.
func choose(opts GuardSetOptions) (*config.Config, []config.Plugin, error) {
	if file := opts.Plugin; strings.HasSuffix(file, ".wasm") {
		name := strings.TrimSuffix(filepath.Base(file), ".wasm")
		return &config.Config{}, []config.Plugin{{Name: name, Module: file, Config: opts.Settings, Log: true}}, nil
	}
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env, Keyless: true})
	if err != nil {
		return nil, nil, err
	}
	if opts.Plugin == "" {
		return cfg, cfg.Guards(), nil
	}
	for _, p := range cfg.Guards() {
		if p.Name == opts.Plugin {
			return cfg, []config.Plugin{p}, nil
		}
	}
	return nil, nil, fault.New(fault.Invalid, "plugin %.64q: expected a guardrail of %s or a file that ends in .wasm", opts.Plugin, cfg.Path)
}

func (s *GuardSet) load(ctx context.Context, cfg *config.Config, chosen []config.Plugin, enforce bool) error {
	var list []guard.Guard
	for i := range chosen {
		spec, err := specOf(cfg, &chosen[i])
		if err != nil {
			return err
		}
		p, err := s.runtime.Load(ctx, spec)
		if err != nil {
			return err
		}
		if !p.Has(abi.HookCheckOutput) {
			if enforce {
				return fault.New(fault.Invalid, "plugin %s: it has no check_output", spec.Name)
			}
			continue
		}
		g := guardrail(p, chosen[i])
		g.Monitor = g.Monitor && !enforce
		list = append(list, g)
		s.Names = append(s.Names, g.Name)
	}
	if !slices.ContainsFunc(list, func(g guard.Guard) bool { return !g.Monitor }) {
		return fault.New(fault.Invalid, "%s: expected a guardrail with check_output that enforces; one in monitor mode is tried by its name", cfg.Path)
	}
	var err error
	s.Chain, err = guard.New(list, guard.Options{SecretNotice: cfg.Guard.CutNotice,
		OversizeNotice: cfg.Guard.OversizeNotice, MaxOutputChars: cfg.Guard.MaxAnswerChars})
	return err
}

// Close frees the plugins. It is called once, when nothing uses the chain.
func (s *GuardSet) Close(ctx context.Context) error {
	var err error
	if s.Chain != nil {
		err = s.Chain.Close(ctx)
	}
	return errors.Join(err, s.runtime.Close(ctx))
}
