package conform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// blockKind is what a block of the stream is (2.5).
type blockKind string

const (
	blockStep        blockKind = "step"
	blockAnswer      blockKind = "answer"
	blockInteraction blockKind = "interaction"
	blockError       blockKind = "error"
	blockComment     blockKind = "comment"
)

// block is one event of the stream.
type block struct {
	kind blockKind
	text string // as it came
	json string
	step *step
}

// step is an intermediate_data event.
type step struct {
	ID       string          `json:"id"`
	ParentID *string         `json:"parent_id"`
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Payload  json.RawMessage `json:"payload"`

	payload payload
}

type payload struct {
	EventType string `json:"event_type"`
	Name      string `json:"name"`
	UUID      string `json:"UUID"`
	Data      *struct {
		Input  json.RawMessage `json:"input"`
		Output json.RawMessage `json:"output"`
	} `json:"data"`
	Metadata struct {
		ToolInputs  json.RawMessage `json:"tool_inputs"`
		ToolOutputs json.RawMessage `json:"tool_outputs"`
		Provided    map[string]any  `json:"provided_metadata"`
	} `json:"metadata"`
}

// transcript is a stream, taken apart. What does not fit is a problem of the
// clause that it breaks.
type transcript struct {
	answer *answer
	blocks []block
	odd    string // the first block that is none of the kinds, or that does not end
	broken string // the first JSON that cannot be read as its kind
}

func readTranscript(a *answer) *transcript {
	t := &transcript{answer: a}
	if a.err != nil {
		return t
	}
	text := strings.ReplaceAll(string(a.body), "\r\n", "\n") // its own clause
	parts := strings.Split(text, "\n\n")
	if last := parts[len(parts)-1]; last != "" {
		t.odd = fmt.Sprintf("the stream ends within %s", quote([]byte(last)))
	}
	for _, part := range parts[:len(parts)-1] {
		b, ok := readBlock(part)
		if !ok {
			if t.odd == "" {
				t.odd = quote([]byte(part))
			}
			continue
		}
		if err := b.read(); err != nil && t.broken == "" {
			t.broken = fmt.Sprintf("%s: %v", quote([]byte(part)), err)
		}
		t.blocks = append(t.blocks, b)
	}
	return t
}

func readBlock(text string) (block, bool) {
	b := block{text: text}
	switch {
	case strings.HasPrefix(text, "intermediate_data: "):
		b.kind, b.json = blockStep, strings.TrimPrefix(text, "intermediate_data: ")
	case strings.HasPrefix(text, "event: interaction_required\ndata: "):
		b.kind, b.json = blockInteraction, strings.TrimPrefix(text, "event: interaction_required\ndata: ")
	case strings.HasPrefix(text, "data: "):
		b.kind, b.json = blockAnswer, strings.TrimPrefix(text, "data: ")
	case strings.HasPrefix(text, "{"):
		b.kind, b.json = blockError, text
	case strings.HasPrefix(text, ":"):
		b.kind = blockComment
		return b, !strings.Contains(text, "\n")
	default:
		return b, false
	}
	return b, !strings.Contains(b.json, "\n")
}

// read reads the JSON of a block as far as its kind is known.
func (b *block) read() error {
	if b.kind == blockComment {
		return nil
	}
	if !utf8.ValidString(b.json) || !json.Valid([]byte(b.json)) {
		return fmt.Errorf("expected JSON")
	}
	if b.kind != blockStep {
		var v map[string]any
		return json.Unmarshal([]byte(b.json), &v)
	}
	s := &step{}
	if err := json.Unmarshal([]byte(b.json), s); err != nil {
		return err
	}
	b.step = s
	return json.Unmarshal(s.Payload, &s.payload)
}

// compact tells whether JSON has no space that it could do without.
func compact(text string) bool {
	var b bytes.Buffer
	return json.Compact(&b, []byte(text)) == nil && b.String() == text
}

// steps are the steps of some types, in order; none means all.
func (t *transcript) steps(types ...string) (out []*step) {
	for _, b := range t.blocks {
		if b.step == nil {
			continue
		}
		for _, want := range types {
			if b.step.Type == want {
				out = append(out, b.step)
			}
		}
		if len(types) == 0 {
			out = append(out, b.step)
		}
	}
	return out
}

func (t *transcript) of(kind blockKind) (out []block) {
	for _, b := range t.blocks {
		if b.kind == kind {
			out = append(out, b)
		}
	}
	return out
}

// value is an answer's text, and whether it is a text.
func (b block) value() (string, bool) {
	var v map[string]any
	if json.Unmarshal([]byte(b.json), &v) != nil || len(v) != 1 {
		return "", false
	}
	text, ok := v["value"].(string)
	return text, ok
}

// decision is a guardrail's decision of a stage, in the order of the stream.
func (t *transcript) decisions(stage string) (out []*step) {
	for _, s := range t.steps() {
		if strings.HasPrefix(s.Name, "guardrail_"+stage+"_") && strings.HasSuffix(s.Name, "_decision") && strings.HasSuffix(s.Type, "_END") {
			out = append(out, s)
		}
	}
	return out
}
