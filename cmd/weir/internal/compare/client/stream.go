package client

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Observation is what an evaluator takes from one stream.
type Observation struct {
	Answer   string
	Calls    []ToolCall   // in the order of their starts
	Results  []ToolResult // in the order of their ends
	Input    *Decision    // nil: the stream held none
	Output   *Decision
	Blocked  bool // by the input decision, never by wording
	TraceID  string
	RunID    string
	Metadata map[string]any // provided_metadata of the first workflow step

	// Latency is the time from the request to the end of the stream, First the
	// time to the first fragment of the answer that is not empty; zero when
	// there was none.
	Latency, First time.Duration
	Attempts       int
}

// ToolCall is a call as it was announced. Arguments is its input after the
// evaluator's decoding; numbers are json.Number.
type ToolCall struct {
	ID, Name  string
	Arguments any
}

// ToolResult is what came of a call, after the same decoding.
type ToolResult struct {
	ID, Name string
	Output   any
}

// Decision is a guardrail's decision event.
type Decision struct {
	Name    string
	Output  map[string]any
	Blocked bool
}

// reader reads a stream block by block as agent-service.md, 10.3 says.
type reader struct {
	tools   []string
	started time.Time
	now     func() time.Time

	got       Observation
	text      strings.Builder // the answer
	functions []ToolCall      // used when no tool steps were seen
	ends      []ToolResult
	began     bool // a workflow step was seen
	ended     bool
	blocks    int
}

// Bounds of one block of a stream and of the whole answer.
const (
	maxBlock  = 8 << 20
	maxAnswer = 4 << 20
)

// read takes the whole stream. What is no stream of the contract is an error.
func (r *reader) read(body io.Reader) error {
	lines := bufio.NewReaderSize(body, 64<<10)
	var block strings.Builder
	for {
		line, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !utf8.ValidString(line) {
			return errors.New("malformed stream: a line that is no UTF-8")
		}
		done := errors.Is(err, io.EOF)
		if text := strings.TrimRight(line, "\r\n"); text != "" {
			if block.Len() > 0 {
				block.WriteByte('\n')
			}
			block.WriteString(text)
			if block.Len() > maxBlock {
				return fmt.Errorf("malformed stream: a block of more than %d bytes", maxBlock)
			}
			if !done {
				continue
			}
		}
		if block.Len() > 0 {
			if err := r.block(block.String()); err != nil {
				return err
			}
			block.Reset()
		}
		if done {
			return r.finish()
		}
	}
}

func readLine(lines *bufio.Reader) (string, error) {
	var text []byte
	for {
		part, err := lines.ReadSlice('\n')
		text = append(text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(text), err
		}
		if len(text) > maxBlock {
			return "", fmt.Errorf("malformed stream: a line of more than %d bytes", maxBlock)
		}
	}
}

// finish decides whether that was a stream at all: something else that
// answers 200, or half a stream, must not look like an agent that says nothing.
func (r *reader) finish() error {
	switch {
	case r.blocks == 0:
		return errors.New("malformed stream: no block of the contract in the answer")
	case r.began && !r.ended:
		return errors.New("malformed stream: it ends without WORKFLOW_END")
	}
	if len(r.got.Calls) == 0 {
		r.got.Calls = r.functions
	}
	r.got.Results, r.got.Answer = r.ends, r.text.String()
	return nil
}

// block tests in the evaluator's order; two of the tests look for their text
// anywhere in the block.
func (r *reader) block(block string) error {
	switch {
	case strings.Contains(block, "event: interaction_required"):
		return errors.New("the agent asked a person, and there is none")
	case strings.HasPrefix(block, "intermediate_data:"):
		r.blocks++
		return r.step(strings.TrimPrefix(block, "intermediate_data:"))
	case strings.Contains(block, "data:"):
		return r.answer(block)
	case strings.HasPrefix(block, "{"):
		return fmt.Errorf("the agent reported an error: %s", errorMessage(block))
	}
	return nil
}

