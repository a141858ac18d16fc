// Package storetest is the suite that every store backend passes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
		{"blobs", blobs},
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

func values(t *testing.T, _ Backend, s store.Store) {
	ctx := t.Context()
	_, err := s.Get(ctx, "k")
	wantKind(t, "get of nothing", err, fault.NotFound)
	data := []byte("one")
	first, err := s.Put(ctx, "k", data, 0, 0)
	if err != nil || first <= 0 {
		t.Fatalf("create = %d, %v", first, err)
	}
	copy(data, "xxx")
	v, err := s.Get(ctx, "k")
	if err != nil || string(v.Data) != "one" || v.Revision != first {
		t.Errorf("get = %q at %d, %v, want \"one\" at %d", v.Data, v.Revision, err, first)
	}
	copy(v.Data, "yyy")
	if v, _ = s.Get(ctx, "k"); string(v.Data) != "one" {
		t.Errorf("a reader changed the value to %q", v.Data)
	}
	_, err = s.Put(ctx, "k", []byte("two"), 0, 0)
	wantKind(t, "create what exists", err, fault.Conflict)
	second, err := s.Put(ctx, "k", []byte("two"), first, 0)
	if err != nil || second <= first {
		t.Errorf("update = %d, %v, want a revision above %d", second, err, first)
	}
	_, err = s.Put(ctx, "k", []byte("three"), first, 0)
	wantKind(t, "update at an old revision", err, fault.Conflict)
	wantKind(t, "delete at an old revision", s.Delete(ctx, "k", first), fault.Conflict)
	if err := s.Delete(ctx, "k", second); err != nil {
		t.Errorf("delete: %v", err)
	}
	_, err = s.Put(ctx, "k", []byte("four"), second, 0)
	wantKind(t, "update what was deleted", err, fault.Conflict)
	if third, err := s.Put(ctx, "k", nil, 0, 0); err != nil || third <= second {
		t.Errorf("create after a deletion = %d, %v, want a revision above %d", third, err, second)
	}
	if _, err := s.Put(ctx, "k", []byte("five"), store.Any, 0); err != nil {
		t.Errorf("put at any revision: %v", err)
	}
	for range 2 {
		if err := s.Delete(ctx, "k", store.Any); err != nil {
			t.Errorf("delete at any revision: %v", err)
		}
	}
}

func valuesOneWinner(t *testing.T, _ Backend, s store.Store) {
	const writers = 16
	var wg sync.WaitGroup
	won := make(chan int64, writers)
	for range writers {
		wg.Go(func() {
			switch revision, err := s.Put(t.Context(), "lease", []byte("me"), 0, 0); {
			case err == nil:
				won <- revision
			case fault.Of(err) != fault.Conflict:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d writers created the value, want 1", len(won))
	}
}

func expiry(t *testing.T, b Backend, _ store.Store) {
	test := func(t *testing.T) {
		s := b.Open(t)
		defer s.Close()
		expire(t, b, s)
	}
	if b.RealTime {
		test(t)
		return
	}
	synctest.Test(t, test)
}

func expire(t *testing.T, b Backend, s store.Store) {
	ctx := t.Context()
	first, err := s.Put(ctx, "k", []byte("x"), 0, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, "stays", []byte("x"), 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "k"); err != nil {
		t.Errorf("get before the expiry: %v", err)
	}
	if !b.RealTime {
		time.Sleep(2*time.Second - 1)
		if _, err := s.Get(ctx, "k"); err != nil {
			t.Errorf("get a nanosecond before the expiry: %v", err)
		}
	}
	eventually(b, time.Second, func() bool {
		_, err = s.Get(ctx, "k")
		return err != nil
	})
	wantKind(t, "get after the expiry", err, fault.NotFound)
	_, err = s.Put(ctx, "k", []byte("y"), first, 0)
	wantKind(t, "update of what expired", err, fault.Conflict)
	second, err := s.Put(ctx, "k", []byte("y"), 0, 0)
	if err != nil || second <= first {
		t.Errorf("create after the expiry = %d, %v, want a revision above %d", second, err, first)
	}
	if _, err := s.Get(ctx, "stays"); err != nil {
		t.Errorf("a value without expiry: %v", err)
	}
}

// eventually waits for a condition: in a bubble once for d, which costs
// nothing, in real time up to 30 s.
func eventually(b Backend, d time.Duration, done func() bool) {
	if !b.RealTime {
		time.Sleep(d)
		done()
		return
	}
	for limit := time.Now().Add(30 * time.Second); !done() && time.Now().Before(limit); {
		time.Sleep(50 * time.Millisecond)
	}
}

func valueBounds(t *testing.T, _ Backend, s store.Store) {
	if _, err := s.Put(t.Context(), "k", make([]byte, store.MaxValue), 0, 0); err != nil {
		t.Errorf("a value of exactly the limit: %v", err)
	}
	_, err := s.Put(t.Context(), "k", make([]byte, store.MaxValue+1), store.Any, 0)
	wantKind(t, "a value over the limit", err, fault.Limit)
	_, err = s.Put(t.Context(), "k", nil, store.Any, -time.Second)
	wantKind(t, "a negative time to live", err, fault.Invalid)
}

func blobs(t *testing.T, _ Backend, s store.Store) {
	ctx := t.Context()
	const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc"
	for _, space := range []string{"a", "b", "a"} {
		got, err := s.PutBlob(ctx, space, []byte("abc"))
		if err != nil || got != digest {
			t.Fatalf("put = %s, %v, want %s", got, err, digest)
		}
	}
	if err := s.DeleteBlob(ctx, "a", digest); err != nil {
		t.Errorf("delete: %v", err)
	}
	_, err := s.Blob(ctx, "a", digest)
	wantKind(t, "a deleted blob", err, fault.NotFound)
	data, err := s.Blob(ctx, "b", digest)
	if err != nil || string(data) != "abc" {
		t.Errorf("the same blob in another space = %q, %v", data, err)
	}
	if err := s.DeleteBlob(ctx, "a", digest); err != nil {
		t.Errorf("delete of what is absent: %v", err)
	}
	for _, bad := range []string{"", digest[1:], strings.ToUpper(digest), digest + "0"} {
		_, err := s.Blob(ctx, "b", bad)
		wantKind(t, "digest "+bad, err, fault.Invalid)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 3<<16) // 3 MiB, in several parts where a backend has parts
	got, err := s.PutBlob(ctx, "b", large)
	if err != nil {
		t.Fatalf("put 3 MiB: %v", err)
	}
	if data, err = s.Blob(ctx, "b", got); err != nil || !bytes.Equal(data, large) {
		t.Errorf("3 MiB came back as %d bytes, %v", len(data), err)
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
