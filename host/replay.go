package host

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"weir/host/config"
	"weir/host/fault"
	"weir/host/plugin"
	"weir/host/run"
	"weir/host/run/replay"
	"weir/host/store"
	"weir/host/store/jetstream"
)

// Bounds of a replay in a running host, which has runs of its own to serve.
const (
	trialTime   = 90 * time.Second
	trialAtOnce = 2
	trialRuns   = 1000 // the newest ones
)

// Trial is another generation, to fold recorded runs through. It needs no key
// and no network: the model, the tools and the people are the recordings.
type Trial struct {
	Config *config.Config // as it is tried

	policy  *policy
	runtime *plugin.Runtime
}

// TrialOptions say what is tried.
type TrialOptions struct {
	Options
	// Plugins and Prompts are files in place of those of the configuration, by
	// the names that it gives them.
	Plugins, Prompts map[string]string
}

// OpenTrial loads the generation. What agent.lock says of it counts only when
// it is to serve.
func OpenTrial(ctx context.Context, opts TrialOptions) (t *Trial, err error) {
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env, Keyless: true})
	if err != nil {
		return nil, err
	}
	for name, path := range opts.Plugins {
		err = errors.Join(err, cfg.ReplaceModule(name, path))
	}
	for name, path := range opts.Prompts {
		err = errors.Join(err, cfg.ReplacePrompt(name, path))
	}
	if err != nil {
		return nil, err
	}
	d, err := readDraft(cfg)
	if err != nil {
		return nil, err
	}
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	t = &Trial{Config: cfg}
	if t.runtime, err = plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: cfg.Plugins.Cache, Logger: logger}); err != nil {
		return nil, err
	}
	if t.policy, err = load(ctx, t.runtime, d, nil); err != nil {
		return nil, errors.Join(err, t.runtime.Close(context.WithoutCancel(ctx)))
	}
	for _, p := range t.policy.all() {
		p.log = logger
	}
	return t, nil
}

// Generation is the identity of what is tried.
func (t *Trial) Generation() string { return t.policy.Generation() }

// Replay folds n runs through the generation, each through the variant of its
// own name if there is one, atOnce at a time. See [replay.All].
func (t *Trial) Replay(ctx context.Context, n, atOnce int, read func(ctx context.Context, i int) (*run.Recorded, error), gate []replay.Rule) (*replay.Summary, error) {
	target, end, err := targets(t.policy, func(p *policy, one *replay.Target) {
		if declares(t.Config) { // whether people can be asked is known where the secret is
			one.People, one.AsThen = newPeople(p.actions, nil), true
		}
	})
	if err != nil {
		return nil, err
	}
	defer end()
	return replay.All(ctx, target, n, atOnce, read, gate)
}

// Close frees the plugins.
func (t *Trial) Close(ctx context.Context) error {
	return errors.Join(t.policy.close(ctx), t.runtime.Close(ctx))
}

func declares(cfg *config.Config) bool {
	for _, a := range cfg.Actions {
		if a.Enabled {
			return true
		}
	}
	return false
}

// targets is the base as runs are folded through it, and its variants. Each is
// finished by what the caller knows of people.
func targets(p *policy, finish func(*policy, *replay.Target)) (t replay.Target, end func(), err error) {
	var ends []func()
	end = func() {
		for _, f := range ends {
			f()
		}
	}
	made := map[string]replay.Target{}
	for _, one := range p.all() {
		each, free, err := target(one)
		if err != nil {
			end()
			return t, nil, ofVariant(one.variant, err)
		}
		finish(one, &each)
		ends = append(ends, free)
		made[one.named] = each
	}
	t = made[p.named]
	delete(made, p.named)
	t.Variants = made
	return t, end, nil
}

