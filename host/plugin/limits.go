package plugin

import (
	"runtime"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// Limits bound one plugin. A zero field means the default, which [Plugin.Limits]
// shows resolved. Every limit is the plugin's own: two plugins of one module
// may have different ones. Each has a ceiling that nobody can raise.
type Limits struct {
	// Memory is how large an instance's linear memory may become, in bytes.
	// Default 64 MiB, at most 4 GiB. Too small and a Go guest (3 to 5 MiB at
	// rest) fails with the code memory; the host may hold Instances times as
	// much.
	Memory int
	// Reply is how large a reply may be, in bytes. Default 4 MiB, at most
	// 64 MiB.
	Reply int
	// Timeout is how long a call may run, with TimeoutPerKiB more for each KiB
	// of its request. At most 5 minutes and 1 s. The default depends on the
	// hook (see [Limits.Call]); a number of the operator's holds for every
	// hook. The time is that of the guest: waiting for an instance and for a
	// processor does not count. A call ends after ten times that by the wall.
	Timeout       time.Duration
	TimeoutPerKiB time.Duration
	// Wait is how long a call waits for its instance, at most 5 minutes.
	// Default: as long as it may run. Too short and a burst fails calls that
	// would have been answered a moment later.
	Wait time.Duration
	// Setup is how long each of initialisation, describe and configure may
	// run. Default 10 s, at most 5 minutes.
	Setup time.Duration
	// Fuel is how much a call may compute: one unit is one instruction, or
	// 16 bytes moved by an instruction or by the host for the guest. It means
	// the same on every machine. Default 4 billion, some seconds of work, so
	// that the time ends a call first; at most a million million. Each of
	// initialisation, describe and configure has ten times as much.
	Fuel uint64
	// Instances bounds how many calls run at once; the next ones wait.
	// Default twice GOMAXPROCS, above which calls only get in each other's
	// way; at most 1024.
	Instances int
}

const (
	maxMemory    = 4 << 30 // what 32-bit addresses reach
	maxReply     = 64 << 20
	maxTimeout   = 5 * time.Minute
	maxPerKiB    = time.Second
	maxFuel      = 1_000_000_000_000
	maxInstances = 1024

	setupFuel = 10 // times the fuel of a call

	checkTimeout = 50 * time.Millisecond
	stepTimeout  = 200 * time.Millisecond
	perKiB       = time.Millisecond
)

func (l Limits) resolved() (Limits, error) {
	if l.Memory < 0 || l.Reply < 0 || l.Timeout < 0 || l.TimeoutPerKiB < 0 || l.Setup < 0 || l.Wait < 0 || l.Instances < 0 {
		return l, fault.New(fault.Invalid, "limits: expected numbers above zero, or zero for the default")
	}
	setDefault(&l.Memory, 64<<20)
	setDefault(&l.Reply, abi.MaxReply)
	setDefault(&l.Setup, 10*time.Second)
	setDefault(&l.Fuel, 4_000_000_000)
	setDefault(&l.Instances, 2*runtime.GOMAXPROCS(0))
	if l.Timeout != 0 {
		setDefault(&l.TimeoutPerKiB, perKiB)
	}
	return l, l.ceilings()
}

func (l Limits) ceilings() error {
	switch {
	case l.Memory < pageSize || l.Memory > maxMemory:
		return fault.New(fault.Invalid, "limits: expected memory from 64 KiB to 4 GiB, got %d bytes", l.Memory)
	case l.Reply > maxReply:
		return fault.New(fault.Invalid, "limits: expected replies of at most 64 MiB, got %d bytes", l.Reply)
	case l.Timeout > maxTimeout || l.Setup > maxTimeout || l.Wait > maxTimeout:
		return fault.New(fault.Invalid, "limits: expected times of at most %v, got %v", maxTimeout, max(l.Timeout, l.Setup, l.Wait))
	case l.TimeoutPerKiB > maxPerKiB:
		return fault.New(fault.Invalid, "limits: expected at most %v for each KiB, got %v", maxPerKiB, l.TimeoutPerKiB)
	case l.Fuel > maxFuel:
		return fault.New(fault.Invalid, "limits: expected at most %d units of fuel, got %d", uint64(maxFuel), l.Fuel)
	case l.Instances > maxInstances:
		return fault.New(fault.Invalid, "limits: expected at most %d instances, got %d", maxInstances, l.Instances)
	}
	return nil
}

func setDefault[T int | uint64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Call is how long a call of a hook with a request of that many bytes may run.
// Without a number of the operator's it is 50 ms for checks and 200 ms for
// step, with 1 ms for each KiB, and Setup for describe and configure. The pieces
// of an answer are short, so check_output has none for them; a display has a
// tool result's.
func (l Limits) Call(hook abi.Hook, request int) time.Duration {
	base, more := l.hook(hook)
	return base + time.Duration((request+1023)/1024)*more
}

func (l Limits) hook(hook abi.Hook) (base, more time.Duration) {
	switch {
	case hook == abi.HookDescribe || hook == abi.HookConfigure:
		return l.Setup, 0
	case l.Timeout != 0:
		base, more = l.Timeout, l.TimeoutPerKiB
	case hook == abi.HookStep:
		base, more = stepTimeout, perKiB
	case hook == abi.HookCheckOutput:
		base = checkTimeout
	default:
		base, more = checkTimeout, perKiB
	}
	if l.TimeoutPerKiB != 0 {
		more = l.TimeoutPerKiB
	}
	return base, more
}
