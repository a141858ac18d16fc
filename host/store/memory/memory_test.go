package memory_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/memory"
	"weir/host/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	storetest.Run(t, storetest.Backend{Open: func(*testing.T) store.Store { return memory.New(memory.Options{}) }})
}

// DECISIONS 5: the memory backend drops a run's log when it ends, except the
// newest keep_ended.
func TestEndedLogsAreDropped(t *testing.T) {
	for _, c := range []struct {
		keep int
		want []string
	}{
		{2, []string{"run.3", "run.4", "run.open"}},
		{-1, []string{"run.open"}},
		{0, []string{"run.0", "run.1", "run.2", "run.3", "run.4", "run.open"}}, // 100
	} {
		t.Run(fmt.Sprint(c.keep), func(t *testing.T) {
			s := memory.New(memory.Options{KeepEnded: c.keep})
			defer s.Close()
			ctx := t.Context()
			add := func(name string) string {
				if _, err := s.Append(ctx, name, 0, "i", [][]byte{[]byte("x")}); err != nil {
					t.Fatal(err)
				}
				digest, err := s.PutBlob(ctx, name, []byte("payload"))
				if err != nil {
					t.Fatal(err)
				}
				return digest
			}
			digest := add("run.open")
			for i := range 5 {
				name := fmt.Sprintf("run.%d", i)
				add(name)
				if err := s.End(ctx, name); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.List(ctx, "")
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("logs = %v, %v, want %v", got, err, c.want)
			}
			for i := range 5 {
				name := fmt.Sprintf("run.%d", i)
				_, err := s.Blob(ctx, name, digest)
				if kept := slices.Contains(c.want, name); kept != (err == nil) {
					t.Errorf("blob of %s: %v, kept %v", name, err, kept)
				}
			}
		})
	}
}

// A watcher of a log that ends and is dropped at once still gets every message.
func TestWatchOfADroppedLog(t *testing.T) {
	s := memory.New(memory.Options{KeepEnded: -1})
	defer s.Close()
	appendOne(t, s, 0)
	n := 0
	for m, err := range s.Watch(t.Context(), "run", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if m.Position == 1 {
			appendOne(t, s, 1)
			if err := s.End(t.Context(), "run"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != 2 {
		t.Errorf("the watcher saw %d messages, want 2", n)
	}
}

func appendOne(t *testing.T, s *memory.Store, expected int64) {
	t.Helper()
	if _, err := s.Append(t.Context(), "run", expected, fmt.Sprintf("i%d", expected), [][]byte{[]byte("x")}); err != nil {
		t.Error(err)
	}
}

// A watch of a log that never comes leaves nothing behind.
func TestWatchLeavesNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	defer s.Close()
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range s.Watch(ctx, "run", 0) {
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range s.Watch(ctx, "run", 0) {
		}
	}()
	cancel()
	<-done
	if _, err := s.Append(t.Context(), "run", 1, "i", [][]byte{{1}}); fault.Of(err) != fault.Conflict {
		t.Errorf("the watched log is not empty: %v", err)
	}
}
