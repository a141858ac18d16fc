package strictjson

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// span is the inside of a string in the data, already checked.
type span struct {
	start, end int
	escaped    bool
}

// peek returns the next byte, and 0, which no value begins with, at the end.
func (d *Decoder) peek() byte {
	if d.pos < len(d.data) {
		return d.data[d.pos]
	}
	return 0
}

func (d *Decoder) space() {
	if d.pos < len(d.data) && d.data[d.pos] <= ' ' {
		d.skipSpace()
	}
}

func (d *Decoder) skipSpace() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\n', '\r', '\t':
			d.pos++
		default:
			return
		}
	}
}

// literal consumes word if it is next.
func (d *Decoder) literal(word string) bool {
	if len(d.data)-d.pos < len(word) || string(d.data[d.pos:d.pos+len(word)]) != word {
		return false
	}
	d.pos += len(word)
	return true
}

func (d *Decoder) str(s span) string {
	if d.text == "" {
		d.text = string(d.data)
	}
	return d.text[s.start:s.end]
}

// open begins an object or an array.
func (d *Decoder) open(c byte, what string) error {
	d.space()
	if d.peek() != c {
		return d.expected(what)
	}
	if d.depth == MaxDepth {
		return &Error{d.pos, "nested deeper than " + strconv.Itoa(MaxDepth) + " levels"}
	}
	d.depth++
	d.pos++
	return nil
}

// more goes to the next member or element and consumes the end if there is none.
func (d *Decoder) more(end byte, first bool) (bool, error) {
	d.space()
	c := d.peek()
	if c == end {
		d.pos++
		d.depth--
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, d.expected("',' or '" + string(rune(end)) + "'")
	}
	d.pos++
	d.space()
	if d.peek() == end {
		return false, d.expected("another value after ','")
	}
	return true, nil
}

// next goes to the next element where it follows a comma at once. It is a part
// of more, and short.
func (d *Decoder) next() bool {
	if i := d.pos + 1; i < len(d.data) && d.data[i-1] == ',' && d.data[i] > ' ' && d.data[i] != ']' {
		d.pos = i
		return true
	}
	return false
}

// name reads a member's name and the colon. raw is the name without escapes.
func (d *Decoder) name() (raw []byte, s span, err error) {
	if s, err = d.scanString("a member's name"); err != nil {
		return nil, s, err
	}
	raw = d.data[s.start:s.end:s.end]
	if s.escaped {
		raw = unescape(nil, raw)
	}
	d.space()
	if d.peek() != ':' {
		return nil, s, d.expected("':'")
	}
	d.pos++
	return raw, s, nil
}

func (d *Decoder) skipObject() error {
	if err := d.open('{', "an object"); err != nil {
		return err
	}
	var seen names
	for first := true; ; first = false {
		more, err := d.more('}', first)
		if !more {
			return err
		}
		at := d.pos
		raw, _, err := d.name()
		if err != nil {
			return err
		}
		if !seen.add(raw) {
			return repeated(at, raw)
		}
		if err := d.Skip(); err != nil {
			return err
		}
	}
}

func (d *Decoder) skipArray() error {
	if err := d.open('[', "an array"); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.more(']', first)
		if !more {
			return err
		}
		if err := d.Skip(); err != nil {
			return err
		}
	}
}

// scanString reads a string and checks all of it, escapes included.
func (d *Decoder) scanString(what string) (span, error) {
	if d.peek() != '"' {
		return span{}, d.expected(what)
	}
	s := span{start: d.pos + 1}
	for i := skipPlain(d.data, s.start); i < len(d.data); i = skipPlain(d.data, i) {
		c := d.data[i]
		switch {
		case c == '"':
			s.end, d.pos = i, i+1
			return s, nil
		case c == '\\':
			n, reason := escape(d.data[i:])
			if n == 0 {
				return s, &Error{i, reason}
			}
			s.escaped = true
			i += n
		case c < ' ':
			return s, &Error{i, "unescaped control character in a string"}
		default:
			r, n := utf8.DecodeRune(d.data[i:])
			if r == utf8.RuneError && n == 1 {
				return s, &Error{i, "invalid UTF-8 in a string"}
			}
			i += n
		}
	}
	return s, &Error{len(d.data), "unexpected end inside a string"}
}

