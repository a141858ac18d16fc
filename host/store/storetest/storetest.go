// Package storetest is the suite that every store backend passes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
		{"list", list},
		{"end", end},
		{"values", values},
		{"values: one winner", valuesOneWinner},
		{"values expire", expiry},
		{"value bounds", valueBounds},
		{"keys", keys},
		{"blobs", blobs},
		{"drop a space", dropSpace},
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, appendErr := s.Append(ctx, "runs.a", 0, "i", records("x"))
	_, getErr := s.Get(ctx, "k")
	_, putErr := s.Put(ctx, "k", nil, 0, 0)
	_, listErr := s.List(ctx, "")
	_, blobErr := s.PutBlob(ctx, "a", nil)
	for what, err := range map[string]error{"append": appendErr, "get": getErr, "put": putErr, "list": listErr, "put blob": blobErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", what, err)
		}
	}
	wantLines(t, read(t, s, "runs.a", 0))
}
