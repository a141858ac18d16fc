package memory_test

import (
	"slices"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/memory"
)

// What has not ended or expired goes over to the next process, and what is
// appended there follows it.
func TestSnapshot(t *testing.T) {
	s := memory.New(memory.Options{})
	defer s.Close()
	ctx := t.Context()
	for _, log := range []string{"run.open", "run.ended"} {
		if _, err := s.Append(ctx, log, 0, "i", [][]byte{[]byte(`{"a":1}`), []byte("b")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutBlob(ctx, log, []byte("payload")); err != nil {
			t.Fatal(err)
		}
	}
	digest, err := s.PutBlob(ctx, "raw.open", []byte("raw"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.End(ctx, "run.ended"); err != nil {
		t.Fatal(err)
	}
	for key, ttl := range map[string]time.Duration{"kept": 0, "long": time.Hour, "short": time.Nanosecond} {
		if _, err := s.Put(ctx, key, []byte(key), store.Any, ttl); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Millisecond)
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next, err := memory.Restore(data, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if names, err := next.List(ctx, ""); err != nil || !slices.Equal(names, []string{"run.open"}) {
		t.Errorf("logs %q, %v", names, err)
	}
	if keys, err := next.Keys(ctx, ""); err != nil || !slices.Equal(keys, []string{"kept", "long"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
	if data, err := next.Blob(ctx, "raw.open", digest); err != nil || string(data) != "raw" {
		t.Errorf("blob %q, %v", data, err)
	}
	if p, err := next.Append(ctx, "run.open", 1, "j", [][]byte{[]byte("c")}); err != nil || p != 2 {
		t.Errorf("appended at %d, %v", p, err)
	}
	for m, err := range next.Read(ctx, "run.open", 0) {
		if err != nil || m.Position == 1 && (len(m.Records) != 2 || string(m.Records[0]) != `{"a":1}` || m.ID != "i") {
			t.Errorf("message %+v, %v", m, err)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	for _, text := range []string{"", "{}", `{"version":2}`, `[1]`} {
		if _, err := memory.Restore([]byte(text), memory.Options{}); fault.Of(err) != fault.Internal {
			t.Errorf("%q: %v", text, err)
		}
	}
}
