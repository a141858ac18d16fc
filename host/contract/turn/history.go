package turn

import (
	"strings"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/run"
)

// conversation is the turns of the run that this request begins, its question
// the last of them, and what the caller says has happened since the question. A
// session that remembers its turns needs no history.
func (s *session) conversation(q *request) ([]abi.Turn, []run.Exchange, error) {
	var turns []abi.Turn
	var past []run.Exchange
	if len(s.turns) == 0 && len(q.history) > 0 {
		turns, past = rebuild(q)
	} else {
		turns = recent(append(s.turns[:len(s.turns):len(s.turns)], abi.Turn{Role: abi.RoleUser, Content: q.task}))
	}
	total, err := 0, error(nil)
	for _, t := range turns {
		if total, err = checkLength(total, t.Content); err != nil {
			return nil, nil, err
		}
	}
	if strings.TrimSpace(turns[len(turns)-1].Content) == "" {
		return nil, nil, fault.New(fault.Invalid, "task_description must not be empty")
	}
	return turns, past, nil
}

// recent are the last turns that a run may see together, at least one: what a
// session remembers must not keep it from going on.
func recent(turns []abi.Turn) []abi.Turn {
	total := 0
	for i := len(turns) - 1; i >= 0; i-- {
		if total += utf8.RuneCountInString(turns[i].Content); total > maxCharacters {
			return turns[min(i+1, len(turns)-1):]
		}
	}
	return turns
}

// rebuild reads a conversation out of a history. Of questions that were answered
// it keeps question and answer, of the open one what tools have returned.
// Consent is never in it.
func rebuild(q *request) (turns []abi.Turn, past []run.Exchange) {
	var open bool           // the last turn is a question without an answer
	var asked *run.Exchange // the calls of the last reply, while they have no results
	for _, e := range q.history {
		switch e.role {
		case roleUser:
			if text := e.text(); strings.TrimSpace(text) != "" {
				turns = append(turns, abi.Turn{Role: abi.RoleUser, Content: text})
				open, asked, past = true, nil, nil
			}
		case roleAgent:
			asked = nil
			switch a := readAction(e.content); {
			case a.final && open:
				if strings.TrimSpace(a.text) != "" && a.text != noAnswer {
					turns = append(turns, abi.Turn{Role: abi.RoleAssistant, Content: a.text})
				}
				open, past = false, nil
			case len(a.calls) > 0 && open:
				past = append(past, run.Exchange{Text: a.said(), Calls: a.calls})
				asked = &past[len(past)-1]
			}
		case roleEnvironment:
			if asked != nil {
				asked.Results, asked = resultsOf(e.content, len(asked.Calls)), nil
			}
		}
	}
	switch {
	case asked != nil: // the request is their result
		asked.Results = resultsFrom(q.task, len(asked.Calls))
	case !open:
		turns = append(turns, abi.Turn{Role: abi.RoleUser, Content: q.task})
	}
	return turns, past
}

// action is an action object of ours, as far as a history needs it.
type action struct {
	final bool
	text  string
	calls []abi.ToolCall
}

// readAction reads one that a caller has sent back. Nothing in it is trusted:
// its calls are judged anew.
func readAction(raw []byte) action {
	m := members(raw)
	var a action
	switch actionOf(raw) {
	case actionFinal, "completed", "provide_instructions":
		a.final = true
		for _, name := range []string{"summary", "instructions", "message", "content"} {
			if a.text == "" {
				a.text = textOf(m[name])
			}
		}
	case actionCall:
		a.text = textOf(m["summary"])
		a.calls = appendCall(nil, m, "tool_name", "tool", "tool_params", "params")
	case actionCalls:
		a.text = textOf(m["summary"])
		d := strictjson.NewDecoder(m["tool_calls"])
		if d.Kind() == strictjson.Array {
			_ = d.Array(func() error {
				raw, err := d.Raw()
				if err == nil {
					a.calls = appendCall(a.calls, members(raw), "tool", "tool_name", "params", "tool_params")
				}
				return err
			})
		}
	}
	return a
}

// said is the text beside calls, unless it is ours.
func (a *action) said() string {
	names := make([]string, len(a.calls))
	for i, c := range a.calls {
		names[i] = c.Name
	}
	if a.text == calling(names) {
		return ""
	}
	return a.text
}

func appendCall(calls []abi.ToolCall, m map[string][]byte, name, otherName, params, otherParams string) []abi.ToolCall {
	call := abi.ToolCall{Name: textOf(m[name]), Arguments: string(m[params])}
	if call.Name == "" {
		call.Name = textOf(m[otherName])
	}
	if call.Arguments == "" {
		call.Arguments = string(m[otherParams])
	}
	if call.Name == "" {
		return calls
	}
	return append(calls, call)
}

// members are an object's, as they stand; of anything else none.
func members(raw []byte) map[string][]byte {
	m := map[string][]byte{}
	d := strictjson.NewDecoder(raw)
	if d.Kind() != strictjson.Object {
		return m
	}
	_ = d.Object(func(name string) (err error) { // what is malformed was refused before
		m[name], err = d.Raw()
		return err
	})
	return m
}

func textOf(raw []byte) string {
	s, err := strictjson.NewDecoder(raw).String()
	if err != nil {
		return ""
	}
	return strings.Clone(s)
}

func actionOf(raw []byte) string { return textOf(members(raw)["action"]) }

// marks are the session and the reply that a reply of ours names.
func marks(raw []byte) (session, reply string) {
	m := members(members(raw)["metadata"])
	return textOf(m["session_id"]), textOf(m["reply_id"])
}
