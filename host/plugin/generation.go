package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// Policy describes everything that defines behaviour, with nothing left to
// look up: defaults filled in, files read.
type Policy struct {
	Resolved abi.Raw // the policy part of the configuration, without paths and secrets
	Actions  abi.Raw // what people may authorise; nil means none
	Plugins  []Spec  // in the order of the chain
	Workflow string  // the name of the workflow among Plugins
}

// Generation is one policy with its plugins loaded. It never changes; a change
// of policy is another generation. Its methods may be called concurrently.
type Generation struct {
	id       string
	plugins  []*Plugin
	workflow *Plugin

	mu    sync.Mutex
	users int // runs, and one for whoever built it
	shut  bool
	freed chan struct{}
}

// Identity returns the identity of a policy: the SHA-256, in hex digits, of the
// canonical JSON of
//
//	{abi, engine, instrumenter, policy, prompts {name: sha}, modules {name: sha}, actions}
//
// It depends on nothing but what it names, so every replica computes the same.
func (p *Policy) Identity() (string, error) {
	prompts, err := p.promptDigests()
	if err != nil {
		return "", err
	}
	modules := map[string]string{}
	for n := range p.Plugins {
		s := &p.Plugins[n]
		if _, twice := modules[s.Name]; twice {
			return "", fault.New(fault.Invalid, "policy: two plugins are named %s", quote(s.Name))
		}
		modules[s.Name] = s.Digest()
	}
	b := strictjson.AppendInt([]byte(`{"abi":`), abi.Version)
	b = strictjson.AppendString(append(b, `,"engine":`...), Engine)
	b = strictjson.AppendString(append(b, `,"instrumenter":`...), Instrumenter)
	b = appendValue(append(b, `,"policy":`...), p.Resolved)
	b = appendDigests(append(b, `,"prompts":`...), prompts)
	b = appendDigests(append(b, `,"modules":`...), modules)
	b = append(appendValue(append(b, `,"actions":`...), p.Actions), '}')
	canonical, err := strictjson.Canonical(nil, b)
	if err != nil {
		return "", fault.New(fault.Invalid, "policy: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

func (p *Policy) promptDigests() (map[string]string, error) {
	digests := map[string]string{}
	for _, s := range p.Plugins {
		for _, prompt := range s.Prompts {
			digest := digestOf([]byte(prompt.Text))
			if have, ok := digests[prompt.Name]; ok && have != digest {
				return nil, fault.New(fault.Invalid, "policy: the prompt %s has two texts", quote(prompt.Name))
			}
			digests[prompt.Name] = digest
		}
	}
	return digests, nil
}

func appendValue(b []byte, value abi.Raw) []byte {
	if len(value) == 0 {
		return append(b, "null"...)
	}
	return append(b, value...)
}

// appendDigests writes an object; the canonical form sorts it.
func appendDigests(b []byte, digests map[string]string) []byte {
	b = append(b, '{')
	first := true
	for name, digest := range digests {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = strictjson.AppendString(b, name)
		b = strictjson.AppendString(append(b, ':'), digest)
	}
	return append(b, '}')
}

// Build loads every plugin of a policy. All of them work or there is no
// generation: when one fails, the others are closed and the error names it.
func (r *Runtime) Build(ctx context.Context, policy Policy) (*Generation, error) {
	id, err := policy.Identity()
	if err != nil {
		return nil, err
	}
	g := &Generation{id: id, users: 1, freed: make(chan struct{})}
	if err := g.load(ctx, r, policy.Plugins); err != nil {
		return nil, errors.Join(err, g.abandon(ctx))
	}
	if err := g.choose(policy.Workflow); err != nil {
		return nil, errors.Join(err, g.abandon(ctx))
	}
	return g, nil
}

// load loads the plugins side by side, as many as there are processors: most of
// a start is reading, rewriting and checking modules. Its error is that of the
// first one in their order that fails.
func (g *Generation) load(ctx context.Context, r *Runtime, specs []Spec) error {
	plugins, errs := make([]*Plugin, len(specs)), make([]error, len(specs))
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for n, spec := range specs {
		all.Go(func() {
			turns <- struct{}{}
			plugins[n], errs[n] = r.Load(ctx, spec)
			<-turns
		})
	}
	all.Wait()
	g.plugins = slices.DeleteFunc(plugins, func(p *Plugin) bool { return p == nil })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Generation) abandon(ctx context.Context) error {
	return g.Close(context.WithoutCancel(ctx))
}

func (g *Generation) choose(workflow string) error {
	if workflow == "" {
		return nil
	}
	p := g.Plugin(workflow)
	switch {
	case p == nil:
		return fault.New(fault.Invalid, "policy: the workflow %s is not among the plugins", quote(workflow))
	case p.Description().Kind != abi.KindWorkflow:
		return fault.New(fault.Invalid, "policy: plugin %s is a %s, expected a workflow", workflow, p.Description().Kind)
	}
	g.workflow = p
	return nil
}

// ID returns the identity, 64 hex digits.
func (g *Generation) ID() string { return g.id }

// Short returns the first 12 digits of the identity, for people.
func (g *Generation) Short() string { return g.id[:12] }

// Plugins returns the plugins in the policy's order.
func (g *Generation) Plugins() []*Plugin { return append([]*Plugin(nil), g.plugins...) }

// Plugin returns the plugin of that name, or nil.
func (g *Generation) Plugin(name string) *Plugin {
	for _, p := range g.plugins {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Workflow returns the workflow, or nil when the policy names none.
func (g *Generation) Workflow() *Plugin { return g.workflow }

// Acquire keeps the generation alive for one run, until release is called,
// which may happen more than once. It returns nil when the generation has been
// freed already: then another one is current and the caller asks for that.
func (g *Generation) Acquire() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users == 0 {
		return nil
	}
	g.users++
	return sync.OnceFunc(g.drop)
}

// drop gives one use back; the last one frees the plugins.
func (g *Generation) drop() {
	g.mu.Lock()
	g.users--
	last := g.users == 0
	g.mu.Unlock()
	if !last {
		return
	}
	for _, p := range g.plugins {
		_ = p.Close(context.Background())
	}
	close(g.freed)
}

// Users returns how many runs hold the generation.
func (g *Generation) Users() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return g.users
	}
	return g.users - 1 // the builder is no run
}

// Retire gives up the builder's use: from then on the generation is freed with
// its last release. It may be called twice.
func (g *Generation) Retire() {
	g.mu.Lock()
	first := !g.shut
	g.shut = true
	g.mu.Unlock()
	if first {
		g.drop()
	}
}

// Freed is closed when the plugins are freed.
func (g *Generation) Freed() <-chan struct{} { return g.freed }

// Close retires the generation and waits until it is freed. When ctx ends first
// it returns the cause, and the generation is freed with its last release all
// the same. It may be called twice.
func (g *Generation) Close(ctx context.Context) error {
	g.Retire()
	select {
	case <-g.freed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("generation %s: close: it is still in use: %w", g.Short(), context.Cause(ctx))
	}
}
