package main

import (
	"errors"
	"strconv"
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/match"
)

// config is the operator's configuration, compiled.
type config struct {
	maxChars          int // characters of the latest turn
	blockMessage      string
	oversizeMessage   string
	classifierMessage string

	deterministicFallback bool // critical patterns take part
	readOnlyAllowOverride bool // allow templates take part

	maxTokens   int
	temperature float64

	critical rules
	allow    rules
}

// rules are named expressions, compiled together.
type rules struct {
	names []string
	set   *match.Set // nil when there are none
}

// rule is one of them, as it is configured.
type rule struct{ name, expr string }

// maxRules bounds a list, so that findings always fit an ask_model state.
const maxRules = 200

// defaults are the contract's: texts of clause 2.10, numbers of 6.5 and 6.6.
func defaults() *config {
	return &config{
		maxChars:              32000,
		blockMessage:          "I'm sorry, I can't help with that request.",
		oversizeMessage:       "That message is too long for me to review safely. Please shorten it and try again.",
		classifierMessage:     "I'm sorry, I can't respond to that.",
		deterministicFallback: true,
		readOnlyAllowOverride: true,
		maxTokens:             4,
		temperature:           0.001,
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
	if err == nil && c.deterministicFallback && len(c.critical.names) == 0 {
		err = errors.New("critical_patterns: expected at least one while deterministic_fallback is true")
	}
	if err != nil {
		return nil, errors.New("config: " + err.Error())
	}
	return c, nil
}

func (c *config) member(d *strictjson.Decoder, name string) (err error) {
	switch name {
	case "max_chars":
		c.maxChars, err = readCount(d, 1<<30)
	case "block_message":
		c.blockMessage, err = readText(d)
	case "oversize_message":
		c.oversizeMessage, err = readText(d)
	case "classifier_message":
		c.classifierMessage, err = readText(d)
	case "deterministic_fallback":
		c.deterministicFallback, err = d.Bool()
	case "read_only_allow_override":
		c.readOnlyAllowOverride, err = d.Bool()
	case "max_tokens":
		c.maxTokens, err = readCount(d, 1024)
	case "temperature":
		c.temperature, err = d.Float()
		if err == nil && (c.temperature < 0 || c.temperature > 2) {
			err = errors.New("expected 0 to 2")
		}
	case "critical_patterns":
		c.critical, err = readRules(d)
	case "allow_templates":
		c.allow, err = readRules(d)
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

func readCount(d *strictjson.Decoder, most int64) (int, error) {
	n, err := d.Int()
	if err == nil && (n < 1 || n > most) {
		err = errors.New("expected 1 to " + strconv.FormatInt(most, 10))
	}
	return int(n), err
}

func readText(d *strictjson.Decoder) (string, error) {
	s, err := d.String()
	if err == nil && strings.TrimSpace(s) == "" {
		err = errors.New("expected a text that is not blank")
	}
	return s, err
}

func readRules(d *strictjson.Decoder) (rules, error) {
	var list []rule
	err := d.Array(func() error {
		place := index(len(list))
		if len(list) == maxRules {
			return errors.New("expected at most " + strconv.Itoa(maxRules))
		}
		r, err := readRule(d)
		if err != nil {
			return at(place, err)
		}
		for i := range list {
			if list[i].name == r.name {
				return at(place, errors.New("name: stands at "+index(i)+" too"))
			}
		}
		list = append(list, r)
		return nil
	})
	if err != nil {
		return rules{}, err
	}
	return compile(list)
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// compile makes one set of all expressions. By clause 6.2 case is folded and
// the dot matches a newline. Texts are whole, so nothing needs a bound.
func compile(list []rule) (r rules, err error) {
	if len(list) == 0 {
		return r, nil
	}
	patterns := make([]match.Pattern, len(list))
	for i := range list {
		r.names = append(r.names, list[i].name)
		patterns[i] = match.Pattern{ID: list[i].name, Expr: `(?is)` + list[i].expr, Bound: match.Unbounded}
	}
	r.set, err = match.Compile(patterns, match.Options{})
	if e, ok := errors.AsType[*match.ExprError](err); ok {
		return r, at(index(e.Pattern), at("expr", e.Reason))
	}
	return r, err
}

func readRule(d *strictjson.Decoder) (r rule, err error) {
	err = d.Object(func(name string) (err error) {
		switch name {
		case "name":
			r.name, err = d.String()
			if err == nil && !validName(r.name) {
				err = errors.New("expected 1 to 64 of a-z, 0-9 and _")
			}
		case "expr":
			r.expr, err = d.String()
			if err == nil && r.expr == "" {
				err = errors.New("expected an expression")
			}
		default:
			return strictjson.Unknown(name)
		}
		return at(name, err)
	})
	switch {
	case err != nil:
		return r, err
	case r.name == "":
		return r, strictjson.Missing("name")
	case r.expr == "":
		return r, strictjson.Missing("expr")
	}
	return r, nil
}

// validName keeps names plain: they stand in the decision event.
func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// checkPrompt refuses a classifier prompt that would never see the turn.
func checkPrompt(prompts []abi.Prompt) error {
	for _, p := range prompts {
		if p.Name != promptName {
			continue
		}
		if !strings.Contains(p.Text, "{{ "+promptVar+" }}") {
			return errors.New("prompt " + promptName + ": expected the placeholder {{ " + promptVar + " }}")
		}
		return nil
	}
	return errors.New("prompt " + promptName + ": missing")
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "max_chars": {"type": "integer", "minimum": 1, "maximum": 1073741824, "default": 32000},
    "block_message": {"type": "string", "minLength": 1},
    "oversize_message": {"type": "string", "minLength": 1},
    "classifier_message": {"type": "string", "minLength": 1},
    "deterministic_fallback": {"type": "boolean", "default": true},
    "read_only_allow_override": {"type": "boolean", "default": true},
    "max_tokens": {"type": "integer", "minimum": 1, "maximum": 1024, "default": 4},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2, "default": 0.001},
    "critical_patterns": {"$ref": "#/$defs/rules"},
    "allow_templates": {"$ref": "#/$defs/rules"}
  },
  "$defs": {
    "rules": {
      "type": "array",
      "maxItems": 200,
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "expr"],
        "properties": {
          "name": {"type": "string", "pattern": "^[a-z0-9_]{1,64}$"},
          "expr": {"type": "string", "minLength": 1}
        }
      }
    }
  }
}`
