package plugin

import (
	"context"
	"sync"
	"time"
)

// gate hands out a number of units and makes callers wait in the order in
// which they came.
type gate struct {
	mu      sync.Mutex
	free    int64
	waiting []*waiter
}

type waiter struct {
	units int64
	ready chan struct{} // closed when the units are the waiter's
}

// try takes units if they are free and nobody waits.
func (g *gate) try(units int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 || g.free < units {
		return false
	}
	g.free -= units
	return true
}

// enter takes units, waiting for them until ctx or the time ends.
func (g *gate) enter(ctx context.Context, units int64, wait time.Duration) error {
	if g.try(units) {
		return nil
	}
	if wait <= 0 {
		return failed(CodeUnavailable, "no instance was free in time")
	}
	w := &waiter{units: units, ready: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	g.admit()
	g.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.ready:
		return nil
	case <-timer.C:
		return g.giveUp(w, failed(CodeUnavailable, "no instance was free in time"))
	case <-ctx.Done():
		return g.giveUp(w, waited(ctx))
	}
}

// giveUp takes a waiter out of the queue, unless it was admitted meanwhile.
func (g *gate) giveUp(w *waiter, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for n, other := range g.waiting {
		if other == w {
			g.waiting = append(g.waiting[:n], g.waiting[n+1:]...)
			g.admit() // it may have stood before smaller ones
			return why
		}
	}
	g.free += w.units
	g.admit()
	return why
}

// leave gives units back.
func (g *gate) leave(units int64) {
	g.mu.Lock()
	g.free += units
	g.admit()
	g.mu.Unlock()
}

// admit lets the first waiters in, as many as there is room for.
func (g *gate) admit() {
	for len(g.waiting) > 0 && g.free >= g.waiting[0].units {
		w := g.waiting[0]
		g.waiting[0] = nil
		g.waiting = g.waiting[1:]
		g.free -= w.units
		close(w.ready)
	}
}

// spare tells whether there are units that nobody waits for.
func (g *gate) spare() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.free > 0 && len(g.waiting) == 0
}

// queued tells whether somebody waits.
func (g *gate) queued() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting) > 0
}
