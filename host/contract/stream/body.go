package stream

import (
	"context"
	"io"
	"time"
)

// body is the response's body as the HTTP library pulls it: each Read is one
// chunk on the wire, flushed. It belongs to the connection's goroutine.
type body struct {
	client  context.Context
	blocks  <-chan []byte
	silence time.Duration
	leave   func()        // nobody listens any more
	done    chan struct{} // closed when the run has ended

	rest    []byte // of the block in progress
	started bool
	timer   *time.Timer
}

func newBody(client context.Context, blocks <-chan []byte, silence time.Duration, leave func()) *body {
	return &body{client: client, blocks: blocks, silence: silence, leave: leave,
		done: make(chan struct{}), timer: time.NewTimer(silence)}
}

// Read waits for the next bytes. A keep-alive can only stand between blocks,
// because it is asked for only when a block is written to its end.
func (b *body) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		b.timer.Reset(b.silence) // what came before is on the wire now
	}
	for len(b.rest) == 0 {
		select {
		case block, ok := <-b.blocks:
			if !ok {
				return 0, io.EOF
			}
			b.rest, b.started = block, true
		case <-b.timer.C:
			if b.started {
				b.rest = []byte(keepAlive)
			}
			b.timer.Reset(b.silence)
		case <-b.client.Done():
			return 0, context.Cause(b.client)
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close is called when the response has ended, well or not. It waits for the
// run, so a connection never outlives what it started.
func (b *body) Close() error {
	b.timer.Stop()
	b.leave()
	<-b.done
	return nil
}
