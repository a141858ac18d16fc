package config

import (
	"maps"
	"slices"
	"strings"
)

// applyEnvironment sets the keys of the plugin's configuration that an
// environment variable overrules.
func (p *Plugin) applyEnvironment(file string, env environment, l *ledger) {
	for _, key := range slices.Sorted(maps.Keys(p.Env)) {
		path := []string{"plugins", p.Name, "env", key}
		b := p.Env[key]
		if text := p.refuseBinding(key, b); text != "" {
			l.key(file, path, "%s", text)
			continue
		}
		v := Variable{Name: b.Variable, Kind: bindingKind(p.config[key]), Floor: b.Floor}
		if val, ok := env.read(v, l); ok {
			p.config[key] = val.of(v.Kind)
			l.overrule("plugins."+p.Name+".config."+key, v.Name)
		}
		if n, ok := p.config[key].(int64); ok && n < int64(b.Floor) {
			l.key(file, []string{"plugins", p.Name, "config", key}, "expected at least %d, got %d", b.Floor, n)
		}
	}
	if err := p.encode(); err != nil {
		l.key(file, []string{"plugins", p.Name, "config"}, "%v", err)
	}
}

// refuseBinding says what is wrong with a binding, "" if nothing is.
func (p *Plugin) refuseBinding(key string, b Binding) string {
	current, there := p.config[key]
	kind := bindingKind(current)
	switch {
	case b.Variable == "":
		return `expected { variable = "NAME" }`
	case secretName(b.Variable):
		return "expected a variable without a secret: a plugin's configuration never holds one"
	case !there:
		return "expected a key that stands in [plugins." + p.Name + ".config], so that its type is known"
	case kind == "":
		return "expected a key that is a string, a whole number, or true or false, got " + kindOf(current)
	case b.Floor != 0 && kind != KindInt:
		return "expected no floor: the key is " + kindOf(current)
	}
	return ""
}

func bindingKind(v any) Kind {
	switch v.(type) {
	case string:
		return KindText
	case int64:
		return KindInt
	case bool:
		return KindBool
	}
	return ""
}

// of is the value as TOML would have given it.
func (v value) of(k Kind) any {
	switch k {
	case KindInt:
		return int64(v.n)
	case KindBool:
		return v.on
	}
	return v.text
}

// secretName tells whether a variable holds a secret, or sounds as if it did.
func secretName(name string) bool {
	for _, v := range Variables() {
		if v.secret() && (name == v.Name || name == v.Name+fileSuffix) {
			return true
		}
	}
	for _, suffix := range []string{"KEY", "SECRET", "TOKEN", "PASSWORD", "CREDENTIALS"} {
		if strings.HasSuffix(strings.TrimSuffix(strings.ToUpper(name), fileSuffix), suffix) {
			return true
		}
	}
	return false
}
