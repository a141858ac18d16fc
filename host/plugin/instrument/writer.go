package instrument

import "encoding/binary"

func appendU32(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

// appendSigned appends the shortest signed form.
func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte { return append(appendU32(b, uint32(len(s))), s...) }

func appendSized(b, body []byte) []byte { return append(appendU32(b, uint32(len(body))), body...) }

// appendSection appends a section unless it has no entries.
func appendSection(b []byte, id byte, entries int, body []byte) []byte {
	if entries == 0 {
		return b
	}
	head := appendU32(nil, uint32(entries))
	b = appendU32(append(b, id), uint32(len(head)+len(body)))
	return append(append(b, head...), body...)
}
