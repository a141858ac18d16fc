package strictjson

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// Canonical appends the canonical form of value, which is what digests and
// signatures are made of: names sorted by their UTF-8 bytes at every depth, no
// white space, only the quotation mark, the backslash and control characters
// below 0x20 escaped. Integers keep their digits (-0 is 0); other numbers are
// written as Python's repr writes the float64 that they stand for, and refused
// when they stand for none. On an error b comes back as it was.
func Canonical(b []byte, value []byte) ([]byte, error) {
	d := Decoder{data: value}
	out, err := d.canonical(b)
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return b, err
	}
	return out, nil
}

func (d *Decoder) canonical(b []byte) ([]byte, error) {
	switch d.Kind() {
	case Object:
		return d.canonicalObject(b)
	case Array:
		return d.canonicalArray(b)
	case String:
		s, err := d.scanString("a string")
		if err != nil {
			return b, err
		}
		return d.appendCanonical(b, s), nil
	case Number:
		return d.canonicalNumber(b)
	}
	raw, err := d.Raw()
	return append(b, raw...), err
}

// member is where a member stands in the output.
type member struct {
	name       []byte
	start, end int
}

func (d *Decoder) canonicalObject(b []byte) ([]byte, error) {
	if err := d.open('{', "an object"); err != nil {
		return b, err
	}
	b = append(b, '{')
	var seen names
	var members []member
	sorted := true
	for first := true; ; first = false {
		more, err := d.more('}', first)
		if err != nil {
			return b, err
		}
		if !more {
			break
		}
		at, start := d.pos, len(b)
		raw, s, err := d.name()
		if err != nil {
			return b, err
		}
		if !seen.add(raw) {
			return b, repeated(at, raw)
		}
		b = append(d.appendCanonical(b, s), ':')
		if b, err = d.canonical(b); err != nil {
			return b, err
		}
		sorted = sorted && (first || bytes.Compare(members[len(members)-1].name, raw) < 0)
		members = append(members, member{raw, start, len(b)})
		b = append(b, ',')
	}
	if len(members) > 0 {
		b = b[:len(b)-1]
	}
	if !sorted {
		rearrange(b, members)
	}
	return append(b, '}'), nil
}

// rearrange puts the members, which fill b from the first one's start, in order.
func rearrange(b []byte, members []member) {
	from := members[0].start
	old := bytes.Clone(b[from:])
	slices.SortFunc(members, func(x, y member) int { return bytes.Compare(x.name, y.name) })
	b = b[:from]
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, old[m.start-from:m.end-from]...)
	}
}

func (d *Decoder) canonicalArray(b []byte) ([]byte, error) {
	if err := d.open('[', "an array"); err != nil {
		return b, err
	}
	b = append(b, '[')
	for first := true; ; first = false {
		more, err := d.more(']', first)
		if err != nil {
			return b, err
		}
		if !more {
			return append(b, ']'), nil
		}
		if !first {
			b = append(b, ',')
		}
		if b, err = d.canonical(b); err != nil {
			return b, err
		}
	}
}

// appendCanonical appends a scanned string. Text without escapes has nothing in
// it that would need one.
func (d *Decoder) appendCanonical(b []byte, s span) []byte {
	inside := d.data[s.start:s.end]
	b = append(b, '"')
	if s.escaped {
		b = appendEscaped(b, string(unescape(nil, inside)), false)
	} else {
		b = append(b, inside...)
	}
	return append(b, '"')
}

func (d *Decoder) canonicalNumber(b []byte) ([]byte, error) {
	at := d.pos
	integer, err := d.scanNumber("a number")
	if err != nil {
		return b, err
	}
	text := d.data[at:d.pos]
	if integer {
		if string(text) == "-0" {
			text = text[1:]
		}
		return append(b, text...), nil
	}
	f, ok := parseFloat(text)
	if !ok {
		return b, &Error{at, "number out of range"}
	}
	return appendRepr(b, f), nil
}

// appendRepr writes f as Python does: an exponent below 1e-4 and from 1e16 on,
// and always something that tells it from an integer.
func appendRepr(b []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	n := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[n:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// Compact appends value without insignificant white space; numbers and strings
// keep their text, names their order. On an error b comes back as it was.
func Compact(b, value []byte) ([]byte, error) {
	if err := Valid(value); err != nil {
		return b, err
	}
	inside := false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case inside && c == '\\':
			b = append(b, c)
			i++
			c = value[i]
		case c == '"':
			inside = !inside
		case !inside && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			continue
		}
		b = append(b, c)
	}
	return b, nil
}
