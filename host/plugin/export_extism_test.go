package plugin

import (
	"context"
	"time"

	"weir/abi"
)

// AwaitQueue waits until a plugin's queue is full.
func AwaitQueue(p *Plugin) {
	for {
		p.pool.mu.Lock()
		full := len(p.pool.idle) >= p.pool.size && !p.pool.filling
		p.pool.mu.Unlock()
		if full {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// CallStamped is Call without a look at the reply.
func CallStamped(p *Plugin, ctx context.Context, hook abi.Hook, request []byte) ([]byte, error) {
	st, err := stampIn(request)
	if err != nil {
		return nil, err
	}
	reply, _, err := p.invoke(ctx, hook, st, request, nil, func([]byte) error { return nil })
	return reply, err
}

// CallPrepared calls a hook on the newest prepared instance and leaves that in
// the queue.
func CallPrepared(p *Plugin, hook abi.Hook, request []byte) ([]byte, error) {
	AwaitQueue(p)
	return CallWithoutReset(p, hook, request)
}
