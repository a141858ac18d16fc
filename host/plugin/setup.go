package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// setup asks a module everything that Load promises, unless another plugin has
// done it with the same configuration, and runs its cases.
func (p *Plugin) setup(ctx context.Context, segments []segment) error {
	key, err := p.imageKey()
	if err != nil {
		return err
	}
	p.key = key
	in, err := p.runtime.intros.Get(ctx, key, func() (*introduction, error) {
		if in, ok := p.recall(); ok {
			return in, nil
		}
		return p.introduce(ctx, segments)
	})
	if err != nil {
		if _, ok := errors.AsType[*failure](err); ok {
			return p.report("load", err, "")
		}
		return err
	}
	p.intro = in
	if p.intro.image == nil {
		p.segments = cloned(segments)
	}
	p.compareLimits()
	if !p.unchecked {
		if err := p.selfCheck(ctx); err != nil {
			return err
		}
	}
	return p.keepOne(ctx)
}

// keepOne makes sure that an instance can be made, and that the first call
// finds one.
func (p *Plugin) keepOne(ctx context.Context) error {
	i, err := p.obtain(ctx, "load", p.limits.Setup)
	if err == nil {
		p.giveBack(i, true)
		p.refill()
	}
	return err
}

// introduce runs the first instance of a module: it begins as the module
// describes it, says what it is, is configured, and becomes the image.
func (p *Plugin) introduce(ctx context.Context, segments []segment) (*introduction, error) {
	p.runtime.made.Add(1)
	if err := p.runtime.reserve(ctx, int64(p.limits.Memory), p.limits.Setup); err != nil {
		return nil, p.report("load", err, "")
	}
	defer p.runtime.memory.leave(int64(p.limits.Memory))
	i, err := p.birth(ctx, segments)
	if err != nil {
		return nil, err
	}
	defer i.close()
	in := new(introduction)
	if in.description, err = p.describe(ctx, i); err != nil {
		return nil, err
	}
	if err := p.checkDescription(in.description); err != nil {
		return nil, fmt.Errorf("plugin %s: describe: %w", p.name, err)
	}
	if in.settings, err = p.configure(ctx, i, p.config); err != nil {
		return nil, err
	}
	if err := p.checkSettings(in.settings); err != nil {
		return nil, fmt.Errorf("plugin %s: configure: %w", p.name, err)
	}
	if !p.code.resettable {
		return in, nil
	}
	warm := false
	in.image, warm, err = p.develop(ctx, i, p.warmers(in.description.Cases))
	if warm { // another start may have more luck
		p.keep(in)
	}
	return in, err
}

// compareLimits tells the operator where a plugin wants more than it gets. The
// operator's limit stands.
func (p *Plugin) compareLimits() {
	wanted := p.intro.description.Limits
	if wanted == nil {
		return
	}
	if wanted.MemoryMiB > p.limits.Memory>>20 {
		p.runtime.log.Warn("plugin wants more memory than its limit", "name", p.name,
			"wanted_mib", wanted.MemoryMiB, "limit_mib", p.limits.Memory>>20)
	}
	if limit := p.shortest(); time.Duration(wanted.TimeoutMS)*time.Millisecond > limit {
		p.runtime.log.Warn("plugin wants more time than its limit", "name", p.name,
			"wanted_ms", wanted.TimeoutMS, "limit_ms", limit.Milliseconds())
	}
}

// shortest is the time of the hook that has least.
func (p *Plugin) shortest() time.Duration {
	least := p.limits.Setup
	for hook := range p.hooks {
		least = min(least, p.limits.Call(hook, 0))
	}
	return least
}

func (p *Plugin) describe(ctx context.Context, i *instance) (*abi.Description, error) {
	out := new(abi.Description)
	req := abi.DescribeRequest{Call: setupCall()}
	if err := p.setupCall(ctx, i, abi.HookDescribe, &req, decoding(out, out.Validate)); err != nil {
		return nil, err
	}
	return out, nil
}

