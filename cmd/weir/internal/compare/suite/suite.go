// Package suite reads evaluation datasets (agent-service.md, 11.1 and 11.2): a
// JSON list of cases, each a question and what is expected of whoever answers.
//
// Reading is strict where a wrong guess would give a wrong score, and reports
// where a file merely says more than is understood: a member that nobody
// scores is a note, never silently ignored.
package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"weir/abi/strictjson"
)

// Kind names a suite: what its cases are scored by.
type Kind string

// Kinds, in the order in which they run.
const (
	Guardrails Kind = "guardrails"
	Tools      Kind = "tools"
	Grounding  Kind = "grounding"
	Injection  Kind = "injection"
)

// Kinds lists all kinds in the order in which they run.
func Kinds() []Kind { return []Kind{Guardrails, Tools, Grounding, Injection} }

// Bounds of what is read. A suite is somebody else's file.
const (
	MaxFile     = 16 << 20
	MaxCases    = 5000
	MaxQuestion = 256 << 10 // bytes
)

// Suite is the cases of one kind.
type Suite struct {
	Kind  Kind
	Files []string // where they come from
	Cases []Case
	// SHA256 is the digest of the canonical JSON of the cases in their order.
	SHA256 string
}

// Case is one question and its expectations.
type Case struct {
	ID       string
	Question string
	Expect   Expectations
	Tags     json.RawMessage // as it stands; nothing depends on it

	canonical []byte
}

// Load reads a file, or every *.json file of a folder, and returns its suites
// in the order of [Kinds] with notes about what is in the files and not
// understood. A case id that stands twice in one suite is refused.
func Load(tree fs.FS, name string) (suites []Suite, notes []string, err error) {
	names := []string{name}
	if info, err := fs.Stat(tree, name); err != nil {
		return nil, nil, err
	} else if info.IsDir() {
		if names, err = fs.Glob(tree, path.Join(name, "*.json")); err != nil {
			return nil, nil, err
		}
		if len(names) == 0 {
			return nil, nil, fmt.Errorf("%s: expected at least one .json file", name)
		}
	}
	sort.Strings(names)
	found := map[Kind]*Suite{}
	for _, name := range names {
		data, err := read(tree, name)
		if err != nil {
			return nil, nil, err
		}
		kind, cases, more, err := Parse(path.Base(name), data)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
		for _, n := range more {
			notes = append(notes, path.Base(name)+": "+n)
		}
		if found[kind] == nil {
			found[kind] = &Suite{Kind: kind}
		}
		found[kind].Files = append(found[kind].Files, path.Base(name))
		found[kind].Cases = append(found[kind].Cases, cases...)
	}
	for _, kind := range Kinds() {
		if s := found[kind]; s != nil {
			if err := s.finish(); err != nil {
				return nil, nil, err
			}
			suites = append(suites, *s)
		}
	}
	return suites, notes, nil
}

func read(tree fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(tree, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("%s: expected at most %d bytes", path.Base(name), MaxFile)
	}
	return fs.ReadFile(tree, name)
}

