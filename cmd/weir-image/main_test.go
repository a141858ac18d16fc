package main

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"weir/host"
	"weir/host/config"
	"weir/host/plugin/plugintest"
)

var built struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	if root := os.Getenv(rootVariable); root != "" {
		enter(root) // in place of the program; does not return
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// binary builds a command once, the product as the image has it.
func binary(t *testing.T, name string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "weir-image")
		if err != nil {
			t.Fatal(err)
		}
		built.dir = dir
	}
	path := filepath.Join(built.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/"+name)
	cmd.Dir, cmd.Env = plugintest.Root(t), os.Environ()
	if name == "weir" {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOOS=linux")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// folder is a checkout as far as an image is concerned: built and locked.
func folder(t *testing.T) string {
	t.Helper()
	dir, root := t.TempDir(), plugintest.Root(t)
	if err := os.CopyFS(filepath.Join(dir, "prompts"), os.DirFS(filepath.Join(root, "prompts"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{config.DefaultPath, ".image-version"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name), data)
	}
	cfg, err := config.Load(config.Source{Path: filepath.Join(dir, config.DefaultPath), Keyless: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range cfg.Plugins.List {
		put(t, p.Module, plugintest.Build(t, "plugins/"+p.Name))
	}
	pins, err := host.Pins(host.Options{ConfigPath: cfg.Path})
	if err != nil {
		t.Fatal(err)
	}
	put(t, cfg.Plugins.LockPath(), pins.Encode())
	return dir
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// image runs the program on a folder.
func image(t *testing.T, dir, weir string, more ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args := append([]string{"--weir", weir, "--config", filepath.Join(dir, config.DefaultPath),
		"--version-file", filepath.Join(dir, ".image-version"), "--commit", "0123abc"}, more...)
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

func open(t *testing.T, dir string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v: %+v", err, manifest)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err == nil {
		err = validate.Image(img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// platform.md 8 and the bounds of the image: reproducible, small, nothing in it
// that agent.toml does not name.
func TestLayout(t *testing.T) {
	dir, weir := folder(t), binary(t, "weir")
	out, again := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	code, stdout, stderr := image(t, dir, weir, "--out", out)
	if code != 0 || !strings.HasSuffix(stdout, " bytes\n") {
		t.Fatalf("%d, %s%s", code, stdout, stderr)
	}
	t.Log(stdout)
	if code, _, stderr := image(t, dir, weir, "--out", again); code != 0 {
		t.Fatal(stderr)
	}
	if !slices.Equal(files(t, out), files(t, again)) {
		t.Error("the same inputs gave another layout")
	}
	if code, _, stderr := image(t, dir, weir, "--out", out, "--commit", "another"); code != 0 || slices.Equal(files(t, out), files(t, again)) {
		t.Errorf("another commit gave the same layout, or none: %s", stderr)
	}

	img := open(t, again)
	names := map[string]*tar.Header{}
	unpacked := int64(0)
	for h := range headers(t, img) {
		names[strings.TrimSuffix(h.Name, "/")] = h
		unpacked += h.Size
	}
	if unpacked > maxUnpacked {
		t.Errorf("unpacked %d bytes", unpacked)
	}
	for _, name := range []string{"usr/local/bin/weir", "app/agent.toml", "app/prompts/system.md", "app/plugins/dist/react.wasm",
		"app/plugins/dist/agent.lock", "etc/passwd"} {
		if h := names[name]; h == nil || h.Uid != 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s: %+v, expected a file that only root may change", name, h)
		}
	}
	for _, name := range []string{"app/plugins/dist/.cache", "var/lib/weir"} {
		if h := names[name]; h == nil || h.Uid != 1001 || h.Typeflag != tar.TypeDir {
			t.Errorf("%s: %+v, expected a folder of the user", name, h)
		}
	}
	if names["app/plugins/dist/extism-no-shouting.wasm"] != nil || names["app/.env"] != nil {
		t.Error("something is in the image that no configuration names")
	}
}

// files are names and bytes of a folder.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		out = append(out, name+"\x00"+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func headers(t *testing.T, img v1.Image) func(yield func(*tar.Header) bool) {
	return func(yield func(*tar.Header) bool) {
		rc := mutate.Extract(img)
		defer rc.Close()
		for r := tar.NewReader(rc); ; {
			h, err := r.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(h) {
				return
			}
		}
	}
}

// What would be an image that does not run is refused. The first case is the
// control.
func TestRefuses(t *testing.T) {
	weir := binary(t, "weir")
	dynamic := filepath.Join(t.TempDir(), "dynamic")
	if runtime.GOOS == "linux" {
		shell, err := os.ReadFile("/bin/sh")
		if err != nil || !bytes.HasPrefix(shell, []byte("\x7fELF")) {
			t.Skip("there is no binary with a loader to try")
		}
		put(t, dynamic, shell)
	}
	base := folder(t)
	edit := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { put(t, filepath.Join(dir, name), []byte(text)) }
	}
	tests := []struct {
		name string
		edit func(t *testing.T, dir string)
		args []string
		want string // in stderr; empty: it works
	}{
		{name: "as it is", want: ""},
		{name: "a binary that needs a loader", args: []string{"--weir", dynamic}, want: "expected a static binary"},
		{name: "no binary", args: []string{"--weir", filepath.Join(base, config.DefaultPath)}, want: "expected a binary for Linux"},
		{name: "a version that is none", edit: edit(".image-version", "1.0\n"), want: "expected one line X.Y.Z"},
		{name: "two lines", edit: edit(".image-version", "1.0.0\n1.0.1\n"), want: "expected one line X.Y.Z"},
		{name: "a module that the lock does not pin", edit: edit("plugins/dist/react.wasm", "\x00asm"), want: "module react: agent.lock pins"},
		{name: "a prompt that the lock does not pin", edit: edit("prompts/system.md", "Another.\n"), want: "prompt system: agent.lock pins"},
		{name: "no lock", edit: func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "plugins/dist/agent.lock")); err != nil {
				t.Fatal(err)
			}
		}, want: "`make build` writes it"},
		{name: "a prompt from elsewhere", edit: func(t *testing.T, dir string) {
			file := filepath.Join(dir, config.DefaultPath)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(filepath.Dir(dir), "elsewhere.md"), []byte("x\n"))
			put(t, file, bytes.Replace(text, []byte(`"prompts/system.md"`), []byte(`"../elsewhere.md"`), 1))
		}, want: "expected a relative path below the folder of agent.toml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "app")
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			if tt.edit != nil {
				tt.edit(t, dir)
			}
			code, _, stderr := image(t, dir, weir, append([]string{"--root", filepath.Join(t.TempDir(), "root")}, tt.args...)...)
			if tt.want == "" {
				if code != 0 {
					t.Errorf("%d, %s", code, stderr)
				}
				return
			}
			if code != 1 || !strings.Contains(stderr, tt.want) {
				t.Errorf("%d, %s", code, stderr)
			}
		})
	}
}

// An existing folder that is no layout is left alone.
func TestKeepsOtherFolders(t *testing.T) {
	dir := folder(t)
	code, _, stderr := image(t, dir, binary(t, "weir"), "--out", dir)
	if code != 1 || !strings.Contains(stderr, "expected an empty folder or an earlier layout") {
		t.Errorf("%d, %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, config.DefaultPath)); err != nil {
		t.Error(err)
	}
}

// A machine without certificates gives an image without, and says so.
func TestWithoutCertificates(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	code, _, stderr := image(t, folder(t), binary(t, "weir"), "--root", root, "--ca-bundle", filepath.Join(t.TempDir(), "none"))
	if _, err := os.Stat(filepath.Join(root, authority)); code != 0 || err == nil || !strings.Contains(stderr, "trusts no certificate") {
		t.Errorf("%d, %v, %s", code, err, stderr)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"--out", "a", "--root", "b"}, {"--out", "a", "b"}, {"--nothing"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%q: %d, %q", args, code, errs.String())
		}
	}
}
