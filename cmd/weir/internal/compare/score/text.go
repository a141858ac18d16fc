package score

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/cmd/weir/internal/compare/client"
)

func quote(text string) string {
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(text)
}

// plain is a text as a person reads it: without Markdown's emphasis and
// characters that are not seen, typographic signs as their plain ones, white
// space as one space, in lower case.
func plain(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = true
			continue
		case strings.ContainsRune("*`\u00ad\ufeff", r) || unicode.Is(unicode.Cf, r):
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteString(strings.ToLower(string(straight(r))))
	}
	return b.String()
}

// straight makes quotation marks and dashes the ones of a keyboard, and
// full-width letters ordinary ones.
func straight(r rune) rune {
	switch {
	case r == '‘' || r == '’' || r == 'ʼ':
		return '\''
	case r == '“' || r == '”' || r == '„':
		return '"'
	case r == '‐' || r == '‑' || r == '–' || r == '−':
		return '-'
	case r >= 0xFF01 && r <= 0xFF5E:
		return r - 0xFF01 + '!'
	}
	return r
}

// firstString is the first of the texts that stands in the answer, however it
// is set.
func firstString(answer string, forbidden []string) string {
	read := plain(answer)
	for _, f := range forbidden {
		if strings.Contains(read, plain(f)) {
			return f
		}
	}
	return ""
}

// firstAssertion is the first of the assertions that the answer makes. It has
// to stand there as words of its own: "thoroughly" does not say "roughly".
func firstAssertion(answer string, forbidden []string) string {
	read := plain(answer)
	for _, f := range forbidden {
		if containsWords(read, plain(f)) {
			return f
		}
	}
	return ""
}

func containsWords(text, words string) bool {
	for from := 0; words != ""; {
		i := strings.Index(text[from:], words)
		if i < 0 {
			return false
		}
		start := from + i
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[start+len(words):])
		first, _ := utf8.DecodeRuneInString(words)
		last, _ := utf8.DecodeLastRuneInString(words)
		if !(isWord(before) && isWord(first)) && !(isWord(after) && isWord(last)) {
			return true
		}
		from = start + 1
	}
	return false
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// missingTerms is the first group of which no term stands in the answer.
func missingTerms(answer string, groups [][]string) string {
	for _, group := range groups {
		if firstString(answer, group) == "" {
			return strings.Join(group, " | ")
		}
	}
	return ""
}

// numeral matches what a person reads as one number: digits with signs that
// group them or begin the fraction between digits.
var numeral = regexp.MustCompile(`\d+(?:[.,'\x{2019}\x{a0}\x{202f}]\d+)*`)

// minDigits is from how many digits on a number has to come from somewhere.
const minDigits = 3

// ungrounded is the first number of the answer, of at least three digits, that
// stands in no tool result: neither by its value, however it is grouped, nor
// as a part of a row of digits, as a year is part of a date.
func ungrounded(answer string, results []client.ToolResult) string {
	var dump strings.Builder
	for _, r := range results {
		data, err := json.Marshal(r.Output)
		if err != nil {
			continue // what was decoded from JSON always marshals
		}
		dump.Write(data)
		dump.WriteByte('\n')
	}
	known := digits(dump.String())
	values := map[string]bool{}
	for _, n := range numeral.FindAllString(known, -1) {
		for _, r := range readings(n) {
			values[r.RatString()] = true
		}
	}
	isKnown := func(r *big.Rat) bool { return values[r.RatString()] }
	for _, n := range numeral.FindAllString(digits(answer), -1) {
		if countDigits(n) >= minDigits && !strings.Contains(known, n) && !slices.ContainsFunc(readings(n), isKnown) {
			return n
		}
	}
	return ""
}

// digits writes every decimal digit of any script as the ASCII one.
func digits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.Is(unicode.Nd, r) {
			return r
		}
		zero := r
		for unicode.Is(unicode.Nd, zero-1) && r-zero < 9 {
			zero--
		}
		return '0' + (r - zero)
	}, text)
}

func countDigits(text string) int {
	n := 0
	for _, r := range text {
		if r >= '0' && r <= '9' {
			n++
		}
	}
	return n
}

// readings are the values that a numeral can have: 1.234 is a little more than
// one in some countries and over a thousand in others.
func readings(n string) []*big.Rat {
	n = strings.NewReplacer("'", "", "’", "", "\u00a0", "", "\u202f", "").Replace(n)
	var values []*big.Rat
	add := func(text string) {
		if r := rat(text); r != nil {
			values = append(values, r)
		}
	}
	add(strings.ReplaceAll(n, ",", ""))
	if strings.Contains(n, ",") || strings.Count(n, ".") == 1 && groupsOfThree(n, ".") || strings.Count(n, ".") > 1 {
		add(strings.ReplaceAll(strings.ReplaceAll(n, ".", ""), ",", "."))
	}
	return values
}

func groupsOfThree(n, sign string) bool {
	parts := strings.Split(n, sign)
	for _, p := range parts[1:] {
		if len(p) != 3 {
			return false
		}
	}
	return len(parts[0]) <= 3
}
