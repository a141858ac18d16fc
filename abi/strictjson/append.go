package strictjson

import (
	"math"
	"strconv"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string with as few escapes as possible: the
// quotation mark, the backslash, control characters, and the line separators
// U+0085, U+2028 and U+2029, at which readers of lines would break. Bytes that
// are not UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s, true)
	return append(b, '"')
}

// appendEscaped appends the inside of a string. Stretches that need no escape
// are copied whole.
func appendEscaped(b []byte, s string, lines bool) []byte {
	done := 0
	for i := skipPlain(s, 0); i < len(s); i = skipPlain(s, i) {
		c := s[i]
		if c < utf8.RuneSelf {
			b = appendControl(append(b, s[done:i]...), c)
			i++
			done = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(append(b, s[done:i]...), "\uFFFD"...)
			done = i + n
		case lines && (r == 0x85 || r == 0x2028 || r == 0x2029):
			b = append(append(b, s[done:i]...), '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			done = i + n
		}
		i += n
	}
	return append(b, s[done:]...)
}

func appendControl(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\t':
		return append(b, '\\', 't')
	case '\n':
		return append(b, '\\', 'n')
	case '\f':
		return append(b, '\\', 'f')
	case '\r':
		return append(b, '\\', 'r')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// AppendInt appends n in decimal.
func AppendInt(b []byte, n int64) []byte {
	switch { // most are this small
	case n >= 0 && n < 10:
		return append(b, byte('0'+n))
	case n >= 10 && n < 100:
		return append(b, byte('0'+n/10), byte('0'+n%10))
	}
	return strconv.AppendInt(b, n, 10)
}

// AppendFloat appends the shortest text that reads back as f, in the form of
// ECMAScript. JSON has no word for infinities and NaN: they become null.
func AppendFloat(b []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(b, "null"...)
	}
	abs := math.Abs(f)
	if abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

// AppendBool appends true or false.
func AppendBool(b []byte, v bool) []byte {
	return strconv.AppendBool(b, v)
}
