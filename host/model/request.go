package model

import (
	"encoding/json"
	"net/url"
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// endpoint is an alias with everything that does not change between requests.
type endpoint struct {
	alias  string
	url    string
	bearer string // the Authorization header's value; empty for none
	model  Alias
}

func newEndpoint(name string, a Alias) (*endpoint, error) {
	u, err := url.Parse(a.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.Invalid, "base_url: expected an absolute http or https address")
	}
	if u.User != nil || u.Fragment != "" {
		return nil, fault.New(fault.Invalid, "base_url: expected no user, password or fragment")
	}
	if a.Name == "" {
		return nil, fault.New(fault.Invalid, "name: expected the model's name")
	}
	if strings.ContainsFunc(a.APIKey, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return nil, fault.New(fault.Invalid, "api key: expected printable ASCII without spaces")
	}
	e := &endpoint{alias: name, model: a, url: u.JoinPath("chat/completions").String()}
	if a.APIKey != "" {
		e.bearer = "Bearer " + a.APIKey
	}
	return e, nil
}

// body writes the request. The order of its members is fixed, so equal
// requests are equal bytes and a provider's prompt cache can hit.
func (e *endpoint) body(req *Request) ([]byte, error) {
	b := append(make([]byte, 0, 4096), `{"model":`...)
	b = strictjson.AppendString(b, e.model.Name)
	b, err := appendMessages(b, req.Messages)
	if err != nil {
		return nil, err
	}
	if b, err = appendTools(b, req.Tools); err != nil {
		return nil, err
	}
	if req.Stream { // its absence is how providers tell a call that is not streamed
		b = append(b, `,"stream":true`...)
	}
	if t := first(req.Temperature, e.model.Temperature); t != nil {
		b = append(b, `,"temperature":`...)
		b = strictjson.AppendFloat(b, *t)
	}
	if n := req.MaxTokens; n > 0 || e.model.MaxTokens > 0 {
		if n <= 0 {
			n = e.model.MaxTokens
		}
		b = append(b, `,"max_tokens":`...)
		b = strictjson.AppendInt(b, int64(n))
	}
	if e.model.ReasoningEffort != "" {
		b = append(b, `,"reasoning_effort":`...)
		b = strictjson.AppendString(b, e.model.ReasoningEffort)
	}
	return append(b, '}'), nil
}

func first(a, b *float64) *float64 {
	if a != nil {
		return a
	}
	return b
}

func appendMessages(b []byte, messages []abi.Message) ([]byte, error) {
	b = append(b, `,"messages":[`...)
	for i := range messages {
		m := &messages[i]
		if m.Role == "" || m.Ref != 0 || m.Turn != 0 {
			return nil, fault.New(fault.Invalid, "message %d: expected a role and no reference", i+1)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMessage(b, m)
	}
	return append(b, ']'), nil
}

func appendMessage(b []byte, m *abi.Message) []byte {
	b = append(b, `{"role":`...)
	b = strictjson.AppendString(b, m.Role)
	b = append(b, `,"content":`...)
	if m.Content == "" && len(m.ToolCalls) > 0 {
		b = append(b, `null`...) // as providers themselves write a turn that only calls tools
	} else {
		b = strictjson.AppendString(b, m.Content)
	}
	if len(m.ToolCalls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i := range m.ToolCalls {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendToolCall(b, &m.ToolCalls[i])
		}
		b = append(b, ']')
	}
	if m.ToolCallID != "" {
		b = append(b, `,"tool_call_id":`...)
		b = strictjson.AppendString(b, m.ToolCallID)
	}
	return append(b, '}')
}

func appendToolCall(b []byte, c *abi.ToolCall) []byte {
	b = append(b, `{"id":`...)
	b = strictjson.AppendString(b, c.ID)
	b = append(b, `,"type":"function","function":{"name":`...)
	b = strictjson.AppendString(b, c.Name)
	b = append(b, `,"arguments":`...)
	arguments := c.Arguments
	if !json.Valid([]byte(arguments)) {
		// Several servers parse the arguments of earlier calls and answer 400
		// for the rest of the conversation; what was wrong with them the model
		// reads in the call's result.
		arguments = "{}"
	}
	return append(strictjson.AppendString(b, arguments), `}}`...)
}

func appendTools(b []byte, tools []Tool) ([]byte, error) {
	if len(tools) == 0 {
		return b, nil
	}
	b = append(b, `,"tools":[`...)
	for i := range tools {
		t := &tools[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = strictjson.AppendString(b, t.Name)
		b = append(b, `,"description":`...)
		b = strictjson.AppendString(b, t.Description)
		if len(t.Schema) > 0 {
			if !json.Valid(t.Schema) {
				return nil, fault.New(fault.Invalid, "tool %d: expected a JSON schema", i+1)
			}
			b = append(b, `,"parameters":`...)
			b = append(b, t.Schema...)
		}
		b = append(b, `}}`...)
	}
	return append(b, ']'), nil
}
