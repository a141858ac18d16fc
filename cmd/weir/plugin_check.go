package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/abi"
	"weir/host"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/plugin"
)

// moduleFlags are what a command needs to load one module by itself.
type moduleFlags struct {
	settings abi.Raw
	prompts  []abi.Prompt
	cache    string
	asJSON   bool
}

func (m *moduleFlags) add(f *flag.FlagSet) {
	f.StringVar(&m.cache, "cache", "", "folder of compiled modules; without it every run compiles")
	f.BoolVar(&m.asJSON, "json", false, "print one JSON object")
	f.Func("config", "the plugin's configuration as JSON, or @FILE", func(text string) (err error) {
		m.settings, err = jsonArgument(text)
		return err
	})
	f.Func("prompt", "a prompt for the plugin, NAME=TEXT or NAME=@FILE; may be repeated", func(text string) error {
		p, err := promptArgument(text)
		m.prompts = append(m.prompts, p)
		return err
	})
}

// loaded is a module that a command looks at.
type loaded struct {
	name    string
	wasm    []byte
	plugin  *plugin.Plugin
	runtime *plugin.Runtime
}

// close puts everything away, also after an interrupt.
func (l *loaded) close(ctx context.Context) error { return l.runtime.Close(context.WithoutCancel(ctx)) }

// load loads a file without running its cases.
func (w *weir) load(ctx context.Context, name string, wasm []byte, m moduleFlags) (*loaded, error) {
	log, err := w.logger(slog.LevelWarn)
	if err != nil {
		return nil, err
	}
	runtime, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: m.cache, Logger: log})
	if err != nil {
		return nil, err
	}
	l := &loaded{name: name, wasm: wasm, runtime: runtime}
	l.plugin, err = runtime.Load(ctx, plugin.Spec{Name: name, Wasm: wasm, Config: m.settings, Prompts: m.prompts, Log: true, Unchecked: true})
	if err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

func readModule(file string) (name string, wasm []byte, err error) {
	wasm, err = os.ReadFile(file)
	return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), wasm, err
}

// checked is what a check found, as --json prints it.
type checked struct {
	File      string        `json:"file"`
	OK        bool          `json:"ok"`
	Reason    string        `json:"reason,omitempty"` // why a host refuses it
	SHA256    string        `json:"sha256,omitempty"`
	Size      int           `json:"size_bytes"`
	Carrier   string        `json:"carrier,omitempty"` // direct or extism
	ABI       int           `json:"abi"`
	Imports   []string      `json:"imports"`
	Exports   []string      `json:"exports"`
	Hooks     []abi.Hook    `json:"hooks"`
	MemoryMin int           `json:"memory_min_bytes"`
	MemoryMax int           `json:"memory_max_bytes,omitempty"` // declared; the host's limit holds all the same
	Name      string        `json:"name,omitempty"`
	Version   string        `json:"version,omitempty"`
	Kind      string        `json:"kind,omitempty"`
	Summary   string        `json:"summary,omitempty"`
	Prompts   []string      `json:"prompts,omitempty"`
	Wants     *abi.Limits   `json:"wants,omitempty"`
	Cases     int           `json:"cases"`
	Limits    *listedLimits `json:"limits,omitempty"`
}

// pluginCheck says what a module is, and what a host would say to it.
func (w *weir) pluginCheck(ctx context.Context, args []string) int {
	f := w.flags("plugin check")
	var m moduleFlags
	m.add(f)
	rest, code, ok := w.parse(f, args, 1)
	if !ok {
		return code
	}
	c, err := w.check(ctx, rest[0], m)
	if err != nil {
		return w.refuse("weir plugin check", err)
	}
	if !c.OK {
		code = exitFailed
	}
	if m.asJSON {
		return max(code, w.printJSON(c))
	}
	w.printChecked(c)
	return code
}

