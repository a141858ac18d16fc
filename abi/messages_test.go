package abi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"weir/abi"
)

// message is what every message type has.
type message interface {
	AppendJSON([]byte) []byte
	DecodeJSON([]byte) error
}

// messages has every message type by the name of its schema and of its folder
// of golden files; TestEveryMessageIsKnown holds it against the source.
var messages = map[string]func() message{
	"action":                    func() message { return new(abi.Action) },
	"ask_human":                 func() message { return new(abi.AskHuman) },
	"ask_reply":                 func() message { return new(abi.AskReply) },
	"case":                      func() message { return new(abi.Case) },
	"check_input_request":       func() message { return new(abi.CheckInputRequest) },
	"check_output_reply":        func() message { return new(abi.CheckOutputReply) },
	"check_output_request":      func() message { return new(abi.CheckOutputRequest) },
	"check_tool_call_request":   func() message { return new(abi.CheckToolCallRequest) },
	"check_tool_result_request": func() message { return new(abi.CheckToolResultRequest) },
	"configure_reply":           func() message { return new(abi.ConfigureReply) },
	"configure_request":         func() message { return new(abi.ConfigureRequest) },
	"cut":                       func() message { return new(abi.Cut) },
	"describe_request":          func() message { return new(abi.DescribeRequest) },
	"description":               func() message { return new(abi.Description) },
	"edit":                      func() message { return new(abi.Edit) },
	"event":                     func() message { return new(abi.Event) },
	"limits":                    func() message { return new(abi.Limits) },
	"message":                   func() message { return new(abi.Message) },
	"model_request":             func() message { return new(abi.ModelRequest) },
	"option":                    func() message { return new(abi.Option) },
	"pattern":                   func() message { return new(abi.Pattern) },
	"prompt":                    func() message { return new(abi.Prompt) },
	"prompt_use":                func() message { return new(abi.PromptUse) },
	"skill":                     func() message { return new(abi.Skill) },
	"step_reply":                func() message { return new(abi.StepReply) },
	"step_request":              func() message { return new(abi.StepRequest) },
	"tool_call":                 func() message { return new(abi.ToolCall) },
	"tool_info":                 func() message { return new(abi.ToolInfo) },
	"tool_result":               func() message { return new(abi.ToolResult) },
	"tool_set":                  func() message { return new(abi.ToolSet) },
	"turn":                      func() message { return new(abi.Turn) },
	"var":                       func() message { return new(abi.Var) },
	"verdict":                   func() message { return new(abi.Verdict) },
}

func names() []string {
	var list []string
	for name := range messages {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// TestEveryMessageIsKnown finds the message types in the source: exported
// structs that are not embedded in another. A new one needs a codec, a line in
// messages, a schema and a golden file.
func TestEveryMessageIsKnown(t *testing.T) {
	var want []string
	for _, name := range messageTypes(t) {
		file := snake(name)
		want = append(want, file)
		make, ok := messages[file]
		if !ok {
			t.Errorf("type %s is not in messages", name)
			continue
		}
		if got := reflect.TypeOf(make()).Elem().Name(); got != name {
			t.Errorf("messages[%q] makes a %s", file, got)
		}
	}
	slices.Sort(want)
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("messages has %q, the source %q", got, want)
	}
	var schemas, goldens []string
	for _, name := range list(t, "schema") {
		schemas = append(schemas, strings.TrimSuffix(name, ".json"))
	}
	for _, name := range list(t, "testdata") {
		if name == "fuzz" {
			continue
		}
		goldens = append(goldens, name)
		if len(list(t, "testdata/"+name)) == 0 {
			t.Errorf("testdata/%s is empty", name)
		}
	}
	if !slices.Equal(schemas, want) {
		t.Errorf("schema/ has %q, want %q", schemas, want)
	}
	if !slices.Equal(goldens, want) {
		t.Errorf("testdata/ has %q, want %q", goldens, want)
	}
}

func messageTypes(t *testing.T) []string {
	embedded := map[string]bool{}
	var structs []string
	for _, name := range list(t, ".") {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			structs = append(structs, spec.Name.Name)
			for _, f := range s.Fields.List {
				if id, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 {
					embedded[id.Name] = true
				}
			}
			return true
		})
	}
	return slices.DeleteFunc(structs, func(name string) bool { return embedded[name] })
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS("."), dir)
	if err != nil {
		t.Error(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
