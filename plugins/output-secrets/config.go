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
	patterns []match.Pattern
	notice   string
	maxSpan  int // the most that an unbounded repetition in an answer reads

	// A guest is never called twice at once, so it uses its scanners again.
	streamed  *match.Scanner // with bounds: what is held back ends somewhere
	displayed *match.Scanner // without: a display is whole, and all of a secret goes
}

const (
	maxPatterns = 200
	maxMaxSpan  = 1024 // characters

	// lookBehind is enough for the one character that \b looks at.
	lookBehind = utf8.UTFMax
)

// defaults are the contract's: the text of clause 2.10.
func defaults() *config {
	return &config{
		notice:  "I can't share the rest of that response because it may contain sensitive information.",
		maxSpan: match.DefaultBound,
	}
}

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
	if err == nil {
		err = c.compile()
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
	case "max_span":
		c.maxSpan, err = readSpan(d)
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

func readSpan(d *strictjson.Decoder) (int, error) {
	n, err := d.Int()
	if err == nil && (n < 1 || n > maxMaxSpan) {
		err = errors.New("expected 1 to " + strconv.Itoa(maxMaxSpan) + " characters")
	}
	return int(n), err
}

func readPatterns(d *strictjson.Decoder) (patterns []match.Pattern, err error) {
	err = d.Array(func() error {
		if len(patterns) == maxPatterns {
			return errors.New("expected at most " + strconv.Itoa(maxPatterns))
		}
		expr, err := d.String()
		// 6.8: case does not matter.
		patterns = append(patterns, match.Pattern{ID: label(len(patterns)), Expr: `(?i)` + expr})
		return err
	})
	return patterns, err
}

// compile compiles the patterns twice. In an answer each is decided at its
// shortest match, and bounded; in a display it takes all it can.
func (c *config) compile() (err error) {
	whole := make([]match.Pattern, len(c.patterns))
	for i := range c.patterns {
		p := &c.patterns[i]
		p.Bound, p.Minimal = c.maxSpan, true
		whole[i] = match.Pattern{ID: p.ID, Expr: p.Expr, Bound: match.Unbounded}
	}
	if c.streamed, err = scanner(c.patterns); err == nil {
		c.displayed, err = scanner(whole)
	}
	return err
}

func scanner(patterns []match.Pattern) (*match.Scanner, error) {
	set, err := match.Compile(patterns, match.Options{})
	if e, ok := errors.AsType[*match.ExprError](err); ok {
		return nil, at("patterns", at("["+strconv.Itoa(e.Pattern)+"]", e.Reason))
	}
	if err != nil {
		return nil, err
	}
	return set.Scanner(), nil
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["patterns"],
  "properties": {
    "patterns": {"type": "array", "minItems": 1, "maxItems": 200, "items": {"type": "string", "minLength": 1}},
    "notice": {"type": "string", "minLength": 1},
    "max_span": {"type": "integer", "minimum": 1, "maximum": 1024, "default": 256}
  }
}`
