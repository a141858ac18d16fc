package plugin

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"weir/abi"
)

// Loaded and Codes let tests see what a runtime holds.
func Loaded(r *Runtime) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.plugins)
}

func Codes(r *Runtime) int {
	return r.codes.size()
}

// Idle counts the instances in a plugin's pool.
func Idle(p *Plugin) int {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return len(p.pool.idle)
}

// CallWithoutReset calls a hook on the idle instance and leaves that as it is.
func CallWithoutReset(p *Plugin, hook abi.Hook, request []byte) ([]byte, error) {
	i := p.pool.take()
	defer p.pool.put(i)
	answer, _, err := i.call(context.Background(), hook, p.bounds(hook, setupStamp(), len(request)), request, nil)
	return answer, err
}

// CallAgain is a call on the same instance, without a reset.
func CallAgain(p *Plugin, hook abi.Hook, request []byte) error {
	_, err := CallWithoutReset(p, hook, request)
	return err
}

// Compiled counts the modules that a runtime has compiled since its start, and
// Images the images that it holds.
func Compiled(r *Runtime) int64 { return r.compiled.Load() }

func Images(r *Runtime) int { return r.intros.size() }

// MemoryHeld is what all instances of a runtime count.
func MemoryHeld(r *Runtime) int64 {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	return r.total - r.memory.free
}

// Discarded counts the instances that a plugin has closed after a call.
func Discarded(p *Plugin) uint64 { return p.discarded.Load() }

// Residue looks for a secret in the idle instances of a plugin, and for any
// difference from the image in their memory and globals.
func Residue(p *Plugin, secret string) string {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	for _, i := range p.pool.idle {
		if i.image == nil {
			return "an idle instance without an image"
		}
		if bytes.Contains(i.bytes(), []byte(secret)) {
			return "the secret is in memory"
		}
		if !bytes.Equal(i.bytes(), i.image.memory.bytes()) {
			return "the memory differs from the image"
		}
		for n, g := range i.globals {
			if g.Get() != i.image.globals[n] {
				return fmt.Sprintf("global %d is %d, in the image %d", n, g.Get(), i.image.globals[n])
			}
		}
	}
	return ""
}

// ImageSize is the size of a plugin's image in bytes; -1 is none.
func ImageSize(p *Plugin) int {
	if p.intro.image == nil {
		return -1
	}
	return int(p.intro.image.memory.size())
}

// CallInto is Call with a decoder and a buffer for the reply.
func CallInto(p *Plugin, ctx context.Context, hook abi.Hook, request, dst []byte, decode func([]byte) error) ([]byte, error) {
	reply, _, err := p.invoke(ctx, hook, setupStamp(), request, dst, decode)
	return reply, err
}

// BenchReset measures the reset after a call.
func BenchReset(b *testing.B, p *Plugin, hook abi.Hook, request []byte) {
	i := p.pool.take()
	defer p.pool.put(i)
	bounds, reply := p.bounds(hook, setupStamp(), len(request)), make([]byte, 0, 4096)
	var times Times
	for b.Loop() {
		if _, _, err := i.call(context.Background(), hook, bounds, request, reply[:0]); err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		if !i.reset(p.runtime.resetter) {
			b.Fatal("not reset")
		}
		times.Add(time.Since(begun))
	}
	times.Report(b)
}

// Times are those of single operations. Their median says more on a busy
// machine than the mean does.
type Times struct{ all []time.Duration }

// Add notes one operation.
func (t *Times) Add(d time.Duration) {
	if t.all == nil {
		t.all = make([]time.Duration, 0, 1<<16)
	}
	if len(t.all) < cap(t.all) {
		t.all = append(t.all, d)
	}
}

// Median is the middle one.
func (t *Times) Median() time.Duration {
	slices.Sort(t.all)
	return t.all[len(t.all)/2]
}

// Report gives the median and the 99th percentile.
func (t *Times) Report(b *testing.B) {
	slices.Sort(t.all)
	b.ReportMetric(float64(t.all[len(t.all)/2]), "p50-ns")
	b.ReportMetric(float64(t.all[len(t.all)*99/100]), "p99-ns")
}

// Birth makes an instance from the module.
func Birth(p *Plugin, wasm []byte) error {
	o, err := parseModule(wasm)
	if err != nil {
		return err
	}
	i, err := p.birth(context.Background(), o.data)
	if err != nil {
		return err
	}
	defer i.close()
	_, err = p.configure(context.Background(), i, p.config)
	return err
}

// Instances makes instances, calls each some times, and returns where their
// memories are.
func Instances(p *Plugin, count, calls int, hook abi.Hook, request []byte) (ranges [][2]uintptr, free func()) {
	var all []*instance
	for range count {
		i, err := p.newInstance(context.Background())
		if err != nil {
			panic(err)
		}
		all = append(all, i)
		for range calls {
			if _, _, err := i.call(context.Background(), hook, p.bounds(hook, setupStamp(), len(request)), request, nil); err != nil {
				panic(err)
			}
			i.reset(p.runtime.resetter)
		}
		at := uintptr(unsafe.Pointer(unsafe.SliceData(i.bytes())))
		ranges = append(ranges, [2]uintptr{at, at + uintptr(len(i.bytes()))})
	}
	return ranges, func() {
		for _, i := range all {
			i.close()
		}
	}
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
