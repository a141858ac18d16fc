package consumer

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Page is what the chat page shows.
type Page struct {
	Text    string
	Cards   []Card
	Prompts []Prompt
	// Err is the message of an error that ended the page's reading; nothing
	// after it was read.
	Err string
}

// Card is one tool call on the page.
type Card struct {
	ID, Name string
	Input    json.RawMessage
	Output   json.RawMessage
	Done     bool
}

// ReadPage reads a stream that arrives in chunks.
func ReadPage(chunks ...[]byte) *Page {
	p := &Page{}
	var pending []byte
	buffer := ""
	for _, chunk := range chunks {
		pending = append(pending, chunk...)
		n := wholeRunes(pending)
		// CRLF is replaced in each chunk by itself, as the page does.
		buffer += strings.ReplaceAll(string(pending[:n]), "\r\n", "\n")
		pending = pending[n:]
		for {
			block, rest, ok := strings.Cut(buffer, "\n\n")
			if !ok {
				break
			}
			buffer = rest
			if p.block(trimJS(block)); p.Err != "" {
				return p
			}
		}
	}
	p.block(trimJS(buffer + string(pending)))
	return p
}

// wholeRunes is the length of b without a UTF-8 sequence cut at its end.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

func (p *Page) block(block string) {
	switch {
	case hasLine(block, "event: interaction_required"):
		p.prompt(block)
	case strings.HasPrefix(block, "intermediate_data:"):
		p.step(strings.TrimPrefix(block, "intermediate_data:"))
	case strings.HasPrefix(block, "data:"):
		p.answer(trimJS(strings.TrimPrefix(block, "data:")))
	case strings.HasPrefix(block, "{"):
		p.Err = errorMessage(block)
	}
}

func hasLine(block, line string) bool {
	for l := range strings.SplitSeq(block, "\n") {
		if trimJS(l) == line {
			return true
		}
	}
	return false
}

func (p *Page) prompt(block string) {
	var data []string
	for line := range strings.SplitSeq(block, "\n") {
		if rest, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, rest)
		}
	}
	var prompt Prompt
	err := json.Unmarshal([]byte(strings.Join(data, "\n")), &prompt)
	if err != nil || prompt.ExecutionID == "" || prompt.InteractionID == "" {
		p.Err = "an interaction without ids"
		return
	}
	p.Prompts = append(p.Prompts, prompt)
}

func (p *Page) step(data string) {
	var s Step
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		p.Err = "a step that is no JSON"
		return
	}
	tool := strings.HasPrefix(s.Type, "TOOL_") || strings.HasPrefix(s.Type, "FUNCTION_") && isToolOfUI(s.Name)
	if !tool {
		return
	}
	card := p.card(s)
	if strings.HasSuffix(s.Type, "_END") && !card.Done {
		card.Output, card.Done = s.Payload.Data.Output, true
	}
}

// card finds a card by its id only, or makes one.
func (p *Page) card(s Step) *Card {
	for i := range p.Cards {
		if p.Cards[i].ID == s.ID {
			return &p.Cards[i]
		}
	}
	input := s.Payload.Metadata.ToolInputs
	if input == nil {
		input = s.Payload.Data.Input
	}
	p.Cards = append(p.Cards, Card{ID: s.ID, Name: s.Name, Input: input})
	return &p.Cards[len(p.Cards)-1]
}

func (p *Page) answer(data string) {
	if data == "" || data == "[DONE]" {
		return
	}
	var fragment struct {
		Value any `json:"value"`
	}
	if err := json.Unmarshal([]byte(data), &fragment); err != nil {
		p.Err = "a fragment that is no JSON"
		return
	}
	text, ok := fragment.Value.(string)
	if !ok {
		return // a value that is no string is lost
	}
	for _, repr := range []string{"ChatResponseChunkChoice(", "ChoiceDelta(content=", "ChoiceMessage(content="} {
		if strings.Contains(text, repr) {
			return // the page takes it for a printed object and mangles it
		}
	}
	if v, ok := container(trimJS(text)); ok {
		text = member(v, "value", "content")
	}
	p.Text += text
}

// trimJS trims what String.prototype.trim does.
func trimJS(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r)
	})
}
