//go:build baseline

package plugin_test

import (
	"context"
	"strings"
	"testing"

	"weir/abi"
	. "weir/host/plugin/plugintest"
)

// The tests below do to the Extism SDK as it comes what baseline_test.go does to
// wazero. They pass while the fault shows there.

// Two calls on one plugin see each other's memory and variables, which the SDK
// keeps in Go.
func TestBaselineExtismStateLeaks(t *testing.T) {
	p := plainInstance(t, plainSDK(t, p1Limit, extismKeeper()))
	_, _, _ = p.Call(string(abi.HookCheckInput), []byte(secretOf(1)))
	_, reply, err := p.Call(string(abi.HookCheckInput), []byte(secretOf(2)))
	if err != nil || strings.Count(string(reply), secretOf(1)) != 1 || !strings.HasPrefix(string(reply[80:]), "secret-") {
		t.Errorf("the second call found %q, %v", reply, err)
	}
}

// P1, P2: with the SDK's timeout a guest without loops outlives it, and a
// collection waits for it.
func TestBaselineExtismDeadlineAndStall(t *testing.T) {
	g := NewExtismGuest()
	code := line(Call(callTree(g, 31)), I64(0))
	p := plainInstance(t, plainSDK(t, p1Limit, g.Hook(abi.HookCheckInput, code).Build()))
	took := p1Limit
	worst := stall(func() {
		took = elapsed(func() { _, _, _ = p.Call(string(abi.HookCheckInput), ordinary) })
	})
	t.Logf("P1: ended after %v, limit %v; P2: the ticker was late by %v", took, p1Limit, worst)
	if took <= 2*p1Limit {
		t.Errorf("P1: it ended in time, after %v", took)
	}
	if worst <= p2Stall {
		t.Errorf("P2: nobody stalled for more than %v", worst)
	}
}

// P12: an exit with zero, a status without an error, an output out of range and
// a write over the kernel's state all look like success.
func TestBaselineExtismSilence(t *testing.T) {
	for name, build := range map[string]func(g *Guest, x env) []byte{
		"exit 0":         func(_ *Guest, x env) []byte { return line(I32(0), Call(x.exit), I32(1)) },
		"status":         func(*Guest, env) []byte { return I32(7) },
		"output":         func(_ *Guest, x env) []byte { return line(I64(0xffff), I64(0xfffffff0), Call(x.output), I32(0)) },
		"kernel's state": func(_ *Guest, x env) []byte { return line(I64(25), I64(0), Call(x.store), I32(0)) },
	} {
		g := NewExtismGuest()
		code := build(g, extismEnv(g))
		p := plainInstance(t, plainSDK(t, p1Limit, g.Status(abi.HookCheckInput, code).Build()))
		if _, reply, err := p.CallWithContext(context.Background(), string(abi.HookCheckInput), ordinary); err != nil || len(reply) != 0 {
			t.Errorf("%s: %q, %v", name, reply, err)
		}
	}
}

// What a guest writes before one of its blocks makes the kernel walk in a
// circle: without the SDK's timeout, for ever. With it, the timeout ends it.
func TestBaselineExtismKernelInACircle(t *testing.T) {
	g := NewExtismGuest()
	x := extismEnv(g)
	code := line(I64(64), Call(x.alloc), Op(0xa7, 0x22, 0, OpExtend), I64(8), Op(0x7d), I64(0xfffffff4), Call(x.store), // i64.sub; a size of -12
		Get(0), Op(OpExtend), I64(100), Op(OpI64Add), Call(x.length), Op(OpDrop), I32(0))
	p := plainInstance(t, plainSDK(t, p1Limit, g.Status(abi.HookCheckInput, code).Build()))
	took := elapsed(func() { _, _, _ = p.Call(string(abi.HookCheckInput), ordinary) })
	if took < p1Limit/2 {
		t.Errorf("the kernel came back after %v", took)
	}
}
