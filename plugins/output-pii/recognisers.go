package main

import "strings"

// recogniser is one row of clause 6.9. Every repetition has a bound, so from
// the text alone it is known how far a match can reach.
type recogniser struct {
	id     string // of its pattern
	entity string
	expr   string
	valid  func(string) bool // nil: every match is one
	parts  parts             // of a match that valid refuses
	mask   string            // what takes its place; set with the configuration
}

// recognisers returns all of them, in the order of the table.
func recognisers() []recogniser {
	return []recogniser{
		{"EMAIL_ADDRESS", "EMAIL_ADDRESS", exprEmail, nil, wholeOnly, ""},
		{"PHONE_NUMBER", "PHONE_NUMBER", exprPhone, validPhone, wholeOnly, ""},
		{"CREDIT_CARD", "CREDIT_CARD", exprCard, validCard, anywhere, ""},
		{"IBAN_CODE", "IBAN_CODE", exprIBAN, validIBAN, fromStart, ""},
		{"IP_ADDRESS:4", "IP_ADDRESS", exprIPv4, validIPv4, wholeOnly, ""},
		{"IP_ADDRESS:6", "IP_ADDRESS", exprIPv6, validIPv6, wholeOnly, ""},
		{"CRYPTO", "CRYPTO", exprCrypto, validCrypto, wholeOnly, ""},
		{"US_SSN", "US_SSN", exprSSN, validSSN, wholeOnly, ""},
	}
}

func entityNames() string {
	var names []string
	for _, r := range recognisers() {
		if n := len(names); n == 0 || names[n-1] != r.entity {
			names = append(names, r.entity)
		}
	}
	return strings.Join(names, ", ")
}

const (
	// A local part has at most 64 characters, a label 63, and nobody has more
	// than eight of those before the top-level domain.
	exprEmail = `(?i)\b[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,24}\b`

	exprPhone = `(?:\+\d{1,3}[\s.-]?)?\(?\b\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}\b` +
		`|\+\d{1,3}(?:[\s.-]?\(?\d{1,4}\)?){2,5}\d\b`

	exprCard = `\b(?:\d[\p{Zs}-]?){12,18}\d\b`

	exprIBAN = `\b[A-Z]{2}\d{2}(?:\p{Zs}?[A-Z0-9]){11,30}\b`

	exprIPv4 = `\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b`

	// The candidate of 6.9 with a border on both sides: a colon at the edge
	// must not touch a word. Without it the d:: of std::vector is an address.
	// It ends in a group, in four decimal ones, or in two colons, and has two
	// colons at least, or every time of day would be a candidate.
	exprIPv6 = `(?i)(?:\b[0-9a-f]{1,4}|\B):(?:` +
		`(?:[0-9a-f]{0,4}:){1,6}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b|[0-9a-f]{1,4}\b)` +
		`|(?:[0-9a-f]{0,4}:){0,6}:\B)`

	exprCrypto = `\b(?:bc1[ac-hj-np-z02-9]{11,71}|[13][1-9A-HJ-NP-Za-km-z]{25,34})\b`

	exprSSN = `\b\d{3}[- .]\d{2}[- .]\d{4}\b`
)