// finish checks the ids and computes the digest.
func (s *Suite) finish() error {
	seen := map[string]bool{}
	sum := sha256.New()
	for _, c := range s.Cases {
		if seen[c.ID] {
			return fmt.Errorf("suite %s: the case id %q stands twice", s.Kind, c.ID)
		}
		seen[c.ID] = true
		sum.Write(c.canonical)
		sum.Write([]byte{'\n'})
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// Parse reads one file. Its kind is told by its name (guardrails, tools or
// tool_calling, grounding, injection), otherwise by what its cases expect.
func Parse(name string, data []byte) (Kind, []Case, []string, error) {
	if err := strictjson.Valid(bytes.TrimPrefix(data, []byte("\ufeff"))); err != nil {
		return "", nil, nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &list); err != nil {
		return "", nil, nil, fmt.Errorf("expected a list of cases")
	}
	if len(list) == 0 || len(list) > MaxCases {
		return "", nil, nil, fmt.Errorf("expected 1 to %d cases, got %d", MaxCases, len(list))
	}
	kind, known := kindOfName(name)
	r := &reader{}
	cases := make([]Case, len(list))
	for i, raw := range list {
		r.at = fmt.Sprintf("case %d", i+1)
		c, err := r.readCase(raw)
		if err != nil {
			return "", nil, nil, fmt.Errorf("%s: %w", r.at, err)
		}
		cases[i] = c
		guess := kindOfCase(c.Expect)
		if !known && kind == "" {
			kind = guess
		}
		if guess == "" && !known || !known && guess != kind {
			return "", nil, nil, fmt.Errorf("%s: expected expectations of one suite (guardrails, tools, grounding or injection) in the file", r.at)
		}
	}
	for _, c := range cases {
		if err := c.Expect.check(kind); err != nil {
			return "", nil, nil, fmt.Errorf("case %s: %w", c.ID, err)
		}
		for _, unscored := range c.Expect.unscored(kind) {
			r.notes = append(r.notes, fmt.Sprintf("case %s: expectations.%s is not scored in suite %s", c.ID, unscored, kind))
		}
	}
	return kind, cases, r.notes, nil
}

func kindOfName(name string) (Kind, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, path.Ext(name)))
	for _, k := range []struct {
		name string
		kind Kind
	}{{"guardrails", Guardrails}, {"guardrail", Guardrails}, {"tool_calling", Tools}, {"tool-calling", Tools}, {"tools", Tools}, {"grounding", Grounding}, {"injection", Injection}} {
		if name == k.name {
			return k.kind, true
		}
	}
	return "", false
}

// reader collects notes about what it does not understand.
type reader struct {
	at    string
	notes []string
}

func (r *reader) note(where string) {
	r.notes = append(r.notes, fmt.Sprintf("%s: unknown member %q", r.at, where))
}

// members splits an object. Names are matched exactly.
func members(raw json.RawMessage, what string) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return nil, fmt.Errorf("%s: expected an object", what)
	}
	return m, nil
}

func (r *reader) readCase(raw json.RawMessage) (c Case, err error) {
	m, err := members(raw, "the case")
	if err != nil {
		return c, err
	}
	inputs, err := members(orNull(m["inputs"]), "inputs")
	if err != nil {
		return c, err
	}
	if err := text(inputs, "case_id", &c.ID); err != nil {
		return c, err
	}
	if err := text(inputs, "question", &c.Question); err != nil {
		return c, err
	}
	if len(c.Question) > MaxQuestion {
		return c, fmt.Errorf("question: expected at most %d bytes", MaxQuestion)
	}
	if !printable(c.ID) {
		return c, fmt.Errorf("case_id: expected 1 to 128 printable ASCII characters without commas, because it is sent as a header")
	}
	r.at = "case " + c.ID
	r.unknown("inputs.", inputs, "case_id", "question")
	r.unknown("", m, "inputs", "expectations", "tags")
	if c.Expect, err = r.readExpectations(orNull(m["expectations"])); err != nil {
		return c, err
	}
	if tags := m["tags"]; len(tags) > 0 && string(tags) != "null" {
		if _, err := members(tags, "tags"); err != nil {
			return c, err
		}
		c.Tags = tags
	}
	c.canonical, err = strictjson.Canonical(nil, raw)
	return c, err
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func (r *reader) unknown(prefix string, m map[string]json.RawMessage, known ...string) {
	var names []string
	for name := range m {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		r.note(prefix + name)
	}
}

func text(m map[string]json.RawMessage, name string, into *string) error {
	if err := json.Unmarshal(orNull(m[name]), into); err != nil || strings.TrimSpace(*into) == "" {
		return fmt.Errorf("inputs.%s: expected a text that is not blank", name)
	}
	return nil
}

func printable(id string) bool {
	if len(id) > 128 || strings.TrimSpace(id) != id {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return r < 0x20 || r > 0x7e || r == ',' })
}
