package host_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "weir"

// source is one Go file that is not a test.
type source struct {
	dir     string // of its package, from the module's root; "" is the root
	file    string // base name
	imports []string
	doc     bool // has a package comment
	init    bool // declares func init
	linked  bool // has a go:wasmexport directive
}

// A rule says what may stand in a file, and why. breach returns what is wrong.
type rule struct {
	name   string
	reason string
	breach func(source) []string
}

var rules = []rule{
	{
		name:   "abi stands alone",
		reason: "it is the promise between host and guest: whatever it imported, every guest would carry",
		breach: imports("abi", func(s source, imp string) bool {
			return isStandard(imp) || s.dir == "abi" && imp == "weir/abi/strictjson"
		}),
	},
	{
		name:   "guests know abi and pdk only",
		reason: "a plugin is built for another machine; a piece of the host inside it would be authority that it must not have",
		breach: both(
			imports("pdk", func(_ source, imp string) bool {
				return isStandard(imp) || under(imp, "weir/abi") || under(imp, "weir/pdk")
			}),
			imports("plugins", func(s source, imp string) bool {
				return isStandard(imp) || under(imp, "weir/abi") || under(imp, "weir/pdk") || under(imp, module+"/"+top(s.dir, 2)) ||
					imp == "github.com/extism/go-pdk" && strings.HasSuffix(s.file, "_wasip1.go") // a kit like pdk, for guests alone
			}),
		),
	},
	{
		name:   "no encoding/json in guests",
		reason: "it costs 79 µs a KiB in a guest, ten times the sandbox itself, and doubles a module's size",
		breach: both(forbid("abi", "encoding/json"), forbid("pdk", "encoding/json"), forbid("plugins", "encoding/json")),
	},
	{
		name:   "host packages do not know each other",
		reason: "each declares the small interfaces that it needs and host.go joins them, so any of them can be read, tested and replaced alone",
		breach: imports("host", func(s source, imp string) bool {
			return s.dir == "host" || !under(imp, "weir/host") || under(imp, module+"/"+part(s.dir)) ||
				imp == "weir/host/fault" || imp == "weir/host/telemetry" ||
				imp == "weir/host/hold" && under(s.dir, "host/store") || // locks of the operating system, which nobody writes twice
				imp == "weir/host/run" && under(s.dir, "host/contract") || // a contract translates to and from the engine
				imp == "weir/host/dna" && under(s.dir, "host/contract") // digests that a contract has to name
		}),
	},
	{
		name:   "digests stand alone",
		reason: "an agent and the harness that judges it compute them from the same bytes, and neither may get into the other's",
		breach: imports("host/dna", func(_ source, imp string) bool {
			return isStandard(imp) || imp == "weir/abi/strictjson"
		}),
	},
	{
		name:   "the harness knows no agent",
		reason: "it judges any agent by the contract; what it shared with ours, both could get wrong in the same way",
		breach: imports("cmd/weir/internal/agentv", func(_ source, imp string) bool {
			return !under(imp, "weir") || under(imp, "weir/cmd/weir/internal/agentv") ||
				imp == "weir/abi/strictjson" || imp == "weir/host/dna" || imp == "weir/host/fault"
		}),
	},
	{
		name:   "the comparison knows no agent",
		reason: "it compares ours with others by the contract alone; what it shared with ours would be measured with our own measure",
		breach: imports("cmd/weir/internal/compare", func(_ source, imp string) bool {
			return !under(imp, "weir") || under(imp, "weir/cmd/weir/internal/compare") || imp == "weir/abi/strictjson"
		}),
	},
	{
		name:   "the engine knows no library",
		reason: "a run is replayed and tested from its log alone, which no client and no transport may get into",
		breach: imports("host/run", func(s source, imp string) bool {
			return isStandard(imp) || under(imp, "weir/abi") || imp == "weir/host/fault" || imp == "weir/host/telemetry" ||
				imp == "github.com/google/uuid" ||
				imp == "weir/host/run" && s.dir == "host/run/replay" // it is the engine that replays
		}),
	},
	{
		name:   "guards know the matcher only",
		reason: "the guarded stream is a function of text and replies; the kit's other parts belong to guests",
		breach: imports("host/guard", func(s source, imp string) bool {
			return isStandard(imp) || under(imp, "weir/abi") || imp == "weir/host/fault" || imp == "weir/host/telemetry" || imp == "weir/pdk/match" ||
				imp == "weir/host/guard" && under(s.dir, "host/guard/trial") // it tries the real sink
		}),
	},
	{
		name:   "approvals are rules",
		reason: "a run's log is folded through them at any replica and any time, which has to give the same prompts, claims and token",
		breach: imports("host/approval", func(_ source, imp string) bool {
			return isStandard(imp) && imp != "math/rand" && imp != "math/rand/v2" && imp != "crypto/rand" ||
				under(imp, "weir/abi") || imp == "weir/host/fault"
		}),
	},
	{
		name:   "fiber at the edge",
		reason: "fiber and fasthttp reuse their buffers; what is not copied in http.go changes under its reader",
		breach: func(s source) []string {
			if under(s.dir, "host/server") || under(s.dir, "host/contract") && s.file == "http.go" {
				return nil
			}
			return both(forbid("", "github.com/gofiber/"), forbid("", "github.com/valyala/fasthttp"))(s)
		},
	},
	{
		name:   "WebAssembly in one place",
		reason: "the sandbox holds only if nobody makes a module or an instance beside it",
		breach: only([]string{"host/plugin"}, "github.com/tetratelabs/", "github.com/extism/go-sdk"),
	},
	{
		name:   "MCP in one place",
		reason: "the allow-list and the schema policy hold only if every call to a tool goes through them",
		breach: only([]string{"host/tool", "cmd/weir-demo"}, "github.com/modelcontextprotocol/"),
	},
	{
		name:   "NATS in one place",
		reason: "the rest must not know which backend keeps the logs",
		breach: only([]string{"host/store/jetstream"}, "github.com/nats-io/"),
	},
	{
		name:   "TOML in one place",
		reason: "configuration is read and checked once; whoever reads the file beside it has other defaults",
		breach: only([]string{"host/config", "cmd/weir-demo"}, "github.com/BurntSushi/toml"),
	},
	{
		name:   "SQL in the demo only",
		reason: "what the product keeps is in its store's logs; a database beside them would be a second truth",
		breach: only([]string{"cmd/weir-demo"}, "modernc.org/", "database/sql"),
	},
	{
		name:   "file events in one place",
		reason: "an event says little: what changed is found by looking, which host/watch does for everybody",
		breach: only([]string{"host/watch"}, "github.com/fsnotify/"),
	},
	{
		name:   "spans in one place",
		reason: "what may stand on a span is decided in host/telemetry; whoever starts one elsewhere can leak unguarded text",
		breach: func(s source) []string {
			if under(s.dir, "host/telemetry/export") {
				return nil
			}
			if under(s.dir, "host/telemetry") || s.dir == "host" {
				return both(forbid("", "go.opentelemetry.io/otel/sdk"), forbid("", "go.opentelemetry.io/otel/exporters"))(s)
			}
			return forbid("", "go.opentelemetry.io/")(s)
		},
	},
	{
		name:   "nobody imports a command",
		reason: "a command is the end of the line; what two commands share is a package",
		breach: imports("", func(s source, imp string) bool {
			return !under(imp, "weir/cmd") || under(s.dir, "cmd") && under(imp, module+"/"+top(s.dir, 2))
		}),
	},
	{
		name:   "no init in the host",
		reason: "what registers itself cannot be read from host.go and cannot be left out of a test",
		breach: func(s source) []string {
			if s.init && (under(s.dir, "host") || under(s.dir, "cmd")) {
				return []string{"declares func init"}
			}
			return nil
		},
	},
	{
		name:   "exports to the host in _wasip1.go",
		reason: "everything else builds, vets and tests natively",
		breach: func(s source) []string {
			if s.linked && !strings.HasSuffix(s.file, "_wasip1.go") {
				return []string{"has a go:wasmexport directive"}
			}
			return nil
		},
	},
}

