package guard

import (
	"context"
	"sync"
)

// Sink is the guarded way of a run's text to its client. What it releases, put
// together, is what guarding the whole text at once gives.
//
//	Push ─► text ─► worker: guards, merge ─► Release
//	         (mu)     one goroutine, from the first Push to the end
//
// Its memory is bounded by the answer's maximal length, whatever the client
// does. Methods may be called concurrently.
type Sink struct {
	session *Session
	stream  *stream       // the worker's; others only after done
	wake    chan struct{} // one token: there is something to look at
	cutCh   chan struct{}
	done    chan struct{} // the worker has ended

	mu        sync.Mutex
	in        assembler
	cancel    context.CancelCauseFunc // set when the worker has started
	finishing bool
	pushed    uint64 // Push calls so far
	settled   uint64 // of these, looked at
	waiters   []waiter
}

// waiter is a Sync that waits for a number of pushes to be settled.
type waiter struct {
	pushed uint64
	ready  chan struct{}
}

func (k *Sink) init(s *Session) {
	k.session = s
	k.stream = newStream(s, s.chain.output.enforcing, s.opts.Release, func() { close(k.cutCh) })
	k.in.max = s.chain.opts.MaxOutputChars
	k.wake = make(chan struct{}, 1)
	k.cutCh = make(chan struct{})
	k.done = make(chan struct{})
}

// Push adds text, which may be cut anywhere, even inside a character. It never
// waits for a guard or for the client. Text after a cut or after Finish is
// dropped.
func (k *Sink) Push(text string) {
	if text == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.finishing {
		return
	}
	k.in.add(text)
	k.pushed++
	if k.cancel == nil {
		k.start()
	}
	k.signal()
}

// start begins the worker; mu is held.
func (k *Sink) start() {
	ctx, cancel := context.WithCancelCause(k.session.opts.Context)
	k.cancel = cancel
	go k.work(ctx)
}

func (k *Sink) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// work looks at what has arrived until the answer ends, is cut or ctx ends.
// Text that arrives during a look is looked at together in the next.
func (k *Sink) work(ctx context.Context) {
	defer close(k.done)
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return
		}
		k.mu.Lock()
		text, over, final, pushed := k.in.text.String(), k.in.over, k.finishing, k.pushed
		k.mu.Unlock()
		if !k.stream.advance(ctx, text, over, final) {
			return
		}
		k.settle(pushed)
	}
}

// settle lets those go who waited for what has been looked at.
func (k *Sink) settle(pushed uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settled = pushed
	waiting := k.waiters[:0]
	for _, w := range k.waiters {
		if w.pushed <= pushed {
			close(w.ready)
		} else {
			waiting = append(waiting, w)
		}
	}
	clear(k.waiters[len(waiting):])
	k.waiters = waiting
}

// Cut is closed once the answer is cut for good. The rest before the cut and
// the notice may still be on their way; Finish waits for them.
func (k *Sink) Cut() <-chan struct{} { return k.cutCh }

// Sync waits until everything that was pushed has been looked at and what may
// go has been released, or until nothing more will be. Its error says that ctx
// or the session's context ended first.
func (k *Sink) Sync(ctx context.Context) error {
	k.mu.Lock()
	if k.settled >= k.pushed {
		k.mu.Unlock()
		return nil
	}
	w := waiter{k.pushed, make(chan struct{})}
	k.waiters = append(k.waiters, w)
	k.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-k.done:
		if k.stream.cut == nil {
			return context.Cause(k.session.opts.Context)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Finish decides the rest and returns the output decision; no text is released
// after it. If ctx or the session's context ends first, what is undecided is
// dropped. It is called once.
func (k *Sink) Finish(ctx context.Context) OutputVerdict {
	k.mu.Lock()
	k.finishing = true
	k.in.end()
	cancel := k.cancel
	k.signal()
	k.mu.Unlock()
	if cancel != nil {
		select {
		case <-k.done:
		case <-ctx.Done():
			cancel(context.Cause(ctx))
			<-k.done
		}
		cancel(nil)
		k.session.watchAnswer(k.in.text.String(), k.in.over)
	}
	return k.stream.verdict(k.in.seen)
}
