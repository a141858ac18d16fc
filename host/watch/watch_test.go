package watch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = time.Minute // far above what any file system needs

// observe watches files and returns a channel that gets one value a change. What
// is done without a rest longer than settle is one change.
func observe(t *testing.T, settle time.Duration, paths ...string) (*Watcher, <-chan struct{}) {
	t.Helper()
	changes := make(chan struct{}, 100)
	w, err := New(func() { changes <- struct{}{} }, Options{Settle: settle})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Files(paths)
	return w, changes
}

func wait(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	select {
	case <-changes:
	case <-time.After(limit):
		t.Fatal("no change was noticed")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every way in which files change in practice is noticed, and again after it.
func TestChanges(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string) (file string, change func(n string)){
		"written in place": func(t *testing.T, dir string) (string, func(string)) {
			file := filepath.Join(dir, "f")
			write(t, file, "0")
			return file, func(n string) { write(t, file, n) }
		},
		"replaced by a rename": func(t *testing.T, dir string) (string, func(string)) {
			file := filepath.Join(dir, "f")
			write(t, file, "0")
			return file, func(n string) {
				write(t, file+"~", n)
				must(t, os.Rename(file+"~", file))
			}
		},
		"moved away, then written": func(t *testing.T, dir string) (string, func(string)) {
			file := filepath.Join(dir, "f")
			write(t, file, "0")
			return file, func(n string) {
				must(t, os.Rename(file, file+"~"))
				write(t, file, n)
			}
		},
		"a ConfigMap": func(t *testing.T, dir string) (string, func(string)) {
			swap := func(n string) {
				write(t, filepath.Join(dir, ".."+n, "f"), n)
				must(t, os.Symlink(".."+n, filepath.Join(dir, "..data_tmp")))
				old, _ := os.Readlink(filepath.Join(dir, "..data"))
				must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
				if old != "" {
					must(t, os.RemoveAll(filepath.Join(dir, old)))
				}
			}
			swap("0")
			must(t, os.Symlink(filepath.Join("..data", "f"), filepath.Join(dir, "f")))
			return filepath.Join(dir, "f"), swap
		},
		"a folder that is a link": func(t *testing.T, dir string) (string, func(string)) {
			swap := func(n string) {
				write(t, filepath.Join(dir, "releases", n, "conf", "f"), n)
				must(t, os.Symlink(filepath.Join(dir, "releases", n), filepath.Join(dir, "next")))
				must(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "current")))
			}
			swap("0")
			return filepath.Join(dir, "current", "conf", "f"), swap
		},
		"the file that a link leads to": func(t *testing.T, dir string) (string, func(string)) {
			write(t, filepath.Join(dir, "far", "f"), "0")
			must(t, os.MkdirAll(filepath.Join(dir, "near"), 0o755))
			must(t, os.Symlink(filepath.Join("..", "far", "f"), filepath.Join(dir, "near", "f")))
			return filepath.Join(dir, "near", "f"), func(n string) { write(t, filepath.Join(dir, "far", "f"), n) }
		},
		"a file in a folder that is not there yet": func(t *testing.T, dir string) (string, func(string)) {
			file := filepath.Join(dir, "a", "b", "f")
			return file, func(n string) { write(t, file, n) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, change := prepare(t, t.TempDir())
			_, changes := observe(t, 20*time.Millisecond, file)
			for _, n := range []string{"1", "22", "333"} {
				change(n)
				wait(t, changes)
				if text, err := os.ReadFile(file); err != nil || string(text) != n {
					t.Fatalf("after the change: %q, %v", text, err)
				}
			}
		})
	}
}

// A burst is one change, and what happens to other files is none.
func TestBurstsAndNoise(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	write(t, one, "1")
	write(t, two, "1")
	_, changes := observe(t, time.Second, one, two)
	for i := range 50 {
		write(t, filepath.Join(dir, "noise"), string(rune('a'+i%26)))
	}
	must(t, os.Chtimes(filepath.Join(dir, "noise"), time.Now(), time.Now()))
	for range 20 {
		write(t, one, "other")
		write(t, two, "other")
	}
	wait(t, changes)
	write(t, one, "last")
	wait(t, changes)
	if n := len(changes); n > 0 {
		t.Errorf("%d more changes were told", n)
	}
}

// A change that happens between reading a file and watching it is not lost.
func TestKnownFilesAreCompared(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "f"), filepath.Join(dir, "g", "g")
	write(t, file, "1")
	write(t, other, "1")
	w, changes := observe(t, time.Second, file)
	w.Files([]string{file, other})
	write(t, other, "2")
	wait(t, changes)
	w.Files([]string{other})
	write(t, file, "not watched any more")
	write(t, other, "3")
	wait(t, changes)
	if n := len(changes); n > 0 {
		t.Errorf("%d more changes were told", n)
	}
}

func TestClose(t *testing.T) {
	w, err := New(func() {}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	w.Files([]string{"x"}) // does not block
}

func TestWayEnds(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	must(t, err)
	must(t, os.Symlink("b", filepath.Join(dir, "a")))
	must(t, os.Symlink("a", filepath.Join(dir, "b")))
	if got := way(filepath.Join(dir, "a", "f")); len(got) > maxLinks+1 || !slices.Contains(got, dir) {
		t.Errorf("links in a circle: %q", got)
	}
	if got := way(filepath.Join(dir, "x", "y", "z")); !slices.Equal(got, []string{dir}) {
		t.Errorf("a way that is not there: %q, want %q", got, dir)
	}
}
