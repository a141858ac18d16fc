package model

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Providers that cut text by UTF-16 send the halves of a surrogate pair in two
// chunks, each of which is a character that does not exist. Within a chunk a
// half is written as the private character that far from marks; those of two
// chunks are joined again behind each other.
const (
	marks  = 0x10F800 // of which there are as many as of halves
	halves = 0xD800
	lows   = 0xDC00
	ends   = 0xE000
)

// markHalves writes every half of a surrogate pair that stands alone in JSON as
// its mark, and reports whether there was one.
func markHalves(data []byte) ([]byte, bool) {
	var out []byte
	done := 0
	for i := 0; i+1 < len(data); {
		if data[i] != '\\' {
			i++
			continue
		}
		half, ok := escaped(data[i:], halves, ends)
		if !ok {
			i += 2 // the escaped character begins no escape itself
			continue
		}
		if _, pair := escaped(data[i+6:], lows, ends); pair && half < lows {
			i += 12
			continue
		}
		high, low := utf16.EncodeRune(marks + half - halves)
		out = append(out, data[done:i]...)
		out = append(strconv.AppendInt(append(out, `\u`...), int64(high), 16), `\u`...)
		out = strconv.AppendInt(out, int64(low), 16)
		i += 6
		done = i
	}
	if done == 0 {
		return data, false
	}
	return append(out, data[done:]...), true
}

// escaped reads an escape like \ud83d of a number from from on, before to.
func escaped(data []byte, from, to rune) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n), err == nil && rune(n) >= from && rune(n) < to
}

// joiner joins the halves of pairs in text that comes in chunks.
type joiner struct{ high rune }

// join returns the next text, without a last half that the one after it may
// complete. Marked says that it may have marks; without, there are none. A half
// that stands alone is U+FFFD.
func (j *joiner) join(text string, marked bool) string {
	if text == "" || j.high == 0 && !marked {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		half := rune(0)
		if marked && r >= marks {
			half = r - marks + halves
		}
		if j.high != 0 && half >= lows {
			b.WriteRune(utf16.DecodeRune(j.high, half))
			j.high = 0
			continue
		}
		b.WriteString(j.end())
		switch {
		case half >= lows:
			b.WriteRune(utf8.RuneError)
		case half != 0:
			j.high = half
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// end returns what is left when no text follows.
func (j *joiner) end() string {
	if j.high == 0 {
		return ""
	}
	j.high = 0
	return string(utf8.RuneError)
}
