package main

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/match"
	"weir/pdk/spare"
)

// guard is the guardrail with its configuration, compiled.
type guard struct {
	finders []recogniser   // one for each pattern
	scanner *match.Scanner // used again and again: a guest is never called twice at once

	found, kept [usual]found // room for what a call finds
	replies     spare.Of[roomyReply]
}

// usual is how many matches a piece of an answer has at most, as a rule. Room
// for them is in the image, so that a call need not make it.
const usual = 8

// lookBehind is enough for the one character that \b looks at.
const lookBehind = utf8.UTFMax

// readConfig reads a configuration. Its error names the key.
func readConfig(raw abi.Raw) (*guard, error) {
	g := &guard{}
	d := strictjson.NewDecoder(raw)
	err := d.Object(func(name string) error { return g.member(d, name) })
	if err == nil {
		err = d.End()
	}
	if err == nil && len(g.finders) == 0 {
		err = errors.New("entities: expected at least one of " + entityNames())
	}
	if err != nil {
		return nil, errors.New("config: " + err.Error())
	}
	set, err := match.Compile(g.patterns(), match.Options{})
	if err != nil {
		return nil, err
	}
	g.scanner = set.Scanner()
	g.replies.Fill(spare.Enough, nil)
	return g, nil
}

func (g *guard) member(d *strictjson.Decoder, name string) (err error) {
	switch name {
	case "entities":
		g.finders, err = readEntities(d)
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

func readEntities(d *strictjson.Decoder) (finders []recogniser, err error) {
	seen := map[string]bool{}
	err = d.Array(func() error {
		name, err := d.String()
		if err != nil {
			return err
		}
		place := "[" + strconv.Itoa(len(seen)) + "]"
		if seen[name] {
			return at(place, errors.New("stands there twice"))
		}
		seen[name] = true
		n := len(finders)
		for _, r := range recognisers() {
			if r.entity == name {
				r.mask = "<" + name + ">"
				finders = append(finders, r)
			}
		}
		if len(finders) == n {
			return at(place, errors.New("unknown entity, expected one of "+entityNames()))
		}
		return nil
	})
	return finders, err
}

// patterns are the finders' forms. Their bounds are written into them.
func (g *guard) patterns() []match.Pattern {
	list := make([]match.Pattern, len(g.finders))
	for i, r := range g.finders {
		list[i] = match.Pattern{ID: r.id, Expr: r.expr}
	}
	return list
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["entities"],
  "properties": {
    "entities": {
      "type": "array",
      "minItems": 1,
      "uniqueItems": true,
      "items": {"enum": ["EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS", "CRYPTO", "US_SSN"]}
    }
  }
}`
