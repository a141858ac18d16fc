package abi

import (
	"errors"
	"math"
)

// Validate checks a workflow's reply: an action carries exactly the fields of
// its type.
func (m *StepReply) Validate() error {
	if err := atMost("state", len(m.State), MaxState); err != nil {
		return err
	}
	return within("action", m.Action.validate())
}

func (m *Action) validate() error {
	switch m.Type {
	case ActionModel, ActionTools, ActionAsk, ActionAnswer, ActionFinish, ActionFail:
	default:
		return oneOf("type", m.Type, ActionModel, ActionTools, ActionAsk, ActionAnswer, ActionFinish, ActionFail)
	}
	for _, f := range [...]struct {
		name, of string
		there    bool
	}{
		{"request", ActionModel, m.Request != nil},
		{"calls", ActionTools, len(m.Calls) > 0},
		{"ask", ActionAsk, m.Ask != nil},
		{"text", ActionAnswer, m.Text != ""},
		{"reason", ActionFail, m.Reason != ""},
	} {
		if f.there && m.Type != f.of {
			return errors.New(f.name + ": belongs to type \"" + f.of + "\", not to " + quoted(m.Type))
		}
	}
	switch m.Type {
	case ActionModel:
		if m.Request == nil {
			return errors.New("request: missing")
		}
		return within("request", m.Request.validate(true))
	case ActionTools:
		return m.validateCalls()
	case ActionAsk:
		if m.Ask == nil {
			return errors.New("ask: missing")
		}
		return within("ask", m.Ask.validate())
	}
	return nil
}

func (m *Action) validateCalls() error {
	if len(m.Calls) == 0 {
		return errors.New("calls: expected at least one")
	}
	for i := range m.Calls {
		if m.Calls[i].Name == "" {
			return item("calls", i, errors.New("name: empty"))
		}
	}
	return distinct("calls", "id", len(m.Calls), func(i int) string { return m.Calls[i].ID })
}

func (m *AskHuman) validate() error {
	switch {
	case m.Kind != AskText && m.Kind != AskRadio && m.Kind != AskBinaryChoice:
		return oneOf("kind", m.Kind, AskText, AskRadio, AskBinaryChoice)
	case m.Text == "":
		return errors.New("text: empty")
	case m.Kind != AskText && m.Placeholder != "":
		return errors.New("placeholder: belongs to kind \"text\" only")
	case m.Kind != AskRadio && len(m.Options) > 0:
		return errors.New("options: belong to kind \"radio\" only")
	case m.Kind == AskRadio && len(m.Options) == 0:
		return errors.New("options: expected at least one")
	}
	for i := range m.Options {
		if m.Options[i].Label == "" {
			return item("options", i, errors.New("label: empty"))
		}
	}
	return distinct("options", "id", len(m.Options), func(i int) string { return m.Options[i].ID })
}

// validate checks a request to a model. A guardrail has no tools, no stream and
// nothing that the host holds for it.
func (m *ModelRequest) validate(workflow bool) error {
	switch {
	case m.Model != ModelAgent && m.Model != ModelGuard:
		return oneOf("model", m.Model, ModelAgent, ModelGuard)
	case (len(m.Messages) > 0) == (m.Prompt != nil):
		return errors.New("expected either messages or a prompt")
	case m.Temperature != nil && !(*m.Temperature >= 0 && *m.Temperature <= 2):
		return errors.New("temperature: expected 0 to 2")
	case m.MaxTokens < 0 || m.MaxTokens > math.MaxInt32:
		return outside("max_tokens", m.MaxTokens, math.MaxInt32)
	case m.Tools != nil && !workflow:
		return errors.New("tools: a guardrail has none")
	case m.Stream && !workflow:
		return errors.New("stream: a guardrail has none")
	}
	if m.Prompt != nil {
		return within("prompt", m.Prompt.validate())
	}
	if m.Tools != nil {
		if err := distinct("tools", "", len(m.Tools.Names), func(i int) string { return m.Tools.Names[i] }); err != nil {
			return err
		}
	}
	for i := range m.Messages {
		if err := m.Messages[i].validate(workflow); err != nil {
			return item("messages", i, err)
		}
	}
	return nil
}

func (m *PromptUse) validate() error {
	if m.Name == "" {
		return errors.New("name: empty")
	}
	return distinct("vars", "name", len(m.Vars), func(i int) string { return m.Vars[i].Name })
}

// validate checks that a message has exactly one of its three forms.
func (m *Message) validate(workflow bool) error {
	if m.Ref != 0 || m.Turn != 0 {
		switch {
		case !workflow:
			return errors.New("ref, turn: a guardrail has none")
		case m.Ref < 0 || m.Turn < 0:
			return errors.New("ref, turn: expected a number from 1 on")
		case m.Ref != 0 && m.Turn != 0, m.Role != "", m.Content != "", len(m.ToolCalls) > 0, m.ToolCallID != "":
			return errors.New("expected one of role, ref and turn")
		}
		return nil
	}
	switch m.Role {
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	case "":
		return errors.New("expected one of role, ref and turn")
	default:
		return oneOf("role", m.Role, RoleSystem, RoleUser, RoleAssistant, RoleTool)
	}
	switch {
	case m.Role != RoleAssistant && len(m.ToolCalls) > 0:
		return errors.New("tool_calls: belong to role \"assistant\" only")
	case (m.Role == RoleTool) != (m.ToolCallID != ""):
		return errors.New("tool_call_id: expected with role \"tool\" and only there")
	}
	for i := range m.ToolCalls {
		if m.ToolCalls[i].Name == "" {
			return item("tool_calls", i, errors.New("name: empty"))
		}
	}
	return nil
}
