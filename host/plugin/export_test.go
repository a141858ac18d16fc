package plugin

import (
	"context"
	"time"

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
	_, _, err := p.invoke(ctx, hook, setupStamp(), request, nil, decode)
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

// HostCall calls every host function with the same arguments, on the memory of
// a pooled instance.
func HostCall(p *Plugin, memory []byte, args [9]uint64) {
	i := p.pool.take()
	defer p.pool.put(i)
	mem := i.module.Memory()
	mem.Write(0, memory)
	for _, functions := range hostModules() {
		for _, f := range functions {
			i.begin(context.Background(), bounds{stamp: setupStamp(), time: time.Minute, fuel: 1 << 40})
			func() {
				defer func() {
					_ = recover() // proc_exit and weir.log end a call so
				}()
				stack := args
				f.do(i.session, mem, stack[:])
			}()
			i.session.printer.end()
		}
	}
}