// TestLayout holds every file of the module against the rules.
func TestLayout(t *testing.T) {
	sources := mustRead(t, os.DirFS(".."))
	if len(sources) < 30 {
		t.Fatalf("only %d files found: the walk is broken", len(sources))
	}
	for _, b := range breaches(sources) {
		t.Error(b)
	}
}

// TestLayoutNotices is the positive control: on a small tree that breaks every
// rule once, each rule is reported once, and what is allowed is not.
func TestLayoutNotices(t *testing.T) {
	files := map[string]string{
		// one breach of each rule
		"abi/bad.go":                   `import "weir/host/fault"`,
		"pdk/bad.go":                   `import "github.com/google/uuid"`,
		"plugins/one/bad.go":           `import "encoding/json"`,
		"plugins/one/other.go":         `import "weir/plugins/two"`,
		"host/config/bad.go":           `import "weir/host/store"`,
		"host/run/bad.go":              `import "github.com/gobwas/glob"`,
		"host/approval/bad.go":         `import "crypto/rand"`,
		"cmd/weir/other.go":            `import "weir/cmd/weir-demo/internal/tickets"`,
		"host/guard/bad.go":            `import "weir/pdk"`,
		"host/contract/stream/sse.go":  `import "github.com/gofiber/fiber/v2"`,
		"host/model/wasm.go":           `import "github.com/tetratelabs/wazero"`,
		"host/model/mcp.go":            `import "github.com/modelcontextprotocol/go-sdk/mcp"`,
		"host/store/nats.go":           `import "github.com/nats-io/nats.go"`,
		"host/auth/toml.go":            `import "github.com/BurntSushi/toml"`,
		"host/config/notify.go":        `import "github.com/fsnotify/fsnotify"`,
		"host/store/sql.go":            `import "database/sql"`,
		"host/server/span.go":          `import "go.opentelemetry.io/otel/trace"`,
		"host/telemetry/sdk.go":        `import "go.opentelemetry.io/otel/sdk/trace"`,
		"host/command.go":              `import "weir/cmd/weir"`,
		"host/store/init.go":           `func init() {}`,
		"pdk/export.go":                "//go:wasmexport describe\nfunc describe() {}",
		"host/contract/turn/nearby.go": `import "weir/host/contract/stream"`,
		"host/dna/bad.go":              `import "weir/host/fault"`,
		"host/model/dna.go":            `import "weir/host/dna"`,

		"cmd/weir/internal/agentv/bad.go":         `import "weir/host/contract/turn"`,
		"cmd/weir/internal/compare/client/bad.go": `import "weir/host/contract/stream/consumer"`,
		// allowed
		"abi/good.go":                       `import "weir/abi/strictjson"`,
		"abi/strictjson/good.go":            `import "math"`,
		"plugins/two/good.go":               "import (\n\"weir/abi\"\n\"weir/pdk/checkinput\"\n\"weir/plugins/two/luhn\"\n)\nfunc init() {}",
		"plugins/two/extism_wasip1.go":      `import "github.com/extism/go-pdk"`,
		"pdk/export_wasip1.go":              "//go:wasmexport describe\nfunc describe() {}",
		"host/host.go":                      "import (\n\"weir/host/run\"\n\"weir/host/config\"\n\"go.opentelemetry.io/otel/trace\"\n)",
		"host/contract/turn/good.go":        "import (\n\"weir/host/run\"\n\"weir/host/dna\"\n)",
		"host/dna/good.go":                  `import "weir/abi/strictjson"`,
		"cmd/weir/internal/agentv/good.go":  "import (\n\"weir/host/dna\"\n\"weir/cmd/weir/internal/agentv/judge\"\n)",
		"cmd/weir/internal/compare/good.go": "import (\n\"weir/abi/strictjson\"\n\"weir/cmd/weir/internal/compare/stat\"\n)",
		"cmd/weir-demo/main.go":             `import "weir/cmd/weir-demo/internal/tickets"`,
		"cmd/weir-demo/sql.go":              "import (\n\"database/sql\"\n\"modernc.org/sqlite\"\n)",
		"host/contract/stream/http.go":      `import "github.com/gofiber/fiber/v2"`,
		"host/guard/trial/good.go":          `import "weir/host/guard"`,
		"host/guard/good.go":                "import (\n\"weir/pdk/match\"\n\"weir/host/fault\"\n)",
		"host/store/memory/good.go":         "import (\n\"weir/host/store\"\n\"weir/host/hold\"\n)",
		"host/telemetry/export/good.go":     "import (\n\"go.opentelemetry.io/otel/sdk/trace\"\n\"weir/host/telemetry\"\n)",
		"host/telemetry/good.go":            `import "go.opentelemetry.io/otel/trace"`,
		"host/model/model_test.go":          `import "weir/host/tool"`,
		"host/model/testdata/x.go":          `import "weir/host/tool"`,
		"host/plugin/plugintest/support.go": `import "weir/host/store"`,
		".hidden/x.go":                      `import "weir/cmd/weir"`,
		"nested/x.go":                       `import "weir/cmd/weir"`,
	}
	tree := fstest.MapFS{"nested/go.mod": {Data: []byte("module nested\n")}}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte("// Package x is documented.\npackage x\n\n" + body + "\n")}
	}
	want := []string{
		"abi/bad.go: abi stands alone",
		"pdk/bad.go: guests know abi and pdk only",
		"plugins/one/bad.go: no encoding/json in guests",
		"plugins/one/other.go: guests know abi and pdk only",
		"host/config/bad.go: host packages do not know each other",
		"host/contract/turn/nearby.go: host packages do not know each other",
		"host/dna/bad.go: digests stand alone",
		"host/model/dna.go: host packages do not know each other",
		"cmd/weir/internal/agentv/bad.go: the harness knows no agent",
		"cmd/weir/internal/compare/client/bad.go: the comparison knows no agent",
		"host/run/bad.go: the engine knows no library",
		"host/approval/bad.go: approvals are rules",
		"host/guard/bad.go: guards know the matcher only",
		"host/contract/stream/sse.go: fiber at the edge",
		"host/model/wasm.go: WebAssembly in one place",
		"host/model/mcp.go: MCP in one place",
		"host/store/nats.go: NATS in one place",
		"host/auth/toml.go: TOML in one place",
		"host/config/notify.go: file events in one place",
		"host/store/sql.go: SQL in the demo only",
		"host/server/span.go: spans in one place",
		"host/telemetry/sdk.go: spans in one place",
		"cmd/weir/other.go: nobody imports a command",
		"host/command.go: nobody imports a command",
		"host/store/init.go: no init in the host",
		"pdk/export.go: exports to the host in _wasip1.go",
	}
	got := breaches(mustRead(t, tree))
	for _, w := range want {
		if i := slices.IndexFunc(got, func(g string) bool { return strings.HasPrefix(g, w+":") }); i < 0 {
			t.Errorf("not noticed: %s", w)
		} else {
			got = slices.Delete(got, i, i+1)
		}
	}
	if len(got) > 0 {
		t.Errorf("reported without cause: %q", got)
	}
}

