package tool

import "weir/abi/strictjson"

// scalar is a JSON value as enum compares it. Objects and arrays have the kind
// and nothing else, because no argument can equal them.
type scalar struct {
	kind   strictjson.Kind
	text   string // of a string, decoded; of true and false
	number decimal
}

func decodeScalar(d *strictjson.Decoder) (v scalar, err error) {
	switch v.kind = d.Kind(); v.kind {
	case strictjson.String:
		v.text, err = d.String()
		return v, err
	case strictjson.Number:
		raw, err := d.Raw()
		v.number = parseDecimal(string(raw))
		return v, err
	case strictjson.Bool:
		raw, err := d.Raw()
		v.text = string(raw)
		return v, err
	}
	return v, d.Skip()
}

func (v scalar) equal(w scalar) bool {
	switch {
	case v.kind != w.kind, v.kind == strictjson.Object, v.kind == strictjson.Array:
		return false
	case v.kind == strictjson.Number:
		return v.number.compare(w.number) == 0
	}
	return v.text == w.text
}
