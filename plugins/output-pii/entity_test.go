package main

import (
	"strings"
	"testing"

	"weir/abi"
)

// mask is what a display of text shows.
func (g *guard) mask(t testing.TB, text string) string {
	t.Helper()
	r := g.display([]string{text})
	if err := r.Validate(&abi.CheckOutputRequest{Use: abi.UseDisplay, Texts: []string{text}}); err != nil {
		t.Fatal(err)
	}
	for i := len(r.Edits) - 1; i >= 0; i-- {
		e := r.Edits[i]
		text = text[:e.Start] + e.Replace + text[e.End:]
	}
	return text
}

// masked are texts that are one entity as a whole; the first of each are 6.9's.
var masked = []struct{ text, want string }{
	{"renee.castillo@example.com", "<EMAIL_ADDRESS>"},
	{"a@b.co", "<EMAIL_ADDRESS>"},
	{"A.B+c_d%e-f@X-1.Example.ORG", "<EMAIL_ADDRESS>"},
	{"x@a.b.c.d.e.f.g.h.museum", "<EMAIL_ADDRESS>"},
	{"a" + strings.Repeat("b", 63) + "@" + strings.Repeat("c", 63) + ".example.com", "<EMAIL_ADDRESS>"},

	{"(415) 555-0132", "<PHONE_NUMBER>"},
	{"+44 20 7946 0958", "<PHONE_NUMBER>"},
	{"+41 44 668 18 00", "<PHONE_NUMBER>"},
	{"415.555.0132", "<PHONE_NUMBER>"},
	{"+1 (415) 555-0132", "<PHONE_NUMBER>"},
	{"+14155550132", "<PHONE_NUMBER>"},
	{"415\u00a0555\u00a00132", "<PHONE_NUMBER>"},
	{"٤١٥ ٥٥٥ ٠١٣٢", "<PHONE_NUMBER>"},

	{"4111 1111 1111 1111", "<CREDIT_CARD>"},
	{"4111111111111111", "<CREDIT_CARD>"},
	{"4111-1111-1111-1111", "<CREDIT_CARD>"},
	{"4111\u00a01111\u00a01111\u00a01111", "<CREDIT_CARD>"},
	{"378282246310005", "<CREDIT_CARD>"},
	{"4222222222222", "<CREDIT_CARD>"},
	{"４１１１１１１１１１１１１１１１", "<CREDIT_CARD>"},

	{"GB82 WEST 1234 5698 7654 32", "<IBAN_CODE>"},
	{"DE89370400440532013000", "<IBAN_CODE>"},
	{"NO9386011117947", "<IBAN_CODE>"},
	{"MT84MALT011000012345MTLCAST001S", "<IBAN_CODE>"},

	{"192.168.10.24", "<IP_ADDRESS>"},
	{"255.255.255.255", "<IP_ADDRESS>"},
	{"2001:db8::8a2e:370:7334", "<IP_ADDRESS>"},
	{"2001:0DB8:0000:0000:0000:8A2E:0370:7334", "<IP_ADDRESS>"},
	{"::1", "<IP_ADDRESS>"},
	{"fe80::", "<IP_ADDRESS>"},
	{"2001:db8:1:2:3:4:5:6", "<IP_ADDRESS>"},
	{"fe80::1ff:fe23:4567:890a", "<IP_ADDRESS>"},
	{"::ffff:192.168.10.24", "<IP_ADDRESS>"},

	{"1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "<CRYPTO>"},
	{"3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", "<CRYPTO>"},
	{"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "<CRYPTO>"},
	{"bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0", "<CRYPTO>"},

	{"078-05-1120", "<US_SSN>"},
	{"078 05 1120", "<US_SSN>"},
	{"899.99.9999", "<US_SSN>"},
}

// plain are texts that nothing is masked in; the first of each are 6.9's.
var plain = []string{
	"TKT-1001 ORD-5510 EVT-1402 TKT-GR-PII", "2026-09-15T09:20:00Z", "14:05:00", "$4,250.75", "$54.20", "Renee Castillo", "2026-09-15",
	"4111 1111 1111 1112", "GB82 WEST 1234 5698 7654 33", "DE89370400440532013033", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3", "000-12-3456", "999.1.1.1",
	"@example.com", "a@b", "a@b.c", "a@-b.com", "a b@ c.com", "user@localhost",
	"555-0132", "+12 34 56", "+1 (415) 555 01",
	"411111111111111", "12345678901234567890",
	"gb82 west 1234 5698 7654 32", "GB82 WEST",
	"1.2.3", "256.1.1.1", "1.2.3.4567",
	"std::vector", "a::b", "std::vector<a::b>", "Cafe::Babe::new()", "::", "use ::std::mem", "x::1", "a::b::c", "at 14:05:00.", "10:20", "aa:bb:cc:dd:ee:ff",
	"1:2:3:4:5:6:7", "éfe80::1", "::1é", "2001:db8:::1", "std::1st", "::12345",
	"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdp", "bc1short", "0BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "1111111111111111111114oLvT3",
	"666-12-3456", "900-12-3456", "078-00-1120", "078-05-0000", "1078-05-1120", "078-05-11201", "é078-05-1120", "078-051120",
}

// Clause 6.9: what is masked, alone and in a sentence.
func TestMasked(t *testing.T) {
	g := load(t, shipped(t))
	for _, tt := range masked {
		if got := g.mask(t, tt.text); got != tt.want {
			t.Errorf("%q becomes %q, want %q", tt.text, got, tt.want)
		}
		text, want := "Zoë wrote: "+tt.text+", and left.", "Zoë wrote: "+tt.want+", and left."
		if got := g.mask(t, text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// Clause 6.9: what is not.
func TestNotMasked(t *testing.T) {
	g := load(t, shipped(t))
	for _, text := range plain {
		for _, text := range []string{text, "see " + text + ", please"} {
			if got := g.mask(t, text); got != text {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	}
}

// Clauses 5.7 and 6.9: the fixture.
func TestFixture(t *testing.T) {
	g := load(t, shipped(t))
	const text = "Synthetic test contact: alice.guardrail@example.com, phone +41 44 668 18 00, IBAN DE89370400440532013000."
	const want = "Synthetic test contact: <EMAIL_ADDRESS>, phone <PHONE_NUMBER>, IBAN <IBAN_CODE>."
	if got := g.mask(t, text); got != want {
		t.Errorf("got %q", got)
	}
}

// Clause 6.9: the entity that begins first wins, then the longest.
func TestOverlaps(t *testing.T) {
	all := []found{
		{start: 5, end: 9, entity: "B"}, {start: 0, end: 6, entity: "A"}, {start: 0, end: 3, entity: "C"},
		{start: 6, end: 8, entity: "D"}, {start: 7, end: 20}, {start: 8, end: 9, entity: "E"},
	}
	var got []string
	for _, f := range new(guard).keep(all) {
		got = append(got, f.entity)
	}
	if strings.Join(got, "") != "ADE" {
		t.Errorf("kept %q", got)
	}
	g := load(t, shipped(t))
	if got := g.mask(t, "078-05-1120@example.com"); got != "<EMAIL_ADDRESS>" {
		t.Errorf("an address that begins with a number: %q", got)
	}
}

// A refused match is passed over whole, but for the parts of it that stand
// between separators: a card number is one too beside an expiry date or behind
// a count, and an IBAN before a bank's name.
func TestPartsOfRefusedMatches(t *testing.T) {
	g := load(t, shipped(t))
	for text, want := range map[string]string{
		"4111111111111111 12/27":                     "<CREDIT_CARD> 12/27",
		"4111 1111 1111 1111 123":                    "<CREDIT_CARD> 123",
		"4111-1111-1111-1111-12":                     "<CREDIT_CARD>-12",
		"123 4111 1111 1111 1111":                    "123 <CREDIT_CARD>",
		"12 4111 1111 1111 1111 1":                   "12 <CREDIT_CARD> 1",
		"7 4111 1111 1111 1111, 4111 1111 1111 1111": "7 <CREDIT_CARD>, <CREDIT_CARD>",
		"DE89370400440532013000 BIC COBADEFFXXX":     "<IBAN_CODE> BIC COBADEFFXXX",
		"GB82 WEST 1234 5698 7654 32 OR CASH":        "<IBAN_CODE> OR CASH",
		"4111 1111 1111 1112 12/27":                  "4111 1111 1111 1112 12/27",
		"DE89370400440532013033 BIC COBADEFFXXX":     "DE89370400440532013033 BIC COBADEFFXXX",
		"order 20260915 092000 1234 56":              "order 20260915 092000 1234 56",
		"94111111111111111 12":                       "94111111111111111 12", // no part: the digits touch
	} {
		if got := g.mask(t, text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		cs := chars(text)
		if got := g.all(t, cs...); got != want {
			t.Errorf("%q one at a time: %q, want %q", text, got, want)
		}
		for i := range cs {
			if got := g.all(t, strings.Join(cs[:i], ""), strings.Join(cs[i:], "")); got != want {
				t.Errorf("%q split at %d: %q, want %q", text, i, got, want)
			}
		}
	}
}

// A colon after an address is no part of it.
func TestColonAfterAddress(t *testing.T) {
	g := load(t, shipped(t))
	for text, want := range map[string]string{
		"2001:db8::1: down":           "<IP_ADDRESS>: down",
		"fe80:: is local":             "<IP_ADDRESS> is local",
		"[2001:db8::1]:443":           "[<IP_ADDRESS>]:443",
		"2001:db8:1:2:3:4:5:6:443 up": "<IP_ADDRESS>:443 up",
	} {
		if got := g.mask(t, text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestOnlyWhatIsAskedFor(t *testing.T) {
	g := load(t, abi.Raw(`{"entities":["EMAIL_ADDRESS"]}`))
	if got := g.mask(t, "a@b.com 192.168.10.24"); got != "<EMAIL_ADDRESS> 192.168.10.24" {
		t.Errorf("got %q", got)
	}
}

func TestDigit(t *testing.T) {
	for r, want := range map[rune]int{'0': 0, '9': 9, '٣': 3, '９': 9, '𝟗': 9, '𝟘': 0, '𝟿': 9} {
		if got, ok := digit(r); !ok || got != want {
			t.Errorf("digit(%c) = %d, %v, want %d", r, got, ok, want)
		}
	}
	for _, r := range "a½²Ⅷ/:" {
		if got, ok := digit(r); ok {
			t.Errorf("digit(%c) = %d", r, got)
		}
	}
}
