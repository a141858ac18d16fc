package stream

import (
	"bytes"
	"strings"
	"unicode"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/run"
)

// keepAlive is the comment that consumers and proxies ignore.
const keepAlive = ": keep-alive\n\n"

// encodeStep returns the bytes of a step (2.5, 2.6).
func encodeStep(e stepEvent) []byte {
	b := append(make([]byte, 0, 512), `intermediate_data: {"id":`...)
	b = strictjson.AppendString(b, e.ID)
	b = append(b, `,"parent_id":`...)
	if e.Parent == "" {
		b = append(b, "null"...)
	} else {
		b = strictjson.AppendString(b, e.Parent)
	}
	b = appendPair(b, `,"type":`, e.Type.wireName())
	b = appendPair(b, `,"name":`, e.Name)
	b = appendPair(b, `,"payload":{"event_type":`, e.Type.wireName())
	b = appendPair(b, `,"name":`, e.Name)
	b = appendPair(b, `,"UUID":`, e.ID)
	if e.Provided != nil {
		b = appendProvided(b, e.Provided)
	} else {
		b = appendData(b, e)
	}
	return finish(append(b, "}}"...))
}

func appendPair(b []byte, before, value string) []byte {
	return strictjson.AppendString(append(b, before...), value)
}

func appendProvided(b []byte, p *provided) []byte {
	b = appendPair(b, `,"metadata":{"provided_metadata":{"workflow_trace_id":`, p.TraceID)
	b = appendPair(b, `,"workflow_run_id":`, p.RunID)
	b = appendPair(b, `,"request_id":`, p.RequestID)
	b = appendPair(b, `,"agent_runtime":`, Runtime)
	b = appendPair(b, `,"generation":`, p.Generation)
	if p.Variant != "" {
		b = appendPair(b, `,"variant":`, p.Variant)
	}
	return append(b, "}}"...)
}

func appendData(b []byte, e stepEvent) []byte {
	input := value(e.Input)
	b = append(append(b, `,"data":{"input":`...), input...)
	if e.Type != toolEnd && e.Type != functionEnd {
		b = append(append(b, `},"metadata":{"tool_inputs":`...), input...)
		return append(b, '}')
	}
	output := value(e.Output)
	b = append(append(b, `,"output":`...), output...)
	b = append(append(b, `},"metadata":{"tool_inputs":`...), input...)
	b = append(append(b, `,"tool_outputs":`...), output...)
	return append(b, '}')
}

// value returns raw on one line. What is no JSON becomes a string: a broken
// value must not break the block that it stands in.
func value(raw abi.Raw) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	b, err := strictjson.Compact(nil, raw)
	if err != nil {
		return strictjson.AppendString(nil, string(raw))
	}
	return b
}

// encodeAnswer returns the blocks of a piece of the answer, usually one.
func encodeAnswer(text string) [][]byte {
	var blocks [][]byte
	for _, fragment := range split(text) {
		b := appendPair(make([]byte, 0, len(fragment)+32), `data: {"value":`, fragment)
		blocks = append(blocks, finish(append(b, '}')))
	}
	return blocks
}

// encodeInteraction returns the bytes of a question to a person (2.5, 3.4).
func encodeInteraction(i run.Interaction) []byte {
	b := appendPair([]byte("data: {"), `"execution_id":`, i.Run)
	b = appendPair(b, `,"interaction_id":`, i.ID)
	b = append(append(b, `,"prompt":`...), value(i.Prompt)...)
	return append([]byte("event: interaction_required\n"), finish(append(b, '}'))...)
}

// encodeError returns the bytes of the error block (2.9).
func encodeError(message string) []byte {
	b := appendPair(nil, `{"error":"workflow_error","message":`, message)
	return finish(append(b, '}'))
}

// trap is what the evaluator looks for anywhere in a block.
var trap = []byte("event: interaction_required")

// finish makes block safe for its readers and ends it. Each of these bytes can
// only stand inside a JSON string here, so an escape keeps the value: the
// evaluator splits lines at U+0085, U+2028 and U+2029 and gives up on the trap.
func finish(block []byte) []byte {
	for _, r := range [...]struct{ raw, escaped string }{
		{"\u0085", `\u0085`}, {"\u2028", `\u2028`}, {"\u2029", `\u2029`},
		{string(trap), `event\u003a interaction_required`},
	} {
		if bytes.Contains(block, []byte(r.raw)) {
			block = bytes.ReplaceAll(block, []byte(r.raw), []byte(r.escaped))
		}
	}
	return append(block, "\n\n"...)
}

// split cuts text where a consumer would take a fragment for something else
// than text. Usually nothing is cut.
func split(text string) []string {
	var fragments []string
	for len(text) > 0 {
		n := reprCut(text)
		fragments = append(fragments, splitContainer(text[:n])...)
		text = text[n:]
	}
	return fragments
}

// reprs begin the printed objects that consumers take apart: the page looks
// for the first three anywhere, the evaluator for the last two.
var reprs = [...]string{"ChatResponseChunkChoice(", "ChoiceDelta(content=", "ChoiceMessage(content=",
	"content='", `content="`}

// reprCut returns where the first such beginning must be cut, its last byte
// left for the next fragment, or the length of text.
func reprCut(text string) int {
	cut := len(text)
	for _, r := range reprs {
		if i := strings.Index(text, r); i >= 0 {
			cut = min(cut, i+len(r)-1)
		}
	}
	return cut
}

// splitContainer cuts a fragment that could be one JSON array or object, which
// both consumers would read as a structure and mostly drop. The first part is
// the run of brackets and spaces that it begins with: neither part then begins
// with one bracket and ends with the other.
func splitContainer(text string) []string {
	trimmed := strings.TrimFunc(text, isBlank)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") ||
		!strings.HasSuffix(trimmed, "}") && !strings.HasSuffix(trimmed, "]") {
		return []string{text}
	}
	n := strings.IndexFunc(text, func(r rune) bool { return r != '[' && r != '{' && !isBlank(r) })
	return []string{text[:n], text[n:]}
}

// isBlank is true for everything that a consumer's language trims.
func isBlank(r rune) bool {
	return unicode.IsSpace(r) || r == '\uFEFF' || r >= 0x1C && r <= 0x1F
}
