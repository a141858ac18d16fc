package main

import (
	"errors"
	"slices"
	"strconv"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/pdk/match"
)

// guard is the guardrail with its configuration, compiled.
type guard struct {
	rules []rule // in the order of the set
	set   *match.Set
	tools []string // whose results are looked at; empty: of all
}

const (
	maxExtra = 200
	maxName  = 64
)

// readConfig reads a configuration. Its error names the key.
func readConfig(raw abi.Raw) (*guard, error) {
	g := &guard{rules: rules()}
	var extra []rule
	d := strictjson.NewDecoder(raw)
	err := d.Object(func(name string) (err error) {
		switch name {
		case "rules":
			g.rules, err = readRules(d)
		case "extra":
			extra, err = readExtra(d)
		case "tools":
			g.tools, err = readNames(d)
		default:
			return strictjson.Unknown(name)
		}
		return at(name, err)
	})
	if err == nil {
		err = d.End()
	}
	if err == nil {
		g.rules = append(g.rules, extra...)
		err = g.compile()
	}
	if err != nil {
		return nil, errors.New("config: " + err.Error())
	}
	return g, nil
}

// at puts a key before an error's text.
func at(key string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(key + ": " + err.Error())
}

func (g *guard) compile() error {
	if len(g.rules) == 0 {
		return errors.New("expected at least one of rules or extra")
	}
	patterns := make([]match.Pattern, len(g.rules))
	for i, r := range g.rules {
		patterns[i] = match.Pattern{ID: r.name, Expr: `(?is)` + r.expr, Bound: match.Unbounded, Minimal: true} // whole texts only
	}
	set, err := match.Compile(patterns, match.Options{})
	if e, ok := errors.AsType[*match.ExprError](err); ok {
		return at(g.rules[e.Pattern].name, e.Reason)
	}
	g.set = set
	return err
}

func readNames(d *strictjson.Decoder) (names []string, err error) {
	err = d.Array(func() error {
		name, err := d.String()
		names = append(names, name)
		return err
	})
	return names, err
}

func readRules(d *strictjson.Decoder) (chosen []rule, err error) {
	names, err := readNames(d)
	if err != nil {
		return nil, err
	}
	all := rules()
	for i, name := range names {
		n := slices.IndexFunc(all, func(r rule) bool { return r.name == name })
		switch {
		case n < 0:
			return nil, at("["+strconv.Itoa(i)+"]", errors.New("unknown rule, expected one of "+ruleNames()))
		case slices.Index(names, name) < i:
			return nil, at("["+strconv.Itoa(i)+"]", errors.New("stands there twice"))
		}
		chosen = append(chosen, all[n])
	}
	return chosen, nil
}

// readExtra reads the operator's own rules, each of which is enough.
func readExtra(d *strictjson.Decoder) (extra []rule, err error) {
	err = d.Array(func() error {
		place := "[" + strconv.Itoa(len(extra)) + "]"
		if len(extra) == maxExtra {
			return errors.New("expected at most " + strconv.Itoa(maxExtra))
		}
		r := rule{weight: enough}
		err := d.Object(func(name string) (err error) {
			switch name {
			case "name":
				r.name, err = d.String()
			case "expr":
				r.expr, err = d.String()
			default:
				err = strictjson.Unknown(name)
			}
			return err
		})
		switch {
		case err != nil:
		case !validName(r.name):
			err = errors.New("name: expected 1 to " + strconv.Itoa(maxName) + " of a-z, 0-9 and _")
		case r.expr == "":
			err = strictjson.Missing("expr")
		}
		extra = append(extra, r)
		return at(place, err)
	})
	return extra, err
}

func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "rules": {"type": "array", "uniqueItems": true, "items": {"enum": [
      "becomes_another", "hidden_text", "overrides_instructions", "reveals_prompt", "role_marker", "system_override",
      "addresses_model", "asks_for_keys", "claims_approval", "dictates_answer", "hides_from_user", "mode_switch",
      "names_prompt", "orders_tool"
    ]}},
    "extra": {"type": "array", "maxItems": 200, "items": {
      "type": "object",
      "additionalProperties": false,
      "required": ["name", "expr"],
      "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9_]{1,64}$"},
        "expr": {"type": "string", "minLength": 1}
      }
    }},
    "tools": {"type": "array", "items": {"type": "string"}}
  }
}`
