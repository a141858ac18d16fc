package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"weir/host/config"
	"weir/host/lock"
)

// Where things stand in the image.
const (
	user      = 1001
	appDir    = "app"                               // agent.toml and what it names by relative paths
	program   = "usr/local/bin/weir"                // as the ENTRYPOINT says
	stateDir  = "var/lib/weir"                      // a volume
	authority = "etc/ssl/certs/ca-certificates.crt" // where Go looks first
)

// entry is one file or folder of the image.
type entry struct {
	name  string // relative to the root, with slashes
	data  []byte
	mode  fs.FileMode
	owner int // user and group
}

// content is everything that goes into the image. Layers that change seldom
// come first, so that registries and nodes keep them.
type content struct {
	layers       []layer
	cache        string // of compiled modules, a volume
	version      string
	commit       string
	name         string
	arch         string
	certificates string // path of the bundle that was taken, empty for none
}

type layer struct {
	about   string
	entries []entry
}

var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

func collect(s settings) (*content, error) {
	version, err := os.ReadFile(s.version)
	if err != nil {
		return nil, err
	}
	c := &content{version: strings.TrimSuffix(string(version), "\n"), commit: s.commit, name: s.name}
	if !semver.MatchString(c.version) {
		return nil, fmt.Errorf("%s: expected one line X.Y.Z, got %.20q", s.version, version)
	}
	system, err := c.system(s.caBundle)
	if err != nil {
		return nil, err
	}
	binary, err := c.program(s.weir)
	if err != nil {
		return nil, err
	}
	policy, err := c.policy(s.config)
	if err != nil {
		return nil, err
	}
	c.layers = []layer{
		{"user, certificates and folders", withParents(system)},
		{"weir", withParents(binary)},
		{"agent.toml, prompts and plugins", withParents(policy)},
	}
	return c, nil
}

// system is what a scratch image lacks. There is no shell and no library.
func (c *content) system(bundle string) ([]entry, error) {
	entries := []entry{
		{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nweir:x:%d:%d:weir:/%s:/sbin/nologin\n", user, user, appDir)},
		{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nweir:x:%d:\n", user)},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{name: stateDir, mode: fs.ModeDir | 0o700, owner: user},
	}
	data, err := os.ReadFile(bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return entries, nil
	}
	if err != nil {
		return nil, err
	}
	c.certificates = bundle
	return append(entries, entry{name: authority, data: data, mode: 0o644}), nil
}

// program is the binary, if it runs where there is nothing else.
func (c *content) program(file string) ([]entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	image, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: expected a binary for Linux: %w", file, err)
	}
	defer image.Close()
	switch image.Machine {
	case elf.EM_X86_64:
		c.arch = "amd64"
	case elf.EM_AARCH64:
		c.arch = "arm64"
	default:
		return nil, fmt.Errorf("%s: expected a binary for amd64 or arm64, got %s", file, image.Machine)
	}
	for _, p := range image.Progs {
		if p.Type == elf.PT_INTERP {
			return nil, fmt.Errorf("%s: expected a static binary, it needs a loader; build it with CGO_ENABLED=0", file)
		}
	}
	return []entry{{name: program, data: data, mode: 0o755}}, nil
}

// policy is agent.toml and the files that it names, under the same relative
// paths, and the lock. What stands beside them and is not named stays out.
func (c *content) policy(file string) ([]entry, error) {
	cfg, err := config.Load(config.Source{Path: file, Keyless: true})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(cfg.Path)
	if err != nil {
		return nil, err
	}
	entries := []entry{{name: path.Join(appDir, config.DefaultPath), data: text, mode: 0o644}}
	pins, err := lock.Read(cfg.Plugins.LockPath())
	if err != nil {
		return nil, fmt.Errorf("%w; `make build` writes it", err)
	}
	found := lock.File{Modules: map[string]string{}, Prompts: map[string]string{}}
	add := func(file string) ([]byte, error) {
		name, err := inside(cfg.Dir(), file)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(file)
		entries = append(entries, entry{name: name, data: data, mode: 0o644})
		return data, err
	}
	if _, err := add(cfg.Plugins.LockPath()); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Prompts)) {
		data, err := add(cfg.Prompts[name].Path)
		if err != nil {
			return nil, err
		}
		found.Prompts[name] = lock.Digest(data)
	}
	for _, p := range cfg.Plugins.List {
		data, err := add(p.Module)
		if err != nil {
			return nil, err
		}
		found.Modules[p.Name] = lock.Digest(data)
	}
	for i := range cfg.Variants { // those without a share too: whoever starts the image may give them one
		if err := variant(&cfg.Variants[i], &found, add); err != nil {
			return nil, err
		}
	}
	// An image whose lock does not fit refuses to start where the lock counts.
	if problems := pins.Compare(found); len(problems) > 0 {
		return nil, fmt.Errorf("%s; `make build` writes the lock anew", problems[0])
	}
	if c.cache, err = inside(cfg.Dir(), cfg.Plugins.Cache); err != nil {
		return nil, err
	}
	return append(entries, entry{name: c.cache, mode: fs.ModeDir | 0o700, owner: user}), nil
}

// variant adds the files in which a variant differs from the base.
func variant(v *config.Variant, found *lock.File, add func(string) ([]byte, error)) error {
	pin := func(digests map[string]string, name, file string) error {
		data, err := add(file)
		if digest := lock.Digest(data); digests[name] != digest {
			digests[v.Pin(name)] = digest
		}
		return err
	}
	var errs []error
	for name := range v.Prompts {
		errs = append(errs, pin(found.Prompts, name, v.Config.Prompts[name].Path))
	}
	for name := range v.Plugins {
		if p := v.Config.Plugins.Plugin(name); p != nil {
			errs = append(errs, pin(found.Modules, name, p.Module))
		}
	}
	return errors.Join(errs...)
}

// inside is a file's name in the image. Relative paths must mean the same there
// as in the folder of agent.toml.
func inside(dir, file string) (string, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(base, full)
	if err != nil || !filepath.IsLocal(rel) || filepath.IsAbs(file) && !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%s: expected a relative path below the folder of agent.toml", file)
	}
	return path.Join(appDir, filepath.ToSlash(rel)), nil
}

// withParents adds the folders that entries need, sorts everything, and makes
// each name stand once.
func withParents(entries []entry) []entry {
	byName := map[string]entry{}
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			if _, ok := byName[dir]; !ok {
				byName[dir] = entry{name: dir, mode: fs.ModeDir | 0o755}
			}
		}
	}
	for _, e := range entries {
		byName[e.name] = e
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// size is what the files take, without the file system's own.
func (c *content) size() (n int64) {
	for _, l := range c.layers {
		for _, e := range l.entries {
			n += int64(len(e.data))
		}
	}
	return n
}

// write puts the files below a folder, which must be empty or not exist.
func (c *content) write(root string) error {
	if existing, err := os.ReadDir(root); err == nil && len(existing) > 0 {
		return fmt.Errorf("%s: expected an empty folder", root)
	}
	for _, l := range c.layers {
		for _, e := range l.entries {
			if err := e.write(filepath.Join(root, filepath.FromSlash(e.name))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e entry) write(file string) (err error) {
	if e.mode.IsDir() {
		err = os.MkdirAll(file, 0o755)
	} else {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = os.WriteFile(file, e.data, 0o644)
		}
	}
	if err == nil {
		err = os.Chmod(file, e.mode)
	}
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(file, e.owner, e.owner)
	}
	return err
}
