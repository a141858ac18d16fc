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
		close(log.release)
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

// slowAtEnd is a client that takes the end of a run and does not come back.
type slowAtEnd struct {
	nobody
	told, goOn chan struct{}
}

func (s slowAtEnd) Ended(Info) { close(s.told); <-s.goOn }

// Whoever knows that a run has ended finds its log, and if he has to wait for
// it.
func TestAllSettledWaitsForWhatIsKnown(t *testing.T) {
	w := &world{script: script{question: "Hello", model: []modelTurn{{text: []string{"Hi."}}}}, cancel: func() {}}
	r := newReplica(t, memory.New(memory.Options{}), w, "a", KeeperOptions{Alone: true})
	out := slowAtEnd{told: make(chan struct{}), goOn: make(chan struct{})}
	req := request(w.script)
	req.RunID = runID
	over := make(chan struct{})
	go r.keeper.Run(t.Context(), req, out, func() { close(over) })
	within(t, "end", out.told)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r.keeper.AllSettled(short)
	if _, err := read(t.Context(), r.store, runID); fault.Of(err) == fault.NotFound && short.Err() == nil {
		t.Error("all is settled, and the log of a run that has ended is not there")
	}
	close(out.goOn)
	within(t, "end of the stream", over)
	r.keeper.AllSettled(t.Context())
	if _, err := read(t.Context(), r.store, runID); err != nil {
		t.Error(err)
	}
}
