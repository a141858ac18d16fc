package host_test

import (
	"strings"
	"testing"
	"time"

	"weir/host/hosttest"
)

// A change of generation drops no request and mixes none: P9, P14, and the
// bench's 500 swaps under 300 requests a second in short.
func TestSwapUnderLoad(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	load := hosttest.SwapLoad{Swaps: 200, Rate: 100, Pause: 5 * time.Millisecond}
	if testing.Short() {
		load.Swaps = 50
	}
	r := hosttest.SwapUnderLoad(t, w, load)
	if r.Failed > 0 || r.Mixed > 0 {
		t.Errorf("%d failed and %d mixed of %d; the first: %s", r.Failed, r.Mixed, r.Requests, r.First)
	}
	if r.Requests < 20 || r.ByVariant["a"] == 0 || r.ByVariant["b"] == 0 {
		t.Errorf("the load was no load: %d requests, %v", r.Requests, r.ByVariant)
	}
	if s := w.Host.Status(); s.Swaps != load.Swaps+2-1 && s.Swaps != load.Swaps+2 || !s.InSync || s.LastError != nil {
		t.Errorf("status: %+v", s)
	}
	if log := w.Log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("log:\n%s", log)
	}
	t.Logf("%d swaps and %d requests in %s, by variant %v; heap %d → %d KiB, goroutines %d → %d", r.Swaps, r.Requests,
		r.Took.Round(time.Millisecond), r.ByVariant, r.HeapHalf>>10, r.HeapEnd>>10, r.RoutineHalf, r.RoutineEnd)
}
