package run

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"weir/host/fault"
)

// errKeeperStops ends the work of a keeper.
var errKeeperStops = fault.Coded(fault.Unavailable, CodeDrain, "the host is stopping")

// Start says that this replica is alive, looks for runs of replicas that are
// not, and goes on doing both until Stop. It returns when it has said and
// looked once.
func (k *Keeper) Start(ctx context.Context) error {
	if err := k.lease(ctx); err != nil {
		return err
	}
	if err := k.adopt(ctx); err != nil {
		return err
	}
	k.do(func() { k.every(k.opts.Lease/3, k.lease) })
	k.do(func() { k.every(k.opts.Lease, k.adopt) })
	k.do(k.listen)
	return nil
}

// Stop lets waiting runs wait for another replica and ends those that are going
// on without a client. It waits for all work until ctx ends. It may be called
// twice.
func (k *Keeper) Stop(ctx context.Context) error {
	k.mu.Lock()
	again := k.stopped
	k.stopped = true
	for _, w := range k.waiting {
		w.timer.Stop()
	}
	k.mu.Unlock()
	k.end(errKeeperStops)
	done := make(chan struct{})
	go func() { defer close(done); k.work.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if again {
		return nil
	}
	return k.index.Delete(context.WithoutCancel(ctx), ReplicaPrefix+k.opts.Replica)
}

func (k *Keeper) every(period time.Duration, f func(context.Context) error) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-k.life.Done():
			return
		case <-tick.C:
			if err := f(k.life); err != nil && k.life.Err() == nil {
				k.opts.Logger.Warn("the store does not answer", "error", err)
			}
		}
	}
}

func (k *Keeper) lease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.opts.Lease)
	defer cancel()
	return k.index.Put(ctx, ReplicaPrefix+k.opts.Replica, k.opts.Note(), k.opts.Lease)
}

// adopt takes the open runs of dead replicas over.
func (k *Keeper) adopt(ctx context.Context) error {
	alive := map[string]bool{k.opts.Replica: true}
	if !k.opts.Alone {
		replicas, err := k.index.Keys(ctx, ReplicaPrefix)
		if err != nil {
			return err
		}
		for _, key := range replicas {
			alive[strings.TrimPrefix(key, ReplicaPrefix)] = true
		}
	}
	keys, err := k.index.Keys(ctx, OpenPrefix)
	if err != nil {
		return err
	}
	for _, key := range keys {
		replica, run, ok := strings.Cut(strings.TrimPrefix(key, OpenPrefix), ".")
		if !ok || alive[replica] {
			continue
		}
		if err := k.adoptRun(ctx, key, run, alive); err != nil {
			k.opts.Logger.Error("a run of another replica is not taken over", "run", run, "error", err)
		}
	}
	return nil
}

// adoptRun takes one over: it waits here now, or goes on here. One that goes on
// at a replica that is alive is left alone, with its entry, for whoever that was
// may be gone at the next look.
func (k *Keeper) adoptRun(ctx context.Context, key, run string, alive map[string]bool) error {
	if k.here(run) {
		return nil
	}
	body, err := k.index.Get(ctx, key)
	if fault.Of(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	var entry openRun
	if err := json.Unmarshal(body, &entry); err != nil {
		return err
	}
	j, err := read(ctx, k.log, run)
	if fault.Of(err) == fault.NotFound { // it died before its first record
		return k.index.Delete(ctx, key)
	}
	if err != nil {
		return err
	}
	p, err := j.question(ctx, k.log)
	if err != nil {
		return err
	}
	if p.ended != nil {
		return k.clear(ctx, key, j)
	}
	by, err := j.claimant(ctx, k.log)
	if err != nil {
		return err
	}
	if by != "" && by != k.opts.Replica && alive[by] {
		return nil
	}
	if err := k.announce(ctx, run, j.generation, time.UnixMilli(entry.Expires)); err != nil {
		return err
	}
	w := &waiting{parked: Parked{Interaction: Interaction{Run: run}, Generation: j.generation, Position: j.position}, dead: by}
	if p.open {
		w.parked.Interaction = p.interaction(run)
		k.add(w)
	} else {
		k.do(func() { k.goOn(w) })
	}
	return k.index.Delete(ctx, key)
}

// clear finishes the end of a run whose replica died in it.
func (k *Keeper) clear(ctx context.Context, key string, j *journal) error {
	if err := j.close(ctx, k.log, k.opts.NewID); err != nil {
		return err
	}
	return k.index.Delete(ctx, key)
}

// listen hears what other replicas append. Whenever it begins it looks at all
// that wait here, since it may have missed something.
func (k *Keeper) listen() {
	for k.life.Err() == nil {
		for change, err := range k.index.Changes(k.life, LogName("")) {
			if err != nil {
				break
			}
			if change.Log == "" {
				k.lookAtAll()
				continue
			}
			k.heard(strings.TrimPrefix(change.Log, LogName("")), change.Position)
		}
		select {
		case <-k.life.Done():
			return
		case <-time.After(k.opts.Lease / 12):
		}
	}
}

func (k *Keeper) lookAtAll() {
	k.ringAll()
	for _, run := range k.all() {
		k.heard(run, math.MaxInt64)
	}
}

func (k *Keeper) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.waiting))
}

// heard looks at a run that waits here and that somebody has appended to.
func (k *Keeper) heard(run string, position int64) {
	k.ring(run)
	w := k.find(run)
	if w == nil || position <= w.parked.Position || k.decided(w) {
		return
	}
	k.do(func() {
		j, err := read(k.life, k.log, run)
		if passing(err) {
			time.AfterFunc(k.opts.Lease/12, func() { k.heard(run, position) })
		}
		if err != nil {
			return
		}
		if p, err := j.question(k.life, k.log); err != nil || p.open && p.opened.ID == w.parked.ID {
			return
		}
		if k.takeOn(w) {
			k.goesOn(w)
		}
	})
}
