package plugin

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"weir/abi"
	"weir/host/plugin/instrument"
)

// instance is one running copy of a module. It belongs to one call at a time.
type instance struct {
	module  api.Module
	alloc   api.Function
	hooks   map[abi.Hook]api.Function
	memory  *linearMemory
	globals []api.MutableGlobal // in the order of code.globals
	image   *image              // what it is put back to; nil for none
	session *session
	sdk     *sdkGuest // of an Extism module, which has nothing of the above but memory and session
	limits  Limits
	ctx     callContext
	stack   [2]uint64 // arguments and results of a guest function
}

// newInstance makes an instance that is ready for calls: from the image, or,
// where memory and globals are not all, from the beginning.
func (p *Plugin) newInstance(ctx context.Context) (*instance, error) {
	if img := p.intro.image; img != nil {
		i, err := p.instantiate(img)
		if err == nil {
			return i, nil
		}
		return nil, p.report("instance", err, "")
	}
	i, err := p.birth(ctx, p.segments)
	if err != nil {
		return nil, err
	}
	if _, err := p.configure(ctx, i, p.config); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// birth makes an instance as the module describes it, and initialises it.
func (p *Plugin) birth(ctx context.Context, segments []segment) (*instance, error) {
	i, err := p.bear(segments)
	if err != nil {
		return nil, p.report("_initialize", err, "")
	}
	if err := p.initialize(ctx, i); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (p *Plugin) bear(segments []segment) (*instance, error) {
	if p.code.sdk != nil {
		return p.instantiateSDK()
	}
	i, err := p.instantiate(nil)
	if err != nil {
		return nil, err
	}
	if err := fill(i.bytes(), segments); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// instantiate makes an instance with the state of an image, or with nothing in
// its memory. The module has no name in the runtime, so it meets no other one;
// what fails here closes only itself.
func (p *Plugin) instantiate(img *image) (*instance, error) {
	var content *snapshot
	if img != nil {
		content = img.memory
	}
	memory, err := newMemory(uint64(p.limits.Memory), p.memory, content)
	if err != nil {
		return nil, err
	}
	i := &instance{
		memory:  memory,
		session: &session{printer: printer{log: p.printed}},
		hooks:   make(map[abi.Hook]api.Function, len(p.hooks)),
		limits:  p.limits,
	}
	i.ctx.session = i.session
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	ctx := experimental.WithMemoryAllocator(context.Background(), memory)
	if i.module, err = p.code.engine.InstantiateModule(ctx, p.code.module, config); err != nil {
		memory.Free() // wazero does not
		return nil, i.ended(err)
	}
	if err := i.link(p.code); err != nil {
		i.close()
		return nil, err
	}
	if img != nil {
		if err := i.adopt(img); err != nil {
			i.close()
			return nil, err
		}
	}
	return i, nil
}

// link looks up what every call needs.
func (i *instance) link(c *code) error {
	fuel, ok := i.module.ExportedGlobal(instrument.FuelGlobal).(api.MutableGlobal)
	if !ok {
		return errors.New("the instrumented module has no fuel")
	}
	i.session.meter.fuel = fuel
	i.alloc = i.module.ExportedFunction(abi.ExportAlloc)
	if c.resettable {
		return i.find(c.globals)
	}
	return nil
}

// forgetFunctions drops the stacks of the guest functions. They grow with the
// depth of calls, up to some 100 MB each, and never shrink; only a call that
// used up its first slice has had the time for that.
func (i *instance) forgetFunctions() {
	clear(i.hooks)
	i.alloc = i.module.ExportedFunction(abi.ExportAlloc)
}

// hook looks a hook up once: each has a stack of its own.
func (i *instance) hook(hook abi.Hook) api.Function {
	f, ok := i.hooks[hook]
	if !ok {
		f = i.module.ExportedFunction(string(hook))
		i.hooks[hook] = f
	}
	return f
}

func (p *Plugin) initialize(ctx context.Context, i *instance) error {
	if i.sdk != nil { // the SDK does so in the first call
		_, err := p.describe(ctx, i)
		return err
	}
	if !p.reactor {
		return nil
	}
	if ctx.Err() != nil {
		return p.report("_initialize", stopped(ctx), "")
	}
	i.begin(ctx, bounds{stamp: setupStamp(), time: p.limits.Setup, fuel: setupFuel * p.limits.Fuel})
	err := i.run(i.module.ExportedFunction("_initialize"))
	i.end()
	i.session.printer.end()
	if err != nil {
		return p.report("_initialize", err, i.session.printer.said())
	}
	return nil
}

// close ends the instance and frees its memory.
func (i *instance) close() {
	if i.sdk != nil {
		i.sdk.close()
		return
	}
	_ = i.module.Close(context.Background())
}
