package guard

import (
	"strings"
	"unicode"
)

// splitContainer splits a fragment that a consumer could take for a lone JSON
// object or array (10.5.5), which it would parse and drop. Neither part then
// looks like one: the first ends with an opening bracket and the second begins
// with something else. Other fragments come back whole.
//
// Looking at the brackets and not at the JSON between them splits a few
// fragments that no parser would accept; that costs nothing, and consumers
// differ in what they accept.
func splitContainer(s string) (head, rest string) {
	inner := strings.TrimFunc(s, blank)
	if len(inner) < 2 || !opening(rune(inner[0])) || !closing(inner[len(inner)-1]) {
		return s, ""
	}
	at := strings.IndexFunc(s, func(r rune) bool { return !blank(r) && !opening(r) })
	return s[:at], s[at:]
}

func opening(r rune) bool { return r == '{' || r == '[' }

func closing(c byte) bool { return c == '}' || c == ']' }

// blank is what any consumer's trim takes away.
func blank(r rune) bool {
	return unicode.IsSpace(r) || r == '\ufeff' || r >= 0x1c && r <= 0x1f
}
