package ledger

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"weir/abi/strictjson"
	"weir/host/dna"
)

// maxString bounds one string of a ledger, in bytes.
const maxString = 256 << 10

// credential is what AgentV redacts: JWTs, and the forms of well-known keys.
var credential = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]*|\bsk-[\w-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|(?i:\bbearer\s+)[\w.~+/=-]{8,}`)

// Scrub appends a JSON value with [dna.Redacted] for what looks like a credential
// in its strings, and with strings of a bounded length. Names of members stay. On
// an error b is undefined.
func Scrub(b, value []byte) ([]byte, error) {
	d := strictjson.NewDecoder(value)
	b, err := scrub(b, d)
	if err != nil {
		return b, err
	}
	return b, d.End()
}

func scrub(b []byte, d *strictjson.Decoder) ([]byte, error) {
	first := true
	separate := func() {
		if !first {
			b = append(b, ',')
		}
		first = false
	}
	switch d.Kind() {
	case strictjson.Object:
		b = append(b, '{')
		err := d.Object(func(name string) (err error) {
			separate()
			b, err = scrub(append(strictjson.AppendString(b, name), ':'), d)
			return err
		})
		return append(b, '}'), err
	case strictjson.Array:
		b = append(b, '[')
		err := d.Array(func() (err error) {
			separate()
			b, err = scrub(b, d)
			return err
		})
		return append(b, ']'), err
	case strictjson.String:
		s, err := d.String()
		return strictjson.AppendString(b, clean(s)), err
	}
	raw, err := d.Raw()
	return append(b, raw...), err
}

func clean(s string) string {
	s = credential.ReplaceAllString(s, dna.Redacted)
	if len(s) <= maxString {
		return s
	}
	end := maxString
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + fmt.Sprintf("[%d more bytes]", len(s)-end)
}