func errorMessage(block string) string {
	object, _ := decode(block).(map[string]any)
	for _, name := range []string{"message", "details", "error"} {
		if text, _ := object[name].(string); text != "" {
			return excerpt(text)
		}
	}
	return "without a message"
}

// excerpt bounds and quotes a foreign text.
func excerpt(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return fmt.Sprintf("%q…", string(runes[:most]))
	}
	return fmt.Sprintf("%q", text)
}

// decode reads JSON and gives nil for what is none. Numbers keep their text.
func decode(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return v
}

func (r *reader) step(data string) error {
	envelope, _ := decode(strings.TrimSpace(data)).(map[string]any)
	if envelope == nil {
		return errors.New("malformed stream: a step that is no JSON object")
	}
	payload, _ := envelope["payload"].(map[string]any)
	if text, ok := envelope["payload"].(string); ok {
		payload, _ = decode(text).(map[string]any)
	}
	s := step{
		kind: strings.ToUpper(firstText(envelope["type"], payload["event_type"])),
		name: firstText(envelope["name"], payload["name"]),
		id:   firstText(envelope["id"], payload["UUID"]),
	}
	s.data, _ = payload["data"].(map[string]any)
	s.metadata, _ = payload["metadata"].(map[string]any)
	if r.got.TraceID == "" {
		r.got.TraceID = find(envelope, 0, "workflow_trace_id", "nat.workflow.trace_id")
	}
	if r.got.RunID == "" {
		r.got.RunID = find(envelope, 0, "workflow_run_id")
	}
	r.take(s)
	return nil
}

type step struct {
	kind, name, id string
	data, metadata map[string]any
}

func (r *reader) take(s step) {
	tool := s.name
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+len("__"):]
	}
	known := slices.Contains(r.tools, tool)
	switch s.kind {
	case "WORKFLOW_START":
		r.began = true
		r.got.Metadata, _ = s.metadata["provided_metadata"].(map[string]any)
	case "WORKFLOW_END":
		r.ended = true
	case "TOOL_START":
		if known {
			r.got.Calls = append(r.got.Calls, ToolCall{s.id, tool, s.input()})
		}
	case "FUNCTION_START":
		if known {
			r.functions = append(r.functions, ToolCall{s.id, tool, s.input()})
		}
	case "TOOL_END", "FUNCTION_END":
		if known {
			r.end(s, tool)
		} else if s.kind == "FUNCTION_END" {
			r.decision(s)
		}
	}
}

// end keeps TOOL_END before FUNCTION_END and each (id, name) once.
func (r *reader) end(s step, tool string) {
	if slices.ContainsFunc(r.ends, func(e ToolResult) bool { return e.ID == s.id && e.Name == tool }) {
		return
	}
	r.ends = append(r.ends, ToolResult{s.id, tool, s.output()})
}

func (r *reader) decision(s step) {
	input, output := strings.HasPrefix(s.name, "guardrail_input_"), strings.HasPrefix(s.name, "guardrail_output_")
	if !input && !output {
		return
	}
	object, _ := s.output().(map[string]any)
	d := &Decision{Name: s.name, Output: object, Blocked: truthy(object["blocked"])}
	if input {
		r.got.Input, r.got.Blocked = d, d.Blocked
	} else {
		r.got.Output = d
	}
}

func (s step) input() any {
	return arguments(firstOf(s.metadata["tool_inputs"], s.data["input"], s.metadata["span_inputs"]))
}

func (s step) output() any {
	return unwrap(firstOf(s.data["output"], s.data["payload"], s.metadata["span_outputs"], s.metadata["tool_outputs"]), 0)
}

// firstOf is the first value that is not empty in Python's sense.
func firstOf(values ...any) any {
	for _, v := range values {
		if truthy(v) {
			return v
		}
	}
	return nil
}

