package plugin

import (
	"context"
	"sync"
	"time"
)

// pool keeps a plugin's idle instances and bounds how many there are. A slot
// is held by each call that runs; its instance is taken from the idle ones or
// made by the caller.
type pool struct {
	slots gate

	mu   sync.Mutex
	idle []*instance
}

func newPool(size int) *pool { return &pool{slots: gate{free: int64(size)}} }

// enter waits for a slot, until ctx or the time ends.
func (p *pool) enter(ctx context.Context, wait time.Duration) error {
	return p.slots.enter(ctx, 1, wait)
}

func (p *pool) leave() { p.slots.leave(1) }

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

// drain closes the idle instances.
func (p *pool) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.idle {
		i.close()
	}
	p.idle = nil
}
