package host

import (
	"encoding/json"
	"testing"
	"time"

	"weir/host/approval"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/store"
	"weir/host/store/memory"
)

// A generation stays while a replica's lease names it, also as one whose runs
// have not ended there: they may wait for a person yet. What nobody names goes.
func TestSweepKeepsDraining(t *testing.T) {
	s := memory.New(memory.Options{})
	h := &Host{store: s, executor: &approval.Executor{}, swaps: &swaps{}}
	h.archive = newArchive(h)
	h.swaps.current.Store(&policy{draft: &draft{id: "current"}})
	put := func(key string, value any) {
		t.Helper()
		body, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), key, body, store.Any, 0); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * sweepAge).UnixMilli()
	for _, id := range []string{"current", "active", "ending", "waiting", "left"} {
		put(generationPrefix+id, archived{Saved: long})
	}
	put(run.ReplicaPrefix+"b", json.RawMessage(`{"generation":"active","draining":["ending"]}`))
	put(run.OpenPrefix+"b.r", json.RawMessage(`{"generation":"waiting"}`))
	if err := h.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"current": true, "active": true, "ending": true, "waiting": true, "left": false} {
		if _, err := s.Get(t.Context(), generationPrefix+id); (fault.Of(err) != fault.NotFound) != want {
			t.Errorf("generation %s: %v, want it there: %t", id, err, want)
		}
	}
}