// escape returns the length of the escape sequence that b begins with, both
// halves of a surrogate pair together, or 0 and what is wrong with it.
func escape(b []byte) (int, string) {
	if len(b) < 2 {
		return 0, "unexpected end inside a string"
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, "unknown escape in a string"
	}
	u, ok := hex4(b)
	switch {
	case !ok:
		return 0, "expected four hex digits after \\u"
	case u < 0xD800 || u > 0xDFFF:
		return 6, ""
	case u < 0xDC00 && len(b) > 6:
		if low, ok := hex4(b[6:]); ok && low >= 0xDC00 && low <= 0xDFFF {
			return 12, ""
		}
	}
	return 0, "lone surrogate in a string"
}

// hex4 reads b's first six bytes as \uXXXX.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape appends the text of a string's inside, which has been checked.
func unescape(b, inside []byte) []byte {
	for i := 0; ; {
		n := bytes.IndexByte(inside[i:], '\\')
		if n < 0 {
			return append(b, inside[i:]...)
		}
		b = append(b, inside[i:i+n]...)
		i += n
		c := inside[i+1]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(inside[i:])
			i += 6
			if r >= 0xD800 && r <= 0xDFFF {
				low, _ := hex4(inside[i:])
				r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
				i += 6
			}
			b = utf8.AppendRune(b, r)
			continue
		}
		b = append(b, c)
		i += 2
	}
}

// scanNumber reads a number and says whether it has neither fraction nor exponent.
func (d *Decoder) scanNumber(what string) (integer bool, err error) {
	i := d.pos
	if d.peek() == '-' {
		i++
	}
	n := digits(d.data, i)
	if n == 0 {
		return false, d.expected(what)
	}
	if d.data[i] == '0' && n > 1 {
		return false, &Error{i, "number with a leading zero"}
	}
	i += n
	integer = true
	if i < len(d.data) && d.data[i] == '.' {
		if n = digits(d.data, i+1); n == 0 {
			return false, &Error{i, "expected digits after '.'"}
		}
		integer = false
		i += 1 + n
	}
	if i < len(d.data) && d.data[i]|0x20 == 'e' {
		at := i
		i++
		if i < len(d.data) && (d.data[i] == '+' || d.data[i] == '-') {
			i++
		}
		if n = digits(d.data, i); n == 0 {
			return false, &Error{at, "expected digits in the exponent"}
		}
		integer = false
		i += n
	}
	d.pos = i
	return integer, nil
}

// shortInt reads a natural number of at most 18 digits in front of something
// else, which nearly all integers are. It consumes nothing that is not one.
func (d *Decoder) shortInt() (n int64, ok bool) {
	rest := d.data[d.pos:]
	i, c := 0, byte(0)
	for ; i < len(rest); i++ {
		if c = rest[i]; c-'0' > 9 {
			break
		}
		n = n*10 + int64(c-'0')
	}
	if i == 0 || i > 18 || i == len(rest) || c == '.' || c|0x20 == 'e' || i > 1 && rest[0] == '0' {
		return 0, false
	}
	d.pos += i
	return n, true
}

func digits(b []byte, i int) int {
	n := 0
	for i+n < len(b) && b[i+n] >= '0' && b[i+n] <= '9' {
		n++
	}
	return n
}

// parseInt reads the text of a JSON integer; false means that it does not fit.
func parseInt(b []byte) (int64, bool) {
	neg := b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) > 19 {
		return 0, false
	}
	var u uint64
	for _, c := range b {
		u = u*10 + uint64(c-'0')
	}
	if neg {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

func parseFloat(b []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil
}
