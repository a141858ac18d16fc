package abi_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/abi"
)

func compile(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	schemas := map[string]*jsonschema.Schema{}
	for _, name := range names() {
		s, err := c.Compile("schema/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		schemas[name] = s
	}
	return schemas
}

func TestGoldensFollowTheirSchemas(t *testing.T) {
	schemas := compile(t)
	for name := range goldens {
		kind, _, _ := strings.Cut(name, "/")
		file, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas[kind].Validate(parse(t, file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func parse(t *testing.T, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSchemasMatchTheTypes compares members, and which are required, with the
// struct tags.
func TestSchemasMatchTheTypes(t *testing.T) {
	for _, name := range names() {
		data, err := os.ReadFile("schema/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Schema               string `json:"$schema"`
			Title                string
			Description          string
			Type                 string
			AdditionalProperties *bool
			Required             []string
			Properties           map[string]json.RawMessage
		}
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		typ := reflect.TypeOf(messages[name]()).Elem()
		if s.Schema != "https://json-schema.org/draft/2020-12/schema" || s.Title != typ.Name() || s.Description == "" {
			t.Errorf("%s: $schema %q, title %q, description %q", name, s.Schema, s.Title, s.Description)
		}
		if name == "tool_set" {
			continue // a union, see TestToolSetForms
		}
		if s.Type != "object" || s.AdditionalProperties == nil || *s.AdditionalProperties {
			t.Errorf("%s: not a closed object", name)
		}
		var all, required []string
		members(typ, &all, &required)
		have := []string{}
		for p := range s.Properties {
			have = append(have, p)
		}
		slices.Sort(have)
		slices.Sort(all)
		if !slices.Equal(have, all) {
			t.Errorf("%s: properties %q, the type has %q", name, have, all)
		}
		if !slices.Equal(s.Required, required) {
			t.Errorf("%s: required %q, the type has %q", name, s.Required, required)
		}
	}
}

func members(typ reflect.Type, all, required *[]string) {
	for f := range typ.Fields() {
		if f.Anonymous {
			members(f.Type, all, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		*all = append(*all, name)
		if options == "" {
			*required = append(*required, name)
		}
	}
}

// TestRefusedByCodecAndSchema breaks every golden file at every object in it in
// every way that a form can be broken; both must refuse each result, and both
// accept the file (see above), which is the control.
func TestRefusedByCodecAndSchema(t *testing.T) {
	schemas := compile(t)
	broken := 0
	for name, m := range goldens {
		kind, _, _ := strings.Cut(name, "/")
		v := parse(t, m.AppendJSON(nil))
		typ := reflect.TypeOf(m).Elem()
		breakAll(v, typ, func(what string) {
			broken++
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := messages[kind]().DecodeJSON(data); err == nil {
				t.Errorf("%s: the codec accepts %s: %s", name, what, data)
			}
			if err := schemas[kind].Validate(v); err == nil {
				t.Errorf("%s: the schema accepts %s: %s", name, what, data)
			}
		})
	}
	if broken < 1000 {
		t.Errorf("only %d broken messages", broken)
	}
}

// breakAll changes v, the value of a message of type typ, in place, calls try
// with each change, and takes it back.
func breakAll(v any, typ reflect.Type, try func(what string)) {
	o, ok := v.(map[string]any)
	if !ok || typ.Kind() != reflect.Struct {
		return
	}
	o["unknown"] = "x"
	try("an unknown member")
	delete(o, "unknown")
	var required []string
	fields := map[string]reflect.Type{}
	var all []string
	members(typ, &all, &required)
	types(typ, fields)
	for _, name := range all {
		old, there := o[name]
		if !there {
			continue
		}
		if slices.Contains(required, name) {
			delete(o, name)
			try("no " + name)
		}
		delete(o, name)
		upper := string(unicode.ToUpper(rune(name[0]))) + name[1:]
		o[upper] = old
		try(upper)
		delete(o, upper)
		for _, wrong := range wrongs(fields[name], name) {
			o[name] = wrong
			try("another kind of " + name)
		}
		o[name] = old
		inner := fields[name]
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if list, ok := old.([]any); ok {
			for _, item := range list {
				breakAll(item, inner, try)
			}
		} else {
			breakAll(old, inner, try)
		}
	}
}

func types(typ reflect.Type, to map[string]reflect.Type) {
	for f := range typ.Fields() {
		if f.Anonymous {
			types(f.Type, to)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		to[name] = f.Type
	}
}

// wrongs returns values that a member of the type cannot have.
func wrongs(typ reflect.Type, name string) []any {
	if typ == reflect.TypeFor[abi.Raw]() {
		switch name {
		case "config", "arguments", "decision", "request", "expect", "config_schema":
			return []any{nil, "x", json.Number("1"), []any{}}
		}
		return nil // any value
	}
	if typ == reflect.TypeFor[*abi.ToolSet]() {
		return []any{nil, "some", json.Number("1"), []any{json.Number("1")}}
	}
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.String:
		return []any{nil, json.Number("1"), []any{"x"}, true}
	case reflect.Int, reflect.Int64:
		return []any{nil, "1", json.Number("1.5"), true}
	case reflect.Float64:
		return []any{nil, "1", true}
	case reflect.Bool:
		return []any{nil, "true", json.Number("1")}
	case reflect.Slice:
		other := any(json.Number("1")) // no kind of item
		if typ.Elem().Kind() == reflect.Int {
			other = "1"
		}
		return []any{nil, "x", map[string]any{}, []any{nil}, []any{other}}
	}
	return []any{nil, "x", []any{}}
}
