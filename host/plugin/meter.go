package plugin

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// slice is how much fuel a guest gets at once. When it is used up the guest
// calls refuel, and nothing but that call ends or interrupts it: neither the
// scheduler nor the collector can stop a guest between two of them. So it is
// short enough for everybody who waits, and long enough to cost nothing.
const slice = 200_000

// pause is how long a guest runs at least before others get in. A guest that
// spends slices faster must not make the host spend more time than it does.
const pause = 50 * time.Microsecond

// meter measures and bounds one call at a time of one instance.
type meter struct {
	fuel    api.MutableGlobal // of the guest: what is left of what it was given
	budget  int64
	granted int64
	limit   time.Duration
	clock   stopwatch
	ctx     context.Context

	refuelled bool // the first slice of this call was not enough
}

// begin gives a call its first slice.
func (m *meter) begin(ctx context.Context, limit time.Duration, budget uint64) {
	m.ctx, m.limit, m.budget = ctx, limit, int64(budget)
	m.granted, m.refuelled = min(slice, m.budget), false
	m.fuel.Set(uint64(m.granted))
	m.clock.begin()
}

// end forgets the caller and returns the fuel that its call has used.
func (m *meter) end() uint64 {
	m.ctx = nil
	return uint64(max(m.granted-int64(m.fuel.Get()), 0))
}

// refuel is weir.refuel (left) -> left: the guest has used up its fuel, and
// more than that if left is below zero. It lets others run, and gives the next
// slice or ends the call by a panic.
func (m *meter) refuel(left int64) int64 {
	if m.budget-m.granted+left < 0 {
		panic(failed(CodeFuel, "used up its %d units of fuel", m.budget))
	}
	m.refuelled = true
	if m.clock.running() > pause {
		m.clock.stop()
		runtime.Gosched()
		m.check()
		m.clock.start()
	}
	grant := min(slice-left, m.budget-m.granted)
	m.granted += grant
	return left + grant
}

// check ends the call when its time is over or nobody waits for it.
func (m *meter) check() {
	if m.clock.ran > m.limit || m.clock.taken() > patience*m.limit {
		panic(failed(CodeTimeout, "no reply within its time limit of %v", m.limit))
	}
	if m.ctx.Err() != nil {
		panic(stopped(m.ctx))
	}
}

// charge takes fuel for what the host does in the guest's place. It stands
// before the work, which is at most one slice.
func (m *meter) charge(units int64) {
	left := int64(m.fuel.Get()) - units
	if left < 0 {
		left = m.refuel(left)
	}
	m.fuel.Set(uint64(left))
}

// pay takes fuel for what the host does outside of the guest's functions. The
// guest's next charge finds what is missing.
func (m *meter) pay(units int64) { m.fuel.Set(m.fuel.Get() - uint64(units)) }

// patience is how many times its limit a call may take by the wall, waiting for
// a processor included.
const patience = 10

const hostCall = 20 // units of any call of the host

// byteUnits is the cost of bytes that the host reads or writes.
func byteUnits(n int) int64 { return int64(n) / 16 }

// stopped explains why a call's context ended.
func stopped(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(CodeTimeout, "no reply before the caller's deadline")
	}
	return failed(CodeCancelled, "the caller cancelled")
}
