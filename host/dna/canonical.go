package dna

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"weir/abi/strictjson"
)

// Canonical appends value as Python's json.dumps(value, sort_keys=True) writes
// what json.loads reads from it, which is what AgentV hashes: ", " and ": "
// between parts, names sorted by code point, everything beyond printable ASCII
// escaped, floats as repr writes them, integers with all their digits.
//
// Python also reads what is not JSON (NaN, repeated names, half a surrogate
// pair) and numbers beyond a float64; these are errors here. On an error b comes
// back as it was.
func Canonical(b, value []byte) ([]byte, error) {
	return dumps(b, value, true)
}

// Dumps is Canonical with the names in the order in which they stand: Python's
// json.dumps(value), the form in which the harness quotes tool results.
func Dumps(b, value []byte) ([]byte, error) {
	return dumps(b, value, false)
}

func dumps(b, value []byte, sorted bool) ([]byte, error) {
	w := writer{strictjson.NewDecoder(value), sorted}
	out, err := w.value(b)
	if err == nil {
		err = w.d.End()
	}
	if err != nil {
		return b, err
	}
	return out, nil
}

type writer struct {
	d      *strictjson.Decoder
	sorted bool
}

func (w writer) value(b []byte) ([]byte, error) {
	switch w.d.Kind() {
	case strictjson.Object:
		return w.object(b)
	case strictjson.Array:
		return w.array(b)
	case strictjson.String:
		s, err := w.d.String()
		if err != nil {
			return b, err
		}
		return appendASCII(b, s), nil
	case strictjson.Number:
		raw, err := w.d.Raw()
		if err != nil {
			return b, err
		}
		return AppendNumber(b, string(raw))
	}
	raw, err := w.d.Raw()
	return append(b, raw...), err
}

type member struct {
	name string
	text []byte
}

func (w writer) object(b []byte) ([]byte, error) {
	var members []member
	err := w.d.Object(func(name string) error {
		text, err := w.value(nil)
		members = append(members, member{name, text})
		return err
	})
	if err != nil {
		return b, err
	}
	if w.sorted {
		// The order of UTF-8 bytes is that of code points.
		slices.SortFunc(members, func(x, y member) int { return strings.Compare(x.name, y.name) })
	}
	b = append(b, '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(appendASCII(b, m.name), ": "...), m.text...)
	}
	return append(b, '}'), nil
}

func (w writer) array(b []byte) ([]byte, error) {
	b = append(b, '[')
	first := true
	err := w.d.Array(func() (err error) {
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b, err = w.value(b)
		return err
	})
	return append(b, ']'), err
}

const hexDigits = "0123456789abcdef"

// appendASCII writes a string as Python does with ensure_ascii.
func appendASCII(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= ' ' && r <= '~':
			b = append(b, byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, high), low)
		default:
			b = appendUnit(b, r)
		}
	}
	return append(b, '"')
}

func appendUnit(b []byte, u rune) []byte {
	return append(b, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// AppendNumber appends a JSON number as Python writes it after reading it. The
// text must be a JSON number; one that no float64 holds is an error.
func AppendNumber(b []byte, text string) ([]byte, error) {
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			text = "0"
		}
		return append(b, text...), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return b, &strictjson.Error{Offset: -1, Reason: "number out of range"}
	}
	return appendRepr(b, f), nil
}

// appendRepr writes an exponent below 1e-4 and from 1e16 on, and always
// something that tells a float from an integer.
func appendRepr(b []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	n := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if !slices.Contains(b[n:], '.') {
		b = append(b, ".0"...)
	}
	return b
}