func firstText(values ...any) string {
	for _, v := range values {
		if text, _ := v.(string); text != "" {
			return text
		}
	}
	return ""
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		f, err := v.Float64()
		return err != nil || f != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// maxDepth bounds recursion into values from outside.
const maxDepth = 64

// arguments decodes a call's input: {"input": x} is x, and what unwrap does.
func arguments(v any) any {
	v = unwrap(v, 0)
	for range maxDepth {
		object, _ := v.(map[string]any)
		inner, ok := object["input"]
		if !ok || len(object) != 1 {
			break
		}
		v = inner
	}
	if v == nil {
		return map[string]any{}
	}
	return v
}

// unwrap decodes every text that is JSON, at every depth, and takes {"value":
// x} for x and {"type":"text","text":x} for x.
func unwrap(v any, depth int) any {
	if depth > maxDepth {
		return v
	}
	switch v := v.(type) {
	case string:
		inner := decode(v)
		if inner == nil && strings.TrimSpace(v) != "null" {
			return v
		}
		return unwrap(inner, depth+1)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = unwrap(v[i], depth+1)
		}
		return list
	case map[string]any:
		if inner, ok := v["value"]; ok && len(v) == 1 {
			return unwrap(inner, depth+1)
		}
		if inner, ok := v["text"]; ok && v["type"] == "text" {
			return unwrap(inner, depth+1)
		}
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = unwrap(v[name], depth+1)
		}
		return object
	}
	return v
}

// find is the first non-empty text under one of the names, at any depth.
func find(v any, depth int, names ...string) string {
	if depth > maxDepth {
		return ""
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range names {
			if text, _ := v[name].(string); text != "" {
				return text
			}
		}
		for _, name := range sorted(v) {
			if text := find(v[name], depth+1, names...); text != "" {
				return text
			}
		}
	case []any:
		for _, item := range v {
			if text := find(item, depth+1, names...); text != "" {
				return text
			}
		}
	}
	return ""
}

func sorted(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// answer uses the first line that begins with data:. Lines are those of
// Python's splitlines, which splits in more places than LF.
func (r *reader) answer(block string) error {
	for _, line := range splitLines(block) {
		rest, ok := strings.CutPrefix(line, "data:")
		if !ok {
			continue
		}
		rest = strings.TrimFunc(rest, isSpace)
		if rest == "" || rest == "[DONE]" {
			return nil
		}
		fragment, _ := decode(rest).(map[string]any)
		if fragment == nil {
			return errors.New("malformed stream: a fragment that is no JSON object")
		}
		r.blocks++
		text, _ := fragment["value"].(string)
		return r.add(plain(text))
	}
	return nil
}

func (r *reader) add(text string) error {
	if r.text.Len()+len(text) > maxAnswer {
		return fmt.Errorf("malformed stream: an answer of more than %d bytes", maxAnswer)
	}
	if text != "" && r.got.First == 0 {
		r.got.First = max(r.now().Sub(r.started), 1)
	}
	r.text.WriteString(text)
	return nil
}

// quoted matches the printed objects that the evaluator takes apart.
var quoted = regexp.MustCompile(`(?s)content=(?:'(.*?)'|"(.*?)")`)

// plain re-reads a fragment that is a JSON container, and no other.
func plain(text string) string {
	trimmed := strings.TrimFunc(text, isSpace)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if v := decode(trimmed); v != nil {
			return contained(v, 0)
		}
	}
	if m := quoted.FindStringSubmatch(text); m != nil {
		return m[1] + m[2]
	}
	return text
}

func contained(v any, depth int) string {
	if depth > maxDepth {
		return ""
	}
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case []any:
		var b strings.Builder
		for _, item := range v {
			b.WriteString(contained(item, depth+1))
		}
		return b.String()
	case map[string]any:
		for _, name := range []string{"value", "answer", "choices", "content"} {
			if truthy(v[name]) {
				return contained(v[name], depth+1)
			}
		}
	}
	return ""
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

func splitLines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '\n', '\r', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
			return true
		}
		return false
	})
}
