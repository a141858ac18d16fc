package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"

	"weir/abi"
	"weir/host/approval"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/lock"
	"weir/host/plugin"
)

// draft is a policy as it was read from its files: everything that it takes to
// load it, also again when the files say something else. It does not change.
type draft struct {
	cfg     *config.Config
	id      string // of the generation
	policy  plugin.Policy
	actions *approval.Catalog            // what people may authorise
	prompts map[string]map[string]string // plugin, name, text
	lock    *lock.File
	notes   []string // what an operator should know of it

	variant  *config.Variant // nil: the base
	variants []*draft        // of the base, in agent.toml's order
	whole    string          // identity of the base and its variants together; the base's where there are none
}

// newDraft reads what a configuration names and holds it against agent.lock.
func newDraft(cfg *config.Config) (*draft, error) {
	d, err := readDraft(cfg)
	if err != nil {
		return nil, err
	}
	return d, d.pin()
}

// readDraft reads the base, and the variants that somebody gets.
func readDraft(cfg *config.Config) (*draft, error) {
	return readDrafts(cfg, func(v *config.Variant) bool { return v.Share > 0 })
}

func readDrafts(cfg *config.Config, wanted func(*config.Variant) bool) (*draft, error) {
	d, err := readOne(cfg)
	if err != nil {
		return nil, err
	}
	d.notes = slices.Clone(cfg.Warnings)
	for i := range cfg.Variants {
		v := &cfg.Variants[i]
		if !wanted(v) {
			continue
		}
		one, err := readOne(v.Config)
		if err != nil {
			return nil, ofVariant(v, err)
		}
		one.variant = v
		one.share(d)
		d.variants = append(d.variants, one)
	}
	d.whole = d.identity()
	return d, nil
}

// ofVariant says in which variant an error was found.
func ofVariant(v *config.Variant, err error) error {
	if v == nil || err == nil {
		return err
	}
	return fault.New(fault.Of(err), "variant %s: %w", v.Name, err)
}

