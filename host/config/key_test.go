package config

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/configuration.md and .env.local.example")

const (
	docsPath    = "../../docs/configuration.md"
	examplePath = "../../.env.local.example"
)

// Every key has a meaning, and every meaning has its key.
func TestEveryKeyHasAMeaning(t *testing.T) {
	known := map[string]bool{}
	for _, k := range Keys() {
		known[k.Name] = true
		if k.Meaning == "" {
			t.Errorf("%s: say in notes.go what it means, then `go test ./host/config -update`", k.Name)
		}
		if k.Meaning != "" && !strings.HasSuffix(k.Meaning, ".") {
			t.Errorf("%s: a meaning is a sentence", k.Name)
		}
	}
	for name := range notes() {
		if !known[name] {
			t.Errorf("%s has a meaning and is no key", name)
		}
	}
	if len(known) < 100 || !known["plugins.<name>.fuel"] || !known["tools.mcp.overrides.<name>.description"] {
		t.Fatalf("%d keys: the walk is broken", len(known))
	}
}

// The walk over types for people and the walk over values find the same keys.
func TestSettingsCoverEveryKey(t *testing.T) {
	generic := []*regexp.Regexp{
		regexp.MustCompile(`^(plugins)\.[a-z-]+(\.env)\.[a-z_]+(\.)`), regexp.MustCompile(`^(plugins)\.[a-z-]+(\.config\.)[a-z_]+$`),
		regexp.MustCompile(`^(plugins)\.(?:react|input-screen|output-secrets|output-pii|tool-injection)(\.)`),
		regexp.MustCompile(`^(actions|tools\.mcp\.overrides)\.[a-z_]+(\.)`), regexp.MustCompile(`^(prompts)\.[a-z_]+()$`),
	}
	names := []string{`$1.<name>$2.<name>$3`, `$1.<name>$2<key>`, `$1.<name>$2`, `$1.<name>$2`, `$1.<name>$2`}
	found := map[string]bool{}
	for _, s := range shipped(t).Settings() {
		name := s.Key
		for i, g := range generic {
			if g.MatchString(name) {
				name = g.ReplaceAllString(name, names[i])
				break
			}
		}
		found[name] = true
	}
	for _, k := range Keys() {
		name := k.Name
		for _, list := range []string{"agent.skills", "contract.turn.tools", "variant"} {
			if strings.HasPrefix(name, list+".") {
				name = list // a list is one value
			}
		}
		if !found[name] {
			t.Errorf("%s is in no setting", name)
		}
	}
}

// docs/configuration.md is made of the tables of this package.
func TestDocumentIsCurrent(t *testing.T) {
	compare(t, docsPath, document(shipped(t)))
}

// Section 11.4 of the platform's specification: .env.local.example has every
// variable that is read at run time, with defaults that are safe and secrets
// blank.
func TestExampleIsCurrent(t *testing.T) {
	compare(t, examplePath, example(shipped(t)))
}

func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(data), want); d != "" {
		t.Errorf("%s is not what the tables say (`go test ./host/config -update` writes it):\n%s", path, d)
	}
}

// The example changes nothing: with all of its lines in force, and the keys that
// it leaves blank, the configuration is the shipped one.
func TestExampleIsSafe(t *testing.T) {
	data, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	env := keys()
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("no assignment: %q", line)
		}
		if (secretName(name) || strings.HasSuffix(name, "HEADERS")) && value != "" {
			t.Errorf("%s is not blank", name)
		}
		if i := slices.IndexFunc(Variables(), func(v Variable) bool { return v.Name == name && v.Kind == KindInt }); i >= 0 {
			if _, err := strconv.Atoi(value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if env[name] == "" {
			env[name] = value
		}
	}
	c, err := Load(Source{Path: shippedPath, Env: env.look})
	if err != nil {
		t.Fatal(err)
	}
	want := shipped(t)
	if len(c.Warnings) > 0 || string(c.Policy()) != string(want.Policy()) {
		t.Errorf("warnings %q; policy\n%s\nas shipped\n%s", c.Warnings, c.Policy(), want.Policy())
	}
	if _, waiting := want.Succeed(c); len(waiting) > 0 {
		t.Errorf("these differ: %q", waiting)
	}
}

