// Package schema holds the JSON Schemas of AgentV: those that it publishes
// (format 1.4, in upstream/, under their own licence) and two of ours for what
// its programs read and its schemas leave open.
package schema

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/host/fault"
)

//go:embed used.schema.json events.schema.json upstream
var files embed.FS

// A Schema checks JSON texts. It is safe for concurrent use.
type Schema struct {
	parts []*jsonschema.Schema
}

// Scenario returns the schema of AES 1.4 scenarios: the published one, and the
// members beyond it that a harness uses.
func Scenario() (*Schema, error) {
	return compile("upstream/aes.schema.json", "used.schema.json")
}

// Runs returns the published schema of a line of run.jsonl.
func Runs() (*Schema, error) {
	return compile("upstream/runs.schema.json")
}

// Events returns our schema of the events that the published one does not name:
// prompt, agent_response, evaluation, hitl_pause and hitl_resume.
func Events() (*Schema, error) {
	return compile("events.schema.json")
}

func compile(names ...string) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.AssertFormat()
	c.UseLoader(loader{})
	s := &Schema{}
	for _, name := range names {
		part, err := c.Compile("weir:///" + name)
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
		s.parts = append(s.parts, part)
	}
	return s, nil
}

// loader reads embedded files only, so that no schema fetches another.
type loader struct{}

func (loader) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, "weir:///")
	if !ok {
		return nil, fault.New(fault.Internal, "expected an embedded schema, got %q", url)
	}
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// maxProblems bounds how many mistakes are told at once.
const maxProblems = 20

// Check reports what is wrong with a JSON text, each mistake as "path: reason"
// with a path such as workflow.nodes[0].id. The text must be JSON.
func (s *Schema) Check(data []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fault.New(fault.Invalid, "expected one JSON value: %w", err)
	}
	var problems []string
	for _, part := range s.parts {
		err := part.Validate(value)
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
			problems = collect(problems, invalid)
		} else if err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	problems = slices.Compact(problems)
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return fault.New(fault.Invalid, "%s", strings.Join(problems, "; "))
}

// collect gathers the innermost reasons; the outer ones only say that there are
// some.
func collect(problems []string, e *jsonschema.ValidationError) []string {
	for _, cause := range e.Causes {
		problems = collect(problems, cause)
	}
	if len(e.Causes) > 0 {
		return problems
	}
	unit := e.BasicOutput()
	if unit.Error == nil {
		return problems
	}
	return append(problems, Path(unit.InstanceLocation)+": "+capped(unit.Error.String()))
}

var index = regexp.MustCompile(`^\d+$`)

// Path writes a JSON pointer as people do: workflow.nodes[0].id. The whole
// document is "(root)".
func Path(pointer string) string {
	if pointer == "" {
		return "(root)"
	}
	var b strings.Builder
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch {
		case index.MatchString(part):
			b.WriteString("[" + part + "]")
		case b.Len() > 0:
			b.WriteString("." + part)
		default:
			b.WriteString(part)
		}
	}
	return b.String()
}

// capped keeps a reason readable when it quotes what a file says.
func capped(text string) string {
	const most = 300
	if len(text) <= most {
		return strings.ToValidUTF8(text, "?")
	}
	return strings.ToValidUTF8(text[:most], "") + "… (" + strconv.Itoa(len(text)) + " bytes)"
}
