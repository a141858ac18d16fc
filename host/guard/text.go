package guard

import (
	"strings"
	"unicode/utf8"
)

// assembler turns pieces of text, which may be cut anywhere, into valid UTF-8.
// Every byte that begins no character becomes one U+FFFD, as in a conversion to
// runes, so the result depends on the bytes and not on where they were cut.
type assembler struct {
	max  int // characters that are kept
	text strings.Builder
	kept int // characters in text
	seen int // characters in all
	over bool

	tail  [utf8.UTFMax]byte // the beginning of a character that is not complete
	ntail int
}

// add appends a piece.
func (a *assembler) add(s string) {
	for a.ntail > 0 && s != "" {
		a.tail[a.ntail] = s[0]
		a.ntail++
		s = s[1:]
		a.drain(false)
	}
	if a.ntail > 0 {
		return
	}
	whole := completeLen(s)
	a.ntail = copy(a.tail[:], s[whole:])
	a.put(s[:whole])
}

// end decides the bytes of a character that was never completed.
func (a *assembler) end() { a.drain(true) }

func (a *assembler) drain(final bool) {
	for a.ntail > 0 && (final || utf8.FullRune(a.tail[:a.ntail])) {
		_, n := utf8.DecodeRune(a.tail[:a.ntail])
		a.put(string(a.tail[:n]))
		a.ntail = copy(a.tail[:], a.tail[n:a.ntail])
	}
}

// put appends whole characters and invalid bytes, as far as they fit.
func (a *assembler) put(s string) {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	n := utf8.RuneCountInString(s)
	a.seen += n
	room := a.max - a.kept
	if n > room {
		a.over = true
		s, n = s[:runesLen(s, room)], room
	}
	a.text.WriteString(s)
	a.kept += n
}

// completeLen returns the length of s without a last character that later bytes
// could complete.
func completeLen(s string) int {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if tail := s[len(s)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return len(s) - i
			}
			break
		}
	}
	return len(s)
}

// runesLen returns the length in bytes of the first n runes of s.
func runesLen(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// runeStart moves at, an offset into s, back to the start of its rune.
func runeStart(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// lookBehind returns the last n bytes of s without a leading partial rune.
func lookBehind(s string, n int) string {
	at := max(0, len(s)-n)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
