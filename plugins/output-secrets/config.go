package main

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/match"
)

// config is the operator's configuration, compiled.
type config struct {
	patterns   []*match.Pattern
	notice     string
	window     int // characters that are held back
	lookBehind int // characters before those that are searched with them
}

const (
	maxPatterns = 200
	maxWindow   = 16384 // characters
)

// defaults are the contract's: the text of clause 2.10, numbers of 6.7.
func defaults() *config {
	return &config{
		notice:     "I can't share the rest of that response because it may contain sensitive information.",
		window:     320,
		lookBehind: 512,
	}
}

// lookBehindBytes is enough for that many characters and for the one before
// them, which \b looks at.
func (c *config) lookBehindBytes() int { return (c.lookBehind + 1) * utf8.UTFMax }

// readConfig reads and compiles a configuration. Its error names the key.
func readConfig(raw abi.Raw) (*config, error) {
	c := defaults()
	d := strictjson.NewDecoder(raw)
	err := d.Object(func(name string) error { return c.member(d, name) })
	if err == nil {
		err = d.End()
	}
	if err == nil && len(c.patterns) == 0 {
		err = errors.New("patterns: expected at least one")
	}
	if err != nil {
		return nil, errors.New("config: " + err.Error())
	}
	return c, nil
}

func (c *config) member(d *strictjson.Decoder, name string) (err error) {
	switch name {
	case "patterns":
		c.patterns, err = readPatterns(d)
	case "notice":
		c.notice, err = d.String()
		if err == nil && strings.TrimSpace(c.notice) == "" {
			err = errors.New("expected a text that is not blank")
		}
	case "window":
		c.window, err = readSize(d, 1)
	case "look_behind":
		c.lookBehind, err = readSize(d, 0)
	default:
		return strictjson.Unknown(name)
	}
	return at(name, err)
}

// at puts a key before an error's text.
func at(key string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(key + ": " + err.Error())
}

func readSize(d *strictjson.Decoder, least int64) (int, error) {
	n, err := d.Int()
	if err == nil && (n < least || n > maxWindow) {
		err = errors.New("expected " + strconv.FormatInt(least, 10) + " to " + strconv.Itoa(maxWindow) + " characters")
	}
	return int(n), err
}

func readPatterns(d *strictjson.Decoder) (patterns []*match.Pattern, err error) {
	err = d.Array(func() error {
		if len(patterns) == maxPatterns {
			return errors.New("expected at most " + strconv.Itoa(maxPatterns))
		}
		expr, err := d.String()
		if err != nil {
			return err
		}
		p, err := match.Compile(`(?i)` + expr) // 6.8: case does not matter
		if err != nil {
			return at("["+strconv.Itoa(len(patterns))+"]", err)
		}
		patterns = append(patterns, p)
		return nil
	})
	return patterns, err
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["patterns"],
  "properties": {
    "patterns": {"type": "array", "minItems": 1, "maxItems": 200, "items": {"type": "string", "minLength": 1}},
    "notice": {"type": "string", "minLength": 1},
    "window": {"type": "integer", "minimum": 1, "maximum": 16384, "default": 320},
    "look_behind": {"type": "integer", "minimum": 0, "maximum": 16384, "default": 512}
  }
}`
