package approval

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

const (
	maxArguments = 16384 // bytes of proposed arguments
	maxResource  = 4096  // characters, what every string without a bound of its own may have
)

// argument is one argument of an action's tool (5.6).
type argument struct {
	name, hint string
	enum       []string
	min, max   int // characters
	optional   bool
}

func (a *Action) arguments() []argument {
	n, h := a.Arguments, a.Hints
	list := []argument{
		{name: n.Resource, hint: h.Resource, min: 1, max: maxResource},
		{name: n.Current, hint: h.Current, enum: a.Choices},
		{name: n.Requested, hint: h.Requested, enum: a.Choices},
		{name: n.Summary, hint: h.Summary, min: 1, max: a.MaxSummary},
	}
	if n.Note != "" {
		list = append(list, argument{name: n.Note, hint: h.Note, max: a.MaxNote, optional: true})
	}
	return list
}

// schema writes the JSON Schema that models get.
func (a *Action) schema() []byte {
	b := []byte(`{"type":"object","properties":{`)
	required := []string{}
	for i, arg := range a.arguments() {
		if i > 0 {
			b = append(b, ',')
		}
		b = arg.appendSchema(b)
		if !arg.optional {
			required = append(required, arg.name)
		}
	}
	b = appendStrings(append(b, `},"required":`...), required)
	return append(b, `,"additionalProperties":false}`...)
}

func (g *argument) appendSchema(b []byte) []byte {
	b = append(strictjson.AppendString(b, g.name), `:{"type":`...)
	if g.optional {
		b = append(b, `["string","null"]`...)
	} else {
		b = append(b, `"string"`...)
	}
	if g.hint != "" {
		b = strictjson.AppendString(append(b, `,"description":`...), g.hint)
	}
	if g.enum != nil {
		return append(appendStrings(append(b, `,"enum":`...), g.enum), '}')
	}
	if g.min > 0 {
		b = strictjson.AppendInt(append(b, `,"minLength":`...), int64(g.min))
	}
	if g.max != maxResource {
		b = strictjson.AppendInt(append(b, `,"maxLength":`...), int64(g.max))
	}
	return append(b, '}')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, s)
	}
	return append(b, ']')
}

func (a *Action) propose(arguments abi.Raw) (*Proposal, error) {
	values, err := a.read(arguments)
	if err != nil {
		return nil, err
	}
	n := a.Arguments
	p := &Proposal{action: a, resource: values[n.Resource], current: values[n.Current], requested: values[n.Requested], summary: values[n.Summary]}
	if n.Note != "" {
		p.note = values[n.Note]
	}
	switch {
	case p.resource == "":
		return nil, refuse(CodeProposal, "argument %s must not be blank", n.Resource)
	case p.summary == "":
		return nil, refuse(CodeProposal, "argument %s must not be blank", n.Summary)
	case !plain(p.resource):
		return nil, refuse(CodeProposal, "argument %s must not contain control or invisible characters", n.Resource)
	}
	return p, nil
}

// plain tells whether text shows all that it is, on one line: a resource is
// signed, and what a person cannot see they cannot approve.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	})
}

// value is one member of the proposed arguments, read once.
type value struct {
	name string
	kind strictjson.Kind
	text string
}

// read holds arguments against the schema in the contract's order (5.5) and
// returns the trimmed texts.
func (a *Action) read(arguments abi.Raw) (map[string]string, error) {
	members, err := decodeArguments(arguments)
	if err != nil {
		return nil, err
	}
	known := a.arguments()
	find := func(name string) int {
		return slices.IndexFunc(members, func(v value) bool { return v.name == name })
	}
	for _, m := range members {
		if !slices.ContainsFunc(known, func(g argument) bool { return g.name == m.name }) {
			return nil, refuse(CodeSchema, "unknown argument %s", m.name)
		}
	}
	for _, g := range known {
		if i := find(g.name); !g.optional && (i < 0 || members[i].kind == strictjson.Null) {
			return nil, refuse(CodeSchema, "missing required argument %s", g.name)
		}
	}
	values := map[string]string{}
	for _, m := range members {
		g := known[slices.IndexFunc(known, func(g argument) bool { return g.name == m.name })]
		if err := g.check(m); err != nil {
			return nil, err
		}
		values[m.name] = strings.TrimSpace(m.text)
	}
	return values, nil
}

func (g *argument) check(v value) error {
	switch {
	case v.kind == strictjson.Null && g.optional:
		return nil
	case v.kind != strictjson.String && g.optional:
		return refuse(CodeSchema, "argument %s must be string or null", g.name)
	case v.kind != strictjson.String:
		return refuse(CodeSchema, "argument %s must be string", g.name)
	case g.enum != nil:
		if !slices.Contains(g.enum, v.text) {
			return refuse(CodeSchema, "argument %s must be one of the allowed values", g.name)
		}
		return nil
	}
	if n := utf8.RuneCountInString(v.text); n < g.min || n > g.max {
		return fault.Coded(fault.Invalid, CodeSchema, "argument %s has the wrong length (allowed %d..=%d characters)", quote(g.name), g.min, g.max)
	}
	return nil
}

func refuse(code, format, name string) error {
	return fault.Coded(fault.Invalid, code, format, quote(name))
}

func decodeArguments(arguments abi.Raw) ([]value, error) {
	if len(arguments) > maxArguments {
		return nil, fault.Coded(fault.Limit, CodeSchema, "tool arguments are too large")
	}
	if len(bytes.TrimSpace(arguments)) == 0 {
		return nil, nil
	}
	if err := strictjson.Valid(arguments); err != nil {
		return nil, fault.Coded(fault.Invalid, CodeSchema, "tool arguments are not valid JSON: %w", err)
	}
	d := strictjson.NewDecoder(arguments)
	if d.Kind() != strictjson.Object {
		return nil, fault.Coded(fault.Invalid, CodeSchema, "arguments must be a JSON object")
	}
	var members []value
	err := d.Object(func(name string) (err error) {
		v := value{name: name, kind: d.Kind()}
		if v.kind == strictjson.String {
			v.text, err = d.String()
		} else {
			err = d.Skip()
		}
		members = append(members, v)
		return err
	})
	return members, err
}
