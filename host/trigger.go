package host

import (
	"context"
	"encoding/json"
	"time"

	"weir/host/admin"
	"weir/host/run"
	"weir/host/run/replay"
	"weir/host/store"
	"weir/host/watch"
)

// startTriggers starts what asks for reloads. It is started last and so stops
// first: a host that drains takes no other policy.
func (h *Host) startTriggers() error {
	h.onStop(func(context.Context) error { h.swaps.quit(); return nil })
	if err := h.startWatch(); err != nil {
		return err
	}
	return h.startAdmin()
}

func (h *Host) startWatch() error {
	if !h.cfg.Reload.Watch {
		return nil
	}
	w, err := watch.New(func() { h.swaps.ask(reload, TriggerFile) },
		watch.Options{Settle: h.cfg.Reload.Settle, Logger: h.log})
	if err != nil { // for instance out of inotify instances; the other triggers work
		h.log.Warn("files are not watched; use SIGHUP or `weir admin reload`", "error", err)
		return nil
	}
	h.watcher = w
	h.onStop(func(context.Context) error { return w.Close() })
	w.Files(files(h.cfg))
	h.swaps.ask(reload, TriggerFile) // for what has changed since the files were read
	return nil
}

// watch watches the files of the policy that is tried and of the current one.
func (h *Host) watch(lists ...[]string) {
	if h.watcher == nil {
		return
	}
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	h.watcher.Files(all)
}

func (h *Host) startAdmin() error {
	a := h.cfg.Admin
	if !a.APIKey.Set() {
		return nil
	}
	network, address := a.Network()
	s, err := admin.Start(controller{h.swaps, h.store, h.keeper}, admin.Options{Network: network, Address: address, Key: a.APIKey.Reveal(), Logger: h.log})
	if err != nil {
		return err
	}
	h.admin = s
	h.onStop(s.Stop)
	h.log.Info("admin listener", "address", s.Addr().String())
	return nil
}

// controller is the swaps and the store as the admin listener sees them.
type controller struct {
	swaps *swaps
	store store.Store
	runs  *run.Keeper
}

func (c controller) Log(ctx context.Context, id string) (json.RawMessage, error) {
	c.runs.Settled(ctx, id)
	report, err := run.Inspect(ctx, logs{c.store}, id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(report)
}

func (c controller) Logs(ctx context.Context, since time.Time, most int) (json.RawMessage, error) {
	list, err := recentRuns(ctx, c.runs, c.store, since, most)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []run.Listed{}
	}
	return json.Marshal(list)
}

func (c controller) ReloadIf(ctx context.Context, since time.Duration, gate string) (string, json.RawMessage, error) {
	rules, err := replay.ParseGate(gate)
	if err != nil {
		return OutcomeFailed, nil, err
	}
	outcome, summary, err := c.swaps.doIf(ctx, check{since, rules})
	if summary == nil {
		return outcome, nil, err
	}
	body, failed := json.Marshal(summary)
	if err == nil {
		err = failed
	}
	return outcome, body, err
}

func (c controller) Reload(ctx context.Context) (string, error) {
	return c.swaps.do(ctx, reload, TriggerAdmin)
}

func (c controller) Rollback(ctx context.Context) (string, error) {
	return c.swaps.do(ctx, rollback, TriggerAdmin)
}

func (c controller) Status() admin.Status { return c.swaps.status() }

// status says what is active, what is wanted and what stands between the two.
func (s *swaps) status() admin.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.current.Load()
	out := admin.Status{
		Active: admin.Active{Generation: p.id, Since: p.since.UTC(), Runs: p.generation.Users(),
			ConfigPath: p.cfg.Path, ConfigSHA256: p.cfg.SHA256, Plugins: plugins(p)},
		Wanted: admin.Wanted{Generation: s.last.generation, Trigger: s.last.trigger, At: s.last.at.UTC()},
		InSync: s.last.whole == p.whole && !s.last.failed, Building: s.busy,
		Swaps: s.count, Restart: p.waiting, Warnings: append(p.notes[:len(p.notes):len(p.notes)], p.unpinned...),
	}
	if s.failure.text != "" {
		out.LastError = &admin.Failure{Trigger: s.failure.trigger, At: s.failure.at.UTC(), Text: s.failure.text}
	}
	if s.previous != nil {
		out.Previous = s.previous.id
	}
	if s.held != nil {
		out.Held = s.held.id
	}
	for _, v := range p.variants {
		out.Active.Variants = append(out.Active.Variants, admin.Variant{Name: v.named, Share: v.variant.Share,
			Generation: v.id, Runs: v.generation.Users(), Plugins: plugins(v)})
	}
	for _, g := range s.draining {
		out.Draining = append(out.Draining, admin.Draining{Generation: g.ID(), Runs: g.Users()})
	}
	for _, c := range p.tools.set.Changed() {
		out.ChangedTools = append(out.ChangedTools, admin.ChangedTool{Name: c.Name, Admitted: c.Admitted, Offered: c.Offered})
	}
	return out
}

func plugins(p *policy) []admin.Plugin {
	var out []admin.Plugin
	for _, g := range p.generation.Plugins() {
		out = append(out, admin.Plugin{Name: g.Name(), Version: g.Description().Version, Digest: g.Digest()})
	}
	return out
}

// Reload reads the policy's files and makes what they say current. It returns
// one of the outcomes; when ctx ends first the reload goes on all the same.
func (h *Host) Reload(ctx context.Context) (outcome string, err error) {
	return h.swaps.do(ctx, reload, TriggerAdmin)
}

// ReloadIf is Reload on the condition that the runs that began since then,
// replayed through what the files say, pass a gate. Whatever keeps the active
// policy, the summary is there if there was a replay.
func (h *Host) ReloadIf(ctx context.Context, since time.Duration, gate []replay.Rule) (outcome string, summary *replay.Summary, err error) {
	return h.swaps.doIf(ctx, check{since, gate})
}

// Rollback makes the policy before the current one current again.
func (h *Host) Rollback(ctx context.Context) (outcome string, err error) {
	return h.swaps.do(ctx, rollback, TriggerAdmin)
}

// Status says which policy is active and why no other is.
func (h *Host) Status() admin.Status { return h.swaps.status() }

// AdminAddr is the address of the admin listener, as package net writes it;
// empty without one.
func (h *Host) AdminAddr() string {
	if h.admin == nil {
		return ""
	}
	return h.admin.Addr().String()
}