// Every package says what it is for.
func TestPackageComments(t *testing.T) {
	for _, dir := range undocumented(mustRead(t, os.DirFS(".."))) {
		t.Errorf("%s: no file has a package comment: say what the package is for", dir)
	}
	tree := fstest.MapFS{
		"a/a.go":   {Data: []byte("package a\n")},
		"b/b.go":   {Data: []byte("package b\n")},
		"b/doc.go": {Data: []byte("// Package b is documented.\npackage b\n")},
	}
	if got := undocumented(mustRead(t, tree)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("undocumented packages of the control: %q, want a alone", got)
	}
}

// Nothing that is checked in names somebody's machine or is left half done.
func TestNothingPersonal(t *testing.T) {
	personal := regexp.MustCompile(`(^|[^\w.~-])/(root|home|work|tmp|Users)/\w|\b(TO` + `DO|FIX` + `ME)\b`)
	texts := []string{".go", ".md", ".toml", ".txtar", ".txt", ".json", ".sh", ".yaml", ".sql", ""}
	walk(t, os.DirFS(".."), func(tree fs.FS, name string) {
		if !slices.Contains(texts, path.Ext(name)) {
			return
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			if m := personal.FindString(line); m != "" {
				t.Errorf("%s:%d: found %q", name, i+1, m)
			}
		}
	})
	for line, want := range map[string]bool{
		"see /ho" + "me/somebody/x": true, "path=/wo" + "rk/main": true, "// FIX" + "ME later": true,
		"https://example.com/home/x": false, "a/tmp/x": false, "/v1/workflow/full": false,
	} {
		if got := personal.MatchString(line); got != want {
			t.Errorf("control %q: matched %v", line, got)
		}
	}
}

