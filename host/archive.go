package host

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"weir/host/config"
	"weir/host/fault"
	"weir/host/lock"
	"weir/host/plugin"
	"weir/host/run"
	"weir/host/store"
)

// archive keeps what generations were made of in the store, for as long as a
// run may name one: a run that waits for a person goes on with the policy that
// it began with, also when the files say something else by then, or another
// process takes it on.
//
//	generation.<id>  ─ manifest: configuration, plugins, digest of each module
//	space of the same name ─ modules
type archive struct {
	host   *Host
	loaded plugin.Shared[string, *policy] // made from the store, by generation
}

// archived is what the store has of a generation beside its modules.
type archived struct {
	Saved   int64          `json:"saved"` // milliseconds
	Config  *config.Config `json:"config"`
	Policy  plugin.Policy  `json:"policy"`  // without the modules' bytes
	Modules []string       `json:"modules"` // digests, in the plugins' order
}

const generationPrefix = "generation."

func newArchive(h *Host) *archive {
	a := &archive{host: h}
	a.loaded.Free = func(p *policy) {
		go func() { // it waits for guards in monitor mode
			_ = p.chain.Close(context.Background())
			_ = p.generation.Close(context.Background())
		}()
	}
	return a
}

// save stores what a draft was read from. What is there already is written anew,
// so that nobody drops it who has found it unused a moment ago.
func (a *archive) save(ctx context.Context, d *draft) error {
	name := generationPrefix + d.id
	m := archived{Saved: time.Now().UnixMilli(), Config: d.cfg, Policy: d.policy}
	m.Policy.Plugins = bareSpecs(d.policy.Plugins)
	for _, s := range d.policy.Plugins {
		digest, err := a.host.store.PutBlob(ctx, name, s.Wasm)
		if err != nil {
			return err
		}
		m.Modules = append(m.Modules, digest)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fault.New(fault.Internal, "generation %s: %w", d.id[:12], err)
	}
	_, err = a.host.store.Put(ctx, name, body, store.Any, 0)
	return err
}

func bareSpecs(specs []plugin.Spec) []plugin.Spec {
	out := make([]plugin.Spec, len(specs))
	for i, s := range specs {
		s.Wasm = nil
		out[i] = s
	}
	return out
}

// Kept implements run.Engines.
func (a *archive) Kept(ctx context.Context, generation string) (bool, error) {
	if a.host.swaps.current.Load().has(generation) {
		return true, nil
	}
	_, err := a.host.store.Get(ctx, generationPrefix+generation)
	if fault.Of(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// Begin implements run.Engines.
func (a *archive) Begin(req *run.Request) (*run.Engine, string, func(), error) {
	p, release := a.host.swaps.begin(req.Principal.Pseudonym, req.Variant)
	if p == nil {
		return nil, "", nil, errStopping
	}
	return p.engine, p.named, release, nil
}

// Engine implements run.Engines.
func (a *archive) Engine(ctx context.Context, generation string) (*run.Engine, func(), error) {
	if p, release := a.host.swaps.acquire(generation); p != nil {
		return p.engine, release, nil
	}
	p, err := a.loaded.Get(ctx, generation, func() (*policy, error) {
		return a.revive(context.WithoutCancel(ctx), generation)
	})
	switch {
	case fault.CodeOf(err) == plugin.CodeCancelled && ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, nil, err
	}
	return p.engine, func() { a.loaded.Put(generation) }, nil
}

// revive makes a policy of what the store has. Modules are verified by their
// digests; compiled code comes from the cache.
func (a *archive) revive(ctx context.Context, generation string) (*policy, error) {
	d, err := a.read(ctx, generation)
	if err != nil {
		return nil, err
	}
	p, err := loadOne(ctx, a.host.runtime, d, nil)
	if err != nil {
		return nil, fault.New(fault.Gone, "generation %s: %w", generation[:min(12, len(generation))], err)
	}
	if err := a.host.equipOne(ctx, p, a.host.swaps.current.Load()); err != nil {
		p.generation.Retire()
		return nil, err
	}
	return p, nil
}

func (a *archive) read(ctx context.Context, generation string) (*draft, error) {
	name := generationPrefix + generation
	v, err := a.host.store.Get(ctx, name)
	if fault.Of(err) == fault.NotFound {
		return nil, fault.New(fault.Gone, "generation %s: it is not kept", generation)
	}
	if err != nil {
		return nil, err
	}
	var m archived
	if err := json.Unmarshal(v.Data, &m); err != nil || len(m.Modules) != len(m.Policy.Plugins) {
		return nil, fault.New(fault.Internal, "generation %s: the manifest in the store cannot be read: %v", generation, err)
	}
	cfg, _ := a.host.cfg.Succeed(m.Config)
	d := &draft{cfg: cfg, id: generation, prompts: map[string]map[string]string{}, lock: &lock.File{}}
	d.policy = plugin.Policy{Resolved: m.Policy.Resolved, Actions: m.Policy.Actions, Workflow: m.Policy.Workflow}
	for i, spec := range m.Policy.Plugins {
		if spec.Wasm, err = a.host.store.Blob(ctx, name, m.Modules[i]); err != nil {
			return nil, fault.New(fault.Gone, "generation %s: plugin %s: %w", generation, spec.Name, err)
		}
		d.add(spec)
	}
	if d.actions, err = actionsOf(cfg); err != nil {
		return nil, err
	}
	if id, err := d.policy.Identity(); err == nil && id != generation {
		a.host.log.Warn("a waiting run goes on with another engine than it began with", "generation", generation[:12])
	}
	return d, nil
}

// Generations that were saved a moment ago stay, whoever has or has not said
// that it uses them.
const sweepAge = 10 * time.Minute

// sweep drops the generations that no open run and no replica names.
func (a *archive) sweep(ctx context.Context, used map[string]bool) error {
	keys, err := a.host.store.Keys(ctx, generationPrefix)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if used[strings.TrimPrefix(key, generationPrefix)] {
			continue
		}
		v, err := a.host.store.Get(ctx, key)
		if err != nil {
			continue
		}
		var m struct {
			Saved int64 `json:"saved"`
		}
		if json.Unmarshal(v.Data, &m) != nil || time.Since(time.UnixMilli(m.Saved)) < sweepAge {
			continue
		}
		if err := a.host.store.Delete(ctx, key, v.Revision); err != nil {
			continue // somebody saved it anew
		}
		if err := a.host.store.DropSpace(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
