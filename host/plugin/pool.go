package plugin

import (
	"context"
	"sync"
	"time"

	"weir/abi"
)

// pool keeps a plugin's idle instances and bounds how many there are. A slot
// is held by each call that runs; its instance is taken from the idle ones or
// made by the caller.
type pool struct {
	slots gate
	size  int             // of the queue
	life  context.Context // of what fills the queue
	end   context.CancelFunc

	mu      sync.Mutex
	idle    []*instance
	filling bool // the queue
}

func newPool(size int) *pool {
	p := &pool{slots: gate{free: int64(size)}, size: size}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// take returns the instance that was used last, whose memory is warm, or nil.
func (p *pool) take() *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	i := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return i
}

func (p *pool) put(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, i)
}

// drain closes the idle instances and returns the memory that they held.
func (p *pool) drain() (held int64) {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, i := range idle {
		held += i.held()
		i.close()
	}
	return held
}

// held is what an idle instance counts in the memory of all plugins.
func (i *instance) held() int64 {
	if i.sdk != nil {
		return int64(i.sdk.memory.used)
	}
	return int64(len(i.memory.bytes()))
}

// obtain waits for an instance that is the caller's alone until giveBack. It
// waits for a slot of the plugin and for memory of the runtime, of which a
// running instance counts with all that it may use.
func (p *Plugin) obtain(ctx context.Context, hook abi.Hook, wait time.Duration) (i *instance, err error) {
	if !p.pool.slots.try(1) {
		begun := time.Now()
		if err := p.pool.slots.enter(ctx, 1, wait); err != nil {
			return nil, p.report(string(hook), err, "")
		}
		wait -= time.Since(begun)
	}
	need := int64(p.limits.Memory)
	if i = p.pool.take(); i != nil {
		need -= i.held()
	}
	if err := p.runtime.reserve(ctx, need, wait); err != nil {
		if i != nil {
			p.pool.put(i)
		}
		p.pool.slots.leave(1)
		return nil, p.report(string(hook), err, "")
	}
	if i == nil {
		if i, err = p.newInstance(ctx); err != nil {
			p.runtime.memory.leave(need)
			p.pool.slots.leave(1)
			return nil, err
		}
	}
	return i, nil
}

// giveBack ends the use of an instance, which goes to the pool if it is to be
// kept and nobody waits for the memory that it holds.
func (p *Plugin) giveBack(i *instance, keep bool) {
	free := int64(p.limits.Memory)
	if keep && !p.runtime.memory.queued() {
		free -= i.held()
		p.pool.put(i)
	} else {
		i.close()
	}
	p.runtime.memory.leave(free)
	p.pool.slots.leave(1)
}

// reserve takes memory for an instance. When there is none, the idle instances
// of all plugins are closed for it.
func (r *Runtime) reserve(ctx context.Context, bytes int64, wait time.Duration) error {
	if r.memory.try(bytes) {
		return nil
	}
	r.mu.Lock()
	for p := range r.plugins {
		r.memory.leave(p.pool.drain())
	}
	r.mu.Unlock()
	return r.memory.enter(ctx, bytes, wait)
}
