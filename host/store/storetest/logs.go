package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/host/fault"
	"weir/host/store"
)

// DECISIONS 5: a position counts messages of that log; an append is one
// message of 1..n records.
func appendAndRead(t *testing.T, _ Backend, s store.Store) {
	wantLines(t, read(t, s, "runs.a", 0))
	if got := mustAppend(t, s, "runs.a", 0, "i1", "x", "", "y"); got != 1 {
		t.Errorf("first append gives position %d, want 1", got)
	}
	mustAppend(t, s, "runs.b", 0, "i2", "other")
	if got := mustAppend(t, s, "runs.a", 1, "i3", "z"); got != 2 {
		t.Errorf("an append of three records counts more than one: position %d, want 2", got)
	}
	wantLines(t, read(t, s, "runs.a", 0), "1 i1 x||y", "2 i3 z")
	wantLines(t, read(t, s, "runs.a", 1), "2 i3 z")
	wantLines(t, read(t, s, "runs.a", 2))
	wantLines(t, read(t, s, "runs.a", 9))
	_, err := s.Append(t.Context(), "runs.a", 1, "i4", records("late"))
	wantKind(t, "append behind the log's end", err, fault.Conflict)
	_, err = s.Append(t.Context(), "runs.a", 3, "i4", records("early"))
	wantKind(t, "append beyond the log's end", err, fault.Conflict)
	wantLines(t, read(t, s, "runs.a", 0), "1 i1 x||y", "2 i3 z")
	for m := range s.Read(t.Context(), "runs.a", 0) {
		if m.Position != 1 {
			t.Errorf("a reader that stops is given position %d", m.Position)
		}
		break
	}
}

func appendCopies(t *testing.T, _ Backend, s store.Store) {
	rs := records("before")
	if _, err := s.Append(t.Context(), "runs.a", 0, "i", rs); err != nil {
		t.Fatal(err)
	}
	copy(rs[0], "after!")
	wantLines(t, read(t, s, "runs.a", 0), "1 i before")
}

// DECISIONS 5: at most 512 KiB.
func appendBounds(t *testing.T, _ Backend, s store.Store) {
	half := make([]byte, store.MaxAppend/2)
	if _, err := s.Append(t.Context(), "runs.a", 0, "i", [][]byte{half, half}); err != nil {
		t.Errorf("append of exactly the limit: %v", err)
	}
	_, err := s.Append(t.Context(), "runs.a", 1, "i", [][]byte{half, half, {1}})
	wantKind(t, "append over the limit", err, fault.Limit)
	_, err = s.Append(t.Context(), "runs.a", 1, "i", nil)
	wantKind(t, "append of nothing", err, fault.Invalid)
	_, err = s.Append(t.Context(), "runs.a", -1, "i", records("x"))
	wantKind(t, "append at a negative position", err, fault.Invalid)
	_, err = s.Append(t.Context(), "runs.a", 1, "", records("x"))
	wantKind(t, "append without an id", err, fault.Invalid)
}

