package abi

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"weir/abi/strictjson"
)

// The Validate methods check what a message means, after its codec has checked
// its form. The host refuses a reply that fails as a failure of the plugin.

// ValidateReply reads a hook's reply, and its request where the reply depends
// on it, and checks the reply as the host does.
func ValidateReply(hook Hook, request, reply []byte) error {
	switch hook {
	case HookDescribe:
		var m Description
		return first(m.DecodeJSON(reply), m.Validate)
	case HookConfigure:
		var m ConfigureReply
		return first(m.DecodeJSON(reply), m.Validate)
	case HookCheckOutput:
		var q CheckOutputRequest
		if err := q.DecodeJSON(request); err != nil {
			return within("request", err)
		}
		var m CheckOutputReply
		return first(m.DecodeJSON(reply), func() error { return m.Validate(&q) })
	case HookStep:
		var m StepReply
		return first(m.DecodeJSON(reply), m.Validate)
	}
	var m Verdict
	return first(m.DecodeJSON(reply), func() error { return m.Validate(hook) })
}

func first(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// Validate checks a verdict that the given hook returned.
func (m *Verdict) Validate(hook Hook) error {
	switch hook {
	case HookCheckInput, HookCheckToolCall, HookCheckToolResult:
	default:
		return errors.New("hook " + quoted(string(hook)) + " returns no verdict")
	}
	switch m.Verdict {
	case VerdictAllow, VerdictBlock, VerdictAskModel:
	case VerdictRequireApproval:
		if hook != HookCheckToolCall {
			return errors.New("verdict \"require_approval\" belongs to check_tool_call only")
		}
	default:
		return oneOf("verdict", m.Verdict, VerdictAllow, VerdictBlock, VerdictAskModel, VerdictRequireApproval)
	}
	if m.ReasonCode != "" && !reasonCode(m.ReasonCode) {
		return errors.New("reason_code " + quoted(m.ReasonCode) + ": expected 1 to " + strconv.Itoa(MaxReasonCode) + " of a-z, 0-9 and _")
	}
	if err := object("decision", m.Decision); err != nil {
		return err
	}
	return m.validateAsk()
}

func (m *Verdict) validateAsk() error {
	if m.Verdict != VerdictAskModel {
		switch {
		case m.Ask != nil:
			return errors.New("ask: belongs to verdict \"ask_model\" only")
		case len(m.State) > 0:
			return errors.New("state: belongs to verdict \"ask_model\" only")
		}
		return nil
	}
	if m.Ask == nil {
		return errors.New("ask: missing beside verdict \"ask_model\"")
	}
	if err := atMost("state", len(m.State), MaxAskState); err != nil {
		return err
	}
	return within("ask", m.Ask.validate(false))
}

func reasonCode(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= MaxReasonCode
}

// Validate checks a reply to the given request.
func (m *CheckOutputReply) Validate(q *CheckOutputRequest) error {
	switch {
	case q.Use == UseDisplay:
		return m.validateDisplay(q.Texts)
	case q.Use != "" && q.Use != UseAnswer:
		return oneOf("use", q.Use, UseAnswer, UseDisplay)
	case q.Final && m.HoldFrom != len(q.Text):
		return errors.New("hold_from " + strconv.Itoa(m.HoldFrom) + ": expected " + strconv.Itoa(len(q.Text)) + ", the length of the final text")
	case !boundary(q.Text, m.HoldFrom):
		return errors.New("hold_from " + strconv.Itoa(m.HoldFrom) + ": not a rune boundary inside the text of " + strconv.Itoa(len(q.Text)) + " bytes")
	}
	for i := range m.Edits {
		e := &m.Edits[i]
		if e.Index != 0 {
			return item("edits", i, errors.New("index: belongs to use \"display\" only"))
		}
		if err := e.validate(q.Text, m.HoldFrom); err != nil {
			return item("edits", i, err)
		}
	}
	if m.Cut != nil {
		if err := m.Cut.validate(q.Text); err != nil {
			return within("cut", err)
		}
	}
	return atMost("state", len(m.State), MaxOutputState)
}

func (m *CheckOutputReply) validateDisplay(texts []string) error {
	switch {
	case m.HoldFrom != 0:
		return errors.New("hold_from " + strconv.Itoa(m.HoldFrom) + ": expected 0 for use \"display\"")
	case m.Cut != nil:
		return errors.New("cut: a display has none")
	case len(m.State) > 0:
		return errors.New("state: a display has none")
	}
	for i := range m.Edits {
		e := &m.Edits[i]
		if e.Index < 0 || e.Index >= len(texts) {
			return item("edits", i, errors.New("index "+strconv.Itoa(e.Index)+": there are "+strconv.Itoa(len(texts))+" texts"))
		}
		text := texts[e.Index]
		if err := e.validate(text, len(text)); err != nil {
			return item("edits", i, err)
		}
	}
	return nil
}

// validate checks an edit of text that has to end at or before limit.
func (m *Edit) validate(text string, limit int) error {
	switch {
	case !boundary(text, m.Start):
		return errors.New("start " + strconv.Itoa(m.Start) + ": not a rune boundary inside the text of " + strconv.Itoa(len(text)) + " bytes")
	case !boundary(text, m.End):
		return errors.New("end " + strconv.Itoa(m.End) + ": not a rune boundary inside the text of " + strconv.Itoa(len(text)) + " bytes")
	case m.Start >= m.End:
		return errors.New("end " + strconv.Itoa(m.End) + ": expected more than start " + strconv.Itoa(m.Start))
	case m.End > limit:
		return errors.New("end " + strconv.Itoa(m.End) + ": behind hold_from " + strconv.Itoa(limit))
	case m.Label == "":
		return errors.New("label: empty")
	}
	return nil
}

func (m *Cut) validate(text string) error {
	switch {
	case !boundary(text, m.At):
		return errors.New("at " + strconv.Itoa(m.At) + ": not a rune boundary inside the text of " + strconv.Itoa(len(text)) + " bytes")
	case m.Label == "":
		return errors.New("label: empty")
	}
	return nil
}

// boundary says whether text[:i] ends between two runes.
func boundary(text string, i int) bool {
	return i == len(text) || i >= 0 && i < len(text) && utf8.RuneStart(text[i])
}

// within and item put an error's place before its text.
func within(name string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(name + ": " + err.Error())
}

func item(name string, i int, err error) error {
	return within(name+"["+strconv.Itoa(i)+"]", err)
}

func quoted(s string) string {
	return string(strictjson.AppendString(nil, capped(s)))
}

func oneOf(name, have string, words ...string) error {
	text := name + " " + quoted(have) + ": expected one of"
	for i, w := range words {
		if i > 0 {
			text += ","
		}
		text += " " + w
	}
	return errors.New(text)
}

func atMost(name string, n, most int) error {
	if n <= most {
		return nil
	}
	return errors.New(name + ": " + strconv.Itoa(n) + " bytes, expected at most " + strconv.Itoa(most))
}

func object(name string, r Raw) error {
	if len(r) == 0 || strictjson.NewDecoder(r).Kind() == strictjson.Object {
		return nil
	}
	return errors.New(name + ": expected an object")
}
