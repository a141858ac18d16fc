package plugin

import (
	"runtime"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// Limits bound one plugin. A zero field means the default, which [Plugin.Limits]
// shows resolved. Every limit is the plugin's own: two plugins of one module
// may have different ones.
type Limits struct {
	// Memory is how large an instance's linear memory may become, in bytes.
	// Default 64 MiB. Too small and a Go guest (3 to 5 MiB at rest) fails with
	// the code memory; the host may hold Instances times as much.
	Memory int
	// Reply is how large a reply may be, in bytes. Default 4 MiB.
	Reply int
	// Timeout is the wall time of a call, with TimeoutPerKiB more for each
	// KiB of its request. Defaults 5 s and 50 ms. It includes waiting for an
	// instance. Too short and a busy machine fails calls that did no harm.
	Timeout       time.Duration
	TimeoutPerKiB time.Duration
	// Setup is the wall time of each of initialisation, describe and
	// configure. Default 10 s.
	Setup time.Duration
	// Instances bounds how many calls run at once; the next ones wait.
	// Default twice GOMAXPROCS, above which calls only get in each other's way.
	Instances int
}

const maxMemory = 4 << 30 // what 32-bit addresses reach

func (l Limits) resolved() (Limits, error) {
	if l.Memory < 0 || l.Reply < 0 || l.Timeout < 0 || l.TimeoutPerKiB < 0 || l.Setup < 0 || l.Instances < 0 {
		return l, fault.New(fault.Invalid, "limits: expected numbers above zero, or zero for the default")
	}
	setDefault(&l.Memory, 64<<20)
	setDefault(&l.Reply, abi.MaxReply)
	setDefault(&l.Timeout, 5*time.Second)
	setDefault(&l.TimeoutPerKiB, 50*time.Millisecond)
	setDefault(&l.Setup, 10*time.Second)
	setDefault(&l.Instances, 2*runtime.GOMAXPROCS(0))
	if l.Memory < pageSize || l.Memory > maxMemory {
		return l, fault.New(fault.Invalid, "limits: expected memory from 64 KiB to 4 GiB, got %d bytes", l.Memory)
	}
	return l, nil
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// call is the wall time of one call with a request of that many bytes.
func (l Limits) call(request int) time.Duration {
	return l.Timeout + time.Duration((request+1023)/1024)*l.TimeoutPerKiB
}
