package hosttest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/host"
)

// SwapLoad says how hard a host is swapped.
type SwapLoad struct {
	Swaps int
	// Rate is how many requests are begun a second, if the machine keeps up: no
	// more than maxOpen wait for their answers, since a host refuses what is
	// beyond its capacity.
	Rate int
	// Pause lies between two swaps.
	Pause time.Duration
}

const maxOpen = 50

// SwapResult is what came of it.
type SwapResult struct {
	Swaps       int
	Requests    int64
	Failed      int64
	Mixed       int64 // answers that named not exactly one generation, or showed parts of another
	First       string
	ByVariant   map[string]int64
	Took        time.Duration
	HeapHalf    uint64 // bytes in use after half of the swaps
	HeapEnd     uint64 // and after all
	RoutineHalf int
	RoutineEnd  int
}

// SwapUnderLoad swaps between two variants of a running world while requests
// come in at a steady rate, over real HTTP. Each answer must carry one
// generation, and only parts of that one.
func SwapUnderLoad(t testing.TB, w *World, load SwapLoad) SwapResult {
	t.Helper()
	ids := map[string]string{} // generation to variant
	for _, v := range []string{"b", "a"} {
		w.Variant(t, v)
		if _, err := w.Host.Reload(context.Background()); err != nil {
			t.Fatal(err)
		}
		ids[w.Host.Status().Active.Generation] = v
	}
	s := &shooter{world: w, ids: ids, byVariant: map[string]int64{}}
	ctx, stop := context.WithCancel(context.Background())
	var shooting sync.WaitGroup
	shooting.Go(func() { s.shoot(ctx, load.Rate) })
	result := SwapResult{Swaps: load.Swaps}
	start := time.Now()
	for i := range load.Swaps {
		w.Variant(t, string("ba"[i%2]))
		outcome, err := w.Host.Reload(context.Background())
		if err != nil || outcome != host.OutcomeSwapped {
			t.Errorf("swap %d: %s, %v", i, outcome, err)
		}
		if i == load.Swaps/2 {
			result.HeapHalf, result.RoutineHalf = measure()
		}
		time.Sleep(load.Pause)
	}
	result.HeapEnd, result.RoutineEnd = measure()
	result.Took = time.Since(start)
	stop()
	shooting.Wait()
	result.Requests, result.Failed, result.Mixed = s.requests.Load(), s.failed.Load(), s.mixed.Load()
	result.First, result.ByVariant = s.first, s.byVariant
	return result
}

func measure() (heap uint64, routines int) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse, runtime.NumGoroutine()
}

// shooter sends requests.
type shooter struct {
	world                   *World
	ids                     map[string]string
	requests, failed, mixed atomic.Int64

	mu        sync.Mutex
	first     string // what was wrong first
	byVariant map[string]int64
}

func (s *shooter) shoot(ctx context.Context, rate int) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var open sync.WaitGroup
	defer open.Wait()
	places := make(chan struct{}, maxOpen)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			places <- struct{}{}
			open.Go(func() { s.one(); <-places })
		}
	}
}

func (s *shooter) one() {
	s.requests.Add(1)
	a, err := s.world.Ask(context.Background(), "hello")
	if err != nil {
		s.failed.Add(1)
		s.note(err.Error())
		return
	}
	if why := s.judge(a); why != "" {
		s.mixed.Add(1)
		s.note(why + ": " + a.Raw)
	}
}

// judge says what is wrong with an answer.
func (s *shooter) judge(a Answer) string {
	if len(a.Generations) != 1 {
		return fmt.Sprintf("%d generations", len(a.Generations))
	}
	variant, known := s.ids[a.Generations[0]]
	if !known {
		return "an unknown generation"
	}
	s.mu.Lock()
	s.byVariant[variant]++
	s.mu.Unlock()
	if a.Text != "answer-"+variant {
		return "generation " + variant + " answered " + a.Text
	}
	if !strings.Contains(a.Raw, `"variant":"`+variant+`"`) {
		return "generation " + variant + " was guarded by another"
	}
	return ""
}

func (s *shooter) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == "" {
		s.first = text
	}
}
