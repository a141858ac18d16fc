package host

import (
	"context"
	"errors"
	"slices"

	"weir/abi"
	"weir/host/config"
	"weir/host/contract/stream"
	"weir/host/fault"
	"weir/host/guard"
	"weir/host/lock"
	"weir/host/plugin"
	"weir/host/run"
	"weir/host/tool"
)

// load makes the plugins and guards of a draft and its variants: all that needs
// no network. A current policy whose plugins would be the same lends its own,
// whatever it is called.
func load(ctx context.Context, runtime *plugin.Runtime, d *draft, current *policy) (*policy, error) {
	lenders := current.all()
	p, err := loadOne(ctx, runtime, d, lenders)
	if err != nil {
		return nil, err
	}
	for _, v := range d.variants {
		one, err := loadOne(ctx, runtime, v, append(lenders, p.all()...))
		if err != nil {
			p.discard(current)
			return nil, ofVariant(v.variant, err)
		}
		p.variants = append(p.variants, one)
	}
	p.name()
	return p, nil
}

func loadOne(ctx context.Context, runtime *plugin.Runtime, d *draft, lenders []*policy) (p *policy, err error) {
	p = &policy{draft: d}
	i := slices.IndexFunc(lenders, func(other *policy) bool { return d.loadsAs(other.draft) })
	if i >= 0 { // with the chain: guards in monitor mode may be at work in it, which a stop ends
		p.generation, p.chain = lenders[i].generation, lenders[i].chain
	} else if p.generation, err = runtime.Build(ctx, d.policy); err != nil {
		return nil, err
	} else if p.chain, err = chain(p.generation, d.cfg, d.cfg.Guards()); err != nil {
		p.generation.Retire()
		return nil, err
	}
	p.workflow = p.generation.Workflow()
	p.parts = partsOf(d, p.generation)
	return p, nil
}

// discard frees a policy that never became current, and its variants.
func (p *policy) discard(current *policy) {
	for _, g := range p.generations() {
		if !slices.Contains(current.generations(), g) {
			g.Retire()
		}
	}
}

// equip gives a loaded policy and its variants the tools, the models and the
// engines.
func (h *Host) equip(ctx context.Context, p, current *policy) error {
	if err := h.equipOne(ctx, p, current); err != nil {
		return err
	}
	for _, v := range p.variants {
		v.tools = p.tools // all that a variant can differ in is elsewhere
		if err := h.equipOne(ctx, v, current); err != nil {
			return ofVariant(v.draft.variant, err)
		}
	}
	return nil
}

func (h *Host) equipOne(ctx context.Context, p, current *policy) error {
	p.tracer, p.log = h.tracer, h.log
	if p.tools.set == nil {
		if err := h.equipTools(ctx, p, current); err != nil {
			return err
		}
	}
	m := p.cfg.Model
	client, err := h.models.With(alias(m.Agent), alias(m.Guard))
	if err != nil {
		return fault.New(fault.Invalid, "[model] %w", err)
	}
	deps := run.Deps{
		Policy: func() (run.Policy, func()) { return p, func() {} },
		Model:  models{client: client, names: map[string]string{abi.ModelAgent: m.Agent.Name, abi.ModelGuard: m.Guard.Name}},
		Tools:  p.tools,
		Log:    logs{h.store},
		Keeper: h.keeper,

		Declare: declare, Pauses: people{},
	}
	if p.asks = p.cfg.ApprovalsOn(); p.asks {
		deps.People = newPeople(p.actions, h.executor)
	}
	p.parts = append(p.parts, approvalsPart(p.asks))
	opts := engineOptions(p.cfg)
	opts.Name, opts.AskTimeout = h.cfg.Agent.Name+".invoke", h.cfg.Approvals.Timeout
	opts.Digests = h.cfg.Store.Content == config.ContentDigest
	opts.Reached, opts.Tracer, opts.Logger = h.reached, h.tracer, h.log
	p.engine, err = run.New(deps, opts)
	return err
}

// engineOptions are what a policy says of the engine.
func engineOptions(cfg *config.Config) run.Options {
	return run.Options{MaxToolCalls: cfg.Agent.MaxToolCalls, Timeout: cfg.Agent.RequestTimeout,
		InputDecision: cfg.Guard.InputDecision, OutputDecision: cfg.Guard.OutputDecision,
		Trim: func(turns []abi.Turn) []abi.Turn { return stream.Trim(turns, cfg.Agent.MaxHistory) }}
}

// equipTools gives it the tools that the host performs. An agent whose callers
// perform all of them has none.
func (h *Host) equipTools(ctx context.Context, p, current *policy) error {
	if h.tools == nil {
		none, err := tool.Declare(nil)
		p.tools = newTools(none)
		return err
	}
	set, err := h.set(ctx, p.cfg, current)
	if err != nil {
		return err
	}
	if p.unpinned, err = pinTools(p.draft, set); err != nil {
		return err
	}
	p.tools = newTools(set)
	return nil
}

// set is the tools of a configuration. The server is asked where the list is
// another, or where it has changed a tool: what it says now is then what counts.
func (h *Host) set(ctx context.Context, cfg *config.Config, current *policy) (*tool.Set, error) {
	m := cfg.Tools.MCP
	switch {
	case current == nil:
		return h.tools.Set, nil // connected for just this
	case sameNames(m.Include, current.cfg.Tools.MCP.Include) && len(current.tools.set.Changed()) == 0:
		return current.tools.set.Override(overrides(m))
	}
	return h.tools.Select(ctx, m.Include, overrides(m))
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func overrides(m config.MCP) map[string]tool.Override {
	out := make(map[string]tool.Override, len(m.Overrides))
	for name, o := range m.Overrides {
		out[name] = tool.Override{Description: o.Description}
	}
	return out
}

// pinTools holds tools against agent.lock, in every mode alike: one that is not
// pinned is said, one that is not the pinned one is refused.
func pinTools(d *draft, set *tool.Set) (notes []string, err error) {
	found := lock.File{Tools: toolDigests(set)}
	var errs []error
	for _, p := range d.lock.Compare(found) {
		if p.Pinned == "" {
			notes = append(notes, p.String()+"; `weir lock --tools` pins it")
		} else {
			errs = append(errs, errors.New(p.String()+"; look at what the server says of it, then `weir lock --tools`"))
		}
	}
	if len(errs) > 0 {
		return nil, fault.New(fault.Invalid, "%w", errors.Join(errs...))
	}
	return notes, nil
}

func toolDigests(set *tool.Set) map[string]string {
	digests := map[string]string{}
	for _, t := range set.Tools() {
		digests[t.Name] = tool.Digest(t)
	}
	return digests
}

// chain puts the generation's guardrails in the order of the configuration.
func chain(g *plugin.Generation, cfg *config.Config, guards []config.Plugin) (*guard.Chain, error) {
	var list []guard.Guard
	for _, c := range guards {
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
		HoldBack:     p.Settings().HoldBack,
		Patterns:     p.Settings().Patterns,
		SendMatches:  p.Settings().SendMatches,
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
