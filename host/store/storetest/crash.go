package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"weir/host/fault"
	"weir/host/store"
)

// Everything that was acknowledged is there after a crash, and numbers go on
// where they were.
func crash(t *testing.T, b Backend, s store.Store) {
	if b.Reopen == nil {
		t.Skip("this backend keeps nothing")
	}
	ctx := t.Context()
	for i := range int64(40) {
		mustAppend(t, s, "runs.a", i, fmt.Sprintf("i%d", i), "x")
	}
	mustAppend(t, s, "runs.ended", 0, "i", "x")
	if err := s.End(ctx, "runs.ended"); err != nil {
		t.Fatal(err)
	}
	kept, err := s.Put(ctx, "kept", []byte("v"), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	highest, err := s.Put(ctx, "deleted", []byte("v"), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "deleted", highest); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
	digest, err := s.PutBlob(ctx, "runs.a", large)
	if err != nil {
		t.Fatal(err)
	}

	s = b.Reopen(t, s)
	defer s.Close()
	if got := len(read(t, s, "runs.a", 0)); got != 40 {
		t.Errorf("after the crash the log has %d messages, want 40", got)
	}
	mustAppend(t, s, "runs.a", 40, "next", "x")
	_, err = s.Append(ctx, "runs.ended", 1, "i", records("x"))
	wantKind(t, "append to what was ended before the crash", err, fault.Gone)
	if v, err := s.Get(ctx, "kept"); err != nil || string(v.Data) != "v" || v.Revision != kept {
		t.Errorf("the value after the crash = %q at %d, %v, want \"v\" at %d", v.Data, v.Revision, err, kept)
	}
	_, err = s.Get(ctx, "deleted")
	wantKind(t, "get of what was deleted before the crash", err, fault.NotFound)
	if again, err := s.Put(ctx, "deleted", nil, 0, 0); err != nil || again <= highest {
		t.Errorf("a revision after the crash = %d, %v, want one above %d", again, err, highest)
	}
	if data, err := s.Blob(ctx, "runs.a", digest); err != nil || !bytes.Equal(data, large) {
		t.Errorf("the blob after the crash: %d bytes, %v, want %d", len(data), err, len(large))
	}
}

// lossy makes appends and loses their acknowledgements.
type lossy struct {
	store.Logs
	lose int
}

func (l *lossy) Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error) {
	at, err := l.Logs.Append(ctx, log, expected, id, records)
	if err == nil && l.lose > 0 {
		l.lose--
		return 0, fault.New(fault.Unavailable, "no answer")
	}
	return at, err
}

// DECISIONS 5: on a lost acknowledgement read the tail; own id there, won.
func lostAcknowledgement(t *testing.T, b Backend, s store.Store) {
	p := b.peer(t, s)
	mustAppend(t, s, "runs.a", 0, "first", "x")
	l := &lossy{Logs: s, lose: 1}
	at, err := store.AppendSettled(t.Context(), l, "runs.a", 1, "mine", records("y"), nil)
	if err != nil || at != 2 || l.lose != 0 {
		t.Errorf("an append whose acknowledgement was lost = %d, %v, want 2", at, err)
	}
	// Somebody else goes on behind it before it is settled.
	if _, err := s.Append(t.Context(), "runs.a", 2, "lost", records("z")); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, p, "runs.a", 3, "theirs", "w")
	at, err = store.AppendSettled(t.Context(), s, "runs.a", 2, "lost", records("z"), nil)
	if err != nil || at != 3 {
		t.Errorf("an append that is settled late = %d, %v, want 3", at, err)
	}
	wantLines(t, read(t, s, "runs.a", 0), "1 first x", "2 mine y", "3 lost z", "4 theirs w")
}

// More messages, and more bytes, than a backend reads at a time.
func longLogs(t *testing.T, b Backend, s store.Store) {
	const length = 300
	for i := range int64(length) {
		mustAppend(t, s, "runs.long", i, fmt.Sprintf("i%d", i), fmt.Sprint(i+1))
	}
	p := b.peer(t, s)
	for _, from := range []int64{0, 1, 255, 256, length - 2, length - 1, length} {
		lines := read(t, p, "runs.long", from)
		if len(lines) != int(length-from) {
			t.Errorf("read from %d gives %d messages, want %d", from, len(lines), length-from)
		}
		for i, l := range lines {
			if n := from + int64(i) + 1; l != fmt.Sprintf("%d i%d %d", n, n-1, n) {
				t.Fatalf("message %d from %d is %q", i, from, l)
			}
		}
	}
	large := strings.Repeat("x", store.MaxAppend)
	for i := range int64(10) {
		mustAppend(t, s, "runs.large", i, fmt.Sprintf("i%d", i), large)
	}
	n := int64(0)
	for m, err := range p.Read(t.Context(), "runs.large", 0) {
		if n++; err != nil || m.Position != n || len(m.Records) != 1 || len(m.Records[0]) != len(large) {
			t.Fatalf("large message %d: position %d, %v", n, m.Position, err)
		}
	}
	if n != 10 {
		t.Errorf("read %d large messages, want 10", n)
	}
}
