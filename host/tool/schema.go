package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/abi/strictjson"
)

// schema is a tool's argument schema in the subset that the host enforces
// itself (5.4 of the contract): a closed object of scalars. Whatever lies
// outside the subset refuses the tool at start, since a keyword that nobody
// enforces would be a promise that nobody keeps.
type schema struct {
	properties map[string]*property
	required   []string
}

type property struct {
	types   []string // in the schema's order; messages name them so
	enum    []scalar // nil: anything
	hasEnum bool
	// nullable is the keyword, which admits null beside types and enum.
	nullable  bool
	minLength int64
	maxLength int64
	minimum   *decimal
	maximum   *decimal
}

const (
	// defaultMaxLength bounds strings whose schema says nothing.
	defaultMaxLength = 4096
	maxSchema        = 64 << 10 // bytes
)

func types() []string {
	return []string{"string", "integer", "number", "boolean", "null"}
}

func formats() []string {
	return []string{"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "uint", "float", "double"}
}

// reserved are argument names by which a model could claim to be somebody or
// to have been allowed something; no tool may have them.
func reserved() []string {
	return []string{"actor_id", "user_id", "userid", "user", "username", "email", "roles", "role",
		"request_id", "approval", "approved", "approval_token", "approval_id", "token", "nonce",
		"signature", "interaction_id", "execution_id", "override_requested"}
}

// compile reads a schema. The error names the property and the keyword.
func compile(raw []byte) (*schema, error) {
	if len(raw) == 0 {
		return nil, errors.New("the server gives none")
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("larger than %d bytes", maxSchema)
	}
	d := strictjson.NewDecoder(raw)
	if d.Kind() != strictjson.Object {
		return nil, errors.New("expected a JSON object")
	}
	s := &schema{properties: map[string]*property{}}
	if err := s.decode(d); err != nil {
		return nil, err
	}
	for _, name := range s.required {
		if s.properties[name] == nil {
			return nil, fmt.Errorf(`keyword "required" names %s, which is not a property`, quote(name))
		}
	}
	return s, nil
}

func (s *schema) decode(d *strictjson.Decoder) error {
	typed := false
	err := d.Object(func(keyword string) (err error) {
		switch keyword {
		case "type":
			typed = true
			if name, err := text(d, keyword); err != nil || name != "object" {
				return errors.New(`keyword "type": expected exactly "object"`)
			}
			return nil
		case "properties":
			return s.decodeProperties(d)
		case "required":
			s.required, err = texts(d, keyword)
			return err
		case "additionalProperties": // the object is closed whatever it says
			if _, err := d.Bool(); err != nil {
				return errors.New(`keyword "additionalProperties": expected true or false`)
			}
			return nil
		case "$schema", "title", "description":
			_, err = text(d, keyword)
			return err
		}
		return fmt.Errorf("keyword %s is not supported", quote(keyword))
	})
	if err == nil && !typed {
		return errors.New(`keyword "type" is missing, expected "object"`)
	}
	if err == nil {
		err = d.End()
	}
	return err
}

func (s *schema) decodeProperties(d *strictjson.Decoder) error {
	if d.Kind() != strictjson.Object {
		return errors.New(`keyword "properties": expected an object`)
	}
	return d.Object(func(name string) error {
		if slices.Contains(reserved(), strings.ToLower(name)) {
			return fmt.Errorf("property %s: the name is reserved", quote(name))
		}
		p := &property{maxLength: defaultMaxLength}
		if err := p.decode(d); err != nil {
			return fmt.Errorf("property %s: %w", quote(name), err)
		}
		s.properties[strings.Clone(name)] = p
		return nil
	})
}

func (p *property) decode(d *strictjson.Decoder) error {
	if d.Kind() != strictjson.Object {
		return errors.New("expected an object")
	}
	format := ""
	err := d.Object(func(keyword string) (err error) {
		switch keyword {
		case "type":
			p.types, err = decodeTypes(d)
		case "format":
			format, err = decodeFormat(d)
		case "enum":
			err = p.decodeEnum(d)
		case "minLength":
			p.minLength, err = length(d, keyword)
		case "maxLength":
			p.maxLength, err = length(d, keyword)
		case "minimum":
			p.minimum, err = bound(d, keyword)
		case "maximum":
			p.maximum, err = bound(d, keyword)
		case "nullable":
			if p.nullable, err = d.Bool(); err != nil {
				err = errors.New(`keyword "nullable": expected true or false`)
			}
		case "description", "title":
			_, err = text(d, keyword)
		case "default":
			err = d.Skip()
		default:
			err = fmt.Errorf("keyword %s is not supported", quote(keyword))
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.finish(format)
}

func (p *property) finish(format string) error {
	if p.types == nil {
		return errors.New(`keyword "type" is missing`)
	}
	if p.nullable && !slices.Contains(p.types, "null") {
		p.types = append(p.types, "null")
	}
	if p.minLength > p.maxLength {
		return fmt.Errorf(`keyword "minLength": expected at most %d, the longest that is allowed`, p.maxLength)
	}
	switch {
	case format == "int32":
		p.narrow("-2147483648", "2147483647")
	case format == "uint32":
		p.narrow("0", "4294967295")
	case strings.HasPrefix(format, "uint"):
		p.narrow("0", "")
	}
	return nil
}

// narrow adds the range that a format implies to the explicit one.
func (p *property) narrow(low, high string) {
	if n := parseDecimal(low); p.minimum == nil || p.minimum.compare(n) < 0 {
		p.minimum = &n
	}
	if high == "" {
		return
	}
	if n := parseDecimal(high); p.maximum == nil || p.maximum.compare(n) > 0 {
		p.maximum = &n
	}
}

func decodeTypes(d *strictjson.Decoder) ([]string, error) {
	var names []string
	var err error
	if d.Kind() == strictjson.Array {
		names, err = texts(d, "type")
	} else {
		var name string
		name, err = text(d, "type")
		names = []string{name}
	}
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New(`keyword "type": expected at least one type`)
	}
	for _, name := range names {
		if !slices.Contains(types(), name) {
			return nil, fmt.Errorf(`keyword "type": %s is not supported, expected one of %s`, quote(name), strings.Join(types(), ", "))
		}
	}
	return names, nil
}

func decodeFormat(d *strictjson.Decoder) (string, error) {
	format, err := text(d, "format")
	if err == nil && !slices.Contains(formats(), format) {
		err = fmt.Errorf(`keyword "format": %s is not supported`, quote(format))
	}
	return format, err
}

func (p *property) decodeEnum(d *strictjson.Decoder) error {
	if d.Kind() != strictjson.Array {
		return errors.New(`keyword "enum": expected an array`)
	}
	p.hasEnum = true
	return d.Array(func() error {
		v, err := decodeScalar(d)
		p.enum = append(p.enum, v)
		return err
	})
}

func text(d *strictjson.Decoder, keyword string) (string, error) {
	if d.Kind() != strictjson.String {
		return "", fmt.Errorf("keyword %s: expected a string", quote(keyword))
	}
	return d.String()
}

// texts reads an array of distinct strings.
func texts(d *strictjson.Decoder, keyword string) (list []string, err error) {
	if d.Kind() != strictjson.Array {
		return nil, fmt.Errorf("keyword %s: expected an array", quote(keyword))
	}
	err = d.Array(func() error {
		s, err := text(d, keyword)
		if err == nil && slices.Contains(list, s) {
			err = fmt.Errorf("keyword %s: %s is listed twice", quote(keyword), quote(s))
		}
		list = append(list, s)
		return err
	})
	return list, err
}

func length(d *strictjson.Decoder, keyword string) (int64, error) {
	n, err := d.Int()
	if err != nil || n < 0 {
		return 0, fmt.Errorf("keyword %s: expected a whole number from 0 on", quote(keyword))
	}
	return n, nil
}

func bound(d *strictjson.Decoder, keyword string) (*decimal, error) {
	if d.Kind() != strictjson.Number {
		return nil, fmt.Errorf("keyword %s: expected a number", quote(keyword))
	}
	raw, err := d.Raw()
	if err != nil {
		return nil, err
	}
	n := parseDecimal(string(raw))
	return &n, nil
}
