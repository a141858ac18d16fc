package plugin

import (
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// Error numbers of WASI preview 1.
const (
	errnoSuccess = 0
	errnoBadf    = 8
	errnoFault   = 21
	errnoInval   = 28
	errnoNosys   = 52
)

// wasiFunctions is our stateless subset of WASI preview 1: no files, no
// arguments, no environment; time and randomness are those of the call.
func wasiFunctions() []hostFunction {
	return append([]hostFunction{
		{"args_get", sig("ii"), func(*session, api.Memory, []uint64) uint32 { return errnoSuccess }},
		{"args_sizes_get", sig("ii"), emptySizes},
		{"environ_get", sig("ii"), func(*session, api.Memory, []uint64) uint32 { return errnoSuccess }},
		{"environ_sizes_get", sig("ii"), emptySizes},
		{"clock_time_get", sig("ili"), clockTime},
		// A library asks for preopened files until it is told that there is
		// no such descriptor; ENOSYS makes Go's panic.
		{"fd_prestat_get", sig("ii"), func(*session, api.Memory, []uint64) uint32 { return errnoBadf }},
		{"fd_write", sig("iiii"), fdWrite},
		{"poll_oneoff", sig("iiii"), pollOneoff},
		{"proc_exit", signature{params: "\x7f"}, procExit},
		{"random_get", sig("ii"), randomGet},
		{"sched_yield", sig(""), func(*session, api.Memory, []uint64) uint32 { return errnoSuccess }},
	}, nosys()...)
}

func emptySizes(_ *session, mem api.Memory, args []uint64) uint32 {
	if !mem.WriteUint32Le(uint32(args[0]), 0) || !mem.WriteUint32Le(uint32(args[1]), 0) {
		return errnoFault
	}
	return errnoSuccess
}

const (
	clockRealtime  = 0
	clockMonotonic = 1
	clockThreadCPU = 3
)

func clockTime(s *session, mem api.Memory, args []uint64) uint32 {
	if uint32(args[0]) > clockThreadCPU {
		return errnoInval
	}
	if !mem.WriteUint64Le(uint32(args[2]), uint64(s.now)) {
		return errnoFault
	}
	return errnoSuccess
}

func randomGet(s *session, mem api.Memory, args []uint64) uint32 {
	buf, ok := mem.Read(uint32(args[0]), uint32(args[1]))
	if !ok {
		return errnoFault
	}
	for len(buf) > 0 {
		n := min(len(buf), 64<<10)
		s.meter.charge(byteUnits(n))
		s.random().Read(buf[:n])
		buf = buf[n:]
	}
	return errnoSuccess
}

// procExit ends the call. It never returns to the guest.
func procExit(_ *session, _ api.Memory, args []uint64) uint32 {
	panic(failed(CodeExit, "called proc_exit(%d)", uint32(args[0])))
}

// fdWrite is fd_write (fd, iovs, iovs_len, nwritten).
func fdWrite(s *session, mem api.Memory, args []uint64) uint32 {
	fd, count := uint32(args[0]), uint32(args[2])
	if fd != 1 && fd != 2 {
		return errnoBadf
	}
	if uint64(count)*8 > math.MaxUint32 {
		return errnoInval
	}
	iovs, ok := mem.Read(uint32(args[1]), count*8)
	if !ok {
		return errnoFault
	}
	total := uint64(0)
	for ; len(iovs) > 0; iovs = iovs[8:] {
		text, ok := mem.Read(binary.LittleEndian.Uint32(iovs), binary.LittleEndian.Uint32(iovs[4:]))
		if !ok {
			return errnoFault
		}
		if total += uint64(len(text)); total > math.MaxInt32 {
			return errnoInval
		}
		s.meter.charge(1 + printUnits(len(text)))
		s.printer.write(text)
	}
	if !mem.WriteUint32Le(uint32(args[3]), uint32(total)) {
		return errnoFault
	}
	return errnoSuccess
}

const (
	subscriptionSize = 48
	eventSize        = 32
	eventClock       = 0
	eventWrite       = 2
	absoluteTime     = 1
	maxSubscriptions = 1024
)

// subscription is the part of a WASI subscription that matters here.
type subscription struct {
	userdata uint64
	tag      byte
	fd       uint32
	timeout  int64 // the clock's value at which it ends
}

// pollOneoff is poll_oneoff (in, out, nsubscriptions, nevents). It never
// waits: descriptors are ready, and otherwise the call's clock jumps to the
// earliest time-out, so sleeping costs nothing and a replay sees the same times.
func pollOneoff(s *session, mem api.Memory, args []uint64) uint32 {
	count := uint32(args[2])
	if count == 0 || count > maxSubscriptions {
		return errnoInval
	}
	s.meter.charge(int64(count) * hostCall)
	in, ok := mem.Read(uint32(args[0]), count*subscriptionSize)
	if !ok {
		return errnoFault
	}
	subs, ready, earliest := make([]subscription, 0, count), false, int64(math.MaxInt64)
	for ; len(in) > 0; in = in[subscriptionSize:] {
		sub := readSubscription(in, s.now)
		if sub.tag == eventClock {
			earliest = min(earliest, sub.timeout)
		} else {
			ready = true
		}
		subs = append(subs, sub)
	}
	if !ready {
		s.now = max(s.now, earliest)
	}
	return writeEvents(s, mem, subs, uint32(args[1]), uint32(args[3]))
}

func readSubscription(in []byte, now int64) subscription {
	sub := subscription{userdata: binary.LittleEndian.Uint64(in), tag: in[8]}
	if sub.tag != eventClock {
		sub.fd = binary.LittleEndian.Uint32(in[16:])
		return sub
	}
	timeout := int64(min(binary.LittleEndian.Uint64(in[24:]), math.MaxInt64))
	if in[40]&absoluteTime == 0 {
		timeout = addTime(now, timeout)
	}
	sub.timeout = timeout
	return sub
}

func writeEvents(s *session, mem api.Memory, subs []subscription, out, nevents uint32) uint32 {
	written := uint32(0)
	for _, sub := range subs {
		if sub.tag == eventClock && sub.timeout > s.now {
			continue
		}
		var event [eventSize]byte
		binary.LittleEndian.PutUint64(event[:], sub.userdata)
		event[10] = sub.tag
		if sub.tag != eventClock && (sub.tag != eventWrite || sub.fd != 1 && sub.fd != 2) {
			binary.LittleEndian.PutUint16(event[8:], errnoBadf)
		}
		if !mem.Write(out+written*eventSize, event[:]) {
			return errnoFault
		}
		written++
	}
	if !mem.WriteUint32Le(nevents, written) {
		return errnoFault
	}
	return errnoSuccess
}
