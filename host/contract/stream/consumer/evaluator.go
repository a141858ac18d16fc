package consumer

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// Evaluation is what the evaluator takes from a stream.
type Evaluation struct {
	Text      string
	ToolCalls []Step // starts of tools that it knows
	Results   []Step // their ends
	Decisions []Step // guardrails' decisions
	Blocked   bool   // by the input decision, never by wording
	TraceID   string
	RunID     string
	// Err is the error that made the case fail; nothing after it was read.
	Err string
}

// Evaluate reads a whole stream.
func Evaluate(stream []byte) *Evaluation {
	e := &Evaluation{}
	var block []string
	for line := range strings.SplitSeq(string(stream), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line != "" {
			block = append(block, line)
			continue
		}
		if e.block(strings.Join(block, "\n")); e.Err != "" {
			return e
		}
		block = nil
	}
	e.block(strings.Join(block, "\n"))
	return e
}

// block tests in the evaluator's order: two of the tests look for their text
// anywhere in the block.
func (e *Evaluation) block(block string) {
	switch {
	case strings.Contains(block, "event: interaction_required"):
		e.Err = "the agent asked a human"
	case strings.HasPrefix(block, "intermediate_data:"):
		e.step(strings.TrimPrefix(block, "intermediate_data:"))
	case strings.Contains(block, "data:"):
		e.answer(block)
	case strings.HasPrefix(block, "{"):
		e.Err = errorMessage(block)
	}
}

func (e *Evaluation) step(data string) {
	var s Step
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		e.Err = "a step that is no JSON"
		return
	}
	if id := s.Payload.Metadata.Provided["workflow_trace_id"]; e.TraceID == "" {
		e.TraceID = id
	}
	if id := s.Payload.Metadata.Provided["workflow_run_id"]; e.RunID == "" {
		e.RunID = id
	}
	switch {
	case s.Type == "TOOL_START" && isToolOfUI(s.Name):
		e.ToolCalls = append(e.ToolCalls, s)
	case s.Type == "TOOL_END" && isToolOfUI(s.Name):
		e.Results = append(e.Results, s)
	case s.Type == "FUNCTION_END" && strings.HasPrefix(s.Name, "guardrail_input_"):
		e.Decisions = append(e.Decisions, s)
		var decision struct{ Blocked bool }
		_ = json.Unmarshal(s.Payload.Data.Output, &decision)
		e.Blocked = decision.Blocked
	case s.Type == "FUNCTION_END" && strings.HasPrefix(s.Name, "guardrail_output_"):
		e.Decisions = append(e.Decisions, s)
	}
}

// quoted matches the printed objects that the evaluator takes apart.
var quoted = regexp.MustCompile(`(?s)content=(?:'(.*?)'|"(.*?)")`)

func (e *Evaluation) answer(block string) {
	for _, line := range splitLines(block) {
		rest, ok := strings.CutPrefix(line, "data:")
		if !ok {
			continue
		}
		var fragment struct{ Value any }
		if err := json.Unmarshal([]byte(strings.TrimSpace(rest)), &fragment); err != nil {
			e.Err = "a fragment that is no JSON"
			return
		}
		text, _ := fragment.Value.(string)
		e.Text += plain(text)
		return
	}
}

func plain(text string) string {
	if v, ok := container(strings.TrimFunc(text, isSpacePy)); ok {
		return member(v, "value", "answer", "content")
	}
	if m := quoted.FindStringSubmatch(text); m != nil {
		return m[1] + m[2]
	}
	return text
}

func isSpacePy(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

// splitLines splits where str.splitlines does, which is in more places than LF.
func splitLines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '\n', '\r', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
			return true
		}
		return false
	})
}
