package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Base is how runs outside of every variant are called where there are some.
const Base = "base"

// maxVariants bounds them: each is a policy in memory and a value in metrics.
const maxVariants = 16

var variantName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Variants is every [[variant]] in the order of the file. Policy.
type Variants []Variant

// Variant is one [[variant]]: what a share of the users gets in place of some of
// the base. All but its name and its share is in agent.toml's own words and laid
// over what the base says, environment variables included; what comes of it is
// checked as the base is.
type Variant struct {
	// Name is [a-z0-9-], at most 32 bytes. Required, and not "base".
	Name string `toml:"name"`
	// Share is its part of the users, 0 to 1; those of all variants add up to
	// at most 1. Required. With 0 it is checked and nobody gets it.
	Share float64 `toml:"share"`
	// Guards are its guardrails in the order in which they run. Default those
	// of the base, then its own in the order of the file.
	Guards  []string       `toml:"guards"`
	Agent   VariantAgent   `toml:"agent"`
	Prompts Prompts        `toml:"prompts"`
	Model   VariantModels  `toml:"model"`
	Plugins VariantPlugins `toml:"plugins"`

	// Config is the whole configuration of its runs, which has no variants.
	Config *Config `toml:"-"`

	tree    map[string]any // as it stands in the file
	decoder *decoder
}

// VariantAgent is [variant.agent].
type VariantAgent struct {
	Workflow string `toml:"workflow"` // as Agent's
}

// VariantModels is [variant.model].
type VariantModels struct {
	Agent VariantModel `toml:"agent"`
	Guard VariantModel `toml:"guard"`
}

// VariantModel is [variant.model.agent] or [variant.model.guard]: another model
// at the address that the base has. The keys are Model's.
type VariantModel struct {
	Name            string  `toml:"name"`
	ReasoningEffort string  `toml:"reasoning_effort"`
	Temperature     float64 `toml:"temperature"`
	MaxTokens       int     `toml:"max_tokens"`
}

// VariantPlugins is [variant.plugins]: tables as Plugin's, without env.
type VariantPlugins map[string]any

// decodeList reads what each element says of itself. What it changes is read
// when the base is known.
func (v *Variants) decodeList(d *decoder, path []string, list []map[string]any) {
	for i, table := range list {
		one := Variant{tree: table}
		name, _ := table["name"].(string)
		if !variantName.MatchString(name) {
			name = strconv.Itoa(i + 1)
		}
		own := *d
		own.under = path
		own.ledger = &ledger{under: child(path, name)}
		one.decoder = &own
		for key, into := range map[string]any{"name": &one.Name, "share": &one.Share, "guards": &one.Guards} {
			if value, ok := table[key]; ok {
				own.value([]string{key}, value, reflect.ValueOf(into).Elem())
			}
		}
		*v = append(*v, one)
	}
}

// said is what stands in the file, for people.
func (v Variants) said() []any {
	out := make([]any, len(v))
	for i := range v {
		out[i] = hidden("", v[i].tree)
	}
	return out
}

// layOver makes every variant's configuration.
func (v Variants) layOver(base *Config, l *ledger, keyless bool) {
	sum := 0.0
	problems := slices.Clone(l.errs)
	for i := range v {
		one := &v[i]
		own := one.decoder.ledger
		own.known, own.overruled = problems, maps.Clone(l.overruled)
		own.forget(one.tree, nil)
		sum += one.Share
		one.checkHead(v[:i], sum)
		one.layOver(base)
		one.Config.validate(own, keyless)
		for _, w := range one.Config.Warnings {
			if !slices.Contains(base.Warnings, w) {
				base.warn("variant " + one.Name + ": " + w)
			}
		}
		l.errs = append(l.errs, own.errs...)
	}
	if len(v) > maxVariants {
		l.key(base.file(), []string{"variant"}, "expected at most %d, got %d", maxVariants, len(v))
	}
}

// forget lets a variant's own keys count as its own, where a variable has set
// the base's.
func (l *ledger) forget(tree map[string]any, path []string) {
	for name, value := range tree {
		delete(l.overruled, strings.Join(child(path, name), "."))
		if table, ok := value.(map[string]any); ok {
			l.forget(table, child(path, name))
		}
	}
}

// checkHead checks name and share, with those of the ones before it.
func (v *Variant) checkHead(before Variants, sum float64) {
	refuse := func(key, format string, args ...any) {
		v.decoder.ledger.key(v.decoder.file, []string{key}, format, args...)
	}
	same := func(other Variant) bool { return other.Name == v.Name }
	switch {
	case !variantName.MatchString(v.Name):
		refuse("name", "expected a name of a-z, 0-9 and -, at most 32, got %q", shorten(v.Name))
	case v.Name == Base:
		refuse("name", "expected another name: %q is what everybody gets who has no variant", Base)
	case slices.ContainsFunc(before, same):
		refuse("name", "expected each name once, got %q again", v.Name)
	}
	const rounding = 1e-9
	_, said := v.tree["share"]
	switch {
	case !said:
		refuse("share", "expected its part of the users, 0 to 1")
	case !(v.Share >= 0 && v.Share <= 1): // nan too
		refuse("share", "expected 0 to 1, got %g", v.Share)
	case sum > 1+rounding:
		refuse("share", "expected shares that add up to at most 1, they are %.6g up to here", sum)
	}
}