// configure gives an instance its configuration. A module without the hook
// takes none.
func (p *Plugin) configure(ctx context.Context, i *instance, config abi.Raw) (*abi.ConfigureReply, error) {
	out := new(abi.ConfigureReply)
	if !p.Has(abi.HookConfigure) {
		if !bytes.Equal(bytes.TrimSpace(config), []byte("{}")) {
			return nil, fault.New(fault.Invalid, "plugin %s: configure: the module takes no configuration", p.name)
		}
		return out, nil
	}
	req := abi.ConfigureRequest{Call: setupCall(), Config: config, Prompts: p.prompts}
	if err := p.setupCall(ctx, i, abi.HookConfigure, &req, decoding(out, out.Validate)); err != nil {
		return nil, err
	}
	if out.Error != "" {
		return nil, fault.New(fault.Invalid, "plugin %s: configure: the configuration is refused: %s", p.name, quote(out.Error))
	}
	return out, nil
}

// setupCall is the clock and seed of describe and configure: fixed, so that
// every instance of a generation begins alike.
func setupCall() abi.Call { return abi.Call{Now: 1, Seed: "0"} }

func (p *Plugin) setupCall(ctx context.Context, i *instance, hook abi.Hook, req request, decode decoder) error {
	request := req.AppendJSON(nil)
	_, _, err := p.ask(ctx, i, hook, p.bounds(hook, setupStamp(), len(request)), request, nil, decode)
	i.session.printer.end()
	return err
}

// checkDescription holds what a module says of itself against what it exports
// and what it was given.
func (p *Plugin) checkDescription(d *abi.Description) error {
	checks := p.Has(abi.HookCheckInput) || p.Has(abi.HookCheckOutput) ||
		p.Has(abi.HookCheckToolCall) || p.Has(abi.HookCheckToolResult)
	switch {
	case d.Kind == abi.KindWorkflow && !p.Has(abi.HookStep):
		return refuse("is a workflow but does not export %s", abi.HookStep)
	case d.Kind == abi.KindGuardrail && !checks:
		return refuse("is a guardrail but exports no check")
	}
	for n, c := range d.Cases {
		if !p.Has(c.Hook) {
			return refuse("cases[%d]: the module does not export %s", n, c.Hook)
		}
	}
	for _, name := range d.Prompts {
		if !p.hasPrompt(name) {
			return refuse("needs the prompt %s, which it was not given", quote(name))
		}
	}
	return nil
}

func (p *Plugin) checkSettings(settings *abi.ConfigureReply) error {
	for _, name := range settings.Prompts {
		if !p.hasPrompt(name) {
			return refuse("refers to the prompt %s, which it was not given", quote(name))
		}
	}
	return nil
}

func (p *Plugin) hasPrompt(name string) bool {
	for _, prompt := range p.prompts {
		if prompt.Name == name {
			return true
		}
	}
	return false
}

// selfCheck runs the cases that the module ships, with the operator's
// configuration: a guard without built-in rules has no other, so its cases are
// those that hold for any. They are calls like any other.
func (p *Plugin) selfCheck(ctx context.Context) error {
	for n := range p.intro.description.Cases {
		if err := p.runCase(ctx, &p.intro.description.Cases[n]); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return p.report("load", stopped(ctx), "")
	}
	return nil
}

func (p *Plugin) runCase(ctx context.Context, c *abi.Case) error {
	place := fmt.Sprintf("plugin %s: self-check %s", p.name, quote(c.Name))
	st, err := stampIn(c.Request)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	reply, _, err := p.invoke(ctx, c.Hook, st, c.Request, nil, func(reply []byte) error {
		return abi.ValidateReply(c.Hook, c.Request, reply)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if err := sameMembers(c.Expect, reply); err != nil {
		return fault.Coded(fault.Plugin, CodeBadReply, "%s: %w", place, err)
	}
	return nil
}

// sameMembers tells whether every member of the object want stands in got with
// the same value.
func sameMembers(want, got []byte) error {
	have := map[string][]byte{}
	if err := members(got, func(name string, value []byte) error {
		have[name] = value
		return nil
	}); err != nil {
		return err
	}
	return members(want, func(name string, value []byte) error {
		if !bytes.Equal(have[name], value) {
			return fmt.Errorf("expected %s to be %s, got %s", quote(name), quote(string(value)), quote(string(have[name])))
		}
		return nil
	})
}

// members gives each member of an object with its value in canonical form.
func members(object []byte, member func(name string, value []byte) error) error {
	if len(object) == 0 {
		return nil
	}
	d := strictjson.NewDecoder(object)
	return d.Object(func(name string) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		value, err := strictjson.Canonical(nil, raw)
		if err != nil {
			return err
		}
		return member(name, value)
	})
}
