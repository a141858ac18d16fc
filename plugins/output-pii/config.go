package main

import (
	"errors"
	"strconv"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/match"
)

// guard is the guardrail with its configuration, compiled.
type guard struct {
	finders    []finder
	window     int // characters that are held back
	lookBehind int // bytes before the text that the host shows
}

// finder is a recogniser with its pattern.
type finder struct {
	entity  string
	pattern *match.Pattern
	valid   func(string) bool // nil: every match is one
}

const (
	maxWindow     = 16384
	minLookBehind = 4 // bytes of the one character that \b looks at
)

// readConfig reads a configuration. Its error names the key.
func readConfig(raw abi.Raw) (*guard, error) {
	g := &guard{window: 320, lookBehind: 512} // clause 6.7
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
	return g, nil
}

func (g *guard) member(d *strictjson.Decoder, name string) (err error) {
	switch name {
	case "entities":
		g.finders, err = readEntities(d)
	case "window":
		g.window, err = readSize(d, 0)
	case "look_behind":
		g.lookBehind, err = readSize(d, minLookBehind)
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
		err = errors.New("expected " + strconv.FormatInt(least, 10) + " to " + strconv.Itoa(maxWindow))
	}
	return int(n), err
}

func readEntities(d *strictjson.Decoder) (finders []finder, err error) {
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
		more, err := compile(name)
		finders = append(finders, more...)
		return at(place, err)
	})
	return finders, err
}

// compile returns the finders of one entity.
func compile(entity string) (finders []finder, err error) {
	for _, r := range recognisers() {
		if r.entity != entity {
			continue
		}
		p, err := match.Compile(r.expr)
		if err != nil {
			return nil, err
		}
		finders = append(finders, finder{r.entity, p, r.valid})
	}
	if len(finders) == 0 {
		return nil, errors.New("unknown entity, expected one of " + entityNames())
	}
	return finders, nil
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
    },
    "window": {"type": "integer", "minimum": 0, "maximum": 16384, "default": 320},
    "look_behind": {"type": "integer", "minimum": 4, "maximum": 16384, "default": 512}
  }
}`
