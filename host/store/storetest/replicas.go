package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"weir/host/fault"
	"weir/host/store"
)

// peer returns another store on the same data.
func (b Backend) peer(t *testing.T, s store.Store) store.Store {
	if b.Peer == nil {
		return s
	}
	p := b.Peer(t, s)
	t.Cleanup(func() { p.Close() })
	return p
}

// FAULTS A3: two replicas, one winner, and both know it.
func peersLogs(t *testing.T, b Backend, s store.Store) {
	ctx := t.Context()
	p := b.peer(t, s)
	mustAppend(t, s, "runs.a", 0, "i1", "x")
	_, err := p.Append(ctx, "runs.a", 0, "i0", records("late"))
	wantKind(t, "a first append where the other replica was first", err, fault.Conflict)
	mustAppend(t, p, "runs.a", 1, "i2", "y")
	_, err = s.Append(ctx, "runs.a", 1, "i3", records("late"))
	wantKind(t, "append where the other replica was first", err, fault.Conflict)
	mustAppend(t, s, "runs.a", 2, "i3", "z")
	wantLines(t, read(t, p, "runs.a", 0), "1 i1 x", "2 i2 y", "3 i3 z")
	wantLines(t, read(t, p, "runs.a", 2), "3 i3 z")
	if err := p.End(ctx, "runs.a"); err != nil {
		t.Fatal(err)
	}
	for _, r := range []store.Store{s, p} {
		_, err := r.Append(ctx, "runs.a", 3, "i4", records("x"))
		wantKind(t, "append to a log that a replica ended", err, fault.Gone)
	}
	wantLines(t, read(t, s, "runs.a", 0), "1 i1 x", "2 i2 y", "3 i3 z")
}

func peersOneWinner(t *testing.T, b Backend, s store.Store) {
	const appenders, rounds = 6, 10
	replicas := []store.Store{s, b.peer(t, s)}
	var mu sync.Mutex
	won := make([]int, rounds)
	var wg sync.WaitGroup
	for a := range appenders {
		wg.Go(func() {
			for position := range int64(rounds) {
				_, err := replicas[a%2].Append(t.Context(), "runs.a", position, fmt.Sprintf("a%d-%d", a, position), records("x"))
				switch {
				case err == nil:
					mu.Lock()
					won[position]++
					mu.Unlock()
				case fault.Of(err) != fault.Conflict:
					t.Errorf("append at %d: %v", position, err)
				}
			}
		})
	}
	wg.Wait()
	for position, n := range won {
		if n != 1 {
			t.Errorf("position %d has %d winners, want 1", position, n)
		}
	}
}

// Ending and appending race: what was acknowledged comes before the end.
func endRaces(t *testing.T, b Backend, s store.Store) {
	p := b.peer(t, s)
	for round := range 5 {
		log := fmt.Sprintf("runs.%d", round)
		mustAppend(t, s, log, 0, "first", "x")
		var acknowledged int64 = 1
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				at, err := s.Append(t.Context(), log, acknowledged, fmt.Sprintf("i%d", acknowledged), records("x"))
				if err != nil {
					wantKind(t, "append to what was ended", err, fault.Gone)
					return
				}
				acknowledged = at
			}
		})
		wg.Go(func() {
			if err := p.End(t.Context(), log); err != nil {
				t.Errorf("end: %v", err)
			}
		})
		wg.Wait()
		if got := len(read(t, p, log, 0)); int64(got) != acknowledged {
			t.Errorf("the ended log has %d messages, %d were acknowledged", got, acknowledged)
		}
	}
}

// A watch sees everything once and in order, whoever appends, from wherever it
// begins.
func watchAmongAppenders(t *testing.T, b Backend, s store.Store) {
	const before, appenders, each, from = 10, 4, 8, 5
	for i := range int64(before) {
		mustAppend(t, s, "runs.a", i, fmt.Sprintf("b%d", i), "x")
	}
	replicas := []store.Store{s, b.peer(t, s)}
	var wg, watchers sync.WaitGroup
	for _, r := range replicas {
		watchers.Go(func() {
			want := int64(from + 1)
			for m, err := range r.Watch(t.Context(), "runs.a", from) {
				if err != nil {
					t.Errorf("watch: %v", err)
					return
				}
				if m.Position != want {
					t.Errorf("watch gave position %d, want %d", m.Position, want)
				}
				want = m.Position + 1
			}
			if want != before+appenders*each+1 {
				t.Errorf("the watch ended before position %d, want %d", want, before+appenders*each+1)
			}
		})
	}
	for a := range appenders {
		wg.Go(func() {
			position := int64(before)
			for i := range each {
				var err error
				position, err = store.AppendSettled(t.Context(), eager{replicas[a%2]}, "runs.a", position,
					fmt.Sprintf("a%d-%d", a, i), records("x"), func([]store.Message) bool { return true })
				if err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if err := s.End(t.Context(), "runs.a"); err != nil {
		t.Fatal(err)
	}
	watchers.Wait()
}

// eager tries an append again at once where it lost, so that a storm of few
// attempts each comes to an end.
type eager struct{ store.Logs }

func (e eager) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	for {
		at, err := e.Logs.Append(ctx, log, expected, id, records)
		if fault.Of(err) != fault.Conflict {
			return at, err
		}
		for m, err := range e.Logs.Read(ctx, log, expected) {
			if err != nil {
				return 0, err
			}
			expected = m.Position
		}
	}
}

func peersValues(t *testing.T, b Backend, s store.Store) {
	ctx := t.Context()
	p := b.peer(t, s)
	first, err := s.Put(ctx, "k", []byte("one"), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.Get(ctx, "k"); err != nil || string(v.Data) != "one" || v.Revision != first {
		t.Errorf("the other replica reads %q at %d, %v", v.Data, v.Revision, err)
	}
	second, err := p.Put(ctx, "k", []byte("two"), first, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Put(ctx, "k", []byte("three"), first, 0)
	wantKind(t, "put where the other replica was first", err, fault.Conflict)
	if err := s.Delete(ctx, "k", second); err != nil {
		t.Errorf("delete: %v", err)
	}
	_, err = p.Get(ctx, "k")
	wantKind(t, "get of what the other replica deleted", err, fault.NotFound)
	if keys, err := p.Keys(ctx, ""); err != nil || len(keys) > 0 {
		t.Errorf("keys = %v, %v, want none", keys, err)
	}
	wantKind(t, "delete of what was deleted", p.Delete(ctx, "k", second), fault.Conflict)
}

func peersBlobs(t *testing.T, b Backend, s store.Store) {
	ctx := t.Context()
	p := b.peer(t, s)
	digest, err := s.PutBlob(ctx, "runs.a", []byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DropSpace(ctx, "runs.a"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Blob(ctx, "runs.a", digest)
	wantKind(t, "a blob that the other replica dropped", err, fault.NotFound)
	if _, err := s.PutBlob(ctx, "runs.a", []byte("payload")); err != nil {
		t.Fatal(err)
	}
	data, err := p.Blob(ctx, "runs.a", digest)
	if err != nil || string(data) != "payload" {
		t.Errorf("the other replica reads %q, %v", data, err)
	}
	// All put the same, all succeed.
	large := slices.Repeat([]byte("weir"), 300_000)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if _, err := []store.Store{s, p}[i%2].PutBlob(ctx, "fresh", large); err != nil {
				t.Errorf("put among others: %v", err)
			}
		})
	}
	wg.Wait()
}