func (w *weir) check(ctx context.Context, file string, m moduleFlags) (*checked, error) {
	name, wasm, err := readModule(file)
	if err != nil {
		return nil, err
	}
	c := &checked{File: file, Imports: []string{}, Exports: []string{}, Hooks: []abi.Hook{}}
	facts, err := plugin.Survey(wasm)
	if err != nil {
		c.Reason, c.Size = "plugin "+name+": "+err.Error(), len(wasm)
		return c, nil
	}
	c.SHA256, c.Size, c.Carrier, c.ABI = facts.Digest, facts.Size, facts.Carrier, facts.ABI
	c.Imports, c.Exports, c.Hooks = append(c.Imports, facts.Imports...), append(c.Exports, facts.Exports...), append(c.Hooks, facts.Hooks...)
	c.MemoryMin, c.MemoryMax = facts.MemoryMin, facts.MemoryMax
	l, err := w.load(ctx, name, wasm, m)
	switch {
	case err == nil:
	case fault.Of(err) == fault.Invalid, fault.Of(err) == fault.Plugin:
		c.Reason = err.Error()
		return c, nil
	default:
		return nil, err
	}
	d, limits := l.plugin.Description(), limitsOf(l.plugin.Limits())
	c.ABI = d.ABI // of the same version as the marker, where there is one
	c.Name, c.Version, c.Kind, c.Summary = d.Name, d.Version, d.Kind, d.Summary
	c.Prompts, c.Wants, c.Cases, c.Limits = d.Prompts, d.Limits, len(d.Cases), &limits
	if err := host.CheckGuardrail(l.plugin); err != nil {
		c.Reason = err.Error()
	}
	c.OK = c.Reason == ""
	return c, l.close(ctx)
}

func (w *weir) printChecked(c *checked) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w.stdout, "%-8s %s\n", name, fmt.Sprintf(format, args...))
	}
	verdict := "ok"
	if !c.OK {
		verdict = "REFUSED"
	}
	fmt.Fprintf(w.stdout, "%s %s\n", verdict, c.File)
	if c.Reason != "" {
		line("reason", "%s", printable(c.Reason))
	}
	line("size", "%d bytes (%s)", c.Size, config.Size(c.Size/1024*1024))
	if c.SHA256 == "" {
		return
	}
	line("sha256", "%s", c.SHA256)
	line("abi", "%d (this host speaks %d), %s carrier", c.ABI, abi.Version, c.Carrier)
	for _, i := range c.Imports {
		line("import", "%s", i)
	}
	for _, e := range c.Exports {
		line("export", "%s", e)
	}
	line("memory", "%s to begin with", config.Size(c.MemoryMin))
	if c.Limits == nil {
		return
	}
	line("plugin", "%s %s, %s; %s", c.Name, c.Version, c.Kind, joinHooks(c.Hooks))
	if c.Summary != "" {
		line("summary", "%s", printable(c.Summary))
	}
	if len(c.Prompts) > 0 {
		line("prompts", "%s", printable(strings.Join(c.Prompts, ", ")))
	}
	if c.Wants != nil {
		line("wants", "memory %d MiB, time %d ms; what it gets is the operator's to say", c.Wants.MemoryMiB, c.Wants.TimeoutMS)
	}
	line("limits", "%s", *c.Limits)
	line("cases", "%d; `weir plugin test` runs them", c.Cases)
}

// tested is one case, as --json prints it.
type tested struct {
	Name   string   `json:"name"`
	Hook   abi.Hook `json:"hook"`
	OK     bool     `json:"ok"`
	Reason string   `json:"reason,omitempty"`
	TookUS int64    `json:"took_us"`
}

// pluginTest runs the cases that a module ships.
func (w *weir) pluginTest(ctx context.Context, args []string) int {
	f := w.flags("plugin test")
	var m moduleFlags
	m.add(f)
	rest, code, ok := w.parse(f, args, 1)
	if !ok {
		return code
	}
	name, wasm, err := readModule(rest[0])
	if err != nil {
		return w.refuse("weir plugin test", err)
	}
	l, err := w.load(ctx, name, wasm, m)
	if err != nil {
		return w.refuse("weir plugin test", err)
	}
	results := runCases(ctx, l.plugin)
	if err := l.close(ctx); err != nil {
		return w.refuse("weir plugin test", err)
	}
	for _, r := range results {
		if !r.OK {
			code = exitFailed
		}
	}
	if m.asJSON {
		return max(code, w.printJSON(results))
	}
	w.printTested(results)
	return code
}

func runCases(ctx context.Context, p *plugin.Plugin) []tested {
	results := []tested{}
	for n, c := range p.Description().Cases {
		begun := time.Now()
		err := p.Case(ctx, n)
		t := tested{Name: c.Name, Hook: c.Hook, OK: err == nil, TookUS: time.Since(begun).Microseconds()}
		if err != nil {
			t.Reason = err.Error()
		}
		results = append(results, t)
	}
	return results
}

func (w *weir) printTested(results []tested) {
	failed := 0
	for _, r := range results {
		if r.OK {
			fmt.Fprintf(w.stdout, "ok     %s (%s, %d µs)\n", printable(r.Name), r.Hook, r.TookUS)
			continue
		}
		failed++
		fmt.Fprintf(w.stdout, "FAILED %s (%s): %s\n", printable(r.Name), r.Hook, printable(r.Reason))
	}
	fmt.Fprintf(w.stdout, "%d cases, %d failed\n", len(results), failed)
}
