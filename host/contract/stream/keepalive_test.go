package stream

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"weir/host/run"
)

// pull reads one chunk and tells when it came.
func pull(t *testing.T, b *body, begin time.Time) (string, time.Duration) {
	t.Helper()
	p := make([]byte, 4096)
	n, err := b.Read(p)
	if err != nil {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
	return string(p[:n]), time.Since(begin)
}

// Fault S10 and section 10.5: a comment after 15 s without a byte, counted anew
// from every byte, and never before WORKFLOW_START.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		client, leave := context.WithCancel(t.Context())
		e := newEmitter(client, 0, "w", run.Info{RunID: "r"}) // no steps: the start has no bytes
		b := newBody(client, e.blocks, 15*time.Second, leave)
		go func() {
			defer close(b.done)
			time.Sleep(40 * time.Second) // waiting for a slow start
			e.Started(run.Info{})
			time.Sleep(30 * time.Second)
			e.Text("a") // at 70 s
			time.Sleep(14 * time.Second)
			e.Text("b") // at 84 s: nothing was silent
			time.Sleep(16 * time.Second)
			e.close() // at 100 s
		}()
		want := []struct {
			text string
			at   time.Duration
		}{
			{keepAlive, 45 * time.Second}, {keepAlive, 60 * time.Second},
			{"data: {\"value\":\"a\"}\n\n", 70 * time.Second},
			{"data: {\"value\":\"b\"}\n\n", 84 * time.Second},
			{keepAlive, 99 * time.Second},
		}
		for _, w := range want {
			if text, at := pull(t, b, begin); text != w.text || at != w.at {
				t.Errorf("at %v: %q, want %q at %v", at, text, w.text, w.at)
			}
		}
		if text, _ := pull(t, b, begin); text != string(encodeError(failureText(run.FailureRun))) {
			t.Errorf("at the end: %q", text)
		}
		if _, err := b.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
		_ = b.Close()
	})
}

// A block that is written in pieces is never interrupted, however slow.
func TestKeepAliveStandsBetweenBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, leave := context.WithCancel(t.Context())
		e := newEmitter(client, 0, "w", run.Info{RunID: "r"})
		b := newBody(client, e.blocks, 15*time.Second, leave)
		close(b.done)
		e.Started(run.Info{})
		e.Text("slow")
		got, p := "", make([]byte, 1)
		for range len("data: {\"value\":\"slow\"}\n\n") {
			n, err := b.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			got += string(p[:n])
			time.Sleep(20 * time.Second) // the client reads slowly
		}
		if want := "data: {\"value\":\"slow\"}\n\n"; got != want {
			t.Errorf("got %q", got)
		}
		_ = b.Close()
	})
}

// Nobody reads: the run waits after 64 blocks, and goes on when the client has
// left.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, leave := context.WithCancelCause(t.Context())
		e := newEmitter(client, 0, "w", run.Info{RunID: "r"})
		shown := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.Started(run.Info{})
			for range 1000 {
				e.Text("x")
				shown++
			}
			e.close()
		}()
		synctest.Wait()
		if want := backlog - 1; shown != want { // one place is the start's
			t.Errorf("%d pieces were taken, want %d", shown, want)
		}
		leave(errClientGone)
		<-done
		b := newBody(client, e.blocks, time.Second, func() {})
		close(b.done)
		for {
			_, err := b.Read(make([]byte, 4096))
			if errors.Is(err, errClientGone) || err == io.EOF {
				break
			}
		}
		_ = b.Close()
	})
}
