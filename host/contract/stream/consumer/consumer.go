// Package consumer reads streams of the agent-service contract the way its two
// known consumers do: the chat page (section 10.2) and the evaluator (10.3).
// Both guess more than they should, so what a stream says is what these two
// make of it. It serves tests and whoever checks a running agent.
package consumer

import (
	"encoding/json"
	"strings"
)

// Step is one intermediate_data block.
type Step struct {
	ID       string  `json:"id"`
	ParentID *string `json:"parent_id"`
	Type     string  `json:"type"`
	Name     string  `json:"name"`
	Payload  struct {
		Data struct {
			Input  json.RawMessage `json:"input"`
			Output json.RawMessage `json:"output"`
		} `json:"data"`
		Metadata struct {
			ToolInputs json.RawMessage   `json:"tool_inputs"`
			Provided   map[string]string `json:"provided_metadata"`
		} `json:"metadata"`
	} `json:"payload"`
}

// Prompt is one interaction_required event.
type Prompt struct {
	ExecutionID   string          `json:"execution_id"`
	InteractionID string          `json:"interaction_id"`
	Prompt        json.RawMessage `json:"prompt"`
}

// isToolOfUI is the names that page and evaluator know as tools.
func isToolOfUI(name string) bool {
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	return name == "search_tickets" || name == "get_ticket"
}

// container decodes a text that is one JSON array or object.
func container(text string) (any, bool) {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return nil, false
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil, false
	}
	return v, true
}

// member returns the first of the named string members of an object.
func member(v any, names ...string) string {
	object, _ := v.(map[string]any)
	for _, name := range names {
		if s, ok := object[name].(string); ok {
			return s
		}
	}
	return ""
}

// errorMessage reads a bare error block.
func errorMessage(block string) string {
	var v any
	_ = json.Unmarshal([]byte(block), &v)
	if m := member(v, "message", "details"); m != "" {
		return m
	}
	return "the agent reported an error"
}
