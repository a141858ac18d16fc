package host

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"weir/abi"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/guard"
	"weir/host/plugin"
)

// build loads everything that a configuration's policy names.
func build(ctx context.Context, runtime *plugin.Runtime, cfg *config.Config) (*policy, error) {
	described, prompts, err := describe(cfg)
	if err != nil {
		return nil, err
	}
	generation, err := runtime.Build(ctx, described)
	if err != nil {
		return nil, err
	}
	p := &policy{generation: generation, workflow: generation.Workflow(), prompts: prompts}
	if p.chain, err = chain(generation, cfg); err != nil {
		return nil, errors.Join(err, generation.Close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// describe reads the modules and puts the policy together.
func describe(cfg *config.Config) (plugin.Policy, map[string]map[string]string, error) {
	out := plugin.Policy{Resolved: cfg.Policy(), Actions: cfg.DeclaredActions(), Workflow: cfg.Agent.Workflow}
	prompts := map[string]map[string]string{}
	for i := range cfg.Plugins.List {
		p := &cfg.Plugins.List[i]
		spec, err := specOf(cfg, p)
		if err != nil {
			return out, nil, err
		}
		prompts[p.Name] = map[string]string{}
		for _, prompt := range spec.Prompts {
			prompts[p.Name][prompt.Name] = prompt.Text
		}
		out.Plugins = append(out.Plugins, spec)
	}
	return out, prompts, nil
}

// specOf reads a plugin's module and says how to load it.
func specOf(cfg *config.Config, p *config.Plugin) (plugin.Spec, error) {
	wasm, err := readModule(p.Module)
	if err != nil {
		return plugin.Spec{}, fault.New(fault.Invalid, "plugin %s: %w", p.Name, err)
	}
	spec := plugin.Spec{Name: p.Name, Wasm: wasm, Config: p.Config, Limits: limits(p.Limits), Log: p.Log}
	for _, name := range p.Prompts {
		spec.Prompts = append(spec.Prompts, abi.Prompt{Name: name, Text: cfg.Prompts[name].Text})
	}
	return spec, nil
}

func readModule(path string) ([]byte, error) {
	wasm, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New(path + ": there is no such module; `make plugins` builds the shipped ones")
	}
	return wasm, err
}

func limits(l config.Limits) plugin.Limits {
	return plugin.Limits{Memory: int(l.Memory), Reply: int(l.Reply), Timeout: l.Timeout,
		TimeoutPerKiB: l.TimeoutPerKiB, Setup: l.SetupTimeout, Instances: l.Instances}
}

// chain puts the generation's guardrails in the order of the configuration.
func chain(g *plugin.Generation, cfg *config.Config) (*guard.Chain, error) {
	var list []guard.Guard
	for _, c := range cfg.Guards() {
		p := g.Plugin(c.Name)
		if kind := p.Description().Kind; kind != abi.KindGuardrail {
			return nil, fault.New(fault.Invalid, "plugin %s: it is a %s, and [agent] workflow names %s; expected a guardrail",
				c.Name, kind, cfg.Agent.Workflow)
		}
		list = append(list, guardrail(p, c))
	}
	return guard.New(list, guard.Options{
		InputBlockMessage: cfg.Guard.BlockMessage,
		SecretNotice:      cfg.Guard.CutNotice,
		OversizeNotice:    cfg.Guard.OversizeNotice,
		MaxOutputChars:    cfg.Guard.MaxAnswerChars,
		AskTimeout:        cfg.Guard.AskTimeout,
	})
}

func guardrail(p *plugin.Plugin, c config.Plugin) guard.Guard {
	g := guard.Guard{
		Name: c.Name, Digest: p.Digest(),
		Monitor:      c.Mode == config.ModeMonitor,
		AllowOnError: c.OnError == config.OnErrorAllow,
		GrantRoles:   c.Roles,
		LookBehind:   p.Settings().LookBehind,
	}
	if p.Has(abi.HookCheckInput) {
		g.Input = p
	}
	if p.Has(abi.HookCheckOutput) {
		g.Output = p
	}
	if p.Has(abi.HookCheckToolCall) {
		g.ToolCall = p
	}
	if p.Has(abi.HookCheckToolResult) {
		g.ToolResult = p
	}
	return g
}
