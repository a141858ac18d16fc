package strictjson

import (
	"strconv"
	"unicode/utf8"
)

// Error says what is wrong with a JSON text and where. It never quotes a value
// of the text, only names of members, capped.
type Error struct {
	Offset int // in bytes from the start of the text; negative when not known
	Reason string
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return e.Reason
	}
	return "offset " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

// Unknown returns the error for a member that its object does not have.
func Unknown(name string) error {
	return &Error{-1, "unknown field " + quote(name)}
}

// Missing returns the error for a member that its object must have.
func Missing(name string) error {
	return &Error{-1, "missing field " + quote(name)}
}

func repeated(at int, name []byte) error {
	return &Error{at, "repeated field " + quote(string(name))}
}

// locate gives an error of this package that has no offset yet the one where
// the value began that it is about.
func locate(err error, at int) error {
	if e, ok := err.(*Error); ok && e.Offset < 0 {
		return &Error{at, e.Reason}
	}
	return err
}

func (d *Decoder) expected(what string) error {
	if d.pos >= len(d.data) {
		return &Error{len(d.data), "unexpected end, expected " + what}
	}
	return &Error{d.pos, "expected " + what}
}

// quote returns name as a JSON string of at most 64 bytes of it: it comes from
// outside and ends in logs.
func quote(name string) string {
	const most = 64
	if len(name) <= most {
		return string(AppendString(nil, name))
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return string(AppendString(nil, name[:cut])) + "…"
}
