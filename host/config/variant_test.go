package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guarded is minimal with two guardrails, one of them with a configuration.
const guarded = minimal + `
[plugins.screen]
[plugins.screen.config]
max = 3
[plugins.screen.config.texts]
first = "one"
second = "two"
[plugins.mask]
mode = "monitor"
`

func guardNames(c *Config) string {
	var names []string
	for _, g := range c.Guards() {
		names = append(names, g.Name)
	}
	return strings.Join(names, " ")
}

// A variant is the base with what it says laid over it, and nothing else.
func TestVariantLaysOver(t *testing.T) {
	c := mustLoad(t, guarded+`
[[variant]]
name = "same"
share = 0.25

[[variant]]
name = "other"
share = 0.5
guards = ["extra", "screen"]
[variant.agent]
workflow = "loop"
[variant.prompts]
system = "short.md"
[variant.model.agent]
name = "tiny"
temperature = 1
[variant.plugins.loop]
prompts = ["system"]
[variant.plugins.extra]
[variant.plugins.screen]
module = "another.wasm"
[variant.plugins.screen.config]
more = true
[variant.plugins.screen.config.texts]
second = "three"

[[variant]]
name = "fewer"
share = 0
guards = []
[variant.plugins.react]
fuel = 5
`, keys().with("LLM_MODEL", "large").with("LLM_GUARD_MODEL", "large-guard"), "short.md", "Be brief.\n")
	if len(c.Variants) != 3 || len(c.Warnings) != 0 {
		t.Fatalf("%d variants, warnings %q", len(c.Variants), c.Warnings)
	}
	same, other, fewer := c.Variants[0], c.Variants[1], c.Variants[2]
	if d := cmp.Diff(string(c.Policy()), string(same.Config.Policy())); d != "" || same.Share != 0.25 {
		t.Errorf("a variant that says nothing differs:\n%s", d)
	}
	o := other.Config
	if got := guardNames(o); got != "extra screen" || o.Agent.Workflow != "loop" || o.Plugins.Plugin("react") != nil || o.Plugins.Plugin("mask") != nil {
		t.Errorf("guards %q, workflow %q", got, o.Agent.Workflow)
	}
	if o.Model.Agent.Name != "tiny" || o.Model.Agent.Temperature != 1 || o.Model.Guard.Name != "large-guard" || o.Model.Agent.BaseURL != c.Model.Agent.BaseURL {
		t.Errorf("models: %+v", o.Model)
	}
	if o.Prompts["system"].Text != "Be brief.\n" || c.Prompts["system"].Text != "You are helpful.\n" {
		t.Errorf("prompts: %+v, the base's %+v", o.Prompts, c.Prompts)
	}
	screen := o.Plugins.Plugin("screen")
	if want := `{"max":3,"more":true,"texts":{"first":"one","second":"three"}}`; string(screen.Config) != want {
		t.Errorf("configuration: %s, want %s", screen.Config, want)
	}
	if want := filepath.Join(c.Dir(), "another.wasm"); screen.Module != want {
		t.Errorf("module: %s, want %s", screen.Module, want)
	}
	if want := filepath.Join(c.Plugins.Dir, "extra.wasm"); o.Plugins.Plugin("extra").Module != want {
		t.Errorf("an own module: %s, want %s", o.Plugins.Plugin("extra").Module, want)
	}
	if guardNames(fewer.Config) != "" || fewer.Config.Plugins.Plugin("react").Fuel != 5 {
		t.Errorf("guards %q, fuel %d", guardNames(fewer.Config), fewer.Config.Plugins.Plugin("react").Fuel)
	}
	// The base is what it is without variants.
	if alone := mustLoad(t, guarded, keys().with("LLM_MODEL", "large").with("LLM_GUARD_MODEL", "large-guard")); string(alone.Policy()) != string(c.Policy()) {
		t.Errorf("the base's policy with variants:\n%s\nwithout:\n%s", c.Policy(), alone.Policy())
	}
}

