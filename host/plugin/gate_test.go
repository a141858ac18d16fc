package plugin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Waiters are admitted in the order in which they came, also when a later one
// would fit; who gives up leaves the queue to the others.
func TestGateIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{free: 3}
		if !g.try(2) || g.try(2) {
			t.Fatal("expected 2 of 3 units, once")
		}
		order := make(chan string, 8)
		enter := func(name string, units int64, wait time.Duration) {
			go func() {
				if err := g.enter(context.Background(), units, wait); err != nil {
					name += " gave up"
				}
				order <- name
			}()
			synctest.Wait()
		}
		enter("large", 3, time.Hour)
		enter("impatient", 3, time.Minute)
		enter("small", 1, time.Hour)
		if len(order) != 0 || g.try(1) {
			t.Fatal("somebody passed the queue")
		}
		time.Sleep(2 * time.Minute)
		g.leave(2)
		synctest.Wait()
		if len(order) != 2 || <-order != "impatient gave up" || <-order != "large" {
			t.Error("expected the large one first")
		}
		g.leave(3)
		synctest.Wait()
		if len(order) != 1 || <-order != "small" || g.free != 2 || g.queued() {
			t.Errorf("free %d", g.free)
		}
	})
}

func TestGateForgetsWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{free: 1}
		g.try(1)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- g.enter(ctx, 1, time.Hour) }()
		synctest.Wait()
		cancel()
		if err := <-done; err == nil || err.Error() != "the caller cancelled" {
			t.Error(err)
		}
		if err := g.enter(context.Background(), 1, 0); err == nil {
			t.Error("entered without waiting")
		}
		g.leave(1)
		if !g.try(1) {
			t.Error("a unit is lost")
		}
	})
}

// A waiter that is admitted in the moment in which it gives up loses nothing.
func TestGateKeepsItsUnits(t *testing.T) {
	g := &gate{free: 1}
	for range 2000 {
		g.try(1)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- g.enter(ctx, 1, time.Hour) }()
		go cancel()
		g.leave(1)
		if <-done == nil {
			g.leave(1)
		}
		if !g.try(1) {
			t.Fatal("a unit is lost")
		}
		g.leave(1)
	}
}
