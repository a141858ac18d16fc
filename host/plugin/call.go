package plugin

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"weir/abi"
	"weir/host/fault"
)

// decoder reads a reply and checks what it means. What it returns an error for
// is no reply.
type decoder func(reply []byte) error

// bounds are those of one call.
type bounds struct {
	stamp
	time time.Duration
	fuel uint64
}

func (p *Plugin) bounds(hook abi.Hook, st stamp, request int) bounds {
	timed := hook
	if hook == abi.HookCheckOutput && st.display {
		timed = abi.HookCheckToolResult // it is as long as one
	}
	b := bounds{stamp: st, time: p.limits.Call(timed, request), fuel: p.limits.Fuel}
	if hook == abi.HookDescribe || hook == abi.HookConfigure {
		b.fuel *= setupFuel
	}
	return b
}

// invoke is one call: it waits for an instance, runs the hook and has its
// reply decoded. The reply is appended to dst, which may be nil.
func (p *Plugin) invoke(ctx context.Context, hook abi.Hook, st stamp, request, dst []byte, decode decoder) (reply []byte, fuel uint64, err error) {
	if !p.Has(hook) {
		return nil, 0, fault.New(fault.NotFound, "plugin %s: %s: the module does not export this hook", p.name, hook)
	}
	if err := p.enter(); err != nil {
		return nil, 0, p.report(string(hook), err, "")
	}
	defer p.calls.Done()
	b := p.bounds(hook, st, len(request))
	wait := p.limits.Wait
	if wait == 0 {
		wait = b.time
	}
	i, err := p.obtain(ctx, hook, wait)
	if err != nil {
		return nil, 0, err
	}
	defer func() { p.afterCall(i, err) }()
	return p.ask(ctx, i, hook, b, request, dst, decode)
}

// ask runs a hook on an instance that the caller holds.
func (p *Plugin) ask(ctx context.Context, i *instance, hook abi.Hook, b bounds, request, dst []byte, decode decoder) ([]byte, uint64, error) {
	answer, fuel, err := i.call(ctx, hook, b, request, dst)
	if err == nil {
		if e := decode(answer[len(dst):]); e != nil {
			err = failed(CodeBadReply, "reply: %v", e)
		}
	}
	if err == nil {
		return answer, fuel, nil
	}
	said := ""
	if p.mayQuote(hook) {
		said = i.session.printer.said()
	}
	return nil, fuel, p.report(string(hook), err, said)
}

// call runs a hook within its bounds.
func (i *instance) call(ctx context.Context, hook abi.Hook, b bounds, request, dst []byte) ([]byte, uint64, error) {
	if ctx.Err() != nil {
		return nil, 0, stopped(ctx)
	}
	i.begin(ctx, b)
	answer, err := i.send(hook, request, dst)
	return answer, i.end(), err
}

// send hands request to the guest by its carrier.
func (i *instance) send(hook abi.Hook, request, dst []byte) ([]byte, error) {
	if i.sdk != nil {
		return i.sdk.exchange(i, hook, request, dst)
	}
	return i.exchange(i.hook(hook), request, dst)
}

// begin prepares for a call.
func (i *instance) begin(ctx context.Context, b bounds) {
	i.ctx.Context = ctx
	i.memory.refused = false
	i.session.begin(b.stamp)
	i.session.meter.begin(ctx, b.time, b.fuel)
}

// end forgets the caller and returns the fuel that the call used.
func (i *instance) end() uint64 {
	i.ctx.Context = nil
	return i.session.meter.end()
}

// exchange hands request to the guest and appends its reply to dst.
//
//	p = weir_alloc(len)   memory[p:] = request   r = hook(p, len)   memory[r>>32:][:r&m]
func (i *instance) exchange(hook api.Function, request, dst []byte) ([]byte, error) {
	if uint64(len(request)) > math.MaxInt32 {
		return nil, fault.New(fault.Invalid, "the request has %d bytes, more than a module can hold", len(request))
	}
	i.stack[0] = uint64(len(request))
	if err := i.run(i.alloc); err != nil {
		return nil, fmt.Errorf("%s: %w", abi.ExportAlloc, err)
	}
	ptr := uint32(i.stack[0])
	i.session.meter.pay(byteUnits(len(request)))
	if !i.module.Memory().Write(ptr, request) {
		if i.memory.refused {
			return nil, failed(CodeMemory, "out of memory: the limit is %d MiB", i.limits.Memory>>20)
		}
		return nil, failed(CodeBadReply, "%s answered %d for %d bytes, outside of its memory of %d",
			abi.ExportAlloc, ptr, len(request), i.module.Memory().Size())
	}
	i.stack[0], i.stack[1] = uint64(ptr), uint64(len(request))
	if err := i.run(hook); err != nil {
		return nil, err
	}
	return i.copyReply(i.stack[0], dst)
}

// run calls a guest function with what stands in i.stack.
func (i *instance) run(f api.Function) error {
	if err := f.CallWithStack(&i.ctx, i.stack[:]); err != nil {
		return i.ended(err)
	}
	return nil
}

func (i *instance) copyReply(packed uint64, dst []byte) ([]byte, error) {
	ptr, size := uint32(packed>>32), uint32(packed)
	if size == 0 {
		return nil, failed(CodeBadReply, "empty reply")
	}
	view, ok := i.module.Memory().Read(ptr, size)
	if !ok {
		return nil, failed(CodeBadReply, "reply of %d bytes at %d, outside of its memory of %d",
			size, ptr, i.module.Memory().Size())
	}
	if uint64(size) > uint64(i.limits.Reply) {
		return nil, failed(CodeTooLarge, "reply of %d bytes, at most %d are allowed", size, i.limits.Reply)
	}
	if dst == nil {
		dst = make([]byte, 0, size)
	}
	return append(dst, view...), nil
}