// What is not policy of a run cannot differ, and everything that is wrong is
// said where it stands, once.
func TestVariantRefusals(t *testing.T) {
	head := "[[variant]]\nname = \"x\"\nshare = 0.1\n"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"no name", "[[variant]]\nshare = 0.1\n", []string{`agent.toml: [variant.1] name: expected a name of a-z, 0-9 and -, at most 32, got ""`}},
		{"the base's name", "[[variant]]\nname = \"base\"\nshare = 0.1\n", []string{`agent.toml: [variant.base] name: expected another name: "base" is what everybody gets who has no variant`}},
		{"a name twice", head + head, []string{`agent.toml: [variant.x] name: expected each name once, got "x" again`}},
		{"a long name", "[[variant]]\nname = \"" + strings.Repeat("x", 33) + "\"\nshare = 0\n", []string{`agent.toml: [variant.1] name: expected a name of a-z, 0-9 and -, at most 32, got "` + strings.Repeat("x", 33) + `"`}},
		{"no share", "[[variant]]\nname = \"x\"\n", []string{"agent.toml: [variant.x] share: expected its part of the users, 0 to 1"}},
		{"a negative share", "[[variant]]\nname = \"x\"\nshare = -0.1\n", []string{"agent.toml: [variant.x] share: expected 0 to 1, got -0.1"}},
		{"no number", "[[variant]]\nname = \"x\"\nshare = nan\n", []string{"agent.toml: [variant.x] share: expected 0 to 1, got NaN"}},
		{"a text", "[[variant]]\nname = \"x\"\nshare = \"half\"\n", []string{"agent.toml: [variant.x] share: expected a number, got a string"}},
		{"too much", "[[variant]]\nname = \"x\"\nshare = 0.6\n[[variant]]\nname = \"y\"\nshare = 0.5\n",
			[]string{"agent.toml: [variant.y] share: expected shares that add up to at most 1, they are 1.1 up to here"}},
		{"no list", "variant = 3\n" + guarded, []string{"agent.toml: variant: expected an array of tables, got a whole number"}},
		{"what needs a restart", head + "[variant.server]\nlisten = \":1\"\n[variant.model.agent]\nbase_url = \"http://elsewhere\"\nname = \"ok\"\n[variant.agent]\ntitle = \"Y\"\n", []string{
			"agent.toml: [variant.x] server: expected one of agent, guards, model, name, plugins, prompts, share: nothing else can differ from the base",
			"agent.toml: [variant.x.model.agent] base_url: expected one of max_tokens, name, reasoning_effort, temperature: nothing else can differ from the base",
			"agent.toml: [variant.x.agent] title: expected one of workflow: nothing else can differ from the base"}},
		{"variables", head + "[variant.plugins.screen.env]\nmax = { variable = \"MAX\" }\n", []string{
			"agent.toml: [variant.x.plugins.screen] env: expected no variables: they set what the base says, and a variant says what it differs in"}},
		{"an unknown key", head + "[variant.plugins.mask]\nmod = \"enforce\"\n", []string{`agent.toml: unknown key [variant.x.plugins.mask] mod, did you mean "mode"?`}},
		{"values that no plugin has", head + "[variant.plugins.mask]\nmode = \"off\"\nreply = \"1B\"\n", []string{
			`agent.toml: [variant.x.plugins.mask] mode: expected "enforce" or "monitor", got "off"`,
			"agent.toml: [variant.x.plugins.mask] reply: expected 1KiB to 64MiB, got 1B"}},
		{"no such prompt", head + "[variant.prompts]\nsystem = \"none.md\"\n[variant.plugins.mask]\nprompts = [\"other\"]\n", []string{
			"agent.toml: [variant.x.prompts] system: expected a readable file, none.md: no such file or directory",
			`agent.toml: [variant.x.plugins.mask] prompts: expected names that stand in [prompts], got "other"`}},
		{"no such workflow", head + "[variant.agent]\nworkflow = \"loop\"\n", []string{
			`agent.toml: [variant.x.agent] workflow: expected the name of a [plugins.<name>] table, got "loop"`}},
		{"guards that are none", head + "guards = [\"mask\", \"mask\", \"nobody\", \"react\"]\n", []string{
			`agent.toml: [variant.x] guards: expected each guardrail once, got "mask" again`,
			`agent.toml: [variant.x] guards: expected names of [plugins.<name>] tables but the workflow's, got "nobody"`,
			`agent.toml: [variant.x] guards: expected names of [plugins.<name>] tables but the workflow's, got "react"`}},
		{"a plugin that does not run", head + "guards = [\"screen\"]\n[variant.plugins.mask]\nmode = \"enforce\"\n", []string{
			"agent.toml: [variant.x.plugins] mask: expected a plugin that runs in this variant: it is not the workflow, and guards does not list it"}},
		{"a guard's key of the workflow", head + "[variant.plugins.react]\nmode = \"enforce\"\n", []string{
			"agent.toml: [variant.x.plugins.react] mode: expected no such key: it is for guardrails, and this is the workflow"}},
		{"a model without a name, where a variable sets the base's", head + "[variant.model.agent]\nname = \" \"\n", []string{
			"agent.toml: [variant.x.model.agent] name: expected the name of a model"}},
		{"the base's own mistake is said once", head + "[agent]\nmax_history = 0\n", []string{"agent.toml: [agent] max_history: expected at least 1, got 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if !strings.Contains(text, guarded) {
				text = guarded + text
			}
			_, err := load(t, text, keys().with("LLM_MODEL", "large"))
			wantProblems(t, err, tt.want...)
		})
	}
}

