package host

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/store/jetstream"
)

// inFiles tells whether the text stands in a file of the folder.
func inFiles(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // the store at work has replaced it
			return nil
		}
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What a caller's session holds is in no file while it counts, and can be read
// by nobody when it was replaced, deleted, or has expired with its process gone.
func TestSessionsAreErased(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	store, err := jetstream.Open(ctx, jetstream.Options{Dir: dir, AgedSpaces: "r", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := newSessions(store).(sessions)
	put := func(key, text string, ttl time.Duration) string {
		t.Helper()
		if err := s.Put(ctx, key, []byte(text), ttl); err != nil {
			t.Fatal(err)
		}
		digest, err := s.logs.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(ctx, key); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", key, got, err)
		}
		return string(digest)
	}
	gone := func(when, key, digest string) {
		t.Helper()
		if _, err := store.Blob(ctx, rawSpace(key), digest); fault.Of(err) != fault.NotFound {
			t.Errorf("%s the text of %s is there: %v", when, key, err)
		}
	}
	const key, other, third = "turn.session.a", "turn.session.b", "turn.session.c"
	first := put(key, "canary-one", time.Minute)
	second := put(key, "canary-two", time.Minute)
	gone("replaced,", key, first)
	put(key, "canary-two", time.Minute)               // the same again is no change
	lost := put(other, "canary-three", 5*time.Second) // in which it is read back
	if err := s.logs.Put(ctx, "control", []byte("canary-control"), 0); err != nil || !inFiles(t, dir, "canary-control") {
		t.Fatalf("the control: a plain value is not in the files, %v", err)
	}
	for _, text := range []string{"canary-one", "canary-two", "canary-three"} {
		if inFiles(t, dir, text) {
			t.Errorf("%s is in the files", text)
		}
	}
	for begin := time.Now(); ; <-time.After(50 * time.Millisecond) {
		if _, err := s.Get(ctx, other); fault.Of(err) == fault.NotFound {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("the value does not expire")
		}
	}
	if err := s.sweep(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Blob(ctx, rawSpace(other), lost); err != nil {
		t.Errorf("swept while its value may be on the way: %v", err)
	}
	if err := s.sweep(ctx, time.Now().Add(2*keptAge)); err != nil {
		t.Fatal(err)
	}
	gone("expired,", other, lost)
	if got, err := s.Get(ctx, key); err != nil || string(got) != "canary-two" {
		t.Errorf("the sweep took one that counts: %q, %v", got, err)
	}
	if err := s.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	gone("deleted,", key, second)
	if err := s.Delete(ctx, third); err != nil {
		t.Errorf("deleting none: %v", err)
	}
	if kept, err := s.Keys(ctx, keptPrefix); err != nil || len(kept) > 0 {
		t.Errorf("spaces are still told of: %q, %v", kept, err)
	}
	again := put(key, "canary-four", time.Minute)
	if _, err := store.Blob(ctx, rawSpace(key), again); err != nil {
		t.Error(err)
	}
}
