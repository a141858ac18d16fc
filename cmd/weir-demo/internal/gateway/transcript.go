package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxBlock bounds one block of a stream; maxStream the whole.
const (
	maxBlock  = 4 << 20
	maxStream = 64 << 20
)

// transcript is everything that one stream held.
type transcript struct {
	raw    bytes.Buffer // every byte, for what must not be there
	steps  []step
	texts  []string
	failed string // the message of the error block

	prompts int                     // questions to a person
	respond func(interaction) error // answers one while the stream waits; nil: nobody is there

	modelCalls int // that the agent made meanwhile, or unknown
}

// unknown stands for a number of calls that nobody counts.
const unknown = -1

type step struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Payload struct {
		Data struct {
			Input  json.RawMessage `json:"input"`
			Output json.RawMessage `json:"output"`
		} `json:"data"`
	} `json:"payload"`
	afterTexts int // how many fragments stood before it
}

// tool is the name without its group.
func (s step) tool() string {
	if i := strings.LastIndex(s.Name, "__"); i >= 0 {
		return s.Name[i+2:]
	}
	return s.Name
}

func (t *transcript) answer() string { return strings.Join(t.texts, "") }

// decision is the output of the decision event of a stage, nil without one.
func (t *transcript) decision(stage string) *decision {
	for _, s := range t.steps {
		if s.Type == "FUNCTION_END" && strings.HasPrefix(s.Name, "guardrail_"+stage+"_") {
			var d decision
			if json.Unmarshal(s.Payload.Data.Output, &d) == nil {
				return &d
			}
		}
	}
	return nil
}

type decision struct {
	Outcome  string         `json:"outcome"`
	Blocked  bool           `json:"blocked"`
	Modified bool           `json:"modified"`
	Source   string         `json:"decision_source"`
	Masked   map[string]int `json:"masked_entities"`
}

// read takes the stream apart block by block, showing each as it arrives.
func (t *transcript) read(body io.Reader, p *printer) error {
	r := bufio.NewReader(io.TeeReader(io.LimitReader(body, maxStream), &t.raw))
	var block []byte
	for {
		line, err := r.ReadBytes('\n')
		block = append(block, line...)
		if len(block) > maxBlock {
			return fmt.Errorf("a block is larger than %d bytes", maxBlock)
		}
		if err != nil && err != io.EOF {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 || err == io.EOF {
			if bad := t.take(strings.TrimSpace(string(block)), p); bad != nil {
				return bad
			}
			block = block[:0]
		}
		if err == io.EOF {
			return nil
		}
	}
}

func (t *transcript) take(block string, p *printer) error {
	switch {
	case block == "":
	case strings.HasPrefix(block, "event: interaction_required"):
		return t.ask(block)
	case strings.HasPrefix(block, "intermediate_data:"):
		s := step{afterTexts: len(t.texts)}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(block, "intermediate_data:")), &s); err != nil {
			return fmt.Errorf("a step is not JSON: %w", err)
		}
		t.steps = append(t.steps, s)
		p.step(s)
	case strings.HasPrefix(block, "data:"):
		var fragment struct {
			Value *string `json:"value"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(block, "data:")), &fragment); err != nil || fragment.Value == nil {
			return fmt.Errorf("an answer fragment is not {\"value\": text}")
		}
		t.texts = append(t.texts, *fragment.Value)
		p.text(*fragment.Value)
	case strings.HasPrefix(block, "{"):
		var e struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal([]byte(block), &e) // the block's presence is the failure
		t.failed = e.Message + " "
		p.failure("the agent reports: " + e.Message)
	}
	return nil
}

// ask hands a question to the person. Its data is one line (2.5).
func (t *transcript) ask(block string) error {
	t.prompts++
	_, data, _ := strings.Cut(block, "\n")
	var i interaction
	if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data:")), &i); err != nil || i.ExecutionID == "" || i.InteractionID == "" {
		return fmt.Errorf("an interaction is not {\"execution_id\", \"interaction_id\", \"prompt\"}")
	}
	if t.respond == nil {
		return fmt.Errorf("the agent asks a person, and nobody is there")
	}
	return t.respond(i)
}