func TestTooManyVariants(t *testing.T) {
	text := guarded
	for _, c := range "abcdefghijklmnopq" {
		text += "[[variant]]\nname = \"" + string(c) + "\"\nshare = 0\n"
	}
	_, err := load(t, text, keys())
	wantProblems(t, err, "agent.toml: variant: expected at most 16, got 17")
	mustLoad(t, strings.Replace(text, "[[variant]]\nname = \"q\"\nshare = 0\n", "", 1), keys())
}

// A warning about a variant says whose it is; one about the base is said once.
func TestVariantWarnings(t *testing.T) {
	c := mustLoad(t, guarded+"[plugins.open]\non_error = \"allow\"\n[[variant]]\nname = \"x\"\nshare = 0\n[variant.plugins.screen]\nlog = true\n", keys())
	want := []string{
		"agent.toml: [plugins.open] on_error: when this guardrail fails, what it would have judged passes unjudged",
		"variant x: agent.toml: [plugins.screen] log: the plugin's lines go to stderr and may quote what users write",
	}
	if !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// Keys that wait for a restart keep their old values in variants too.
func TestVariantsSucceed(t *testing.T) {
	const x = "[[variant]]\nname = \"x\"\nshare = 0.5\n[variant.model.agent]\nname = \"tiny\"\n"
	started := mustLoad(t, guarded, keys())
	next := mustLoad(t, "[server]\ndrain = \"1s\"\n"+guarded+x, keys().with("LLM_BASE_URL", "http://elsewhere/v1"))
	applied, waiting := started.Succeed(next)
	v := applied.Variants[0].Config
	if !slices.Contains(waiting, "[model.agent] base_url") || v.Model.Agent.BaseURL != started.Model.Agent.BaseURL || v.Server != started.Server || v.Model.Agent.Name != "tiny" {
		t.Errorf("waiting %q, %+v", waiting, v.Model.Agent)
	}
	if next.Variants[0].Config.Model.Agent.BaseURL != "http://elsewhere/v1" {
		t.Error("the next configuration was changed")
	}
}

// A trial's file counts where a variant has the base's.
func TestVariantsReplace(t *testing.T) {
	c := mustLoad(t, guarded+"[[variant]]\nname = \"x\"\nshare = 0.5\n[[variant]]\nname = \"y\"\nshare = 0.5\n"+
		"[variant.prompts]\nsystem = \"own.md\"\n[variant.plugins.screen]\nmodule = \"own.wasm\"\n", keys(), "own.md", "Own.\n", "new.md", "New.\n")
	if err := c.ReplaceModule("screen", "new.wasm"); err != nil {
		t.Fatal(err)
	}
	if err := c.ReplacePrompt("system", filepath.Join(c.Dir(), "new.md")); err != nil {
		t.Fatal(err)
	}
	x, y := c.Variants[0].Config, c.Variants[1].Config
	if x.Plugins.Plugin("screen").Module != "new.wasm" || x.Prompts["system"].Text != "New.\n" {
		t.Errorf("with the base's: %s, %q", x.Plugins.Plugin("screen").Module, x.Prompts["system"].Text)
	}
	if y.Plugins.Plugin("screen").Module != filepath.Join(c.Dir(), "own.wasm") || y.Prompts["system"].Text != "Own.\n" {
		t.Errorf("with its own: %s, %q", y.Plugins.Plugin("screen").Module, y.Prompts["system"].Text)
	}
}