// target is a policy as runs are folded through it: its enforcing guards with a
// chain of their own, and nobody who counts or logs what they say. What end
// frees is only that chain.
func target(p *policy) (t replay.Target, end func(), err error) {
	var enforcing []config.Plugin
	for _, c := range p.cfg.Guards() {
		if c.Mode != config.ModeMonitor {
			enforcing = append(enforcing, c)
		}
	}
	quiet := *p
	quiet.tracer, quiet.log = nil, slog.New(slog.DiscardHandler)
	if quiet.chain, err = chain(p.generation, p.cfg, enforcing); err != nil {
		return t, nil, err
	}
	t = replay.Target{Policy: &quiet, Pauses: people{}, Options: engineOptions(p.cfg)}
	return t, func() { _ = quiet.chain.Close(context.Background()) }, nil
}

// ListRuns lists the runs of a store that began at or after a time, newest
// first, at most so many.
func listRuns(ctx context.Context, s store.Store, since time.Time, most int) ([]run.Listed, error) {
	names, err := logs{s}.list(ctx, run.LogName(""))
	if err != nil {
		return nil, err
	}
	return run.List(ctx, logs{s}, names, since, most)
}

// settleTime bounds the wait for the logs of runs that have just ended. A client
// that does not read holds the end of its run for longer.
const settleTime = 5 * time.Second

// recentRuns is listRuns with the runs whose clients know their end and whose
// logs are still being written.
func recentRuns(ctx context.Context, k *run.Keeper, s store.Store, since time.Time, most int) ([]run.Listed, error) {
	settled, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	k.AllSettled(settled)
	return listRuns(ctx, s, since, most)
}

// Runs reads the logs of a store that a configuration names, for a command
// beside a host that does not run; see [InspectRun].
type Runs struct{ store *jetstream.Store }

// OpenRuns opens the store.
func OpenRuns(ctx context.Context, cfg *config.Config) (*Runs, error) {
	s, err := openStopped(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Runs{s}, nil
}

// List lists the runs that began at or after a time, newest first.
func (r *Runs) List(ctx context.Context, since time.Time, most int) ([]run.Listed, error) {
	return listRuns(ctx, r.store, since, most)
}

// Inspect reads one run's log.
func (r *Runs) Inspect(ctx context.Context, id string) (*run.Report, error) {
	return run.Inspect(ctx, logs{r.store}, id)
}

// Close closes the store.
func (r *Runs) Close() error { return r.store.Close() }

// check is what a generation has to pass before it becomes current.
type check struct {
	since time.Duration
	gate  []replay.Rule
}

// try replays the runs of the last while through a policy that is not current
// yet, within bounds: each run through its own variant, and all of them through
// every variant whose generation does not serve. The summary is that of the first
// that does not pass, with the variant whose it is; nil: the base's, with all
// that judged.
func (h *Host) try(ctx context.Context, p *policy, c check) (*replay.Summary, *config.Variant, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, trialTime, fault.New(fault.Limit, "the replay took longer than %s", trialTime))
	defer cancel()
	listed, err := recentRuns(ctx, h.keeper, h.store, time.Now().Add(-c.since), trialRuns)
	if err != nil {
		return nil, nil, err
	}
	t, end, err := targets(p, func(one *policy, t *replay.Target) {
		if one.asks {
			t.People = newPeople(one.actions, nil)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	defer end()
	read := func(ctx context.Context, i int) (*run.Recorded, error) {
		report, err := run.Inspect(ctx, logs{h.store}, listed[i].Run)
		if err != nil {
			return nil, err
		}
		return run.ReadRecorded(report)
	}
	summary, err := replay.All(ctx, t, len(listed), trialAtOnce, read, c.gate)
	current := h.swaps.current.Load()
	for _, v := range p.variants {
		if err != nil || !summary.Passed() {
			return summary, nil, err
		}
		if current.has(v.id) {
			continue // it serves already, whether or not it has passed a gate
		}
		// Nobody has run it yet, and anybody may get it.
		one, err := replay.All(ctx, t.Variants[v.named], len(listed), trialAtOnce, read, c.gate)
		if err != nil || !one.Passed() {
			return one, v.variant, err
		}
		maps.Copy(summary.Judged, one.Judged)
	}
	return summary, nil, err
}