// layOver reads the rest and lays it over the base.
func (v *Variant) layOver(base *Config) {
	c := *base
	c.Variants, c.Warnings = nil, nil
	c.Plugins.List, c.Prompts = slices.Clone(base.Plugins.List), maps.Clone(base.Prompts)
	v.Config = &c

	d := v.decoder
	tree := d.only(nil, v.tree, reflect.TypeFor[Variant]())
	for _, known := range []string{"name", "share", "guards"} {
		delete(tree, known)
	}
	v.Agent.Workflow = c.Agent.Workflow
	v.Model.Agent.take(&c.Model.Agent)
	v.Model.Guard.take(&c.Model.Guard)
	d.table(nil, tree, reflect.ValueOf(v).Elem())

	c.Agent.Workflow = v.Agent.Workflow
	v.Model.Agent.give(&c.Model.Agent)
	v.Model.Guard.give(&c.Model.Guard)
	if c.Prompts == nil {
		c.Prompts = Prompts{}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Prompts)) {
		c.Prompts[name] = v.Prompts[name]
		c.readPrompt(name, d.ledger)
	}
	v.layPlugins(base)
}

func (m *VariantModel) take(from *Model) {
	*m = VariantModel{from.Name, from.ReasoningEffort, from.Temperature, from.MaxTokens}
}

func (m *VariantModel) give(to *Model) {
	to.Name, to.ReasoningEffort, to.Temperature, to.MaxTokens = m.Name, m.ReasoningEffort, m.Temperature, m.MaxTokens
}

// only returns the keys of a tree that a variant can have, and refuses the
// others: most of them need a restart, so they are the same for all.
func (d *decoder) only(path []string, tree map[string]any, t reflect.Type) map[string]any {
	fields := fieldsOf(t)
	out := map[string]any{}
	for _, name := range d.names(path, tree) {
		f, ok := fields[name]
		if !ok {
			d.ledger.key(d.file, child(path, name), "expected one of %s: nothing else can differ from the base",
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
			continue
		}
		out[name] = tree[name]
		sub, isTable := tree[name].(map[string]any)
		if at := t.FieldByIndex(f).Type; isTable && at.Kind() == reflect.Struct {
			out[name] = d.only(child(path, name), sub, at)
		}
	}
	return out
}

// decodeTable keeps the tables until the base's are known.
func (p *VariantPlugins) decodeTable(_ *decoder, _ []string, table map[string]any) { *p = table }

// layPlugins makes the variant's plugins: the workflow, then its guardrails in
// their order.
func (v *Variant) layPlugins(base *Config) {
	c, d := v.Config, v.decoder
	for _, name := range d.names([]string{"plugins"}, v.Plugins) {
		path := []string{"plugins", name}
		table, ok := v.Plugins[name].(map[string]any)
		if !d.expect(ok, path, "the table of a plugin", v.Plugins[name]) {
			continue
		}
		p := c.Plugins.Plugin(name)
		if p == nil {
			c.Plugins.List = append(c.Plugins.List, c.Plugins.fresh(name))
			p = &c.Plugins.List[len(c.Plugins.List)-1]
		}
		p.layOver(c, d, path, table)
	}
	v.order(base)
}

// layOver lays a table over a plugin.
func (p *Plugin) layOver(c *Config, d *decoder, path []string, table map[string]any) {
	if _, ok := table["env"]; ok {
		d.ledger.key(d.file, child(path, "env"), "expected no variables: they set what the base says, and a variant says what it differs in")
		table = maps.Clone(table)
		delete(table, "env")
	}
	module, config, written := p.Module, p.config, p.written
	p.Module = ""
	p.decode(d, path, table)
	if p.Module != "" || module == "" {
		p.resolve(c)
	} else {
		p.Module = module
	}
	if _, ok := table["config"]; ok {
		p.config = laidOver(config, p.config)
	}
	p.written = maps.Clone(p.written)
	maps.Copy(p.written, written)
	if err := p.encode(); err != nil {
		d.ledger.key(d.file, child(path, "config"), "%v", err)
	}
}

// laidOver is a table with another laid over it: its tables over the other's of
// the same name, everything else in its place.
func laidOver(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range over {
		below, ok := out[name].(map[string]any)
		table, isTable := value.(map[string]any)
		if ok && isTable {
			value = laidOver(below, table)
		}
		out[name] = value
	}
	return out
}

// order keeps the plugins that run in the variant.
func (v *Variant) order(base *Config) {
	c, l := v.Config, v.decoder.ledger
	all := c.Plugins
	names := v.Guards
	if names == nil {
		for _, p := range all.List {
			if p.Name != c.Agent.Workflow && p.Name != base.Agent.Workflow {
				names = append(names, p.Name)
			}
		}
	}
	c.Plugins.List = nil
	if p := all.Plugin(c.Agent.Workflow); p != nil {
		c.Plugins.List = append(c.Plugins.List, *p)
	}
	for i, name := range names {
		p := all.Plugin(name)
		switch {
		case p == nil || name == c.Agent.Workflow:
			l.key(c.file(), []string{"guards"}, "expected names of [plugins.<name>] tables but the workflow's, got %q", shorten(name))
		case slices.Index(names, name) < i:
			l.key(c.file(), []string{"guards"}, "expected each guardrail once, got %q again", shorten(name))
		default:
			c.Plugins.List = append(c.Plugins.List, *p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Plugins)) {
		if c.Plugins.Plugin(name) == nil && all.Plugin(name) != nil {
			l.key(c.file(), []string{"plugins", name}, "expected a plugin that runs in this variant: it is not the workflow, and guards does not list it")
		}
	}
}

// Pin is the name under which agent.lock has a module or a prompt of the variant
// that is another one than the base's of that name.
func (v *Variant) Pin(name string) string { return "variant." + v.Name + "." + name }
