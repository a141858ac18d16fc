package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"time"

	"weir/abi"
	"weir/abi/strictjson"
)

// Failure policies and modes of a guardrail.
const (
	OnErrorBlock = "block"
	OnErrorAllow = "allow"
	ModeEnforce  = "enforce"
	ModeMonitor  = "monitor"
)

// guardKeys are the keys of a plugin's table that a workflow has not.
func guardKeys() []string { return []string{"on_error", "mode", "roles"} }

// CacheOff as [plugins] cache keeps compiled modules in memory only.
const CacheOff = "off"

// What a module or prompt means that is not the one which agent.lock names.
const (
	LockWarn    = "warn"
	LockRequire = "require"
)

// LockName is the file beside the modules that pins digests.
const LockName = "agent.lock"

// Plugins is [plugins]. Cache and TotalMemory need a restart; the rest is policy, or says
// where to find it.
type Plugins struct {
	// Dir holds the modules. Default "plugins/dist".
	Dir string `toml:"dir"`
	// Cache is the folder of compiled modules, by default ".cache" in Dir;
	// "off" compiles at every start, about two seconds for each Go module.
	// Empty after Load means off.
	Cache string `toml:"cache"`
	// TotalMemory bounds the instances of all plugins together; calls wait for
	// it. Default 0B: 128MiB for each processor, at least 1GiB. Restart.
	TotalMemory Size `toml:"total_memory"`
	// Lock says what happens to a module or prompt whose digest is not the one
	// that agent.lock in Dir names: "warn" (the default) loads it and says so,
	// "require" refuses it. A tool that differs is refused in both.
	Lock string `toml:"lock"`
	// Defaults hold for every plugin that does not say otherwise.
	Defaults PluginDefaults `toml:"defaults"`
	// List is every [plugins.<name>] table in the order in which the file
	// first mentions it; guardrails run in this order.
	List []Plugin `toml:"-"`
}

// PluginDefaults is [plugins.defaults].
type PluginDefaults struct {
	OnError string `toml:"on_error"` // as Plugin's; default "block"
	Mode    string `toml:"mode"`     // as Plugin's; default "enforce"
	Limits
}

// Limits bound one plugin; each of them is the plugin's own.
type Limits struct {
	// Memory bounds one instance, 1MiB to 4GiB. Default 64MiB. A Go module
	// needs 3 to 5MiB at rest; too little and calls fail.
	Memory Size `toml:"memory"`
	// Reply bounds one reply, 1KiB to 64MiB. Default 4MiB.
	Reply Size `toml:"reply"`
	// Timeout is how long one call may run; waiting for an instance or a
	// processor does not count. Default 0s: by hook, 50ms for checks and 200ms
	// for step. At most 5m. Too short and a large request fails; too long and
	// a bad plugin holds its request.
	Timeout time.Duration `toml:"timeout"`
	// TimeoutPerKiB is added for each KiB of the request. Default 0s: 1ms, and
	// nothing for check_output. At most 1s.
	TimeoutPerKiB time.Duration `toml:"timeout_per_kib"`
	// SetupTimeout is the time of describe, configure and initialisation,
	// each. Default 10s.
	SetupTimeout time.Duration `toml:"setup_timeout"`
	// Fuel bounds what one call may compute, in instructions of the module; it
	// means the same on every machine. Default 4 billion, so that the time
	// ends a call first; at most a million million.
	Fuel int `toml:"fuel"`
	// Wait is how long a call waits for an instance. Default 5s, at most 5m.
	// Too short and a burst of requests fails its guards, which block; too
	// long and clients wait in a queue that does not move.
	Wait time.Duration `toml:"wait"`
	// Instances bounds how many calls run at once; the next ones wait.
	// Default 0: twice the processors. Many instances cost memory each.
	Instances int `toml:"instances"`
}

// Plugin is [plugins.<name>]: one module, with what it may use and what it is
// told. Policy.
type Plugin struct {
	// Name is the table's, [a-z0-9-], at most 64 bytes.
	Name string `toml:"-"`
	// Module is the file's path. Default <dir>/<name>.wasm.
	Module string `toml:"module"`
	// OnError is what a failure of a guardrail means: "block" or "allow".
	// A workflow has none: its failure ends the run.
	OnError string `toml:"on_error"`
	// Mode of a guardrail is "enforce" or "monitor": then it judges beside the
	// run, reports what it would have done, and changes nothing.
	Mode string `toml:"mode"`
	Limits
	// Roles lets the plugin see the user's roles. Default false.
	Roles bool `toml:"roles"`
	// Log writes the plugin's own lines to stderr; they may quote what a user
	// wrote. Default false.
	Log bool `toml:"log"`
	// Prompts are the names in [prompts] whose text the plugin gets.
	Prompts []string `toml:"prompts"`
	// Env lets environment variables set keys of the plugin's configuration.
	Env map[string]Binding `toml:"env"`
	// Config is the plugin's own configuration, [plugins.<name>.config], as
	// canonical JSON; {} when there is none.
	Config abi.Raw `toml:"-"`

	config  map[string]any  // Config before it is resolved
	written map[string]bool // keys that stand in the table
}

