package plugin_test

import (
	"testing"
	"time"

	"weir/abi"
	"weir/host/benchtest"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// The promises are 150 ms and 50 ms, and the bench measures them. Here the bounds
// are wide, because whoever runs tests runs other things too; without the sandbox
// the same guests take seconds (see the baseline).
const (
	p1Limit = 100 * time.Millisecond
	p1Ended = slack * 500 * time.Millisecond
	p2Stall = slack * 300 * time.Millisecond
)

// FAULTS P1: whatever the shape of its code, a guest ends soon after its limit,
// as a time-out.
func TestDeadlineHoldsForEveryShape(t *testing.T) {
	for _, s := range shapes(60, 4000) {
		t.Run(s.name, func(t *testing.T) {
			p := loadShape(t, s)
			took := benchtest.Best(5, p1Ended, func() time.Duration {
				return elapsed(func() {
					_, _, err := p.Call(background(), abi.HookCheckInput, ordinary)
					if code := fault.CodeOf(err); code != plugin.CodeTimeout && !(s.fuel && code == plugin.CodeFuel) {
						t.Errorf("%v (code %q)", err, fault.CodeOf(err))
					}
				})
			})
			if took > p1Ended {
				t.Errorf("ended after %v", took)
			}
			t.Log(took)
		})
	}
}

func loadShape(t testing.TB, s shape) *plugin.Plugin {
	t.Helper()
	p, err := newRuntimeWith(t, plugin.RuntimeOptions{CacheDir: CacheDir(t)}).Load(background(), plugin.Spec{Name: "shape",
		Wasm: s.wasm(), Limits: plugin.Limits{Timeout: p1Limit, TimeoutPerKiB: 1, Fuel: 1e12}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// FAULTS P2: while such a guest runs and the host collects its garbage, an
// unrelated ticker of 1 ms goes on.
func TestNobodyStalls(t *testing.T) {
	for _, s := range shapes(60, 4000) {
		t.Run(s.name, func(t *testing.T) {
			p := loadShape(t, s)
			// What other programs do to the ticker is not the guest's doing.
			limit := p2Stall + 2*stall(func() { time.Sleep(50 * time.Millisecond) })
			worst := benchtest.Best(5, p2Stall, func() time.Duration {
				return stall(func() {
					for range 2 {
						_, _, _ = p.Call(background(), abi.HookCheckInput, ordinary)
					}
				})
			})
			if worst > limit {
				t.Errorf("the ticker was late by %v", worst)
			}
			t.Log(worst)
		})
	}
}

// FAULTS P3: what a guest makes the host hold stays within its limit and a
// tenth of that, whether it grows memory or tables.
func TestGrowthIsBounded(t *testing.T) {
	for name, wasm := range map[string][]byte{"table": tableBomb(), "memory": memoryBomb()} {
		t.Run(name, func(t *testing.T) {
			const limit = 32 << 20
			p := load(t, plugin.Spec{Wasm: wasm, Limits: plugin.Limits{Memory: limit, Timeout: time.Minute, Instances: 1}})
			most := peakKiB(t, func() {
				for range 20 {
					if _, _, err := p.Call(background(), abi.HookCheckInput, poison); err != nil {
						t.Fatal(err)
					}
				}
			})
			if most > limit*11/10>>10 {
				t.Errorf("the host grew by %d KiB", most)
			}
			if name == "memory" && most < limit/2>>10 {
				t.Errorf("the guest did not grow: %d KiB", most)
			}
			t.Logf("%d KiB", most)
		})
	}
}
