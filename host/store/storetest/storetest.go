// Package storetest is the suite that every store backend passes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/host/fault"
	"weir/host/store"
)

// Backend is what the suite needs to know of a backend.
type Backend struct {
	// Open returns an empty store; the suite closes it.
	Open func(t *testing.T) store.Store
	// RealTime is set for backends that wait for more than the Go runtime:
	// what depends on time is then polled for instead of run in a bubble.
	RealTime bool
	// Peer returns another store on the data of an open one, as another replica
	// has it. If nil, the store itself takes the part.
	Peer func(t *testing.T, s store.Store) store.Store
	// Reopen returns a store on what is left when the process of an open store
	// is killed. It is nil if that is nothing.
	Reopen func(t *testing.T, s store.Store) store.Store
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Backend, store.Store)
	}{
		{"append and read", appendAndRead},
		{"append copies", appendCopies},
		{"append bounds", appendBounds},
		{"names", names},
		{"one winner per position", oneWinner},
		{"retries settle", retriesSettle},
		{"watch", watch},
		{"watch of what is not there yet", watchEarly},
		{"watch gives up", watchGivesUp},
		{"changes", changes},
		{"list", list},
		{"end", end},
		{"values", values},
		{"values: one winner", valuesOneWinner},
		{"values expire", expiry},
		{"value bounds", valueBounds},
		{"keys", keys},
		{"blobs", blobs},
		{"blob sizes", blobSizes},
		{"drop a space", dropSpace},
		{"replicas: logs", peersLogs},
		{"replicas: one winner per position", peersOneWinner},
		{"replicas: end and append", endRaces},
		{"replicas: watch among appenders", watchAmongAppenders},
		{"replicas: values", peersValues},
		{"replicas: blobs", peersBlobs},
		{"a lost acknowledgement", lostAcknowledgement},
		{"long logs", longLogs},
		{"a crash", crash},
		{"close", closing},
		{"an ended context", endedContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := b.Open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(t, b, s)
		})
	}
}

func records(texts ...string) [][]byte {
	out := make([][]byte, len(texts))
	for i, text := range texts {
		out[i] = []byte(text)
	}
	return out
}

func mustAppend(t *testing.T, s store.Store, log string, expected int64, id string, texts ...string) int64 {
	t.Helper()
	position, err := s.Append(t.Context(), log, expected, id, records(texts...))
	if err != nil {
		t.Fatalf("append to %s at %d: %v", log, expected, err)
	}
	return position
}

func wantKind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want kind %v", what, want)
	} else if got := fault.Of(err); got != want {
		t.Errorf("%s: kind %v (%v), want %v", what, got, err, want)
	}
}

// read returns "position id record|record" for each message.
func read(t *testing.T, s store.Store, log string, from int64) []string {
	t.Helper()
	var lines []string
	for m, err := range s.Read(t.Context(), log, from) {
		if err != nil {
			t.Fatalf("read %s: %v", log, err)
		}
		lines = append(lines, line(m))
	}
	return lines
}

func line(m store.Message) string {
	return fmt.Sprintf("%d %s %s", m.Position, m.ID, bytes.Join(m.Records, []byte("|")))
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func closing(t *testing.T, _ Backend, s store.Store) {
	mustAppend(t, s, "runs.a", 0, "i", "x")
	for _, err := range s.Watch(t.Context(), "runs.a", 0) {
		if err != nil {
			wantKind(t, "a watch of a closed store", err, fault.Unavailable)
			break
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}
	_, err := s.Append(t.Context(), "runs.a", 1, "j", records("x"))
	wantKind(t, "append to a closed store", err, fault.Unavailable)
	_, err = s.Get(t.Context(), "k")
	wantKind(t, "get from a closed store", err, fault.Unavailable)
}

func endedContext(t *testing.T, _ Backend, s store.Store) {
	mustAppend(t, s, "runs.a", 0, "i", "x")
	digest, err := s.PutBlob(t.Context(), "a", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: expired} {
		for what, call := range calls(s, digest) {
			if err := call(ctx); !errors.Is(err, want) {
				t.Errorf("%s with an ended context: %v, want %v", what, err, want)
			}
		}
	}
	wantLines(t, read(t, s, "runs.a", 0), "1 i x")
	for what, call := range calls(s, digest) { // the control: with a context that goes on they work
		if what == "watch" {
			continue
		}
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// calls returns every method, so that it succeeds once in the order of a map.
func calls(s store.Store, digest string) map[string]func(context.Context) error {
	first := func(messages iter.Seq2[store.Message, error]) error {
		for _, err := range messages {
			return err
		}
		return nil
	}
	return map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := s.Append(ctx, "runs.b", 0, "i", records("x"))
			return err
		},
		"read":        func(ctx context.Context) error { return first(s.Read(ctx, "runs.a", 0)) },
		"watch":       func(ctx context.Context) error { return first(s.Watch(ctx, "runs.a", 1)) },
		"list":        func(ctx context.Context) error { _, err := s.List(ctx, ""); return err },
		"end":         func(ctx context.Context) error { return s.End(ctx, "runs.a") },
		"get":         func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return ignore(err, fault.NotFound) },
		"put":         func(ctx context.Context) error { _, err := s.Put(ctx, "k", nil, store.Any, 0); return err },
		"delete":      func(ctx context.Context) error { return s.Delete(ctx, "k", store.Any) },
		"keys":        func(ctx context.Context) error { _, err := s.Keys(ctx, ""); return err },
		"put blob":    func(ctx context.Context) error { _, err := s.PutBlob(ctx, "b", []byte("y")); return err },
		"blob":        func(ctx context.Context) error { _, err := s.Blob(ctx, "a", digest); return err },
		"delete blob": func(ctx context.Context) error { return s.DeleteBlob(ctx, "b", digest) },
		"drop space":  func(ctx context.Context) error { return s.DropSpace(ctx, "c") },
	}
}

func ignore(err error, kind fault.Kind) error {
	if fault.Of(err) == kind {
		return nil
	}
	return err
}
