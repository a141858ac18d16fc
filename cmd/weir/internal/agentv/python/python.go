// Package python writes JSON values as Python programs print them, because that
// is what agents under AgentV read.
package python

import (
	"strconv"
	"strings"
	"unicode"

	"weir/abi/strictjson"
	"weir/host/dna"
)

// Observation is the text of a tool's result for the agent (agentv.md 1.2): of
// an object its message, else its content, else its repr; of text the text; and
// repr of anything else.
func Observation(result []byte) (string, error) {
	d := strictjson.NewDecoder(result)
	switch d.Kind() {
	case strictjson.String:
		return d.String()
	case strictjson.Object:
		parts := make(map[string][]byte)
		if err := d.Object(func(name string) (err error) {
			parts[name], err = d.Raw()
			return err
		}); err != nil {
			return "", err
		}
		for _, name := range []string{"message", "content"} {
			if raw, ok := parts[name]; ok && truthy(raw) {
				return Observation(nested(raw))
			}
		}
	}
	b, err := Repr(nil, result)
	return string(b), err
}

// nested is what str() makes of a member: text as it is, and never a message
// within a message.
func nested(raw []byte) []byte {
	if strictjson.NewDecoder(raw).Kind() != strictjson.Object {
		return raw
	}
	b, err := Repr(nil, raw)
	if err != nil {
		return raw
	}
	return strictjson.AppendString(nil, string(b))
}

// truthy is what Python's `or` passes on.
func truthy(raw []byte) bool {
	switch strings.Join(strings.Fields(string(raw)), "") {
	case "null", "false", `""`, "0", "0.0", "-0", "-0.0", "[]", "{}":
		return false
	}
	return true
}

// Observations is the text of several results, a JSON array.
func Observations(results []byte) (string, error) {
	b, err := dna.Dumps([]byte("Tools returned: "), results)
	return string(b), err
}

// Repr appends repr(json.loads(value)).
func Repr(b, value []byte) ([]byte, error) {
	d := strictjson.NewDecoder(value)
	out, err := appendValue(b, d)
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return b, err
	}
	return out, nil
}

func appendValue(b []byte, d *strictjson.Decoder) ([]byte, error) {
	switch d.Kind() {
	case strictjson.Object:
		return appendDict(b, d)
	case strictjson.Array:
		return appendList(b, d)
	case strictjson.String:
		s, err := d.String()
		if err != nil {
			return b, err
		}
		return appendString(b, s), nil
	case strictjson.Number:
		raw, err := d.Raw()
		if err != nil {
			return b, err
		}
		return dna.AppendNumber(b, string(raw))
	case strictjson.Bool:
		v, err := d.Bool()
		if v {
			return append(b, "True"...), err
		}
		return append(b, "False"...), err
	}
	_, err := d.Raw()
	return append(b, "None"...), err
}

func appendDict(b []byte, d *strictjson.Decoder) ([]byte, error) {
	b = append(b, '{')
	first := true
	err := d.Object(func(name string) (err error) {
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b, err = appendValue(append(appendString(b, name), ": "...), d)
		return err
	})
	return append(b, '}'), err
}

func appendList(b []byte, d *strictjson.Decoder) ([]byte, error) {
	b = append(b, '[')
	first := true
	err := d.Array(func() (err error) {
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b, err = appendValue(b, d)
		return err
	})
	return append(b, ']'), err
}

// appendString prefers single quotes, as Python does.
func appendString(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(r):
			b = append(b, string(r)...)
		default:
			b = appendEscape(b, r)
		}
	}
	return append(b, quote)
}

func appendEscape(b []byte, r rune) []byte {
	digits := strconv.FormatInt(int64(r), 16)
	letter, width := byte('x'), 2
	switch {
	case r > 0xffff:
		letter, width = 'U', 8
	case r > 0xff:
		letter, width = 'u', 4
	}
	b = append(b, '\\', letter)
	for range width - len(digits) {
		b = append(b, '0')
	}
	return append(b, digits...)
}
