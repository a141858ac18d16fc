package plugin

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"weir/abi"
)

// instance is one running copy of a module. It belongs to one call at a time.
type instance struct {
	module  api.Module
	alloc   api.Function
	hooks   map[abi.Hook]api.Function
	memory  *linearMemory
	session *session
	limits  Limits
	stack   [2]uint64 // arguments and results of a guest function
}

// newInstance makes an instance that is ready for calls: instantiated,
// initialised and configured.
func (p *Plugin) newInstance(ctx context.Context) (*instance, error) {
	i, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.configure(ctx, i, p.config); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// instantiate makes an instance and initialises it. The module has no name in
// the runtime, so it meets no other one; what fails here closes only itself.
func (p *Plugin) instantiate(ctx context.Context) (*instance, error) {
	i := &instance{
		memory:  &linearMemory{limit: uint64(p.limits.Memory)},
		session: &session{printer: printer{log: p.printed}},
		hooks:   make(map[abi.Hook]api.Function, len(p.hooks)),
		limits:  p.limits,
	}
	i.session.begin(setupStamp())
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := p.code.engine.InstantiateModule(experimental.WithMemoryAllocator(ctx, i.memory), p.code.module, config)
	if err != nil {
		return nil, p.report("_initialize", i.ended(ctx, err), "")
	}
	i.module, i.alloc = module, module.ExportedFunction(abi.ExportAlloc)
	for hook := range p.hooks {
		i.hooks[hook] = module.ExportedFunction(string(hook))
	}
	if err := p.initialize(ctx, i); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (p *Plugin) initialize(ctx context.Context, i *instance) error {
	if !p.reactor {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.limits.Setup, errTimeLimit)
	defer cancel()
	err := i.run(ctx, i.module.ExportedFunction("_initialize"))
	i.session.printer.end()
	if err != nil {
		return p.report("_initialize", err, i.session.printer.said())
	}
	return nil
}

// close ends the instance. Its memory is freed when nobody reads it any more.
func (i *instance) close() { _ = i.module.Close(context.Background()) }