// identity is one of the base and its variants together: which policies there
// are, and who gets them.
func (d *draft) identity() string {
	if len(d.variants) == 0 {
		return d.id
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n", d.id)
	for _, v := range d.variants {
		_, _ = fmt.Fprintf(sum, "%s %x %s\n", v.variant.Name, math.Float64bits(v.variant.Share), v.id)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// all are the base's draft and its variants'.
func (d *draft) all() []*draft { return append([]*draft{d}, d.variants...) }

func readOne(cfg *config.Config) (*draft, error) {
	d := &draft{cfg: cfg, prompts: map[string]map[string]string{}, lock: &lock.File{}}
	d.policy = plugin.Policy{Resolved: cfg.Policy(), Actions: cfg.DeclaredActions(), Workflow: cfg.Agent.Workflow}
	for i := range cfg.Plugins.List {
		spec, err := specOf(cfg, &cfg.Plugins.List[i])
		if err != nil {
			return nil, err
		}
		d.add(spec)
	}
	var err error
	if d.actions, err = actionsOf(cfg); err != nil {
		return nil, err
	}
	d.id, err = d.policy.Identity()
	return d, err
}

func (d *draft) add(spec plugin.Spec) {
	texts := map[string]string{}
	for _, p := range spec.Prompts {
		texts[p.Name] = p.Text
	}
	d.prompts[spec.Name] = texts
	d.policy.Plugins = append(d.policy.Plugins, spec)
}

// specOf reads a plugin's module and says how to load it.
func specOf(cfg *config.Config, p *config.Plugin) (plugin.Spec, error) {
	wasm, err := readModule(p.Module)
	if err != nil {
		return plugin.Spec{}, fault.New(fault.Invalid, "plugin %s: %w", p.Name, err)
	}
	spec := plugin.Spec{Name: p.Name, Wasm: wasm, Config: p.Config, Limits: limits(p.Limits), Log: p.Log}
	for _, name := range p.Prompts {
		spec.Prompts = append(spec.Prompts, abi.Prompt{Name: name, Text: cfg.Prompts[name].Text})
	}
	return spec, nil
}

func readModule(path string) ([]byte, error) {
	wasm, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New(path + ": there is no such module; `make plugins` builds the shipped ones")
	}
	return wasm, err
}

func limits(l config.Limits) plugin.Limits {
	return plugin.Limits{Memory: int(l.Memory), Reply: int(l.Reply), Timeout: l.Timeout,
		TimeoutPerKiB: l.TimeoutPerKiB, Setup: l.SetupTimeout, Fuel: uint64(l.Fuel), Wait: l.Wait, Instances: l.Instances}
}

// pin holds modules and prompts against agent.lock. A lock that cannot be read
// is refused in every mode: it must not pass for one that pins nothing.
func (d *draft) pin() error {
	path := d.cfg.Plugins.LockPath()
	var err error
	d.lock, err = lock.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.lock = &lock.File{}
		text := path + ": there is no such file, so nothing is pinned; `weir lock` writes it"
		if d.cfg.Plugins.Lock == config.LockRequire {
			return fault.New(fault.Invalid, "%s", text)
		}
		d.notes = append(d.notes, text)
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range d.lock.Compare(d.digests()) {
		if d.cfg.Plugins.Lock == config.LockRequire {
			errs = append(errs, errors.New(p.String()))
		} else {
			d.notes = append(d.notes, p.String())
		}
	}
	if len(errs) > 0 {
		return fault.New(fault.Invalid, "%w", errors.Join(errs...))
	}
	return nil
}

// digests is what agent.lock would say of the draft's modules and prompts, and
// of those in which its variants differ.
func (d *draft) digests() lock.File {
	f := lock.File{Modules: map[string]string{}, Prompts: map[string]string{}, Tools: map[string]string{}}
	for _, one := range d.all() {
		pin := func(digests map[string]string, name, digest string) {
			switch {
			case one.variant == nil:
				digests[name] = digest
			case digests[name] != digest:
				digests[one.variant.Pin(name)] = digest
			}
		}
		for n := range one.policy.Plugins {
			s := &one.policy.Plugins[n]
			pin(f.Modules, s.Name, s.Digest()) // as lock.Digest, which would read them all again
		}
		for name, p := range one.cfg.Prompts {
			pin(f.Prompts, name, p.SHA256)
		}
	}
	return f
}

// share lets drafts hold equal modules once: a draft is kept for as long as
// somebody may go back to it.
func (d *draft) share(with *draft) {
	for _, one := range d.all() {
		for i := range one.policy.Plugins {
			s := &one.policy.Plugins[i]
			for _, held := range with.all() {
				for _, other := range held.policy.Plugins {
					if bytes.Equal(s.Wasm, other.Wasm) {
						s.Wasm = other.Wasm
					}
				}
			}
		}
	}
}

// loadsAs tells whether the same plugins come of both drafts: the same
// identity, and the same of what is not part of one, such as whether a plugin's
// lines are logged.
func (d *draft) loadsAs(other *draft) bool {
	return d.id == other.id && reflect.DeepEqual(d.policy, other.policy)
}

// same tells whether both drafts are the same in every respect.
func (d *draft) same(other *draft) bool {
	return d.whole == other.whole && slices.EqualFunc(d.all(), other.all(), (*draft).loadsAs) &&
		d.cfg.SHA256 == other.cfg.SHA256 && slices.Equal(d.notes, other.notes) &&
		maps.Equal(d.digests().Prompts, other.digests().Prompts) && maps.Equal(d.lock.Tools, other.lock.Tools)
}

// files lists what the draft's configuration was read from and what it names,
// variants that nobody gets included: they are checked with it.
func files(cfg *config.Config) []string {
	list := []string{cfg.Path, cfg.Plugins.LockPath()}
	add := func(cfg *config.Config) {
		for _, p := range cfg.Prompts {
			list = append(list, p.Path)
		}
		for _, p := range cfg.Plugins.List {
			list = append(list, p.Module)
		}
	}
	add(cfg)
	for _, v := range cfg.Variants {
		add(v.Config)
	}
	return list
}
