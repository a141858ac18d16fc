package run

import (
	"context"
	"strings"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// resolve appends what became of a run's open question. NotFound means that it
// is not open any more.
func (k *Keeper) resolve(ctx context.Context, run, interaction, kind string, answer abi.Raw) error {
	for {
		j, p, err := k.open(ctx, run)
		if err != nil {
			return err
		}
		if p.opened.ID != interaction {
			return errNoInteraction
		}
		if err := j.add(kind, resolvedPayload{ID: interaction, Answer: answer}, answer == nil); err != nil {
			return err
		}
		err = j.flush(ctx, k.log, k.opts.NewID, false)
		if err == nil {
			k.count(j, p.opened.Kind, kind)
		}
		if !taken(err) {
			return err
		}
	}
}

// count tells what became of a person's question, and how long it was open.
func (k *Keeper) count(j *journal, of, kind string) {
	if of == KindCalls { // a caller's tools are no question
		return
	}
	for i := len(j.entries) - 1; i >= 0; i-- {
		if e := &j.entries[i]; e.Kind == RecordInteractionOpened {
			k.opts.Tracer.Approval(strings.TrimPrefix(kind, "interaction_"), k.opts.Now().Sub(time.UnixMilli(e.Time)))
			return
		}
	}
}

// errNoInteraction is the answer for everything that is not there.
var errNoInteraction = fault.New(fault.NotFound, "no pending interaction with that id")

// open reads a run that waits for an answer; NotFound when it does not.
func (k *Keeper) open(ctx context.Context, run string) (*journal, *past, error) {
	j, err := read(ctx, k.log, run)
	if fault.Of(err) == fault.NotFound || fault.Of(err) == fault.Invalid {
		return nil, nil, errNoInteraction
	}
	if err != nil {
		return nil, nil, err
	}
	j.now, j.reached, j.digests = k.opts.Now, k.opts.Reached, k.opts.Digests
	p, err := j.question(ctx, k.log)
	if err == nil && !p.open || fault.Of(err) == fault.Gone {
		err = errNoInteraction
	}
	if err != nil {
		return nil, nil, err
	}
	return j, p, nil
}

// question reads no more of a log than where its last question stands: a run that
// ends meanwhile drops the payloads of those before.
func (j *journal) question(ctx context.Context, log Log) (*past, error) {
	p := &past{}
	if j.hasEnded() {
		p.ended = &endedPayload{}
		return p, nil
	}
	for i := len(j.entries) - 1; i >= 0; i-- {
		switch j.entries[i].Kind {
		case RecordInteractionOpened:
			return p, p.take(ctx, log, j, i)
		case RecordInteractionAnswered, RecordInteractionCancelled, RecordInteractionExpired:
			return p, nil
		}
	}
	return p, nil
}

// Answer gives a person's answer to a run. Accept holds it against the prompt
// and returns it as the log keeps it. Errors: NotFound when no such question is
// open, Denied when it is another one's, what accept says, Gone when the run
// cannot go on. It does not wait for the run.
func (k *Keeper) Answer(ctx context.Context, user, run, interaction string,
	accept func(kind string, prompt abi.Raw) (abi.Raw, error)) error {

	w := k.find(run)
	i, generation, err := k.asked(ctx, w, run)
	switch {
	case err != nil:
		return err
	case i.ID != interaction || !k.opts.Now().Before(i.Expires):
		return errNoInteraction
	case i.Owner != user:
		return fault.New(fault.Denied, "this approval was not addressed to the authenticated user")
	}
	answer, err := accept(i.Kind, i.Prompt)
	if err != nil {
		return err
	}
	if kept, err := k.engines.Kept(ctx, generation); err != nil {
		return err
	} else if !kept {
		k.do(func() {
			if w == nil {
				w = &waiting{parked: Parked{Interaction: Interaction{Run: run}}}
			} else if !k.take(w) {
				return
			}
			k.lose(w)
		})
		return fault.New(fault.Gone, "the run this interaction belonged to has ended")
	}
	if err := k.resolve(ctx, run, interaction, RecordInteractionAnswered, answer); err != nil {
		return err
	}
	k.deliver(run, w)
	return nil
}

// asked returns a run's open question and its generation.
func (k *Keeper) asked(ctx context.Context, w *waiting, run string) (Interaction, string, error) {
	decided := w != nil && k.decided(w)
	if w != nil && !decided {
		return w.parked.Interaction, w.parked.Generation, nil
	}
	j, p, err := k.open(ctx, run)
	if err == nil && decided && p.opened.ID == w.parked.ID {
		err = errNoInteraction
	}
	if err != nil {
		return Interaction{}, "", err
	}
	return p.interaction(run), j.generation, nil
}

// deliver takes on a run that has just been answered: at once where it waits,
// else when the replica with its stream has had its time.
func (k *Keeper) deliver(run string, w *waiting) {
	if w != nil {
		if !k.takeOn(w) || k.do(func() { k.goesOn(w) }) {
			return
		}
		k.began(w.parked.Run)
		if w.out != nil {
			w.out.Ended(w.parked.Info) // the host stops; another replica goes on
			w.over()
		}
		return
	}
	k.soon(run)
}

// soon takes a run on that has been answered, when the replica with its stream
// has had its time.
func (k *Keeper) soon(run string) {
	time.AfterFunc(k.opts.Preference, func() { k.do(func() { k.pickUp(run) }) })
}

// pickUp goes on with a run that nobody has claimed yet. One that has just asked
// here, and does not wait yet, is looked at again: it was answered in between.
func (k *Keeper) pickUp(run string) {
	j, err := read(k.life, k.log, run)
	if passing(err) {
		k.soon(run)
		return
	}
	if err != nil || j.entries[len(j.entries)-1].Kind != RecordInteractionAnswered {
		return
	}
	if w := k.find(run); w != nil {
		if !k.decided(w) && k.takeOn(w) {
			k.goesOn(w)
		}
		return
	}
	if k.here(run) {
		k.soon(run)
		return
	}
	k.goOn(&waiting{parked: Parked{Interaction: Interaction{Run: run}, Generation: j.generation}})
}
