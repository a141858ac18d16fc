package plugin

import (
	"context"

	"weir/abi"
)

// Loaded and Codes let tests see what a runtime holds.
func Loaded(r *Runtime) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.plugins)
}

func Codes(r *Runtime) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.codes)
}

// Idle counts the instances in a plugin's pool.
func Idle(p *Plugin) int {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return len(p.pool.idle)
}

// CallDecoding is Call with a decoder of the test's own.
func CallDecoding(p *Plugin, ctx context.Context, hook abi.Hook, request []byte, decode func([]byte) error) error {
	_, err := p.invoke(ctx, hook, setupStamp(), request, decode)
	return err
}

// Inspect reads a module as Load does.
func Inspect(wasm []byte) error {
	l, err := Limits{}.resolved()
	if err != nil {
		return err
	}
	_, err = inspect(wasm, l)
	return err
}

// NewInstance makes an instance and closes it.
func NewInstance(p *Plugin) error {
	i, err := p.newInstance(context.Background())
	if err == nil {
		i.close()
	}
	return err
}