// Binding is [plugins.<name>.env] <key>: the environment variable that
// overrules one top-level key of the plugin's configuration. How its text is
// read follows from the value that the key has in agent.toml: a string, a
// whole number, or true or false.
type Binding struct {
	Variable string `toml:"variable"`
	// Floor is the least of a whole number; a smaller one from the
	// environment is raised to it.
	Floor int `toml:"floor"`
}

// decodeTable reads the keys of [plugins] and every other table as a plugin.
func (p *Plugins) decodeTable(d *decoder, path []string, table map[string]any) {
	fields := fieldsOf(reflect.TypeFor[Plugins]())
	into := reflect.ValueOf(p).Elem()
	// The defaults come first, so that they hold for plugins above them too.
	for _, name := range d.names(path, table) {
		if f, ok := fields[name]; ok {
			d.value(child(path, name), table[name], into.FieldByIndex(f))
		}
	}
	for _, name := range d.names(path, table) {
		if _, ok := fields[name]; ok {
			continue
		}
		sub, ok := table[name].(map[string]any)
		if !ok {
			d.unknown(child(path, name), fields)
			continue
		}
		plugin := p.fresh(name)
		plugin.decode(d, child(path, name), sub)
		p.List = append(p.List, plugin)
	}
}

// fresh is a plugin of which nothing is said.
func (p *Plugins) fresh(name string) Plugin {
	return Plugin{Name: name, OnError: p.Defaults.OnError, Mode: p.Defaults.Mode, Limits: p.Defaults.Limits}
}

func (p *Plugin) decode(d *decoder, path []string, table map[string]any) {
	rest := maps.Clone(table)
	if v, ok := rest["config"]; ok {
		config, isTable := v.(map[string]any)
		d.expect(isTable, child(path, "config"), "a table", v)
		p.config = config
		delete(rest, "config")
	}
	p.written = make(map[string]bool, len(rest))
	for name := range rest {
		p.written[name] = true
	}
	d.table(path, rest, reflect.ValueOf(p).Elem())
}

// encode makes Config of config.
func (p *Plugin) encode() error {
	raw, err := appendJSON(nil, p.config)
	if err != nil {
		return err
	}
	p.Config, err = strictjson.Canonical(nil, raw)
	return err
}

// resolve fills in the paths that follow from others.
func (p *Plugins) resolve(c *Config) {
	p.Dir = c.resolvePath(p.Dir)
	switch p.Cache {
	case "":
		p.Cache = filepath.Join(p.Dir, ".cache")
	case CacheOff:
		p.Cache = ""
	default:
		p.Cache = c.resolvePath(p.Cache)
	}
	for i := range p.List {
		p.List[i].resolve(c)
	}
}

func (p *Plugin) resolve(c *Config) {
	if p.Module == "" {
		p.Module = filepath.Join(c.Plugins.Dir, p.Name+".wasm")
	} else {
		p.Module = c.resolvePath(p.Module)
	}
}

// LockPath is where agent.lock stands.
func (p *Plugins) LockPath() string { return filepath.Join(p.Dir, LockName) }

// Plugin returns the table of that name, and nil if there is none.
func (p *Plugins) Plugin(name string) *Plugin {
	for i := range p.List {
		if p.List[i].Name == name {
			return &p.List[i]
		}
	}
	return nil
}

// Guards lists the guardrails' tables in the order in which they run: every
// plugin but the workflow.
func (c *Config) Guards() []Plugin {
	return slices.DeleteFunc(slices.Clone(c.Plugins.List), func(p Plugin) bool { return p.Name == c.Agent.Workflow })
}

// appendJSON writes a TOML value as JSON. Object members keep no order.
func appendJSON(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return strictjson.AppendString(b, v), nil
	case int64:
		return strictjson.AppendInt(b, v), nil
	case bool:
		return strictjson.AppendBool(b, v), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return b, errors.New("expected a finite number: JSON has no inf and no nan")
		}
		// 1.0 stays a number with a fraction, as it was written.
		return strconv.AppendFloat(b, v, 'e', -1, 64), nil
	case []any:
		return appendArray(b, v)
	case []map[string]any:
		return appendArray(b, v)
	case map[string]any:
		return appendObject(b, v)
	case time.Time:
		return b, errors.New("expected no date and no time: write it as a string")
	}
	return b, fmt.Errorf("expected a value that JSON has, got %T", v)
}

func appendArray[E any](b []byte, list []E) ([]byte, error) {
	var err error
	b = append(b, '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendJSON(b, e); err != nil {
			return b, fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, table map[string]any) ([]byte, error) {
	var err error
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(table)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, name), ':')
		if b, err = appendJSON(b, table[name]); err != nil {
			return b, fmt.Errorf("%s: %w", name, err)
		}
	}
	return append(b, '}'), nil
}
