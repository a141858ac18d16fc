package main

import (
	"weir/abi"
	"weir/abi/strictjson"
)

// state is all that a run's loop remembers.
type state struct {
	system string // the system prompt, filled
	turns  int    // of the start event
	ref    int    // the highest number of a reply or result
	max    int    // tool calls that the run may make in all
}

func (s *state) appendJSON(b []byte) []byte {
	b = strictjson.AppendString(append(b, `{"system":`...), s.system)
	b = strictjson.AppendInt(append(b, `,"turns":`...), int64(s.turns))
	b = strictjson.AppendInt(append(b, `,"ref":`...), int64(s.ref))
	b = strictjson.AppendInt(append(b, `,"max":`...), int64(s.max))
	return append(b, '}')
}

// readState reads what appendJSON wrote.
func readState(raw abi.Raw) (s state, err error) {
	if len(raw) == 0 {
		return s, errNoState
	}
	d := strictjson.NewDecoder(raw)
	err = d.Object(func(name string) (err error) {
		switch name {
		case "system":
			s.system, err = d.String()
		case "turns":
			s.turns, err = readInt(d)
		case "ref":
			s.ref, err = readInt(d)
		case "max":
			s.max, err = readInt(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	if err == nil {
		err = d.End()
	}
	return s, at("state", err)
}

func readInt(d *strictjson.Decoder) (int, error) {
	n, err := d.Int()
	if err == nil && (n < 0 || n > 1<<20) {
		err = &strictjson.Error{Offset: -1, Reason: "number out of range"}
	}
	return int(n), err
}