func names(t *testing.T, _ Backend, s store.Store) {
	long := strings.Repeat("x", store.MaxName)
	for _, name := range []string{"a", "A-b_9.c", long} {
		if _, err := s.Append(t.Context(), name, 0, "i", records("x")); err != nil {
			t.Errorf("append to %.20q: %v", name, err)
		}
		if _, err := s.Put(t.Context(), name, []byte("x"), 0, 0); err != nil {
			t.Errorf("put %.20q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "a.", ".a", "a..b", "a*", "a>b", "a/b", "a b", "a\x00", "é", long + "x"} {
		_, err := s.Append(t.Context(), name, 0, "i", records("x"))
		wantKind(t, fmt.Sprintf("append to %.20q", name), err, fault.Invalid)
		_, err = s.Put(t.Context(), name, []byte("x"), 0, 0)
		wantKind(t, fmt.Sprintf("put %.20q", name), err, fault.Invalid)
		_, err = s.PutBlob(t.Context(), name, []byte("x"))
		wantKind(t, fmt.Sprintf("put a blob into %.20q", name), err, fault.Invalid)
		wantKind(t, fmt.Sprintf("end %.20q", name), s.End(t.Context(), name), fault.Invalid)
		for _, err := range s.Read(t.Context(), name, 0) {
			wantKind(t, fmt.Sprintf("read %.20q", name), err, fault.Invalid)
		}
	}
}

// FAULTS A3, DECISIONS 5: one winner, the answer that is appended first.
func oneWinner(t *testing.T, _ Backend, s store.Store) {
	const appenders, rounds = 16, 20
	var won [rounds]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for a := range appenders {
		wg.Go(func() {
			for position := int64(0); position < rounds; {
				at, err := s.Append(t.Context(), "runs.a", position, fmt.Sprintf("a%d-%d", a, position), records("x"))
				if err == nil {
					if at != position+1 {
						t.Errorf("append at %d gave %d", position, at)
					}
					mu.Lock()
					won[position]++
					mu.Unlock()
				} else if fault.Of(err) != fault.Conflict {
					t.Errorf("append at %d: %v", position, err)
				}
				position++
			}
		})
	}
	wg.Wait()
	for position, n := range won {
		if n != 1 {
			t.Errorf("position %d has %d winners, want 1", position, n)
		}
	}
	if got := len(read(t, s, "runs.a", 0)); got != rounds {
		t.Errorf("the log has %d messages, want %d", got, rounds)
	}
}

// DECISIONS 5: own id at the tail counts as won; still pending, try again.
func retriesSettle(t *testing.T, _ Backend, s store.Store) {
	ctx := t.Context()
	mustAppend(t, s, "runs.a", 0, "mine", "x")
	mustAppend(t, s, "runs.a", 1, "theirs", "y")
	at, err := store.AppendSettled(ctx, s, "runs.a", 0, "mine", records("x"), nil)
	if err != nil || at != 1 {
		t.Errorf("a retry of one's own append = %d, %v, want 1", at, err)
	}
	_, err = store.AppendSettled(ctx, s, "runs.a", 0, "late", records("x"), nil)
	wantKind(t, "who comes second", err, fault.Conflict)
	at, err = store.AppendSettled(ctx, s, "runs.a", 0, "again", records("z"),
		func(since []store.Message) bool { return len(since) == 2 })
	if err != nil || at != 3 {
		t.Errorf("what is still pending = %d, %v, want 3", at, err)
	}
	_, err = store.AppendSettled(ctx, s, "runs.b", 7, "lost", records("x"),
		func([]store.Message) bool { return true })
	wantKind(t, "a log that is shorter than expected", err, fault.Conflict)
	wantLines(t, read(t, s, "runs.a", 0), "1 mine x", "2 theirs y", "3 again z")
}

func watch(t *testing.T, _ Backend, s store.Store) {
	mustAppend(t, s, "runs.a", 0, "i1", "x")
	mustAppend(t, s, "runs.a", 1, "i2", "y")
	next := int64(2)
	var lines []string
	for m, err := range s.Watch(t.Context(), "runs.a", 1) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line(m))
		if next < 5 { // nobody else writes: what is appended while watching arrives
			next = mustAppend(t, s, "runs.a", next, fmt.Sprintf("w%d", next), "z")
		} else if err := s.End(t.Context(), "runs.a"); err != nil {
			t.Fatal(err)
		}
	}
	wantLines(t, lines, "2 i2 y", "3 w2 z", "4 w3 z", "5 w4 z")
}

func watchEarly(t *testing.T, _ Backend, s store.Store) {
	got := make(chan string, 1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for m, err := range s.Watch(t.Context(), "runs.a", 0) {
				if err != nil {
					t.Error(err)
				}
				got <- line(m)
				return
			}
		})
	}
	mustAppend(t, s, "runs.a", 0, "i", "x")
	for range 4 {
		if l := <-got; l != "1 i x" {
			t.Errorf("watch gave %q", l)
		}
	}
	wg.Wait()
}

func watchGivesUp(t *testing.T, _ Backend, s store.Store) {
	mustAppend(t, s, "runs.a", 0, "i", "x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range s.Watch(ctx, "runs.a", 0) {
		n++
		last = err
		cancel()
	}
	if n != 2 || !errors.Is(last, context.Canceled) {
		t.Errorf("a cancelled watch ended after %d with %v, want the message and then context.Canceled", n, last)
	}
	for _, err := range s.Watch(t.Context(), "runs.a", -1) {
		wantKind(t, "watch from a negative position", err, fault.Invalid)
	}
}

func list(t *testing.T, _ Backend, s store.Store) {
	for _, name := range []string{"runs.b", "audit", "runs.a", "runsx"} {
		mustAppend(t, s, name, 0, "i", "x")
	}
	for prefix, want := range map[string][]string{
		"":       {"audit", "runs.a", "runs.b", "runsx"},
		"runs.":  {"runs.a", "runs.b"},
		"runs.a": {"runs.a"},
		"none":   nil,
	} {
		got, err := s.List(t.Context(), prefix)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("list %q = %v, %v, want %v", prefix, got, err, want)
		}
	}
}

func end(t *testing.T, _ Backend, s store.Store) {
	mustAppend(t, s, "runs.a", 0, "i", "x")
	for range 2 {
		if err := s.End(t.Context(), "runs.a"); err != nil {
			t.Fatalf("end: %v", err)
		}
	}
	if err := s.End(t.Context(), "runs.never"); err != nil {
		t.Errorf("end of an empty log: %v", err)
	}
	_, err := s.Append(t.Context(), "runs.a", 1, "j", records("y"))
	wantKind(t, "append to an ended log", err, fault.Gone)
	mustAppend(t, s, "runs.b", 0, "i", "x")
}
