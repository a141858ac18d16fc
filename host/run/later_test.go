package run

import (
	"context"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/store/memory"
)

// slow is a log that waits before it writes that of a whole run.
type slow struct {
	Log
	release chan struct{}
}

func (s slow) Complete(ctx context.Context, log, id string, records [][]byte) error {
	<-s.release
	return s.Log.Complete(ctx, log, id, records)
}

// A run that asked nobody ends for its client before its log is written; until
// then it is followed from memory, and whoever reads the store can wait for it.
func TestLogIsWrittenLater(t *testing.T) {
	w := &world{script: script{question: "Hello", model: []modelTurn{{text: []string{"Hi."}}}}, cancel: func() {}}
	r := newReplica(t, memory.New(memory.Options{}), w, "a", KeeperOptions{Alone: true})
	log := slow{r.store, make(chan struct{})}
	r.log = log
	c := r.begin(runID)
	within(t, "end", c.over)
	if _, err := read(t.Context(), r.store, runID); fault.Of(err) != fault.NotFound {
		t.Fatalf("the log is there already: %v", err)
	}
	f := r.follow(runID, "")
	within(t, "end of the follower", f.done)
	if got := f.all(); got[len(got)-1] != "end" {
		t.Errorf("followed: %q", got)
	}
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		r.keeper.Settled(t.Context(), runID)
	}()
	select {
	case <-settled:
		t.Error("settled before the log is written")
	case <-time.After(20 * time.Millisecond):
	}
	close(log.release)
	within(t, "settled", settled)
	if _, err := read(t.Context(), r.store, runID); err != nil {
		t.Error(err)
	}
	r.keeper.AllSettled(t.Context())
}
