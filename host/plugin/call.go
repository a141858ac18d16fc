package plugin

import (
	"context"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"

	"weir/abi"
	"weir/host/fault"
)

// decoder reads a reply and checks what it means. What it returns an error for
// is no reply.
type decoder func(reply []byte) error

// invoke is one call: it waits for an instance, runs the hook and has its
// reply decoded. The returned bytes belong to the caller.
func (p *Plugin) invoke(ctx context.Context, hook abi.Hook, st stamp, request []byte, decode decoder) ([]byte, error) {
	if !p.Has(hook) {
		return nil, fault.New(fault.NotFound, "plugin %s: %s: the module does not export this hook", p.name, hook)
	}
	if err := p.enter(); err != nil {
		return nil, p.report(string(hook), err, "")
	}
	defer p.calls.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, p.limits.call(len(request)), errTimeLimit)
	defer cancel()
	if err := p.pool.enter(ctx); err != nil {
		return nil, p.report(string(hook), err, "")
	}
	defer p.pool.leave()
	i := p.pool.take()
	if i == nil {
		var err error
		if i, err = p.newInstance(ctx); err != nil {
			return nil, err
		}
	}
	answer, err := p.ask(ctx, i, hook, st, request, decode)
	p.afterCall(ctx, i, err)
	return answer, err
}

// ask runs a hook on an instance that the caller holds.
func (p *Plugin) ask(ctx context.Context, i *instance, hook abi.Hook, st stamp, request []byte, decode decoder) ([]byte, error) {
	i.session.begin(st)
	i.memory.refused = false
	answer, err := i.exchange(ctx, i.hooks[hook], request)
	if err == nil {
		if e := decode(answer); e != nil {
			err = failed(CodeBadReply, "reply: %v", e)
		}
	}
	if err == nil {
		return answer, nil
	}
	said := ""
	if p.mayQuote(hook) {
		said = i.session.printer.said()
	}
	return nil, p.report(string(hook), err, said)
}

// exchange hands request to the guest and copies its reply out.
//
//	p = weir_alloc(len)   memory[p:] = request   r = hook(p, len)   memory[r>>32:][:r&m]
func (i *instance) exchange(ctx context.Context, hook api.Function, request []byte) ([]byte, error) {
	if uint64(len(request)) > math.MaxInt32 {
		return nil, fault.New(fault.Invalid, "the request has %d bytes, more than a module can hold", len(request))
	}
	i.stack[0] = uint64(len(request))
	if err := i.run(ctx, i.alloc); err != nil {
		return nil, fmt.Errorf("%s: %w", abi.ExportAlloc, err)
	}
	ptr := uint32(i.stack[0])
	if !i.module.Memory().Write(ptr, request) {
		if i.memory.refused {
			return nil, failed(CodeMemory, "out of memory: the limit is %d MiB", i.limits.Memory>>20)
		}
		return nil, failed(CodeBadReply, "%s answered %d for %d bytes, outside of its memory of %d",
			abi.ExportAlloc, ptr, len(request), i.module.Memory().Size())
	}
	i.stack[0], i.stack[1] = uint64(ptr), uint64(len(request))
	if err := i.run(ctx, hook); err != nil {
		return nil, err
	}
	return i.copyReply(i.stack[0])
}

// run calls a guest function with what stands in i.stack.
func (i *instance) run(ctx context.Context, f api.Function) error {
	if err := f.CallWithStack(context.WithValue(ctx, sessionKey{}, i.session), i.stack[:]); err != nil {
		return i.ended(ctx, err)
	}
	return nil
}

func (i *instance) copyReply(packed uint64) ([]byte, error) {
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
	return append(make([]byte, 0, size), view...), nil
}
