package config

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Where a value comes from.
const (
	SourceDefault      = "default"
	SourceFile         = "file"
	SourceVariable     = "variable"
	SourceVariableFile = "variable's file"
)

// Setting is one value in force, with where it comes from. It may be printed:
// a secret reads "[redacted]", and so does what an address carries beside a host
// and a path.
type Setting struct {
	Key    string `json:"key"`   // dotted key of agent.toml, or a variable that overrules none
	Value  any    `json:"value"` // null: not set
	Source string `json:"source"`
	From   string `json:"from,omitempty"` // the variable, or the key of agent.toml that holds instead
	Hot    bool   `json:"hot"`            // a reload applies it
}

// origin is where a value comes from.
type origin struct{ source, from string }

// Settings lists every value of the configuration and every variable that the
// host reads, in the order of [Keys] and [Variables].
func (c *Config) Settings() []Setting {
	var list []Setting
	c.eachValue(reflect.ValueOf(c).Elem(), "", func(name string, v any) {
		o := c.origin(name)
		list = append(list, Setting{Key: name, Value: v, Source: o.source, From: o.from, Hot: reloads(name)})
	})
	return append(list, c.variables...)
}

// eachValue calls visit for every key in force with its value as agent.toml
// would have it.
func (c *Config) eachValue(table reflect.Value, path string, visit func(name string, v any)) {
	for _, f := range reflect.VisibleFields(table.Type()) {
		tag := f.Tag.Get("toml")
		if tag == "" || tag == "-" {
			continue
		}
		v, name := table.FieldByIndex(f.Index), strings.TrimPrefix(path+"."+tag, ".")
		switch t := v.Type(); {
		case t == reflect.TypeFor[Plugins]():
			c.eachValue(v, name, visit)
			for i := range c.Plugins.List {
				c.eachOfPlugin(&c.Plugins.List[i], visit)
			}
		case t == reflect.TypeFor[Prompts]():
			for _, prompt := range slices.Sorted(maps.Keys(c.Prompts)) {
				visit(name+"."+prompt, c.Prompts[prompt].Path)
			}
		case t == reflect.TypeFor[Variants]():
			visit(name, c.Variants.said())
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, key := range keys {
				c.eachValue(v.MapIndex(key), name+"."+key.String(), visit)
			}
		case t.Kind() == reflect.Struct:
			c.eachValue(v, name, visit)
		default:
			visit(name, printable(plain(v)))
		}
	}
}

func (c *Config) eachOfPlugin(p *Plugin, visit func(name string, v any)) {
	at := "plugins." + p.Name
	c.eachValue(reflect.ValueOf(p).Elem(), at, func(name string, v any) {
		if p.Name == c.Agent.Workflow && slices.Contains(guardKeys(), strings.TrimPrefix(name, at+".")) {
			return // a workflow has none
		}
		visit(name, v)
	})
	for _, key := range slices.Sorted(maps.Keys(p.config)) {
		visit(at+".config."+key, hidden(key, p.config[key]))
	}
}

// origin says where a key's value comes from.
func (c *Config) origin(name string) origin {
	if o, ok := c.origins[name]; ok {
		return o
	}
	// What a plugin does not say holds as [plugins.defaults] says.
	if parts := strings.Split(name, "."); len(parts) == 3 && parts[0] == "plugins" {
		all := "plugins.defaults." + parts[2]
		if o, ok := c.origins[all]; ok {
			return origin{o.source, all}
		}
	}
	return origin{source: SourceDefault}
}

// wrote notes the keys that stand in the document.
func (l *ledger) wrote(path []string, table map[string]any) {
	for name, v := range table {
		p := child(path, name)
		l.origin(strings.Join(p, "."), origin{source: SourceFile})
		if sub, ok := v.(map[string]any); ok {
			l.wrote(p, sub)
		}
	}
}

func (l *ledger) origin(key string, o origin) {
	if l.origins == nil {
		l.origins = map[string]origin{}
	}
	l.origins[key] = o
}

// settings lists the variables that overrule no key of agent.toml.
func (e environment) settings() []Setting {
	var list []Setting
	for _, v := range Variables() {
		if v.Key != "" || v.Kind == KindIgnored {
			continue
		}
		s := Setting{Key: v.Name, Source: SourceDefault}
		text, _ := e.get(v.Name)
		if strings.TrimSpace(text) != "" {
			s.Value, s.Source, s.From = text, SourceVariable, v.Name
		}
		if v.secret() {
			if path, _ := e.get(v.Name + fileSuffix); strings.TrimSpace(path) != "" {
				s.Source, s.From = SourceVariableFile, v.Name+fileSuffix
			}
			if s.Source != SourceDefault {
				s.Value = redacted
			}
		}
		s.Value = printable(hidden(v.Name, s.Value))
		list = append(list, s)
	}
	return list
}

// hidden replaces what stands under a name that sounds like a secret.
func hidden(name string, v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := map[string]any{}
		for key, sub := range v {
			out[key] = hidden(key, sub)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = hidden("", sub)
		}
		return out
	case []map[string]any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = hidden("", sub)
		}
		return out
	}
	if secretName(name) || strings.HasSuffix(strings.ToUpper(name), "HEADERS") {
		return redacted
	}
	return v
}

// printable takes user, password, query and fragment out of addresses.
func printable(v any) any {
	text, ok := v.(string)
	if !ok || !strings.Contains(text, "://") {
		return v
	}
	list := strings.Split(text, ",")
	for i, address := range list {
		u, err := url.Parse(strings.TrimSpace(address))
		switch {
		case err != nil:
			list[i] = redacted
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			list[i] = u.Scheme + "://" + redacted + "@" + u.Host + u.Path
		}
	}
	return strings.Join(list, ",")
}
