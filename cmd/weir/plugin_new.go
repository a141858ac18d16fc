package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/txtar"

	"weir/host/plugin"
)

var pluginName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// pluginNew writes a plugin that builds and tests where nothing else of this
// repository is.
func (w *weir) pluginNew(_ context.Context, args []string) int {
	f := w.flags("plugin new")
	dir := f.String("dir", "", "the folder to write; by default NAME in the working directory")
	rest, code, ok := w.parse(f, args, 1)
	if !ok {
		return code
	}
	name := rest[0]
	if !pluginName.MatchString(name) {
		fmt.Fprintf(w.stderr, "weir plugin new: expected a name of a-z, 0-9 and -, at most 64, got %q\n", name)
		return exitUsage
	}
	if *dir == "" {
		*dir = name
	}
	if err := scaffold(*dir, name); err != nil {
		return w.refuse("weir plugin new", err)
	}
	fmt.Fprintf(w.stdout, "wrote %s\n\n  cd %s\n  go test ./...\n  weir plugin build\n  weir plugin test %s.wasm\n\nREADME.md says what to change and how to use it.\n",
		*dir, *dir, name)
	return exitOK
}

// scaffold writes a new plugin to a folder that is not there, or empty.
func scaffold(dir, name string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return errors.New(dir + ": expected no such folder, or an empty one")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	own, kit := txtar.Parse(scaffoldArchive), txtar.Parse(kitArchive)
	for _, file := range own.Files {
		text := strings.ReplaceAll(string(file.Data), "NAME", name)
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(file.Name)), []byte(text)); err != nil {
			return err
		}
	}
	for _, file := range kit.Files {
		if err := writeFile(filepath.Join(dir, "kit", filepath.FromSlash(file.Name)), file.Data); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// pluginBuild builds a Go guest.
func (w *weir) pluginBuild(ctx context.Context, args []string) int {
	f := w.flags("plugin build")
	out := f.String("o", "", "the module to write; by default DIR's name with .wasm in DIR")
	rest, code, ok := w.parse(f, args, optional)
	if !ok {
		return code
	}
	dir := "."
	if len(rest) == 1 {
		dir = rest[0]
	}
	path, err := w.build(ctx, dir, *out)
	if err != nil {
		return w.refuse("weir plugin build", err)
	}
	_, wasm, err := readModule(path)
	if err != nil {
		return w.refuse("weir plugin build", err)
	}
	facts, err := plugin.Survey(wasm)
	if err != nil {
		return w.refuse("weir plugin build", err)
	}
	fmt.Fprintf(w.stdout, "wrote %s: %d bytes, sha256 %s, hooks %s\n", path, facts.Size, facts.Digest, joinHooks(facts.Hooks))
	if facts.ABI == 0 {
		return w.refuse("weir plugin build", errors.New("the module has no ABI marker: a plugin imports weir/pdk"))
	}
	return exitOK
}

// build runs the go command as guests need it: a library for WASI, without
// symbols and without paths of this machine.
func (w *weir) build(ctx context.Context, dir, out string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if out == "" {
		out = filepath.Join(dir, filepath.Base(full)+".wasm")
	}
	target, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", target, ".")
	cmd.Dir = full
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	cmd.Stderr = w.stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", errors.New("expected the go command, 1.26 or newer, in the PATH")
		}
		return "", fmt.Errorf("go build: %w", err)
	}
	return out, nil
}
