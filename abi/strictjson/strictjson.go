// Package strictjson reads JSON without leniency and writes it without
// surprises. It is RFC 8259 and nothing beside it: valid UTF-8, names matched
// exactly and never repeated, no lone surrogates, no unescaped control
// characters, at most [MaxDepth] levels, nothing after the value. Numbers keep
// their text until somebody asks for a type.
//
// encoding/json is lenient in each of these and takes ten times as long in a
// Wasm guest; this package uses no reflection and is driven by its caller:
//
//	d := strictjson.NewDecoder(data)
//	err := d.Object(func(name string) (err error) {
//		switch name {
//		case "role":
//			t.Role, err = d.String()
//		default:
//			err = strictjson.Unknown(name)
//		}
//		return err
//	})
//	if err == nil {
//		err = d.End()
//	}
package strictjson

import "unsafe"

// MaxDepth is how many objects and arrays may be open at once.
const MaxDepth = 128

// A Kind is the kind of a JSON value, as its first byte tells it.
type Kind uint8

// The kinds. Invalid is no value at all, or the end of the text.
const (
	Invalid Kind = iota
	Object
	Array
	String
	Number
	Bool
	Null
)

// Decoder reads one JSON text from front to back. After an error its position
// is undefined and it must not be used again. It is not safe for concurrent use.
type Decoder struct {
	data  []byte
	text  string // one copy of data, made when the first string is handed out
	pos   int
	depth int
}

// NewDecoder returns a decoder of data, which must not change while it reads.
//
// Strings and names that it returns are parts of one copy of data, so they stay
// valid when data is reused, and a short string keeps the copy of a long text
// alive; clone it where that matters.
func NewDecoder(data []byte) *Decoder {
	return &Decoder{data: data}
}

// Reset makes d a decoder of text. Strings and names that it returns are parts
// of text, so they cost no copy.
func (d *Decoder) Reset(text string) {
	*d = Decoder{data: unsafe.Slice(unsafe.StringData(text), len(text)), text: text}
}

// Object reads an object and calls member for each of its members; member must
// consume the value. An error of member ends the reading and is returned; one
// that has no offset yet gets that of the member's name.
func (d *Decoder) Object(member func(name string) error) error {
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
		raw, s, err := d.name()
		if err != nil {
			return err
		}
		if !seen.add(raw) {
			return repeated(at, raw)
		}
		if s.escaped {
			err = member(string(raw))
		} else {
			err = member(d.str(s))
		}
		if err != nil {
			return locate(err, at)
		}
	}
}

// Array reads an array and calls element for each element, which element must
// consume.
func (d *Decoder) Array(element func() error) error {
	if err := d.open('[', "an array"); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.more(']', first)
		if !more {
			return err
		}
		at := d.pos
		if err := element(); err != nil {
			return locate(err, at)
		}
		if d.pos == at {
			return d.expected("a value")
		}
	}
}

// String reads a string.
func (d *Decoder) String() (string, error) {
	d.space()
	if d.peek() == '"' { // nearly always nothing in it needs a look
		if i := skipPlain(d.data, d.pos+1); i < len(d.data) && d.data[i] == '"' {
			s := span{start: d.pos + 1, end: i}
			d.pos = i + 1
			return d.str(s), nil
		}
	}
	s, err := d.scanString("a string")
	if err != nil {
		return "", err
	}
	if !s.escaped {
		return d.str(s), nil
	}
	return string(unescape(make([]byte, 0, s.end-s.start), d.data[s.start:s.end])), nil
}

// Int reads an integer: a number without fraction or exponent that fits 64 bits.
func (d *Decoder) Int() (int64, error) {
	d.space()
	if n, ok := d.shortInt(); ok {
		return n, nil
	}
	return d.anyInt()
}

func (d *Decoder) anyInt() (int64, error) {
	at := d.pos
	integer, err := d.scanNumber("an integer")
	if err != nil {
		return 0, err
	}
	if !integer {
		return 0, &Error{at, "expected an integer without fraction or exponent"}
	}
	n, ok := parseInt(d.data[at:d.pos])
	if !ok {
		return 0, &Error{at, "integer out of range"}
	}
	return n, nil
}

// Ints reads an array of integers that fit an int and appends them to list.
func (d *Decoder) Ints(list []int) ([]int, error) {
	if err := d.open('[', "an array"); err != nil {
		return list, err
	}
	for first := true; ; first = false {
		if first || !d.next() {
			if more, err := d.more(']', first); !more {
				return list, err
			}
		}
		at := d.pos
		n, ok := d.shortInt()
		if !ok {
			var err error
			if n, err = d.Int(); err != nil {
				return list, err
			}
		}
		if int64(int(n)) != n {
			return list, &Error{at, "integer out of range"}
		}
		list = append(list, int(n))
	}
}

// Float reads a number that fits a float64.
func (d *Decoder) Float() (float64, error) {
	d.space()
	at := d.pos
	if _, err := d.scanNumber("a number"); err != nil {
		return 0, err
	}
	f, ok := parseFloat(d.data[at:d.pos])
	if !ok {
		return 0, &Error{at, "number out of range"}
	}
	return f, nil
}

// Bool reads true or false.
func (d *Decoder) Bool() (bool, error) {
	d.space()
	switch {
	case d.literal("true"):
		return true, nil
	case d.literal("false"):
		return false, nil
	}
	return false, d.expected("true or false")
}

// Null consumes a null if one is next, and says whether it did.
func (d *Decoder) Null() bool {
	d.space()
	return d.literal("null")
}

// Raw reads one value of any kind, checks it to its depth, and returns its
// bytes as they stand, white space inside included. They alias the data.
func (d *Decoder) Raw() ([]byte, error) {
	d.space()
	at := d.pos
	if err := d.Skip(); err != nil {
		return nil, err
	}
	return d.data[at:d.pos:d.pos], nil
}

// Kind tells the kind of the next value without consuming or checking it.
func (d *Decoder) Kind() Kind {
	d.space()
	switch c := d.peek(); {
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '"':
		return String
	case c == '-', c >= '0' && c <= '9':
		return Number
	case c == 't', c == 'f':
		return Bool
	case c == 'n':
		return Null
	}
	return Invalid
}

// Skip reads one value of any kind and checks it to its depth.
func (d *Decoder) Skip() error {
	d.space()
	switch c := d.peek(); {
	case c == '{':
		return d.skipObject()
	case c == '[':
		return d.skipArray()
	case c == '"':
		_, err := d.scanString("a value")
		return err
	case c == '-', c >= '0' && c <= '9':
		_, err := d.scanNumber("a value")
		return err
	case d.literal("true"), d.literal("false"), d.literal("null"):
		return nil
	}
	return d.expected("a value")
}

// End reports an error unless only white space is left.
func (d *Decoder) End() error {
	d.space()
	if d.pos < len(d.data) {
		return &Error{d.pos, "unexpected data after the value"}
	}
	return nil
}

// Valid reports how data is not exactly one strict JSON value.
func Valid(data []byte) error {
	d := Decoder{data: data}
	if err := d.Skip(); err != nil {
		return err
	}
	return d.End()
}
