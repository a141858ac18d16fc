package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"weir/abi/strictjson"
)

// outcome is a tools/call result as far as a model sees it.
type outcome struct {
	blocks     []string
	structured []byte
	failed     bool
	kind       string // resultType, of revision 2026-07-28
}

// render turns a raw result into text for the model.
func (c *Client) render(raw []byte) (text string, failed bool) {
	var o outcome
	if err := o.decode(raw); err != nil {
		return c.message("the tool's result is not valid: " + err.Error()), true
	}
	if o.kind != "" && o.kind != "complete" {
		return c.message("the tool asks for further input, which is not supported"), true
	}
	text = strings.Join(o.blocks, "\n")
	if len(o.blocks) == 0 && o.structured != nil {
		text = string(o.structured)
	}
	if o.failed {
		return c.message(text), true
	}
	return capBytes(text, c.opts.MaxResult), false
}

func (o *outcome) decode(raw []byte) error {
	d := strictjson.NewDecoder(raw)
	err := d.Object(func(name string) (err error) {
		switch name {
		case "content":
			return d.Array(func() error { return o.block(d) })
		case "structuredContent":
			if !d.Null() {
				o.structured, err = d.Raw()
			}
			return err
		case "isError":
			o.failed, err = d.Bool()
			return err
		case "resultType":
			o.kind, err = d.String()
			return err
		}
		return d.Skip()
	})
	if err != nil {
		return err
	}
	return d.End()
}

// block appends one content block: its text, or its type in brackets.
func (o *outcome) block(d *strictjson.Decoder) error {
	var kind, text string
	err := d.Object(func(name string) (err error) {
		switch {
		case name == "type":
			kind, err = d.String()
		case name == "text" && d.Kind() == strictjson.String:
			text, err = d.String()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if kind != "text" {
		text = "[" + word(kind) + "]"
	}
	o.blocks = append(o.blocks, text)
	return nil
}

// word is a type as the server names it, or "content" for what is no name.
func word(s string) string {
	if s == "" || len(s) > 40 {
		return "content"
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return "content"
		}
	}
	return s
}

// capBytes cuts text at a rune boundary and says so.
func capBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[result cut at %d bytes]", text[:end], limit)
}

// capRunes keeps the first limit characters and marks that there were more.
func capRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n == limit {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// quote puts a name that somebody else chose into an error text: bounded, on
// one line, otherwise as it is.
func quote(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return utf8.RuneError
		}
		return r
	}, name)
	return `"` + capRunes(name, 64) + `"`
}
