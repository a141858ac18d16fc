package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"weir/host/approval"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/store/jetstream"
	"weir/host/store/memory"
)

// startStore opens the store that agent.toml names.
func (h *Host) startStore(ctx context.Context) error {
	c := h.cfg.Store
	if c.Backend == config.BackendMemory {
		s := memory.New(memory.Options{KeepEnded: keepEnded(c.KeepEnded)})
		h.onStop(func(context.Context) error { return s.Close() })
		h.store = s
		return nil
	}
	s, err := jetstream.Open(ctx, jetStreamOptions(h.cfg, h.log))
	if err != nil {
		return err
	}
	h.onStop(func(context.Context) error { return s.Close() })
	h.store = s
	return nil
}

// InspectRun reads a run's log from the store that a configuration names, for a
// command beside a host that does not run. Unavailable means that somebody uses
// the state directory, or that the store does not answer.
func InspectRun(ctx context.Context, cfg *config.Config, id string) (*run.Report, error) {
	s, err := openStopped(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return run.Inspect(ctx, logs{s}, id)
}

// openStopped opens the store of a host that does not run, which must be there.
func openStopped(ctx context.Context, cfg *config.Config) (*jetstream.Store, error) {
	if cfg.Store.Backend == config.BackendMemory {
		return nil, fault.New(fault.NotFound, "[store] backend is \"memory\": its logs end with the process; ask a running host, with WEIR_ADMIN_KEY")
	}
	o := jetStreamOptions(cfg, slog.New(slog.DiscardHandler))
	if _, err := os.Stat(o.Dir); o.Dir != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "%s: there is no such state directory, expected the one that the host has used", o.Dir)
	}
	return jetstream.Open(ctx, o)
}

func jetStreamOptions(cfg *config.Config, log *slog.Logger) jetstream.Options {
	c := cfg.Store
	o := jetstream.Options{
		Replicas: c.Replicas, MaxAge: c.Retention, Log: log,
		AgedSpaces: "r", // run.<id> and raw.<id>, also of a run that left nothing else
		LateLogs:   wholeLogs,
		Login:      jetstream.Login{CredentialsFile: c.Credentials},
		TLS:        jetstream.TLS{Authorities: c.TLSCA, Certificate: c.TLSCert, Key: c.TLSKey},
	}
	if o.URLs = c.URLs(); len(o.URLs) > 0 {
		return o
	}
	o.Dir, o.SyncEvery, o.MaxBytes = cfg.StateDir(), c.Sync, int64(c.MaxBytes)
	if c.Cluster.Name != "" {
		o.Cluster = jetstream.Cluster{Name: c.Cluster.Name, Server: c.Cluster.Server, Listen: c.Cluster.Listen,
			Routes: c.Cluster.RouteURLs(), User: c.Cluster.User, Password: c.Cluster.Password.Reveal(), TLS: o.TLS}
	}
	return o
}

// keepEnded translates the configuration's 0, none, into the store's.
func keepEnded(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// newKeeper makes what waiting runs need: the keeper, and where something can
// be authorised the executor.
func (h *Host) newKeeper() error {
	if h.cfg.ApprovalsOn() && h.alone == nil {
		executor, err := approval.NewExecutor(approval.ExecutorOptions{MCPURL: h.cfg.Tools.MCP.URL,
			APIKey: h.cfg.Tools.MCP.APIKey.Reveal(), Secret: []byte(h.cfg.Approvals.Secret.Reveal())})
		if err != nil {
			return err
		}
		h.executor = executor
	}
	l := logs{h.store}
	h.keeper = run.NewKeeper(h.archive, l, l, run.KeeperOptions{
		Alone:      h.cfg.Store.Alone(),
		Park:       h.cfg.Approvals.OnDisconnect == config.DisconnectPark,
		MaxPending: h.cfg.Approvals.MaxPending, MaxPerUser: h.cfg.Run.MaxPerUser, KeepEvents: h.cfg.Run.KeepEvents,
		Digests: h.cfg.Store.Content == config.ContentDigest,
		Note:    h.lease, Tracer: h.tracer, Reached: h.reached, Logger: h.log,
	})
	return nil
}

// startKeeper takes up the runs that wait in the store.
func (h *Host) startKeeper(ctx context.Context, p *policy) error {
	if err := h.keep(ctx, p.draft); err != nil {
		return err
	}
	h.onStop(h.keeper.Stop)
	if err := h.keeper.Start(ctx); err != nil {
		return err
	}
	return h.sweep(ctx)
}

// mayWait tells whether runs can wait for somebody, and so outlive their policy.
func (h *Host) mayWait() bool { return h.executor != nil || h.turns() }

// keep stores what a policy and its variants are made of where its runs may outlive it.
func (h *Host) keep(ctx context.Context, d *draft) error {
	if !h.mayWait() {
		return nil
	}
	for _, one := range d.all() {
		if err := h.archive.save(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// replica is what a replica's lease says of it.
type replica struct {
	Generation string   `json:"generation"`
	Draining   []string `json:"draining,omitempty"` // and these: variants, and those whose runs have not ended
}

// lease is this replica's.
func (h *Host) lease() []byte {
	current := h.swaps.current.Load()
	r := replica{Generation: current.id}
	for _, v := range current.variants {
		r.Draining = append(r.Draining, v.id)
	}
	r.Draining = append(r.Draining, h.swaps.old()...)
	body, err := json.Marshal(r)
	if err != nil {
		return []byte("{}")
	}
	return body
}

// sweep drops generations that nobody names. It asks the replicas first: what
// one of them is done with by then has become a run that waits.
func (h *Host) sweep(ctx context.Context) error {
	if !h.mayWait() {
		return nil
	}
	used := map[string]bool{}
	for _, one := range h.swaps.current.Load().all() {
		used[one.id] = true
	}
	for _, prefix := range []string{run.ReplicaPrefix, run.OpenPrefix} {
		keys, err := h.store.Keys(ctx, prefix)
		if err != nil {
			return err
		}
		for _, key := range keys {
			v, err := h.store.Get(ctx, key)
			if fault.Of(err) == fault.NotFound {
				continue
			}
			var r replica
			if err != nil || json.Unmarshal(v.Data, &r) != nil {
				return err
			}
			used[r.Generation] = true
			for _, id := range r.Draining {
				used[id] = true
			}
		}
	}
	return h.archive.sweep(ctx, used)
}
