package strictjson

import "encoding/binary"

// Mark is a place in the text to which a decoder can go back.
type Mark struct{ pos, depth int }

// Mark returns where the decoder is.
func (d *Decoder) Mark() Mark { return Mark{d.pos, d.depth} }

// Back goes back to a place of this decoder, after an error too.
func (d *Decoder) Back(m Mark) { d.pos, d.depth = m.pos, m.depth }

// Name is the name of a member, made for [Decoder.Member].
type Name struct {
	text       string // with quotation marks and colon
	head, tail uint64 // the first eight bytes and the next, as far as there are
	mask, rest uint64 // which of their bits count
}

// NameOf makes a name of ASCII letters, digits and the like, which are written
// without escapes.
func NameOf(name string) Name {
	n := Name{text: `"` + name + `":`}
	var bytes, mask [16]byte
	for i := range copy(bytes[:], n.text) {
		mask[i] = 0xff
	}
	n.head, n.tail = binary.LittleEndian.Uint64(bytes[:]), binary.LittleEndian.Uint64(bytes[8:])
	n.mask, n.rest = binary.LittleEndian.Uint64(mask[:]), binary.LittleEndian.Uint64(mask[8:])
	return n
}

// Enter, Member and Leave read an object whose members stand in an order that
// the reader knows and without white space, as a writer of this package leaves
// them: a fraction of the work of [Decoder.Object], which has to be ready for
// any name in any place. Each says whether exactly that is next, and consumes
// it. They accept nothing that Object refuses; where one says no, go back and
// let Object say what is there.
//
//	{"now":1,"seed":"0"}
//	Enter │ Member(now) Int │ Member(seed) String │ Leave
func (d *Decoder) Enter() bool {
	if d.peek() != '{' || d.depth == MaxDepth {
		return false
	}
	d.pos++
	d.depth++
	return true
}

// Member consumes the beginning of a member. No name may be asked for twice in
// one object, and its value must be consumed.
func (d *Decoder) Member(name *Name) bool {
	i := d.pos
	if d.data[i-1] != '{' { // no value ends so
		if d.peek() != ',' {
			return false
		}
		i++
	}
	// Calling a comparison would cost a guest more than two words do.
	left := d.data[i:]
	if len(left) < 16 || len(name.text) > 16 {
		if len(left) < len(name.text) || string(left[:len(name.text)]) != name.text {
			return false
		}
	} else if binary.LittleEndian.Uint64(left)&name.mask != name.head ||
		binary.LittleEndian.Uint64(left[8:])&name.rest != name.tail {
		return false
	}
	d.pos = i + len(name.text)
	return true
}

// Leave consumes the end of the object.
func (d *Decoder) Leave() bool {
	if d.peek() != '}' {
		return false
	}
	d.pos++
	d.depth--
	return true
}
