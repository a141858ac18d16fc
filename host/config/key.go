package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Key is one key that agent.toml may have, as people read of it. All but its
// meaning follows from the program: type and default from the Config, variable
// and whether it is hot from the tables that the program itself obeys.
type Key struct {
	Name     string // dotted; <name> stands for a name that the operator chooses
	Type     string
	Default  string // as agent.toml writes it, or a word in brackets
	Variable string // that overrules it; empty: none
	Hot      bool   // a reload applies it; else only a start reads it
	Meaning  string // one sentence
}

// Keys lists every key in the order of the Config's fields.
func Keys() []Key {
	variables := map[string]string{}
	for _, v := range Variables() {
		if v.Key != "" {
			variables[v.Key] = v.Name
		}
	}
	notes := notes()
	var list []Key
	eachKey(reflect.ValueOf(defaults()).Elem(), "", func(name string, v reflect.Value) {
		n := notes[name]
		k := Key{Name: name, Type: typeName(v.Type()), Default: n.def, Variable: variables[name], Hot: reloads(name), Meaning: n.meaning}
		if k.Default == "" {
			k.Default = string(literal(plain(v)))
		}
		list = append(list, k)
	})
	return list
}

// reloads tells whether a reload applies a key.
func reloads(name string) bool {
	return !slices.ContainsFunc(startKeys(), func(k startKey) bool {
		return k.key != "" && (name == k.key || strings.HasPrefix(name, k.key+"."))
	})
}

// eachKey calls visit for every key of a Config's type, with the default's
// value; a table that may exist many times is visited once, with its presets.
func eachKey(table reflect.Value, path string, visit func(name string, v reflect.Value)) {
	for _, f := range reflect.VisibleFields(table.Type()) {
		tag := f.Tag.Get("toml")
		if tag == "" || tag == "-" {
			continue
		}
		v, name := table.FieldByIndex(f.Index), strings.TrimPrefix(path+"."+tag, ".")
		switch t := v.Type(); {
		case t == reflect.TypeFor[Plugins]():
			eachKey(v, name, visit)
			p := Plugin{Config: []byte("{}")}
			eachKey(reflect.ValueOf(&p).Elem(), name+".<name>", visit)
			visit(name+".<name>.config.<key>", reflect.ValueOf(map[string]any{}))
		case t == reflect.TypeFor[Prompts]():
			visit(name+".<name>", reflect.ValueOf(""))
		case t == reflect.TypeFor[VariantPlugins]():
			visit(name+".<name>.<key>", reflect.ValueOf(map[string]any{}))
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
			one := reflect.New(t.Elem())
			if p, ok := one.Interface().(presetter); ok {
				p.preset()
			}
			eachKey(one.Elem(), name+".<name>", visit)
		case t.Kind() == reflect.Struct:
			eachKey(v, name, visit)
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			eachKey(reflect.New(t.Elem()).Elem(), name, visit)
		default:
			visit(name, v)
		}
	}
}

func typeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case t == sizeType:
		return "size"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of strings"
	}
	return "any value"
}

// plain is a value of a Config as agent.toml would have it.
func plain(v reflect.Value) any {
	switch v.Type() {
	case durationType:
		return shortDuration(time.Duration(v.Int()))
	case sizeType:
		return Size(v.Int()).String()
	}
	switch v.Kind() {
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range v.Len() {
			list[i] = plain(v.Index(i))
		}
		return list
	case reflect.Struct:
		table := map[string]any{}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if tag := f.Tag.Get("toml"); tag != "" && tag != "-" {
				table[tag] = plain(v.FieldByIndex(f.Index))
			}
		}
		return table
	}
	return v.Interface()
}

// shortDuration leaves out the zeros behind: 15m, not 15m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// literal writes a value on one line, as JSON and, but for tables, TOML do.
func literal(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("config: a checked value is not JSON: " + err.Error())
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
