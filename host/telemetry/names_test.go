package telemetry_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/host/telemetry"
)

var update = flag.Bool("update", false, "write the tables into docs/operations.md")

// Every name that is declared stands in the table, once, with its convention.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range telemetry.Names() {
		key := n.Of + " " + n.Name
		if seen[key] {
			t.Errorf("%s is in the table twice", key)
		}
		seen[key] = true
		if n.Convention == "" || n.About == "" || n.Name == "" {
			t.Errorf("%+v is not complete", n)
		}
	}
	declared := constants(t)
	for name, value := range declared {
		for prefix, of := range map[string]string{"Span": telemetry.OfSpan, "Metric": telemetry.OfMetric,
			"Attr": telemetry.OfAttribute, "Log": telemetry.OfLog, "Resource": telemetry.OfResource} {
			if strings.HasPrefix(name, prefix) && !seen[of+" "+value] {
				t.Errorf("%s = %q is not in the table", name, value)
			}
		}
	}
	if len(declared) < 100 || len(seen) < 100 {
		t.Fatalf("%d names declared, %d in the table: the walk is broken", len(declared), len(seen))
	}
}

func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if lit, ok := spec.Values[i].(*ast.BasicLit); ok {
				out[name.Name], _ = strconv.Unquote(lit.Value)
			}
		}
		return true
	})
	return out
}

// Platform 7.4: agent.<agent_type>.<verb_or_noun>[.duration|.errors], unit "1"
// for counters and "s" for what is timed.
func TestMetricNames(t *testing.T) {
	form := regexp.MustCompile(`^agent\.support-tickets\.[a-z_]+(\.duration|\.errors)?$`)
	for _, n := range telemetry.Names() {
		if n.Of != telemetry.OfMetric || n.Convention != telemetry.ConventionPlatform {
			continue
		}
		name := telemetry.AgentMetric("support-tickets", n.Name)
		if !form.MatchString(name) {
			t.Errorf("%s does not have the platform's form", name)
		}
		if want := map[bool]string{true: "s", false: "1"}[strings.HasSuffix(name, ".duration")]; n.Unit != want {
			t.Errorf("%s has the unit %q, want %q", name, n.Unit, want)
		}
	}
}

// The tables in the documentation are the table of names.
func TestDocumentation(t *testing.T) {
	const file, begin, end = "../../docs/operations.md", "<!-- names -->\n", "<!-- /names -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the names", file)
	}
	want := document()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the names in %s are not those in names.go: run go test ./host/telemetry -run Documentation -update", file)
	}
}

func document() string {
	var b strings.Builder
	for _, part := range []struct{ of, title string }{
		{telemetry.OfSpan, "Spans"}, {telemetry.OfMetric, "Metrics"}, {telemetry.OfAttribute, "Attributes of spans and metrics"},
		{telemetry.OfLog, "Attributes of log records"}, {telemetry.OfResource, "Resource"},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| name | unit | what | named by |\n|---|---|---|---|\n", part.title)
		for _, n := range telemetry.Names() {
			if n.Of != part.of {
				continue
			}
			name := n.Name
			if n.Of == telemetry.OfMetric && n.Convention == telemetry.ConventionPlatform {
				name = telemetry.AgentMetric("<type>", name)
			}
			if strings.HasSuffix(name, " ") {
				name += "…"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, n.Unit, n.About, n.Convention)
		}
	}
	return b.String() + "\n"
}
