package main

import (
	"net/netip"
	"strings"
	"unicode"
)

// digits returns the decimal digits of s, of any script, as values.
func digits(s string) []int {
	list := make([]int, 0, len(s))
	for _, r := range s {
		if v, ok := digit(r); ok {
			list = append(list, v)
		}
	}
	return list
}

// digit returns the value of a decimal digit. Unicode has them in runs of ten
// that begin with the zero, and tables join runs that touch.
func digit(r rune) (int, bool) {
	if r < 0x80 {
		return int(r - '0'), '0' <= r && r <= '9'
	}
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10, true
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10, true
		}
	}
	return 0, false
}

func validPhone(s string) bool {
	n := len(digits(s))
	return n >= 10 && n <= 15
}

// validCard is Luhn's checksum over 13 to 19 digits.
func validCard(s string) bool {
	d := digits(s)
	if len(d) < 13 || len(d) > 19 {
		return false
	}
	sum := 0
	for i := range d {
		v := d[len(d)-1-i]
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// validIBAN is ISO 13616: the first four characters go to the end, letters
// count from A = 10, and what remains of the number divided by 97 is 1.
func validIBAN(s string) bool {
	var chars []rune
	for _, r := range s {
		if !unicode.Is(unicode.Zs, r) {
			chars = append(chars, r)
		}
	}
	if len(chars) < 15 || len(chars) > 34 {
		return false
	}
	rest := 0
	for _, r := range append(chars[4:], chars[:4]...) {
		if 'A' <= r && r <= 'Z' {
			rest = (rest*100 + int(r-'A') + 10) % 97
		} else {
			v, _ := digit(r)
			rest = (rest*10 + v) % 97
		}
	}
	return rest == 1
}

func validIPv4(s string) bool {
	for group := range strings.SplitSeq(s, ".") {
		n := 0
		for _, c := range []byte(group) {
			n = n*10 + int(c-'0')
		}
		if n > 255 {
			return false
		}
	}
	return true
}

// validIPv6 also wants a decimal digit. Every address in use has one, and what
// has none is much more often code: a::b, Cafe::Babe, or :: alone.
func validIPv6(s string) bool {
	if !strings.ContainsAny(s, "0123456789") {
		return false
	}
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is6()
}

func validSSN(s string) bool {
	d := digits(s)
	area := d[0]*100 + d[1]*10 + d[2]
	group := d[3]*10 + d[4]
	serial := d[5]*1000 + d[6]*100 + d[7]*10 + d[8]
	return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
}
