package jetstream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/store"
	"weir/host/store/jetstream"
)

// Age drops messages one by one. Who reads from before them is told; a log
// without messages is an empty one.
func TestAge(t *testing.T) {
	s := open(t, jetstream.Options{Dir: t.TempDir(), MaxAge: time.Second})
	ctx := t.Context()
	add := func(position int64) {
		t.Helper()
		if _, err := s.Append(ctx, "runs.a", position, "i", [][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
	}
	first := func(from int64) (store.Message, error) {
		for m, err := range s.Read(ctx, "runs.a", from) {
			return m, err
		}
		return store.Message{}, nil
	}
	add(0)
	position := int64(1)
	var err error
	for limit := time.Now().Add(time.Minute); err == nil && time.Now().Before(limit); position++ {
		add(position)
		time.Sleep(100 * time.Millisecond)
		_, err = first(0)
	}
	if fault.Of(err) != fault.Gone {
		t.Fatalf("read from before what was dropped: %v, want kind gone", err)
	}
	if m, err := first(position - 1); err != nil || m.Position != position {
		t.Errorf("read of the latest message: %d, %v, want %d", m.Position, err, position)
	}
	if err := s.End(ctx, "runs.a"); err != nil {
		t.Fatal(err)
	}
	logs := []string{""}
	for limit := time.Now().Add(time.Minute); len(logs) > 0 && time.Now().Before(limit); {
		time.Sleep(100 * time.Millisecond)
		if logs, err = s.List(ctx, ""); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := first(0); err != nil || m.Position != 0 || len(logs) > 0 {
		t.Errorf("a dropped log has %v and is listed as %v, %v", m, logs, err)
	}
	_, err = s.Append(ctx, "runs.a", position, "i", [][]byte{{1}})
	if kind := fault.Of(err); kind != fault.Conflict {
		t.Errorf("append to a dropped log: %v, want kind conflict", err)
	}
}

// Blobs in the spaces of logs go with them, others stay.
func TestAgedSpaces(t *testing.T) {
	s := open(t, jetstream.Options{Dir: t.TempDir(), MaxAge: time.Hour, AgedSpaces: "runs."})
	for space, want := range map[string]string{"runs.a": "90000", "modules": ""} {
		if _, err := s.PutBlob(t.Context(), space, []byte("x")); err != nil {
			t.Fatal(err)
		}
		for _, stream := range []string{"weir_1_blob", "weir_1_key"} {
			messages, err := streams(t, s).Stream(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			m, err := messages.GetMsg(t.Context(), messages.CachedInfo().State.LastSeq)
			if err != nil || m.Header.Get("Nats-TTL") != want {
				t.Errorf("a message of %s in %s lives %q s, %v, want %q", space, stream, m.Header.Get("Nats-TTL"), err, want)
			}
		}
	}
}

// onDisk tells whether some file of the directory has the bytes.
func onDisk(t *testing.T, dir string, canary []byte) bool {
	t.Helper()
	found := false
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, canary) {
			found = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Deleted blobs are not readable in any file any more: neither what was stored,
// nor what it was stored as, nor the key without which that is noise.
func TestDeletedBlobsAreErased(t *testing.T) {
	dir := t.TempDir()
	s := open(t, jetstream.Options{Dir: dir})
	ctx := t.Context()
	plain := []byte("canary " + strings.Repeat("unguarded ", 50))
	raw := func(stream, subject string) []byte {
		t.Helper()
		messages, err := streams(t, s).Stream(ctx, stream)
		if err != nil {
			t.Fatal(err)
		}
		m, err := messages.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			t.Fatal(err)
		}
		return m.Data
	}
	for _, c := range []struct {
		name   string
		space  string
		drop   func(space, digest string) error
		canary func(space string) []byte
	}{
		{"a blob", "runs.a", func(space, digest string) error { return s.DeleteBlob(ctx, space, digest) },
			func(space string) []byte { return raw("weir_1_blob", "weir.1.blob."+space+".>")[:64] }},
		{"a space", "runs.b", func(space, _ string) error { return s.DropSpace(ctx, space) },
			func(space string) []byte { return raw("weir_1_key", "weir.1.key."+space) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			digest, err := s.PutBlob(ctx, c.space, plain)
			if err != nil {
				t.Fatal(err)
			}
			// Others lie around it, so that the file goes on.
			for i := range 5 {
				if _, err := s.PutBlob(ctx, "other", append(plain, byte(i))); err != nil {
					t.Fatal(err)
				}
			}
			canary := c.canary(c.space)
			if !onDisk(t, dir, canary) {
				t.Fatal("the control: what was stored is not found in any file")
			}
			if onDisk(t, dir, plain[:32]) {
				t.Error("the blob is readable as it is")
			}
			if err := c.drop(c.space, digest); err != nil {
				t.Fatal(err)
			}
			if onDisk(t, dir, canary) {
				t.Error("what was deleted is still found in a file")
			}
			if _, err := s.Blob(ctx, c.space, digest); fault.Of(err) != fault.NotFound {
				t.Errorf("the deleted blob: %v, want kind not found", err)
			}
		})
	}
	// Deletions outlast a crash.
	r := crashed(t, s, dir)
	for _, space := range []string{"runs.a", "runs.b"} {
		if err := r.DropSpace(ctx, space); err != nil {
			t.Errorf("drop again: %v", err)
		}
	}
}
