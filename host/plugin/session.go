package plugin

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// session is what the host functions know of the call that an instance is
// working on. It is used by one goroutine at a time.
type session struct {
	now     int64  // nanoseconds, both clocks; moved by poll_oneoff only
	seed    uint64 // of random_get
	source  *rand.ChaCha8
	meter   meter
	printer printer
	sdk     *sdkGuest // of an Extism module
}

// earliest is what the clock of initialisation and describe shows, in
// milliseconds, and so that of any call at least: a clock does not go back, and
// at zero Go's run-time gives up when it collects garbage.
const earliest = 1

// setupStamp is the clock and seed of initialisation and describe.
func setupStamp() stamp { return stamp{now: earliest * int64(time.Millisecond), seed: 0} }

// stamp is the clock and the seed of one call, and what else its request says
// to the sandbox.
type stamp struct {
	now     int64 // nanoseconds
	seed    uint64
	display bool // of a whole tool result, and not of the next piece of an answer
}

// stampOf reads the clock and the seed that a request carries.
func stampOf(c abi.Call) (stamp, error) {
	seed, err := strconv.ParseUint(c.Seed, 10, 64)
	if err != nil {
		return stamp{}, fault.New(fault.Invalid, "request: seed: expected 64 bits in decimal, got %s", quote(c.Seed))
	}
	now := int64(math.MaxInt64)
	if c.Now < math.MaxInt64/int64(time.Millisecond) {
		now = max(c.Now, earliest) * int64(time.Millisecond)
	}
	return stamp{now: now, seed: seed}, nil
}

// stampIn finds the clock and the seed in the JSON text of a request, whatever
// the hook is.
func stampIn(request []byte) (stamp, error) {
	var call abi.Call
	hasNow, use := false, ""
	d := strictjson.NewDecoder(request)
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now":
			hasNow = true
			call.Now, err = d.Int()
		case "seed":
			call.Seed, err = d.String()
		case "use":
			if d.Kind() == strictjson.String {
				use, err = d.String()
				return err
			}
			fallthrough
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err == nil && !hasNow {
		err = strictjson.Missing("now")
	}
	if err != nil {
		return stamp{}, fault.New(fault.Invalid, "request: %w", err)
	}
	st, err := stampOf(call)
	st.display = use == abi.UseDisplay
	return st, err
}

// begin prepares for the next call.
func (s *session) begin(st stamp) {
	s.now, s.seed, s.source = st.now, st.seed, nil
	s.printer.begin()
}

// random is made on demand: most calls want none.
func (s *session) random() *rand.ChaCha8 {
	if s.source == nil {
		var key [32]byte
		binary.LittleEndian.PutUint64(key[:], s.seed)
		copy(key[8:], "weir random, version one")
		s.source = rand.NewChaCha8(key)
	}
	return s.source
}

func addTime(now, d int64) int64 {
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + d
}
