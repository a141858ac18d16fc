package turn

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/abi/strictjson"
)

// fromPython reads what Python's repr prints of a JSON value (1.2), and tuples,
// and returns the value as strict JSON. What JSON does not have (NaN, bytes,
// other objects, a key that stands twice) is an error.
func fromPython(text string) ([]byte, error) {
	p := &pythonReader{text: text}
	out, err := p.value(nil)
	if err == nil {
		p.space()
		if p.text != "" {
			err = errPython
		}
	}
	if err == nil {
		err = strictjson.Valid(out) // distinct keys, valid UTF-8
	}
	return out, err
}

var errPython = errors.New("not a Python literal")

type pythonReader struct {
	text  string // what is left
	depth int
}

func (p *pythonReader) space() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

// next takes a byte if it comes next.
func (p *pythonReader) next(c byte) bool {
	p.space()
	if p.text == "" || p.text[0] != c {
		return false
	}
	p.text = p.text[1:]
	return true
}

func (p *pythonReader) value(b []byte) ([]byte, error) {
	if p.depth++; p.depth > strictjson.MaxDepth {
		return b, errPython
	}
	defer func() { p.depth-- }()
	p.space()
	switch {
	case p.text == "":
		return b, errPython
	case p.next('{'):
		return p.dict(b)
	case p.next('['):
		return p.list(b, ']')
	case p.next('('):
		return p.list(b, ')')
	case p.text[0] == '\'' || p.text[0] == '"':
		s, err := p.string()
		return strictjson.AppendString(b, s), err
	}
	return p.word(b)
}

func (p *pythonReader) dict(b []byte) ([]byte, error) {
	b = append(b, '{')
	for first := true; !p.next('}'); first = false {
		if !first {
			if !p.next(',') {
				return b, errPython
			}
			if p.next('}') {
				break
			}
			b = append(b, ',')
		}
		key, err := p.value(nil)
		if err != nil || !p.next(':') {
			return b, errPython
		}
		switch key[0] {
		case '"':
			b = append(b, key...)
		case '{', '[':
			return b, errPython
		default: // a number or a word, as json.dumps writes it
			b = strictjson.AppendString(b, string(key))
		}
		if b, err = p.value(append(b, ':')); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func (p *pythonReader) list(b []byte, end byte) ([]byte, error) {
	b = append(b, '[')
	for first := true; !p.next(end); first = false {
		if !first {
			if !p.next(',') {
				return b, errPython
			}
			if p.next(end) {
				break
			}
			b = append(b, ',')
		}
		var err error
		if b, err = p.value(b); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func (p *pythonReader) word(b []byte) ([]byte, error) {
	end := strings.IndexFunc(p.text, func(r rune) bool { return strings.ContainsRune(",:]})} \t\r\n", r) })
	if end < 0 {
		end = len(p.text)
	}
	word := p.text[:end]
	p.text = p.text[end:]
	switch word {
	case "True":
		return append(b, "true"...), nil
	case "False":
		return append(b, "false"...), nil
	case "None":
		return append(b, "null"...), nil
	}
	if strictjson.Valid([]byte(word)) != nil || word == "" || word[0] != '-' && (word[0] < '0' || word[0] > '9') {
		return b, errPython
	}
	return append(b, word...), nil
}

func (p *pythonReader) string() (string, error) {
	quote := p.text[0]
	var s strings.Builder
	for i := 1; i < len(p.text); {
		switch c := p.text[i]; {
		case c == quote:
			p.text = p.text[i+1:]
			return s.String(), nil
		case c == '\\':
			r, n := unescape(p.text[i+1:])
			if n == 0 {
				return "", errPython
			}
			s.WriteRune(r)
			i += 1 + n
		case c == '\n' || c == '\r':
			return "", errPython
		default:
			s.WriteByte(c)
			i++
		}
	}
	return "", errPython
}

// unescape reads what follows a backslash and says how many bytes that was; 0
// for what repr never writes.
func unescape(text string) (rune, int) {
	if text == "" {
		return 0, 0
	}
	digits := 0
	switch text[0] {
	case '\\', '\'', '"':
		return rune(text[0]), 1
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || len(text) < 1+digits {
		return 0, 0
	}
	n, err := strconv.ParseUint(text[1:1+digits], 16, 32)
	if err != nil || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, 0
	}
	return rune(n), 1 + digits
}
