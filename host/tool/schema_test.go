package tool

import (
	"strings"
	"testing"
)

// 5.4: the subset, and what a refusal says.
func TestSchemaSubset(t *testing.T) {
	for _, ok := range []string{
		`{"type":"object"}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","description":"d","type":"object","properties":{},"required":[],"additionalProperties":true}`,
		`{"type":"object","properties":{"status":{"type":["string","null"],"description":"d"},"limit":{"type":["integer","null"],"format":"int64"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","title":"t","enum":["x",1,null],"minLength":0,"maxLength":9,"default":{"b":[1]},"nullable":true}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"type":"number","minimum":-1.5,"maximum":1e3,"format":"double"}}}`,
	} {
		if _, err := compile([]byte(ok)); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	property := func(body string) string { return `{"type":"object","properties":{"a":` + body + `}}` }
	for schema, want := range map[string]string{
		``:                                  "the server gives none",
		`[]`:                                "expected a JSON object",
		`true`:                              "expected a JSON object",
		`{}`:                                `keyword "type" is missing`,
		`{"type":["object"]}`:               `keyword "type": expected exactly "object"`,
		`{"type":"array"}`:                  `keyword "type": expected exactly "object"`,
		`{"type":"object","oneOf":[]}`:      `keyword "oneOf" is not supported`,
		`{"type":"object","$defs":{}}`:      `keyword "$defs" is not supported`,
		`{"type":"object","type":"object"}`: `repeated field "type"`,
		`{"type":"object","additionalProperties":{}}`:                      `keyword "additionalProperties": expected true or false`,
		`{"type":"object","properties":[]}`:                                `keyword "properties": expected an object`,
		`{"type":"object","required":{}}`:                                  `keyword "required": expected an array`,
		`{"type":"object","required":["a"]}`:                               `keyword "required" names "a", which is not a property`,
		`{"type":"object","title":1}`:                                      `keyword "title": expected a string`,
		property(`true`):                                                   `property "a": expected an object`,
		property(`{}`):                                                     `property "a": keyword "type" is missing`,
		property(`{"type":"array"}`):                                       `property "a": keyword "type": "array" is not supported`,
		property(`{"type":["string","object"]}`):                           `property "a": keyword "type": "object" is not supported`,
		property(`{"type":[]}`):                                            `property "a": keyword "type": expected at least one type`,
		property(`{"type":1}`):                                             `property "a": keyword "type": expected a string`,
		property(`{"type":"string","pattern":"x"}`):                        `property "a": keyword "pattern" is not supported`,
		property(`{"type":"string","format":"date"}`):                      `property "a": keyword "format": "date" is not supported`,
		property(`{"type":"string","enum":"x"}`):                           `property "a": keyword "enum": expected an array`,
		property(`{"type":"string","minLength":-1}`):                       `property "a": keyword "minLength": expected a whole number`,
		property(`{"type":"string","maxLength":1.5}`):                      `property "a": keyword "maxLength": expected a whole number`,
		property(`{"type":"string","minLength":5000}`):                     `property "a": keyword "minLength": expected at most 4096`,
		property(`{"type":"number","minimum":"1"}`):                        `property "a": keyword "minimum": expected a number`,
		property(`{"type":"string","nullable":1}`):                         `property "a": keyword "nullable": expected true or false`,
		property(`{"type":"string","a":1}`):                                `property "a": keyword "a" is not supported`,
		`{"type":"object","pad":"` + strings.Repeat("x", maxSchema) + `"}`: "larger than 65536 bytes",
	} {
		if _, err := compile([]byte(schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q", schema, err, want)
		}
	}
	for _, name := range append(reserved(), "User", "APPROVAL_TOKEN", "Role") {
		_, err := compile([]byte(strings.Replace(property(`{"type":"string"}`), `"a"`, `"`+name+`"`, 1)))
		if want := `property "` + name + `": the name is reserved`; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

const ticketSchema = `{"type":"object","properties":{
 "ticket_id":{"type":"string","minLength":1,"maxLength":8},
 "status":{"type":["string","null"]},
 "limit":{"type":["integer","null"],"format":"int64"},
 "level":{"type":"string","enum":["low","high"]},
 "day":{"type":"integer","minimum":1,"maximum":31},
 "share":{"type":"number","minimum":-0.1,"maximum":0.3},
 "big":{"type":"integer","maximum":9007199254740992},
 "i32":{"type":"integer","format":"int32"},"u32":{"type":"integer","format":"uint32"},
 "u64":{"type":"integer","format":"uint64"},"u8":{"type":"integer","format":"uint8","minimum":-5},
 "flag":{"type":"boolean"},
 "maybe":{"type":"string","nullable":true,"enum":["x"]},
 "code":{"type":"integer","enum":[1,20]}
},"required":["ticket_id"]}`

// 5.5: order, texts byte for byte, no coercion.
func TestValidation(t *testing.T) {
	s, err := compile([]byte(ticketSchema))
	if err != nil {
		t.Fatal(err)
	}
	with := func(member string) string { return `{"ticket_id":"T",` + member + `}` }
	for arguments, want := range map[string]string{
		`{"ticket_id":"T"}`:         "",
		`[]`:                        "arguments must be a JSON object",
		`"x"`:                       "arguments must be a JSON object",
		`null`:                      "arguments must be a JSON object",
		`{"x":1}`:                   `unknown argument "x"`, // before what is missing
		`{"Ticket_id":"T"}`:         `unknown argument "Ticket_id"`,
		`{"ticket_id\u0000":"T"}`:   "unknown argument \"ticket_id\uFFFD\"",
		`{}`:                        `missing required argument "ticket_id"`,
		`{"limit":"5"}`:             `missing required argument "ticket_id"`, // before types
		`{"ticket_id":null}`:        `missing required argument "ticket_id"`,
		`{"ticket_id":5}`:           `argument "ticket_id" must be string`,
		`{"ticket_id":""}`:          `argument "ticket_id" has the wrong length (allowed 1..=8 characters)`,
		`{"ticket_id":"ééééééééé"}`: `argument "ticket_id" has the wrong length (allowed 1..=8 characters)`,
		`{"ticket_id":"éééééééé"}`:  "",
		with(`"status":null`):       "",
		with(`"status":1`):          `argument "status" must be string or null`,
		with(`"status":"` + strings.Repeat("é", 4096) + `"`): "",
		with(`"status":"` + strings.Repeat("x", 4097) + `"`): `argument "status" has the wrong length (allowed 0..=4096 characters)`,
		with(`"limit":50`):                   "",
		with(`"limit":-0`):                   "",
		with(`"limit":5.0`):                  `argument "limit" must be integer or null`,
		with(`"limit":5e0`):                  `argument "limit" must be integer or null`,
		with(`"limit":1E3`):                  `argument "limit" must be integer or null`,
		with(`"limit":"5"`):                  `argument "limit" must be integer or null`,
		with(`"limit":[]`):                   `argument "limit" must be integer or null`,
		with(`"level":"high"`):               "",
		with(`"level":"mid"`):                `argument "level" must be one of the allowed values`,
		with(`"level":null`):                 `argument "level" must be string`,
		with(`"day":31`):                     "",
		with(`"day":32`):                     `argument "day" is out of range`,
		with(`"day":0`):                      `argument "day" is out of range`,
		with(`"share":0.3`):                  "",
		with(`"share":3e-1`):                 "",
		with(`"share":0.30000000000000001`):  `argument "share" is out of range`,
		with(`"share":-1e-999999999999999`):  "",
		with(`"share":1e999999999999999999`): `argument "share" is out of range`,
		with(`"big":9007199254740992`):       "",
		with(`"big":9007199254740993`):       `argument "big" is out of range`,
		with(`"i32":-2147483648`):            "",
		with(`"i32":2147483648`):             `argument "i32" is out of range`,
		with(`"u32":4294967295`):             "",
		with(`"u32":4294967296`):             `argument "u32" is out of range`,
		with(`"u64":-1`):                     `argument "u64" is out of range`,
		with(`"u64":99999999999999999999`):   "",
		with(`"u8":-1`):                      `argument "u8" is out of range`,
		with(`"flag":true`):                  "",
		with(`"flag":"true"`):                `argument "flag" must be boolean`,
		with(`"maybe":null`):                 "",
		with(`"maybe":"y"`):                  `argument "maybe" must be one of the allowed values`,
		with(`"code":20`):                    "",
		with(`"code":2`):                     `argument "code" must be one of the allowed values`,
	} {
		got := ""
		if err := s.check([]byte(arguments)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60s: got %q, want %q", arguments, got, want)
		}
	}
}

// 5.5: the text of arguments. Values never show up in an error.
func TestParse(t *testing.T) {
	s, err := compile([]byte(ticketSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := &Set{byName: map[string]*entry{"get_ticket": {Tool: Tool{Name: "get_ticket"}, schema: s}}}
	for arguments, want := range map[string]string{
		``: `{}`, " \n": `{}`, `{"b":9007199254740993,"a":1.10}`: `{"b":9007199254740993,"a":1.10}`,
		" {\"a\" : 1}\n": `{"a" : 1}`, `[1]`: `[1]`,
		strings.Repeat(" ", MaxArguments-2) + `{}`: `{}`,
	} {
		tool, raw, err := c.Parse("get_ticket", arguments)
		if err != nil || string(raw) != want || tool.Name != "get_ticket" {
			t.Errorf("%.40q: %s, %v; want %s", arguments, raw, err, want)
		}
	}
	for arguments, want := range map[string]string{
		`{"hunter2`:        "tool arguments are not valid JSON: offset ",
		`{"a":1,"a":2}`:    `tool arguments are not valid JSON: offset 7: repeated field "a"`,
		`{"a":1}{}`:        "tool arguments are not valid JSON: offset 7",
		`{"a":"\ud800"}`:   "tool arguments are not valid JSON: offset ",
		"{\"a\":\"\xff\"}": "tool arguments are not valid JSON: offset ",
		`{"a":hunter2}`:    "tool arguments are not valid JSON: offset ",
		`{'a':1}`:          "tool arguments are not valid JSON: offset ",
		strings.Repeat(" ", MaxArguments-1) + `{}`: "tool arguments are too large",
		strings.Repeat("[", 5000):                  "tool arguments are not valid JSON: offset ",
	} {
		_, _, err := c.Parse("get_ticket", arguments)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.40q: got %v, want %q", arguments, err, want)
		}
	}
	if err := c.Validate("nobody", nil); err == nil || err.Error() != `tool "nobody" is not available` {
		t.Errorf("Validate of an unknown tool: %v", err)
	}
	if err := c.Validate("get_ticket", nil); err == nil || err.Error() != `missing required argument "ticket_id"` {
		t.Errorf("Validate of absent arguments: %v", err)
	}
}
