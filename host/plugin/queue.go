package plugin

import "context"

// A plugin without an image needs a new instance for every call: initialised,
// described where that initialises, and configured. Its pool is a queue of such
// instances that nobody has used. Each call takes one, or makes its own when
// there is none, and closes it; what was taken is made up for in the
// background, by one instance at a time, as long as there is memory that nobody
// waits for. So a burst is served from the queue, and what lasts is bounded by
// how fast instances can be made.

// refill makes sure that the queue is being filled.
func (p *Plugin) refill() {
	if p.intro.image != nil || !p.pool.beginFilling() {
		return
	}
	if p.enter() != nil {
		p.pool.stopFilling()
		return
	}
	go func() {
		defer p.calls.Done() // closing waits
		for p.pool.wants() {
			if !p.prepareOne(p.pool.life) {
				p.pool.stopFilling()
				return
			}
		}
	}()
}

// prepareOne adds an instance to the queue. A plugin whose instances cannot be
// made says so to the call that needs one.
func (p *Plugin) prepareOne(ctx context.Context) bool {
	memory := &p.runtime.memory
	if ctx.Err() != nil || memory.queued() || !memory.try(int64(p.limits.Memory)) {
		return false
	}
	i, err := p.newInstance(ctx)
	if err != nil {
		memory.leave(int64(p.limits.Memory))
		return false
	}
	p.pool.put(i)
	memory.leave(int64(p.limits.Memory) - i.held())
	return true
}

// beginFilling is false when the queue is full or being filled.
func (p *pool) beginFilling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filling || len(p.idle) >= p.size {
		return false
	}
	p.filling = true
	return true
}

// wants tells whether another instance is needed; if not, filling has ended.
func (p *pool) wants() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filling = len(p.idle) < p.size
	return p.filling
}

func (p *pool) stopFilling() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filling = false
}
