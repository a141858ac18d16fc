package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"weir/abi/strictjson"
)

// chunk is one chunk of a stream, or a whole reply, as far as it matters.
type chunk struct {
	failed   bool // it carries an error
	answered bool // it holds a choice with a delta or a message
	marked   bool // text and arguments may have marks of halves
	text     string
	calls    []callPart
	finish   string
	usage    Usage
}

// callPart is what one chunk says of one tool call. Index is -1 when missing.
type callPart struct {
	index     int
	id        string
	name      string
	arguments string
}

// decodeChunk reads one chunk. Unknown members are skipped and members of
// another type than expected count as absent.
func decodeChunk(data []byte) (chunk, error) {
	c, err := decodeStrict(data)
	if err == nil {
		return c, nil
	}
	// Not strict JSON, but perhaps JSON. Such a thing is no reason to lose the
	// reply, and rare enough to be read twice.
	data, marked := markHalves(data)
	if !json.Valid(data) {
		return chunk{}, bad("expected chunks of JSON")
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	mended, err := []byte(nil), d.Decode(&v)
	if err == nil {
		mended, err = json.Marshal(v)
	}
	if err == nil {
		c, err = decodeStrict(mended)
	}
	if err != nil {
		return chunk{}, bad("expected chunks to be JSON objects")
	}
	c.marked = marked
	return c, nil
}

func decodeStrict(data []byte) (chunk, error) {
	var c chunk
	d := reader{strictjson.NewDecoder(data)}
	err := d.Object(func(name string) error {
		switch name {
		case "error":
			if d.Null() {
				return nil
			}
			c.failed = true
		case "object":
			s, err := d.text()
			c.failed = c.failed || s == "error"
			return err
		case "choices":
			return d.array(func() error { return c.choice(d) })
		case "usage":
			return c.counts(d)
		}
		return d.Skip()
	})
	if err == nil {
		err = d.End()
	}
	return c, err
}

// choice reads one choice and keeps it if it is the first one.
func (c *chunk) choice(d reader) error {
	var next chunk
	index := 0
	err := d.object(func(name string) (err error) {
		switch name {
		case "index":
			index, err = d.integer(0)
		case "delta", "message":
			next.answered = next.answered || d.Kind() == strictjson.Object
			err = next.delta(d)
		case "finish_reason":
			next.finish, err = d.text()
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil && index == 0 && !c.answered {
		c.answered, c.text, c.calls = next.answered, next.text, next.calls
		if next.finish != "" {
			c.finish = next.finish
		}
	}
	return err
}

func (c *chunk) delta(d reader) error {
	return d.object(func(name string) error {
		switch name {
		case "content", "refusal": // a refusal is said in place of content
			s, err := d.content()
			c.text += s
			return err
		case "tool_calls":
			return d.array(func() error {
				part, err := d.callPart()
				c.calls = append(c.calls, part)
				return err
			})
		}
		return d.Skip()
	})
}

func (c *chunk) counts(d reader) error {
	return d.object(func(name string) (err error) {
		switch name {
		case "prompt_tokens":
			c.usage.InputTokens, err = d.integer(0)
		case "completion_tokens":
			c.usage.OutputTokens, err = d.integer(0)
		default:
			err = d.Skip()
		}
		return err
	})
}

// reader is a decoder that takes a value of another type for an absent one.
type reader struct{ *strictjson.Decoder }

func (d reader) object(member func(name string) error) error {
	if d.Kind() != strictjson.Object {
		return d.Skip()
	}
	return d.Object(member)
}

func (d reader) array(element func() error) error {
	if d.Kind() != strictjson.Array {
		return d.Skip()
	}
	return d.Array(element)
}

func (d reader) text() (string, error) {
	if d.Kind() != strictjson.String {
		return "", d.Skip()
	}
	return d.String()
}

// integer reads a number that is an integer of a sane size, else absent.
func (d reader) integer(absent int) (int, error) {
	raw, err := d.Raw()
	if err != nil {
		return absent, err
	}
	n, err := strictjson.NewDecoder(raw).Int()
	if err != nil || n < 0 || n > 1<<31 {
		return absent, nil
	}
	return int(n), nil
}

// content reads a string, or the text parts of an array of parts.
func (d reader) content() (string, error) {
	if d.Kind() != strictjson.Array {
		return d.text()
	}
	var all strings.Builder
	err := d.array(func() error {
		var kind, text string
		err := d.object(func(name string) (err error) {
			switch name {
			case "type":
				kind, err = d.text()
			case "text":
				text, err = d.text()
			default:
				err = d.Skip()
			}
			return err
		})
		if kind == "text" {
			all.WriteString(text)
		}
		return err
	})
	return all.String(), err
}

func (d reader) callPart() (callPart, error) {
	part := callPart{index: -1}
	err := d.object(func(name string) (err error) {
		switch name {
		case "index":
			part.index, err = d.integer(-1)
		case "id":
			part.id, err = d.text()
		case "function":
			err = d.object(func(name string) (err error) {
				switch name {
				case "name":
					part.name, err = d.text()
				case "arguments":
					part.arguments, err = d.arguments()
				default:
					err = d.Skip()
				}
				return err
			})
		default:
			err = d.Skip()
		}
		return err
	})
	return part, err
}

// arguments reads the arguments' text. Some servers send the object itself;
// its bytes are the text then.
func (d reader) arguments() (string, error) {
	if d.Kind() != strictjson.Object {
		return d.text()
	}
	raw, err := d.Raw()
	return string(raw), err
}
