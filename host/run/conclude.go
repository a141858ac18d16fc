package run

import (
	"weir/host/fault"
)

// left is called when a waiting run's client has left, or the host drains.
func (k *Keeper) left(w *waiting, cause error) {
	k.mu.Lock()
	here, decided := w.out != nil, w.again != nil // else its stream was ended by us
	k.mu.Unlock()
	if !here {
		return
	}
	drain := fault.CodeOf(cause) == CodeDrain
	if !drain && !decided && !k.opts.Park && k.do(func() { k.cancel(w) }) {
		return
	}
	k.detach(w, drain)
}

// cancel ends a waiting run whose client has left.
func (k *Keeper) cancel(w *waiting) {
	if k.take(w) {
		k.cancelTaken(w)
	}
}

func (k *Keeper) cancelTaken(w *waiting) {
	j, p, err := k.open(k.life, w.parked.Run)
	if err == nil && p.opened.ID != w.parked.ID {
		err = errNoInteraction
	}
	if err == nil {
		err = k.finish(j, RecordInteractionCancelled, w.parked.ID, endedPayload{State: Cancelled})
	}
	switch {
	case err == nil:
		k.count(j, w.parked.Kind, RecordInteractionCancelled)
		k.forget(w.parked.Run)
		w.letGo()
		k.ring(w.parked.Run)
	case taken(err) || fault.Of(err) == fault.NotFound: // somebody has answered before
		k.goOn(w)
	default:
		k.opts.Logger.Error("a run whose client left is not cancelled in the log", "run", w.parked.Run, "error", err)
		w.letGo()
		k.retry(w, func() { k.cancelTaken(w) })
	}
}

// letGo ends the stream of a run that somebody has taken out.
func (w *waiting) letGo() {
	if w.out != nil {
		w.over()
	}
	w.ctx, w.out, w.over = nil, nil, nil
}

// write writes the end of a run that the store did not take when it ended. If
// the log says otherwise by now, it says at least that the run has ended.
func (k *Keeper) write(w *waiting, j *journal, end endedPayload) {
	err := j.close(k.life, k.log, k.opts.NewID)
	if err != nil && fault.Of(err) != fault.Unavailable { // for instance an attempt before was made, and its acknowledgement got lost
		err = k.conclude(w, end)
	}
	if passing(err) && k.life.Err() == nil {
		k.opts.Logger.Error("the end of a run is not in the log yet", "run", w.parked.Run, "error", err)
		k.retry(w, func() { k.write(w, j, end) })
		return
	}
	if err != nil {
		k.opts.Logger.Error("the end of a run is not in the log", "run", w.parked.Run, "error", err)
	}
	k.forget(w.parked.Run)
	k.ring(w.parked.Run)
}

// conclude ends a run in the log, unless it has ended or goes on elsewhere.
func (k *Keeper) conclude(w *waiting, end endedPayload) error {
	for {
		j, err := read(k.life, k.log, w.parked.Run)
		if fault.Of(err) == fault.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		if j.hasEnded() {
			return j.close(k.life, k.log, k.opts.NewID)
		}
		if by, err := j.claimant(k.life, k.log); err != nil || by != "" && by != k.opts.Replica && by != w.dead {
			return err
		}
		kind, id := "", ""
		if p, err := j.question(k.life, k.log); err != nil {
			return err
		} else if p.open {
			kind, id = RecordInteractionCancelled, p.opened.ID
		}
		if err := k.finish(j, kind, id, end); !taken(err) {
			return err
		}
	}
}

// finish ends a run that waits: what became of its question, and its end.
func (k *Keeper) finish(j *journal, kind, interaction string, end endedPayload) error {
	j.now, j.reached = k.opts.Now, k.opts.Reached
	if kind != "" {
		if err := j.add(kind, resolvedPayload{ID: interaction}, true); err != nil {
			return err
		}
	}
	if err := j.add(RecordRunEnded, end, true); err != nil {
		return err
	}
	return j.close(k.life, k.log, k.opts.NewID)
}

// taken tells that somebody else has gone on with a log.
func taken(err error) bool {
	kind := fault.Of(err)
	return kind == fault.Conflict || kind == fault.Gone
}

// expire records that nobody answered in time, and lets the run go on.
func (k *Keeper) expire(w *waiting) {
	k.do(func() {
		if k.take(w) {
			k.expireTaken(w)
		}
	})
}

func (k *Keeper) expireTaken(w *waiting) {
	err := k.resolve(k.life, w.parked.Run, w.parked.ID, RecordInteractionExpired, nil)
	if err != nil && fault.Of(err) != fault.NotFound && k.life.Err() == nil {
		k.opts.Logger.Error("an expiry is not in the log yet", "run", w.parked.Run, "error", err)
		k.retry(w, func() { k.expireTaken(w) })
		return
	}
	k.goOn(w)
}

// lose ends a run that somebody has taken out and that cannot go on, because
// its generation does not exist any more or its log cannot be read.
func (k *Keeper) lose(w *waiting) {
	err := k.conclude(w, endedPayload{State: Failed, Reason: "it cannot be resumed"})
	if w.out != nil {
		w.out.Failed(FailureRun)
		w.out.Ended(w.parked.Info)
	}
	w.letGo()
	if err != nil {
		k.opts.Logger.Error("a run that cannot go on is not ended in the log", "run", w.parked.Run, "error", err)
	}
	if passing(err) && k.life.Err() == nil {
		k.retry(w, func() { k.lose(w) })
		return
	}
	k.forget(w.parked.Run)
	k.ring(w.parked.Run)
}
