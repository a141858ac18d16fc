package storetest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/host/fault"
	"weir/host/store"
)

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
	b.inTime(t, func(t *testing.T) {
		s := b.Open(t)
		defer s.Close()
		expire(t, b, s)
	})
}

// inTime runs a test in a bubble, where time costs nothing, or in real time.
func (b Backend) inTime(t *testing.T, test func(*testing.T)) {
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

func keys(t *testing.T, b Backend, _ store.Store) {
	b.inTime(t, func(t *testing.T) {
		s := b.Open(t)
		defer s.Close()
		ctx := t.Context()
		put := func(key string, ttl time.Duration) {
			if _, err := s.Put(ctx, key, []byte("x"), 0, ttl); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []string{"lease.b", "other", "lease.a", "leasex", "lease.gone"} {
			put(key, 0)
		}
		put("lease.short", time.Second)
		if err := s.Delete(ctx, "lease.gone", store.Any); err != nil {
			t.Fatal(err)
		}
		eventually(b, time.Second, func() bool {
			_, err := s.Get(ctx, "lease.short")
			return err != nil
		})
		for prefix, want := range map[string][]string{
			"":        {"lease.a", "lease.b", "leasex", "other"},
			"lease.":  {"lease.a", "lease.b"},
			"lease.a": {"lease.a"},
			"none":    nil,
		} {
			got, err := s.Keys(ctx, prefix)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("keys %q = %v, %v, want %v", prefix, got, err, want)
			}
		}
	})
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
}

// Around the sizes at which backends may cut, and the limit.
func blobSizes(t *testing.T, _ Backend, s store.Store) {
	const part = 512 << 10
	for _, size := range []int{0, 1, 500<<10 - 1, 500 << 10, 500<<10 + 1, part - 1, part, part + 1, 5 << 20} {
		data := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
		digest, err := s.PutBlob(t.Context(), "b", data)
		if err != nil {
			t.Fatalf("put %d bytes: %v", size, err)
		}
		if got, err := s.Blob(t.Context(), "b", digest); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
		}
	}
	_, err := s.PutBlob(t.Context(), "b", make([]byte, store.MaxBlob+1))
	wantKind(t, "a blob over the limit", err, fault.Limit)
}

func dropSpace(t *testing.T, _ Backend, s store.Store) {
	ctx := t.Context()
	put := func(space, text string) string {
		digest, err := s.PutBlob(ctx, space, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	gone := []string{put("runs.a", "one"), put("runs.a", "two"), put("runs.a", strings.Repeat("long", 400_000))}
	kept := put("runs.a.b", "one")
	for range 2 {
		if err := s.DropSpace(ctx, "runs.a"); err != nil {
			t.Errorf("drop: %v", err)
		}
	}
	for _, digest := range gone {
		_, err := s.Blob(ctx, "runs.a", digest)
		wantKind(t, "a blob of a dropped space", err, fault.NotFound)
	}
	if _, err := s.Blob(ctx, "runs.a.b", kept); err != nil {
		t.Errorf("a blob of another space: %v", err)
	}
	put("runs.a", "one")
	if data, err := s.Blob(ctx, "runs.a", gone[0]); err != nil || string(data) != "one" {
		t.Errorf("a blob that came back = %q, %v", data, err)
	}
	wantKind(t, "drop of no space", s.DropSpace(ctx, "a..b"), fault.Invalid)
}
