package abi

import "weir/abi/strictjson"

// The codecs of this package are written by hand, one pair a message, because
// encoding/json costs a Go guest ten times what the rest of its call costs.
// AppendJSON appends the message's JSON; DecodeJSON replaces the message by the
// one that data holds, copies what it keeps, and refuses everything that the
// message's schema refuses in form: unknown, repeated and missing members, null
// for an absent one, other kinds of value. After an error the message is
// undefined. What the members mean is checked by the Validate methods.

func decode(data []byte, read func(*strictjson.Decoder) error) error {
	d := strictjson.NewDecoder(data)
	if err := read(d); err != nil {
		return err
	}
	return d.End()
}

// ordered is the short way to read a message: what AppendJSON has written. Its
// methods read one member each, in the order in which AppendJSON writes them.
// Where something else stands, or too little, bad is set and stays so, and the
// message has to be read in the long way, from where this one began.
type ordered struct {
	d    *strictjson.Decoder
	from strictjson.Mark
	bad  bool
}

func inOrder(d *strictjson.Decoder) ordered {
	o := ordered{d: d, from: d.Mark()}
	o.bad = !d.Enter()
	return o
}

// end returns whether the message was read; if not, nothing of it is consumed.
func (o *ordered) end() bool {
	if !o.bad && o.d.Leave() {
		return true
	}
	o.d.Back(o.from)
	return false
}

func (o *ordered) next(name *strictjson.Name) bool { return !o.bad && o.d.Member(name) }

func (o *ordered) optStr(name *strictjson.Name, to *string) {
	if !o.next(name) {
		return
	}
	s, err := o.d.String()
	*to, o.bad = s, err != nil
}

func (o *ordered) str(name *strictjson.Name, to *string) {
	if !o.next(name) {
		o.bad = true
		return
	}
	s, err := o.d.String()
	*to, o.bad = s, err != nil
}

func (o *ordered) int64(name *strictjson.Name, to *int64) {
	if !o.next(name) {
		o.bad = true
		return
	}
	n, err := o.d.Int()
	*to, o.bad = n, err != nil
}

func (o *ordered) optInt(name *strictjson.Name, to *int) {
	if o.next(name) {
		o.readInt(to)
	}
}

func (o *ordered) int(name *strictjson.Name, to *int) {
	if !o.next(name) {
		o.bad = true
		return
	}
	o.readInt(to)
}

func (o *ordered) readInt(to *int) {
	n, err := o.d.Int()
	*to, o.bad = int(n), err != nil || int64(int(n)) != n
}

func (o *ordered) optBool(name *strictjson.Name, to *bool) {
	if o.next(name) {
		v, err := o.d.Bool()
		*to, o.bad = v, err != nil
	}
}

func (o *ordered) optRaw(name *strictjson.Name, to *Raw) {
	if o.next(name) {
		raw, err := readRaw(o.d)
		*to, o.bad = raw, err != nil
	}
}

// got marks which required members have been read, by their place in the list
// that check is given.
type got uint8

func (g *got) see(i int) { *g |= 1 << i }

// check is the end of reading an object.
func (g got) check(err error, required ...string) error {
	if err != nil {
		return err
	}
	for i, name := range required {
		if g&(1<<i) == 0 {
			return strictjson.Missing(name)
		}
	}
	return nil
}

func readInt(d *strictjson.Decoder) (int, error) {
	n, err := d.Int()
	if err == nil && int64(int(n)) != n {
		err = &strictjson.Error{Offset: -1, Reason: "integer out of range"}
	}
	return int(n), err
}

// readRaw reads any value; readObject reads one that must be an object.
func readRaw(d *strictjson.Decoder) (Raw, error) {
	raw, err := d.Raw()
	return append(Raw(nil), raw...), err
}

func readObject(d *strictjson.Decoder) (Raw, error) {
	if d.Kind() != strictjson.Object {
		return nil, &strictjson.Error{Offset: -1, Reason: "expected an object"}
	}
	return readRaw(d)
}

func readStrings(d *strictjson.Decoder) ([]string, error) {
	list := []string{}
	err := d.Array(func() error {
		s, err := d.String()
		list = append(list, s)
		return err
	})
	return list, err
}

// readInts uses room, or makes some: an allocation costs a guest more than a
// number.
func readInts(d *strictjson.Decoder, room []int) ([]int, error) {
	if cap(room) == 0 {
		room = make([]int, 0, 12)
	}
	return d.Ints(room)
}

func readList[T any](d *strictjson.Decoder, read func(*T, *strictjson.Decoder) error) ([]T, error) {
	list := []T{}
	err := d.Array(func() error {
		var item T
		err := read(&item, d)
		list = append(list, item)
		return err
	})
	return list, err
}

func readNew[T any](d *strictjson.Decoder, read func(*T, *strictjson.Decoder) error) (*T, error) {
	item := new(T)
	return item, read(item, d)
}

// appendKey begins a member; b ends in '{' exactly when it is the first.
func appendKey(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func appendStr(b []byte, name, s string) []byte {
	return strictjson.AppendString(appendKey(b, name), s)
}

func appendOptStr(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendStr(b, name, s)
}

func appendInt(b []byte, name string, n int) []byte {
	return strictjson.AppendInt(appendKey(b, name), int64(n))
}

func appendOptInt(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return appendInt(b, name, n)
}

func appendBool(b []byte, name string, v bool) []byte {
	return strictjson.AppendBool(appendKey(b, name), v)
}

func appendOptBool(b []byte, name string, v bool) []byte {
	if !v {
		return b
	}
	return appendBool(b, name, v)
}

// appendObject appends a required object; nil stands for an empty one.
func appendObject(b []byte, name string, r Raw) []byte {
	b = appendKey(b, name)
	if len(r) == 0 {
		return append(b, '{', '}')
	}
	return append(b, r...)
}

func appendOptRaw(b []byte, name string, r Raw) []byte {
	if len(r) == 0 {
		return b
	}
	return append(appendKey(b, name), r...)
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, s)
	}
	return append(b, ']')
}

func appendOptStrings(b []byte, name string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	return appendStrings(appendKey(b, name), list)
}

func appendOptInts(b []byte, name string, list []int) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(appendKey(b, name), '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendInt(b, int64(n))
	}
	return append(b, ']')
}

func appendList[T any](b []byte, name string, list []T, item func(*T, []byte) []byte) []byte {
	b = append(appendKey(b, name), '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = item(&list[i], b)
	}
	return append(b, ']')
}

func appendOptList[T any](b []byte, name string, list []T, item func(*T, []byte) []byte) []byte {
	if len(list) == 0 {
		return b
	}
	return appendList(b, name, list, item)
}
