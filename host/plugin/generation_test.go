package plugin_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

func policy() plugin.Policy {
	flow := NewGuest().Answer(abi.HookStep, `{"action":{"type":"finish"}}`).Build()
	return plugin.Policy{
		Resolved: abi.Raw(`{"max_tool_calls":10,"plugins":["flow","screen"]}`),
		Plugins: []plugin.Spec{
			{Name: "flow", Wasm: flow, Prompts: []abi.Prompt{{Name: "system", Text: "be brief"}}},
			{Name: "screen", Wasm: checker().Build()},
		},
		Workflow: "flow",
	}
}

// DECISIONS 4: the identity depends on each of its parts and on nothing else.
func TestIdentity(t *testing.T) {
	base := policy()
	id, err := base.Identity()
	if err != nil || len(id) != 64 {
		t.Fatalf("%q, %v", id, err)
	}
	for name, change := range map[string]func(p *plugin.Policy){
		"nothing":              func(*plugin.Policy) {},
		"white space":          func(p *plugin.Policy) { p.Resolved = abi.Raw(`{ "plugins":["flow","screen"], "max_tool_calls":10 }`) },
		"the order of loading": func(p *plugin.Policy) { p.Plugins[0], p.Plugins[1] = p.Plugins[1], p.Plugins[0] },
	} {
		p := policy()
		change(&p)
		if got, err := p.Identity(); err != nil || got != id {
			t.Errorf("%s: changed the identity, %v", name, err)
		}
	}
	seen := map[string]string{id: "nothing"}
	for name, change := range map[string]func(p *plugin.Policy){
		"policy":      func(p *plugin.Policy) { p.Resolved = abi.Raw(`{"max_tool_calls":11,"plugins":["flow","screen"]}`) },
		"prompt":      func(p *plugin.Policy) { p.Plugins[0].Prompts[0].Text = "be long" },
		"prompt name": func(p *plugin.Policy) { p.Plugins[0].Prompts[0].Name = "sys" },
		"module":      func(p *plugin.Policy) { p.Plugins[1].Wasm = p.Plugins[0].Wasm },
		"plugin name": func(p *plugin.Policy) { p.Plugins[1].Name = "other" },
		"actions":     func(p *plugin.Policy) { p.Actions = abi.Raw(`{"close":{}}`) },
	} {
		p := policy()
		change(&p)
		got, err := p.Identity()
		if err != nil || seen[got] != "" {
			t.Errorf("%s: the identity is that of %s, %v", name, seen[got], err)
		}
		seen[got] = name
	}
}

func TestIdentityRefuses(t *testing.T) {
	for text, change := range map[string]func(p *plugin.Policy){
		`two plugins are named "flow"`:      func(p *plugin.Policy) { p.Plugins[1].Name = "flow" },
		`the prompt "system" has two texts`: func(p *plugin.Policy) { p.Plugins[1].Prompts = []abi.Prompt{{Name: "system", Text: "other"}} },
		`policy: `:                          func(p *plugin.Policy) { p.Resolved = abi.Raw(`{"a":1,"a":2}`) },
	} {
		p := policy()
		change(&p)
		if _, err := p.Identity(); fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

func TestGeneration(t *testing.T) {
	r := newRuntime(t)
	p := policy()
	g, err := r.Build(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := p.Identity(); g.ID() != id || g.Short() != id[:12] {
		t.Errorf("id %s, short %s", g.ID(), g.Short())
	}
	if g.Workflow() != g.Plugin("flow") || len(g.Plugins()) != 2 || g.Plugins()[1].Name() != "screen" || g.Plugin("none") != nil {
		t.Error("the plugins are not the policy's")
	}
	call := func() error {
		_, _, err := g.Plugin("screen").Call(context.Background(), abi.HookCheckInput, ordinary)
		return err
	}
	release := g.Acquire()
	impatient, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("impatient"))
	if err := g.Close(impatient); err == nil || !strings.Contains(err.Error(), "still in use: impatient") {
		t.Errorf("close: %v", err)
	}
	if err := call(); err != nil {
		t.Errorf("a run lost its generation: %v", err)
	}
	later := g.Acquire()
	release()
	release()
	if err := call(); err != nil {
		t.Errorf("released twice by one, lost by another: %v", err)
	}
	later()
	if err := g.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := call(); fault.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("freed: %v", err)
	}
	if g.Acquire() != nil {
		t.Error("a freed generation was acquired")
	}
}

// A policy of which one part fails is no generation; the error names the plugin.
func TestBuildIsAllOrNothing(t *testing.T) {
	r := newRuntime(t)
	for text, change := range map[string]func(p *plugin.Policy){
		`plugin screen: expected a WebAssembly module`: func(p *plugin.Policy) { p.Plugins[1].Wasm = []byte("x") },
		`plugin screen: describe: trap: unreachable`: func(p *plugin.Policy) {
			p.Plugins[1].Wasm = checker().Hook(abi.HookDescribe, Op(OpUnreachable)).Build()
		},
		`the workflow "none" is not among the plugins`:  func(p *plugin.Policy) { p.Workflow = "none" },
		`plugin screen is a guardrail, expected a work`: func(p *plugin.Policy) { p.Workflow = "screen" },
	} {
		p := policy()
		change(&p)
		g, err := r.Build(context.Background(), p)
		if g != nil || err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if n := plugin.Loaded(r); n != 0 {
		t.Errorf("%d plugins are left", n)
	}
}

// The same digest is compiled once however often it is loaded, and freed with
// the last plugin that uses it.
func TestCompiledOnce(t *testing.T) {
	r := newRuntime(t)
	wasm := checker().Build()
	var all []*plugin.Plugin
	for range 3 {
		p, err := r.Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for n, p := range all {
		if got := plugin.Codes(r); got != 1 {
			t.Errorf("%d compiled modules with %d plugins", got, 3-n)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if got := plugin.Codes(r); got != 0 {
		t.Errorf("%d compiled modules without plugins", got)
	}
}
