// Package plugintest is for the tests of everything that calls plugins: it
// builds a plugin's folder to a module, and assembles small modules by hand
// that do what no compiler would.
package plugintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built holds the modules of this process; tests run concurrently.
var built sync.Map // directory → func() ([]byte, error)

// Build compiles the package in dir, which is relative to the module's root, as
// a plugin is built for shipping, and returns the module. Each folder is built
// once per process. The bytes must not be changed.
func Build(t testing.TB, dir string) []byte {
	t.Helper()
	root, dir := Root(t), filepath.Clean(dir)
	once, _ := built.LoadOrStore(dir, sync.OnceValues(func() ([]byte, error) { return build(root, dir) }))
	wasm, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatalf("build %s: %v", dir, err)
	}
	return wasm
}

func build(root, dir string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "plugintest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "plugin.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out,
		"./"+filepath.ToSlash(dir))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, &buildError{err: err, text: string(text)}
	}
	return os.ReadFile(out)
}

type buildError struct {
	err  error
	text string
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.text }

// Root returns the directory of the go.mod above the test.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = filepath.Dir(dir)
	}
}

// CacheDir returns a directory for compiled code that outlives the process, so
// a second run of the tests does not compile Go guests again. A caller that
// tests the cache itself uses t.TempDir.
func CacheDir(t testing.TB) string {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	// wazero does not know its own version in a test binary, so the cache's
	// key lacks it; the version of go.sum stands in.
	sum, err := os.ReadFile(filepath.Join(Root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(user, "weir-plugintest", wazeroVersion(string(sum)))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return t.TempDir()
	}
	return dir
}
