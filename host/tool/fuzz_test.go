package tool

import (
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/abi/strictjson"
)

// FuzzValidate compares our validator with a generic one: for every schema that
// compiles, the same arguments pass. Differences by design, left out here:
//   - numbers written 5.0 or 5e0 are integers for JSON Schema, not for 5.5;
//   - the object is closed whatever additionalProperties says;
//   - strings without maxLength have at most 4096 characters;
//   - formats imply ranges, nullable admits null.
func FuzzValidate(f *testing.F) {
	f.Add(ticketSchema, `{"ticket_id":"T","limit":5,"share":0.30000000000000001,"big":9007199254740993}`)
	f.Add(`{"type":"object","properties":{"a":{"type":["number","null"],"enum":[1,null,"x"]}},"required":["a"]}`, `{"a":1.0}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"string","minLength":2}}}`, `{"a":"é"}`)
	f.Add(`{"type":"object"}`, `{"b":null}`)
	fractional := regexp.MustCompile(`[0-9][.eE]`)
	f.Fuzz(func(t *testing.T, schemaText, arguments string) {
		s, err := compile([]byte(schemaText))
		if err != nil || strictjson.Valid([]byte(arguments)) != nil {
			return
		}
		if strings.Contains(schemaText, "nullable") || strings.Contains(schemaText, "format") ||
			strings.Contains(schemaText, "$schema") || fractional.MatchString(arguments) ||
			len(arguments) > 4096 || fractional.MatchString(schemaText) && regexp.MustCompile(`[eE][+-]?[0-9]{3}`).MatchString(schemaText) {
			return
		}
		generic, ok := compileGeneric(schemaText)
		if !ok {
			return // the reference refuses what it cannot represent
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
		if err != nil {
			return
		}
		if m, ok := value.(map[string]any); ok {
			for name := range m {
				if s.properties[name] == nil {
					return // closed
				}
			}
		}
		ours, theirs := s.check([]byte(arguments)), generic.Validate(value)
		if (ours == nil) != (theirs == nil) {
			t.Errorf("schema %s\narguments %s\nours: %v\ntheirs: %v", schemaText, arguments, ours, theirs)
		}
	})
}

func compileGeneric(text string) (*jsonschema.Schema, bool) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, false
	}
	c := jsonschema.NewCompiler()
	if c.AddResource("mem:///schema.json", doc) != nil {
		return nil, false
	}
	generic, err := c.Compile("mem:///schema.json")
	return generic, err == nil
}

// FuzzDecimal holds our comparison against math/big.
func FuzzDecimal(f *testing.F) {
	f.Add("0.1", "1e-1")
	f.Add("-9007199254740993", "-9007199254740992")
	f.Add("100", "1.00e2")
	f.Add("-0", "0.000")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 40 || len(b) > 40 || !isNumber(a) || !isNumber(b) || hugeExponent(a) || hugeExponent(b) {
			return
		}
		x, ok1 := new(big.Rat).SetString(a)
		y, ok2 := new(big.Rat).SetString(b)
		if !ok1 || !ok2 {
			return
		}
		if got, want := parseDecimal(a).compare(parseDecimal(b)), x.Cmp(y); got != want {
			t.Errorf("compare(%s, %s) = %d, want %d", a, b, got, want)
		}
	})
}

func isNumber(s string) bool {
	d := strictjson.NewDecoder([]byte(s))
	return d.Kind() == strictjson.Number && strictjson.Valid([]byte(s)) == nil && strings.TrimSpace(s) == s
}

func hugeExponent(s string) bool { return regexp.MustCompile(`[eE][+-]?[0-9]{4}`).MatchString(s) }

// FuzzRender: no result of a server, however odd, gets past the cap or leaves
// invalid text.
func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"é"},{"type":"image"}],"isError":true}`))
	f.Add([]byte(`{"structuredContent":{"a":1.10},"resultType":"input_required"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := &Client{opts: Options{URL: "http://127.0.0.1:1/mcp", Key: "secret-key", MaxResult: 32}}
		text, failed := c.render(raw)
		if !utf8.ValidString(text) {
			t.Errorf("invalid text %q", text)
		}
		if !failed && len(text) > 32+len("\n[result cut at 32 bytes]") || failed && utf8.RuneCountInString(text) > maxMessage+len(ErrorPrefix)+1 {
			t.Errorf("%d bytes pass, failed %v", len(text), failed)
		}
		if failed && strings.Contains(text, "secret-key") {
			t.Errorf("the key passes: %q", text)
		}
	})
}
