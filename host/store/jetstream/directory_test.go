package jetstream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/host/fault"
	"weir/host/store/jetstream"
)

// filled is a directory with a log of some messages, of a store that was closed.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, jetstream.Options{Dir: dir, LateLogs: "late."})
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fill appends twenty messages to a log of each stream.
func fill(t *testing.T, s *jetstream.Store) {
	t.Helper()
	for _, log := range []string{"runs.a", "late.a"} {
		for i := range int64(20) {
			if _, err := s.Append(t.Context(), log, i, fmt.Sprintf("i%d", i), [][]byte{[]byte(strings.Repeat("x", 100))}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func positions(t *testing.T, s *jetstream.Store, log string) []int64 {
	t.Helper()
	var got []int64
	for m, err := range s.Read(t.Context(), log, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Position)
	}
	return got
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	s := open(t, jetstream.Options{Dir: dir})
	_, err := jetstream.Open(t.Context(), jetstream.Options{Dir: dir, LateLogs: "late.", Log: quiet()})
	if fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), dir) {
		t.Errorf("open of a directory in use: %v, want kind conflict and its name", err)
	}
	s.Close()
	open(t, jetstream.Options{Dir: dir})
}

// docs/operations.md: a copy of the directory of a stopped store is a backup.
func TestBackup(t *testing.T) {
	dir, to := filled(t), t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s := open(t, jetstream.Options{Dir: to, LateLogs: "late."})
	if got := positions(t, s, "runs.a"); len(got) != 20 {
		t.Errorf("the copy has positions %v, want 20", got)
	}
	if _, err := s.Append(t.Context(), "runs.a", 20, "next", [][]byte{{1}}); err != nil {
		t.Errorf("append to the copy: %v", err)
	}
}

// What is damaged is named, and stays refused until somebody decides.
func TestDamage(t *testing.T) {
	for _, name := range []string{"weir_1_log", "weir_1_late"} {
		t.Run(name, func(t *testing.T) { damage(t, name) })
	}
}

func damage(t *testing.T, name string) {
	stream := filepath.Join("jetstream", "$G", "streams", name)
	change := func(t *testing.T, path string, f func([]byte) []byte) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(data []byte) []byte {
		data[len(data)/2] ^= 0x55
		return data
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		says   string
	}{
		{"nothing", func(*testing.T, string) {}, ""},
		{"a flipped bit in the messages", func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, stream, "msgs", "1.blk"), flip)
			os.Remove(filepath.Join(dir, stream, "msgs", "index.db"))
		}, name},
		{"a cut file of messages", func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, stream, "msgs", "1.blk"), func(b []byte) []byte { return b[:len(b)/2] })
		}, name},
		{"no messages", func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, stream, "msgs")); err != nil {
				t.Fatal(err)
			}
		}, name},
		{"a damaged description of a stream", func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, stream, "meta.inf"), flip)
		}, name},
		{"no stream", func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, stream)); err != nil {
				t.Fatal(err)
			}
		}, name},
		{"weir.json", func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "weir.json"), func(b []byte) []byte { return b[:len(b)-3] })
		}, "weir.json"},
		{"another format", func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "weir.json"), func(b []byte) []byte {
				return []byte(strings.Replace(string(b), `"format": 1`, `"format": 2`, 1))
			})
		}, "format 2"},
		{"no weir.json", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "weir.json")); err != nil {
				t.Fatal(err)
			}
		}, "weir.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filled(t)
			c.damage(t, dir)
			for range 2 { // the second time the server may have mended what it found
				s, err := jetstream.Open(t.Context(), jetstream.Options{Dir: dir, LateLogs: "late.", Log: quiet()})
				if c.says == "" {
					if err != nil {
						t.Fatalf("open: %v", err)
					}
					s.Close()
					continue
				}
				if err == nil {
					s.Close()
					t.Fatal("open: no error")
				}
				if fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) {
					t.Errorf("open: %v, want kind internal that names %s and %s", err, c.says, dir)
				}
			}
		})
	}
}

// What a power failure leaves of late logs is used. When they were closed before
// it, a missing end is damage.
func TestCutEnd(t *testing.T) {
	block := func(dir string) string {
		return filepath.Join(dir, "jetstream", "$G", "streams", "weir_1_late", "msgs", "1.blk")
	}
	dir := t.TempDir()
	s := open(t, jetstream.Options{Dir: dir, LateLogs: "late."})
	fill(t, s)
	written := func() int64 {
		info, err := os.Stat(block(dir))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for written() < 20*100 {
		time.Sleep(time.Millisecond)
	}
	cut := func() string {
		to := t.TempDir()
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(block(to), written()-50); err != nil {
			t.Fatal(err)
		}
		return to
	}

	c := open(t, jetstream.Options{Dir: cut(), LateLogs: "late."})
	if got := len(positions(t, c, "late.a")); got != 19 {
		t.Errorf("late.a has %d messages, want 19", got)
	}
	if _, err := c.Append(t.Context(), "late.a", 19, "next", [][]byte{{1}}); err != nil {
		t.Errorf("append behind the loss: %v", err)
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := jetstream.Open(t.Context(), jetstream.Options{Dir: cut(), LateLogs: "late.", Log: quiet()})
	if fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), "weir_1_late") {
		t.Errorf("open without the end that was there: %v, want kind internal that names the stream", err)
	}
}

// A loss can be accepted.
func TestAcceptDamage(t *testing.T) {
	dir := filled(t)
	if err := os.RemoveAll(filepath.Join(dir, "jetstream", "$G", "streams", "weir_1_log", "msgs")); err != nil {
		t.Fatal(err)
	}
	if _, err := jetstream.Open(t.Context(), jetstream.Options{Dir: dir, LateLogs: "late.", Log: quiet()}); err == nil {
		t.Fatal("open: no error")
	}
	path := filepath.Join(dir, "weir.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, `"damaged"`) {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, jetstream.Options{Dir: dir, LateLogs: "late."})
	if diff := cmp.Diff([]int64(nil), positions(t, s, "runs.a")); diff != "" {
		t.Error(diff)
	}
}

// A directory is not moved between a cluster and a lone server by accident.
func TestDirectoryOfACluster(t *testing.T) {
	opts := jetstream.Options{Dir: filled(t), Log: quiet()}
	opts.Cluster = jetstream.Cluster{Name: "c", Server: "s", Listen: "127.0.0.1:0"}
	if _, err := jetstream.Open(t.Context(), opts); fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), `cluster ""`) {
		t.Errorf("open of a lone server's directory as a cluster's: %v", err)
	}
}