// Every variable that the program looks up by a name in its source is in the
// table.
func TestEveryLookUpIsInTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	lookups := 0
	for _, root := range []string{"../../host", "../../cmd/weir"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, name := range lookedUp(t, path, nil) {
				lookups++
				if !known[name] && !slices.Contains(commandsOnly, name) {

					t.Errorf("%s reads %s, which is not in Variables", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if lookups == 0 {
		t.Error("no look-up was found: the walk is broken")
	}
	got := lookedUp(t, "control.go", "package p\nfunc f() { os.Getenv(\"A_B\"); w.env(\"C\"); variable(\"D_E\"); say(\"F_G\"); os.LookupEnv(name) }\n")
	if want := []string{"A_B", "C", "D_E"}; !slices.Equal(got, want) {
		t.Errorf("control: %q, want %q", got, want)
	}
}

// OpenTelemetry's variables are read under names that are put together; a test
// of host/telemetry/export holds docs/operations.md to all of them.
func TestStandardVariablesAreInTheTable(t *testing.T) {
	data, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	found := regexp.MustCompile("`(OTEL_[A-Z_]*[A-Z])`|`(OTEL_[A-Z_]*)\\[SIGNAL_\\]([A-Z_]+)`").FindAllStringSubmatch(string(data), -1)
	if len(found) < 20 {
		t.Fatalf("only %d names: the search is broken", len(found))
	}
	for _, m := range found {
		names := []string{m[1]}
		if m[1] == "" {
			names = []string{m[2] + m[3], m[2] + "TRACES_" + m[3], m[2] + "METRICS_" + m[3], m[2] + "LOGS_" + m[3]}
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("docs/operations.md names %s, which is not in Variables", name)
			}
		}
	}
}

// commandsOnly are looked up by commands that people run, never by the agent.
var commandsOnly = []string{"NO_COLOR", "CI"}

// lookedUp lists the names of variables that a file looks up.
func lookedUp(t *testing.T, path string, source any) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		literal, ok := call.Args[0].(*ast.BasicLit)
		if ok && slices.Contains([]string{"Getenv", "LookupEnv", "variable", "env", "Env", "look", "getenv", "lookup"}, name) {
			if text, err := strconv.Unquote(literal.Value); err == nil && regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`).MatchString(text) {
				names = append(names, text)
			}
		}
		return true
	})
	return names
}

// document is docs/configuration.md.
func document(c *Config) string {
	var b bytes.Buffer
	b.WriteString(documentHead)
	table := ""
	for _, k := range Keys() {
		if top, _, _ := strings.Cut(k.Name, "."); top != table {
			table = top
			fmt.Fprintf(&b, "\n## [%s]\n\n| Key | Type | Default | Variable | Applied | Meaning |\n|---|---|---|---|---|---|\n", top)
		}
		applied := "at a start"
		if k.Hot {
			applied = "hot"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", k.Name, k.Type, shownDefault(k), code(k.Variable), applied, cell(k.Meaning))
	}
	b.WriteString(variablesHead)
	for _, v := range Variables() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, kindName(v), code(v.Key), cell(v.About))
	}
	b.WriteString(bindingsHead)
	for _, p := range c.Plugins.List {
		for _, key := range slices.Sorted(maps.Keys(p.Env)) {
			fmt.Fprintf(&b, "| `%s` | `plugins.%s.config.%s` |\n", p.Env[key].Variable, p.Name, key)
		}
	}
	return b.String()
}

const documentHead = `# Configuration

Every key of agent.toml and every environment variable, made by ` + "`go test ./host/config -update`" + ` from the tables that the program itself uses. agent.toml is the commented tour of the same keys, and ` + "`weir config show`" + ` prints what is in force and where it comes from.

A variable wins over the file, and the file over the default. Unknown keys are refused. Durations are texts such as ` + "`\"1m30s\"`" + `, sizes such as ` + "`\"64MiB\"`" + `. *Hot* keys are applied by a reload; all others wait for a start. ` + "`<name>`" + ` stands for a name of your own.
`

const variablesHead = `
## Environment variables

A blank value is none. A secret also comes from the file that NAME_FILE names, of which the last line's end is no part; both at once are refused.

| Variable | Read as | Overrules | Meaning |
|---|---|---|---|
`

const bindingsHead = `
Plugins' own keys that a variable overrules, as the shipped agent.toml binds them:

| Variable | Overrules |
|---|---|
`

func shownDefault(k Key) string {
	switch text := k.Default; {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && strings.Contains(text, " ") || text == required:
		if inner := strings.Trim(text, "[]"); !strings.Contains(inner, `"`) {
			return inner
		}
		return "as in agent.toml"
	case len(text) > 60:
		return "as in agent.toml"
	default:
		return code(text)
	}
}

func kindName(v Variable) string {
	switch v.Kind {
	case KindText, KindEffort, KindDirect:
		return "text"
	case KindBool:
		return "1, true, yes, on; 0, false, no, off"
	case KindInt:
		if v.Floor > 0 {
			return fmt.Sprintf("whole number, raised to %d", v.Floor)
		}
		return "whole number"
	case KindIgnored:
		return "not read"
	}
	return "secret, also `" + v.Name + fileSuffix + "`"
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// example is .env.local.example.
func example(c *Config) string {
	values := map[string]string{} // by key
	for _, s := range c.Settings() {
		if s.Value != nil && s.Source != SourceVariable {
			values[s.Key] = strings.TrimSuffix(fmt.Sprint(s.Value), "\n")
		}
	}
	var b strings.Builder
	b.WriteString(exampleHead)
	seen := map[string]bool{}
	line := func(name, value, about string) {
		if !seen[name] {
			fmt.Fprintf(&b, "\n# %s\n%s=%s\n", about, name, value)
		}
		seen[name] = true
	}
	for _, v := range Variables() {
		switch {
		case v.Kind == KindIgnored:
		case v.secret():
			line(v.Name, "", v.About)
			fmt.Fprintf(&b, "%s%s=\n", v.Name, fileSuffix)
		case v.Key != "":
			line(v.Name, asRead(v, values[v.Key]), v.About)
		default:
			line(v.Name, v.Value, v.About)
		}
	}
	for _, p := range c.Plugins.List {
		for _, key := range slices.Sorted(maps.Keys(p.Env)) {
			name := "plugins." + p.Name + ".config." + key
			line(p.Env[key].Variable, values[name], "Overrules "+name+".")
		}
	}
	return b.String()
}

// asRead is a key's value as its variable is written: whole numbers where the
// key is a duration are seconds.
func asRead(v Variable, text string) string {
	if d, err := time.ParseDuration(text); err == nil && v.Kind == KindInt && text != "0" {
		return strconv.Itoa(int(d / time.Second))
	}
	return text
}

const exampleHead = `# Every variable that the agent reads, for a run on your own machine: copy this
# to .env.local, which stays out of git, and fill in the secrets. A line wins
# over agent.toml; a blank one counts as not set. No quotation marks: the text
# after "=" is the value. Made by ` + "`go test ./host/config -update`" + `.
`