func breaches(sources []source) []string {
	var out []string
	for _, s := range sources {
		for _, r := range rules {
			for _, b := range r.breach(s) {
				out = append(out, fmt.Sprintf("%s: %s: %s; %s", path.Join(s.dir, s.file), r.name, b, r.reason))
			}
		}
	}
	return out
}

// imports checks every import of the files under dir.
func imports(dir string, allowed func(source, string) bool) func(source) []string {
	return func(s source) []string {
		if !under(s.dir, dir) {
			return nil
		}
		var out []string
		for _, imp := range s.imports {
			if !allowed(s, imp) {
				out = append(out, "imports "+imp)
			}
		}
		return out
	}
}

// forbid refuses imports that begin with prefix in the files under dir.
func forbid(dir, prefix string) func(source) []string {
	return imports(dir, func(_ source, imp string) bool { return !strings.HasPrefix(imp, prefix) })
}

// only allows imports that begin with one of the prefixes in some folders.
func only(dirs []string, prefixes ...string) func(source) []string {
	return imports("", func(s source, imp string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(imp, p) {
				return slices.ContainsFunc(dirs, func(d string) bool { return under(s.dir, d) })
			}
		}
		return true
	})
}

func both(all ...func(source) []string) func(source) []string {
	return func(s source) []string {
		var out []string
		for _, f := range all {
			out = append(out, f(s)...)
		}
		return out
	}
}

