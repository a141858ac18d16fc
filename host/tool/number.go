package tool

import (
	"cmp"
	"strings"
)

// decimal is the exact value of a JSON number: ±0.digits × 10^point, where
// digits begins and ends with a digit other than 0. Zero has no digits.
//
// No conversion to a machine number: neighbours of 2^53 stay different, and
// 1e999999999 costs nothing.
type decimal struct {
	negative bool
	digits   string
	point    int64
}

// farPoint is beyond every point that the text of a number of this size can
// move back; exponents stop there.
const farPoint = 1 << 40

// parseDecimal reads a valid JSON number.
func parseDecimal(text string) decimal {
	var n decimal
	text, n.negative = strings.CutPrefix(text, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n.point = int64(len(whole)) + parseExponent(exponent)
	n.digits = whole + fraction
	kept := strings.TrimLeft(n.digits, "0")
	n.point -= int64(len(n.digits) - len(kept))
	if n.digits = strings.TrimRight(kept, "0"); n.digits == "" {
		return decimal{}
	}
	return n
}

func parseExponent(text string) int64 {
	text, negative := strings.CutPrefix(text, "-")
	n := int64(0)
	for _, c := range []byte(strings.TrimPrefix(text, "+")) {
		if n = n*10 + int64(c-'0'); n > farPoint {
			n = farPoint
		}
	}
	if negative {
		return -n
	}
	return n
}

func (a decimal) sign() int {
	switch {
	case a.digits == "":
		return 0
	case a.negative:
		return -1
	}
	return 1
}

// compare is negative when a < b, 0 when they are equal, else positive.
func (a decimal) compare(b decimal) int {
	if a.sign() != b.sign() || a.digits == "" {
		return cmp.Compare(a.sign(), b.sign())
	}
	// Digits without trailing zeros compare like fractions.
	return a.sign() * cmp.Or(cmp.Compare(a.point, b.point), strings.Compare(a.digits, b.digits))
}

// isInteger reports whether the text is written as an integer: 5.0 and 5e0 are
// not (5.5 of the contract).
func isInteger(text string) bool { return !strings.ContainsAny(text, ".eE") }
