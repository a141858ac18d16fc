package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"weir/abi"
	"weir/host/fault"
)

// Spec says what to load and how.
type Spec struct {
	Name    string       // for errors and logs; not part of the module
	Wasm    []byte       // the module; not changed and not kept
	Config  abi.Raw      // object for configure; nil means {}
	Prompts []abi.Prompt // for configure
	Limits  Limits
	Log     bool // write the plugin's own lines; otherwise they are counted and dropped
	// Unchecked leaves the self-check cases to the caller, who runs them one by
	// one with [Plugin.Case].
	Unchecked bool

	sum *moduleSum // memo of digest
}

// moduleSum is the digest of the module that lies at some place.
type moduleSum struct {
	at     *byte
	size   int
	digest string
}

// Digest returns the SHA-256 of the module in hex digits. It is computed once
// for a module, which may not be changed, and for the copies of the Spec that
// are made afterwards; one Spec is not for several goroutines at once.
func (s *Spec) Digest() string {
	at := unsafe.SliceData(s.Wasm)
	if s.sum == nil || s.sum.at != at || s.sum.size != len(s.Wasm) {
		s.sum = &moduleSum{at, len(s.Wasm), digestOf(s.Wasm)}
	}
	return s.sum.digest
}

// Plugin is one module with its configuration, ready for calls. Its methods
// may be called concurrently.
type Plugin struct {
	name      string
	digest    string
	unchecked bool // the caller runs the cases
	limits    Limits
	config    abi.Raw
	prompts   []abi.Prompt
	hooks     map[abi.Hook]bool
	reactor   bool      // exports _initialize
	memory    uint64    // bytes that an instance begins with
	segments  []segment // what stands in them; only without an image
	intro     *introduction
	key       imageKey
	ready     bool // Load has returned it: from then on it sees users' data

	runtime *Runtime
	code    *code
	pool    *pool
	printed *printed

	discarded atomic.Uint64 // instances closed after a call

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
	free   sync.Once
}

// Load verifies a module, compiles it, asks what it is, configures it and runs
// the self-check cases that it ships. A module that breaks a rule is a
// fault.Invalid error that names the rule; one that fails while it runs is a
// fault.Plugin error. ctx bounds running the module, not compiling it.
func (r *Runtime) Load(ctx context.Context, spec Spec) (*Plugin, error) {
	p, o, err := r.prepare(spec)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", spec.Name, err)
	}
	if err := r.add(p); err != nil {
		return nil, err
	}
	if err := p.start(ctx, spec.Wasm, o.data); err != nil {
		p.calls.Done()
		_ = p.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	p.ready = true
	p.calls.Done()
	return p, nil
}

func (p *Plugin) start(ctx context.Context, wasm []byte, segments []segment) (err error) {
	if p.code, err = p.runtime.compile(ctx, p.digest, wasm); err != nil {
		if _, ok := errors.AsType[*failure](err); ok {
			return p.report("compile", err, "")
		}
		return fmt.Errorf("plugin %s: %w", p.name, err)
	}
	return p.setup(ctx, segments)
}

// prepare does what needs no running code.
func (r *Runtime) prepare(spec Spec) (*Plugin, *outline, error) {
	if spec.Name == "" {
		return nil, nil, fault.New(fault.Invalid, "expected a name")
	}
	limits, err := spec.Limits.resolved()
	if err != nil {
		return nil, nil, err
	}
	if int64(limits.Memory) > r.total {
		return nil, nil, fault.New(fault.Invalid, "limits: memory of %d MiB is above what all plugins may have together, %d MiB",
			limits.Memory>>20, r.total>>20)
	}
	o, err := inspect(spec.Wasm, limits)
	if err != nil {
		return nil, nil, err
	}
	p := &Plugin{
		name: spec.Name, digest: spec.Digest(), limits: limits,
		config: slices.Clone(spec.Config), prompts: slices.Clone(spec.Prompts),
		hooks: o.hooks(), reactor: o.exportsInit(), memory: uint64(o.memories[0].min) * pageSize,
		runtime: r, pool: newPool(limits.Instances), printed: &printed{}, unchecked: spec.Unchecked,
	}
	if len(p.config) == 0 {
		p.config = abi.Raw("{}")
	}
	if spec.Log {
		p.printed.logger = r.printed.With(slog.String("name", spec.Name))
	}
	p.calls.Add(1) // loading is a call in flight: closing waits for it
	return p, o, nil
}

// Name returns the name that the operator gave.
func (p *Plugin) Name() string { return p.name }

// Digest returns the SHA-256 of the module in hex digits.
func (p *Plugin) Digest() string { return p.digest }

// Description returns what the module says of itself. It must not be changed.
func (p *Plugin) Description() *abi.Description { return p.intro.description }

// Settings returns the reply to configure. It must not be changed.
func (p *Plugin) Settings() *abi.ConfigureReply { return p.intro.settings }

// Carrier returns how the module is run, one of the Carrier constants.
func (p *Plugin) Carrier() string {
	if p.code.sdk != nil {
		return CarrierExtism
	}
	return CarrierDirect
}

// Has tells whether the module exports a hook.
func (p *Plugin) Has(hook abi.Hook) bool { return p.hooks[hook] }

// Limits returns the limits in force, with every default filled in.
func (p *Plugin) Limits() Limits { return p.limits }

// Printed returns how many bytes the plugin has printed, and how many of these
// were not written to the log.
func (p *Plugin) Printed() (total, dropped uint64) {
	return p.printed.total.Load(), p.printed.dropped.Load()
}

// Close refuses new calls, waits for those in flight, which end by their
// deadlines, and frees the plugin. When ctx ends first it returns the cause,
// and the plugin is freed as soon as the last call has ended. It may be called
// twice.
func (p *Plugin) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.pool.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.calls.Wait()
		p.free.Do(p.release)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("plugin %s: close: calls are in flight: %w", p.name, context.Cause(ctx))
	}
}

func (p *Plugin) release() {
	p.runtime.memory.leave(p.pool.drain())
	if p.intro != nil {
		p.runtime.intros.Put(p.key)
	}
	if p.code != nil {
		p.runtime.codes.Put(p.digest)
	}
	p.runtime.remove(p)
}

// enter admits a call; it ends with p.calls.Done.
func (p *Plugin) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return failed(CodeUnavailable, "the plugin is closed")
	}
	p.calls.Add(1)
	return nil
}
