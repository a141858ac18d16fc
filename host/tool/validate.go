package tool

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// MaxArguments bounds the text of proposed arguments in bytes.
const MaxArguments = 16384

// Parse finds the tool that a model named and reads the text of the arguments
// that it proposed: empty or blank is {}, everything else must be one strict
// JSON value. The arguments come back as they were written, without white
// space around them. Whether they fit the tool is for Validate to say; what
// Parse refuses does not count against a budget. The error's text is for the
// model.
func (s *Set) Parse(name, arguments string) (Tool, abi.Raw, error) {
	e, ok := s.byName[name]
	if !ok {
		return Tool{}, nil, unavailable(name)
	}
	if len(arguments) > MaxArguments {
		return Tool{}, nil, fault.New(fault.Limit, "tool arguments are too large")
	}
	arguments = strings.TrimSpace(arguments)
	if arguments == "" {
		return e.Tool, abi.Raw("{}"), nil
	}
	raw := abi.Raw(arguments)
	if err := strictjson.Valid(raw); err != nil {
		return Tool{}, nil, fault.New(fault.Invalid, "tool arguments are not valid JSON: %w", err)
	}
	return e.Tool, raw, nil
}

// Validate holds arguments against the tool's schema, without any coercion (5.5
// of the contract). The error's text is for the model and names arguments,
// never values.
func (s *Set) Validate(name string, arguments abi.Raw) error {
	e, ok := s.byName[name]
	if !ok {
		return unavailable(name)
	}
	return e.schema.check(arguments)
}

// check holds arguments against the schema in the contract's order: an object,
// no unknown names, all required ones, then each argument by type, enum,
// length and range, in the order in which they are written.
func (s *schema) check(arguments abi.Raw) error {
	members, err := decodeArguments(arguments)
	if err != nil {
		return err
	}
	for _, m := range members {
		if s.properties[m.name] == nil {
			return refuse("unknown argument %s", m.name)
		}
	}
	for _, name := range s.required {
		if !s.present(members, name) {
			return refuse("missing required argument %s", name)
		}
	}
	for _, m := range members {
		if err := s.properties[m.name].check(m); err != nil {
			return err
		}
	}
	return nil
}

// argument is one member of the arguments, read once.
type argument struct {
	name    string
	value   scalar
	integer bool // a number written as an integer
}

func decodeArguments(arguments abi.Raw) (members []argument, err error) {
	if len(arguments) == 0 {
		return nil, nil // absent: no arguments
	}
	d := strictjson.NewDecoder(arguments)
	if d.Kind() != strictjson.Object {
		return nil, fault.New(fault.Invalid, "arguments must be a JSON object")
	}
	err = d.Object(func(name string) error {
		m := argument{name: name}
		if d.Kind() != strictjson.Number {
			m.value, err = decodeScalar(d)
		} else {
			var raw []byte
			raw, err = d.Raw()
			m.value = scalar{kind: strictjson.Number, number: parseDecimal(string(raw))}
			m.integer = isInteger(string(raw))
		}
		members = append(members, m)
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "tool arguments are not valid JSON: %w", err)
	}
	return members, nil
}

// present: null counts as missing unless the property may be null.
func (s *schema) present(members []argument, name string) bool {
	i := slices.IndexFunc(members, func(m argument) bool { return m.name == name })
	return i >= 0 && (members[i].value.kind != strictjson.Null || s.properties[name].admits("null"))
}

func (p *property) admits(name string) bool { return slices.Contains(p.types, name) }

func (p *property) check(m argument) error {
	v := m.value
	if !p.typed(m) {
		return fault.New(fault.Invalid, "argument %s must be %s", quote(m.name), strings.Join(p.types, " or "))
	}
	if v.kind == strictjson.Null && p.nullable {
		return nil
	}
	if p.hasEnum && !slices.ContainsFunc(p.enum, v.equal) {
		return refuse("argument %s must be one of the allowed values", m.name)
	}
	if v.kind == strictjson.String {
		if n := int64(utf8.RuneCountInString(v.text)); n < p.minLength || n > p.maxLength {
			return fault.New(fault.Invalid, "argument %s has the wrong length (allowed %d..=%d characters)",
				quote(m.name), p.minLength, p.maxLength)
		}
	}
	if v.kind == strictjson.Number && !p.inRange(v.number) {
		return refuse("argument %s is out of range", m.name)
	}
	return nil
}

func (p *property) typed(m argument) bool {
	switch m.value.kind {
	case strictjson.String:
		return p.admits("string")
	case strictjson.Number:
		return p.admits("number") || m.integer && p.admits("integer")
	case strictjson.Bool:
		return p.admits("boolean")
	case strictjson.Null:
		return p.admits("null")
	}
	return false
}

func (p *property) inRange(n decimal) bool {
	return (p.minimum == nil || n.compare(*p.minimum) >= 0) && (p.maximum == nil || n.compare(*p.maximum) <= 0)
}

func refuse(format, name string) error {
	return fault.New(fault.Invalid, format, quote(name))
}