func undocumented(sources []source) []string {
	documented := map[string]bool{}
	for _, s := range sources {
		documented[s.dir] = documented[s.dir] || s.doc
	}
	var out []string
	for dir, ok := range documented {
		if !ok {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// part is the folder of a part of the host: host/run, host/contract/stream.
func part(dir string) string {
	if under(dir, "host/contract") {
		return top(dir, 3)
	}
	return top(dir, 2)
}

// top is the first n elements of a path.
func top(dir string, n int) string {
	parts := strings.Split(dir, "/")
	return strings.Join(parts[:min(n, len(parts))], "/")
}

// under tells whether dir is root or lies below it.
func under(dir, root string) bool {
	return root == "" || dir == root || strings.HasPrefix(dir, root+"/")
}

// isStandard tells the standard library by the missing dot in the first element.
func isStandard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return first != module && !strings.Contains(first, ".")
}

func mustRead(t *testing.T, tree fs.FS) []source {
	t.Helper()
	var out []source
	walk(t, tree, func(tree fs.FS, name string) {
		// Packages whose name ends in test serve tests, which may import anything.
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") {
			return
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	})
	return out
}

// walk calls visit for every file of the module: not for hidden folders, test
// data, what was built, and other modules.
func walk(t *testing.T, tree fs.FS, visit func(fs.FS, string)) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			visit(tree, name)
			return nil
		}
		base := path.Base(name)
		if name == "." {
			return nil
		}
		if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || name == "bin" || name == "plugins/dist" {
			return fs.SkipDir
		}
		if _, err := fs.Stat(tree, path.Join(name, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func parse(name string, data []byte) (source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	s := source{dir: path.Dir(name), file: path.Base(name), doc: file.Doc != nil}
	if s.dir == "." {
		s.dir = ""
	}
	for _, imp := range file.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, p)
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			s.init = true
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			s.linked = s.linked || strings.HasPrefix(c.Text, "//go:wasmexport ")
		}
	}
	return s, nil
}
