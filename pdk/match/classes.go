package match

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// IsWord reports whether r is a word character by Unicode's definition (UTS 18,
// annex C): what \w matches and what \b looks at.
func IsWord(r rune) bool {
	if r < 0x80 {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control)
}

func wordTables() []*unicode.RangeTable {
	return []*unicode.RangeTable{unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control}
}

// widen writes the Perl classes of an expression out as Unicode's. It works on
// the text, because after parsing \s can no longer be told from its members.
func widen(expr string) (string, error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(expr); {
		rest := expr[i:]
		switch {
		case strings.HasPrefix(rest, `\Q`) && !inClass:
			n := quoted(rest)
			b.WriteString(rest[:n])
			i += n
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(perl(rest[1], inClass))
			i += 2
		case inClass && strings.HasPrefix(rest, "[:"):
			n := named(rest)
			b.WriteString(rest[:n])
			i += n
		case inClass && rest[0] == ']':
			inClass = false
			b.WriteByte(']')
			i++
		case !inClass && rest[0] == '[':
			inClass = true
			n := opening(rest)
			b.WriteString(rest[:n])
			i += n
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	if inClass {
		return "", errors.New("missing closing ]")
	}
	return b.String(), nil
}

// quoted returns the length of \Q…\E at the beginning of s.
func quoted(s string) int {
	if end := strings.Index(s, `\E`); end >= 0 {
		return end + 2
	}
	return len(s)
}

// named returns the length of [:name:] at the beginning of s, or of its first
// byte when it is no such thing.
func named(s string) int {
	if end := strings.Index(s[2:], ":]"); end >= 0 {
		return end + 4
	}
	return 1
}

// opening returns the length of [, [^, [] or [^] at the beginning of s: a
// bracket in first place closes nothing.
func opening(s string) int {
	n := 1
	if strings.HasPrefix(s[n:], "^") {
		n++
	}
	if strings.HasPrefix(s[n:], "]") {
		n++
	}
	return n
}

// perl returns what an escape stands for, with its brackets outside of a class
// and without them inside.
func perl(c byte, inClass bool) string {
	var body string
	switch c {
	case 's':
		body = ranges(members(unicode.White_Space), false)
	case 'S':
		body = ranges(members(unicode.White_Space), true)
	case 'd':
		body = `\p{Nd}`
	case 'D':
		body = `\P{Nd}`
	case 'w':
		body = ranges(members(wordTables()...), false)
	case 'W':
		body = ranges(members(wordTables()...), true)
	default:
		return `\` + string(c)
	}
	if inClass {
		return body
	}
	return "[" + body + "]"
}

// span is an inclusive range of characters.
type span struct{ lo, hi rune }

// members returns the union of tables as ascending spans that do not touch.
func members(tables ...*unicode.RangeTable) []span {
	var all []span
	for _, t := range tables {
		for _, r := range t.R16 {
			all = appendRange(all, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			all = appendRange(all, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return merge(all)
}

// merge sorts spans and joins those that touch. It uses their array.
func merge(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return int(a.lo - b.lo) })
	merged := all[:0]
	for _, s := range all {
		if n := len(merged); n > 0 && s.lo <= merged[n-1].hi+1 {
			merged[n-1].hi = max(merged[n-1].hi, s.hi)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

func appendRange(spans []span, lo, hi, stride rune) []span {
	if stride == 1 {
		return append(spans, span{lo, hi})
	}
	for r := lo; r <= hi; r += stride {
		spans = append(spans, span{r, r})
	}
	return spans
}

// ranges writes spans, or everything but them, as the body of a class.
func ranges(spans []span, negate bool) string {
	if negate {
		spans = complement(spans)
	}
	var b []byte
	for _, s := range spans {
		b = append(b, `\x{`...)
		b = strconv.AppendInt(b, int64(s.lo), 16)
		b = append(b, `}-\x{`...)
		b = strconv.AppendInt(b, int64(s.hi), 16)
		b = append(b, '}')
	}
	return string(b)
}

func complement(spans []span) []span {
	var out []span
	next := rune(0)
	for _, s := range spans {
		if s.lo > next {
			out = append(out, span{next, s.lo - 1})
		}
		next = s.hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, span{next, unicode.MaxRune})
	}
	return out
}
