// Package reply reads action objects, the answers of agents, in every form that
// AgentV's document or one of its harnesses has accepted.
package reply

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/abi/strictjson"
	"weir/host/dna"
	"weir/host/fault"
)

// What an agent can want. One and many tools are the same to a harness.
const (
	Tools      = "tools"
	Final      = "final"
	Pause      = "pause"
	Processing = "processing"
	Error      = "error"
	Unknown    = "unknown"
)

// A Reply is what an agent answered.
type Reply struct {
	Want   string
	Action string // the word that the agent used; may be empty
	Calls  []Call // with Tools, at least one
	Many   bool   // with Tools: call_multiple_tools, whose results come back as a list
	Text   string // summary, else instructions, message, content
	Prompt string // with Pause
	Name   string // what the agent calls itself; may be empty
	Object []byte // the whole reply

	// Oddities are forms that are understood here and fail in AgentV's harness
	// 1.7.3.
	Oddities []string
}

// A Call is a tool that the agent wants executed.
type Call struct {
	Tool   string
	Params []byte // an object
}

// Parse reads one reply. Unknown members are ignored, null stands for an absent
// member, and an unknown action is no error here; garbage is, of kind
// fault.Invalid.
func Parse(data []byte) (*Reply, error) {
	d := strictjson.NewDecoder(data)
	if d.Kind() != strictjson.Object {
		if err := strictjson.Valid(data); err != nil {
			return nil, fault.New(fault.Invalid, "reply: expected a JSON object: %w", err)
		}
		return nil, fault.New(fault.Invalid, "reply: expected a JSON object, got another value")
	}
	f := fields{}
	err := d.Object(func(name string) (err error) {
		f[name], err = d.Raw()
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "reply: expected a JSON object: %w", err)
	}
	r := &Reply{Object: data, Action: f.text("action"), Text: f.text("summary", "instructions", "message", "content")}
	r.Name = f.agent()
	if f.has("tool_outputs") {
		r.odd("tool_outputs: results are the harness's to give")
	}
	if err := r.dispatch(f); err != nil {
		return nil, fault.New(fault.Invalid, "reply: %w", err)
	}
	return r, nil
}

func (r *Reply) odd(format string, args ...any) {
	r.Oddities = append(r.Oddities, fmt.Sprintf(format, args...))
}

// dispatch is agentv.md 1.9.
func (r *Reply) dispatch(f fields) (err error) {
	switch r.Action {
	case "call_tool":
		r.Want = Tools
		err = r.one(f)
	case "call_multiple_tools":
		r.Want, r.Many = Tools, true
		err = r.many(f)
	case "final_answer", "completed":
		r.Want = Final
	case "provide_instructions":
		r.Want = Final
		r.odd("provide_instructions ended a task only before version 1.6")
	case "hitl_pause":
		r.Want = Pause
		if r.Prompt = f.text("prompt", "reason"); r.Prompt == "" {
			r.Prompt = "Human intervention required."
		}
	case "processing":
		r.Want = Processing
	case "error":
		r.Want = Error
		r.Text = f.text("message", "summary", "content")
	default:
		r.Want = Unknown
	}
	return err
}

func (r *Reply) one(f fields) error {
	c, err := f.call("tool_name", "tool", "tool_params", "params")
	if err != nil {
		return err
	}
	if !f.has("tool_name") {
		r.odd("call_tool with tool and params: only tool_name is looked up")
	}
	r.Calls = []Call{c}
	return nil
}

// many reads tool_calls; tool_names counts only if there are none.
func (r *Reply) many(f fields) error {
	if raw := f["tool_calls"]; f.has("tool_calls") {
		d := strictjson.NewDecoder(raw)
		err := d.Array(func() error {
			item := fields{}
			if err := d.Object(func(name string) (err error) {
				item[name], err = d.Raw()
				return err
			}); err != nil {
				return fmt.Errorf("tool_calls[%d]: expected an object", len(r.Calls))
			}
			c, err := item.call("tool", "tool_name", "params", "tool_params")
			if err != nil {
				return fmt.Errorf("tool_calls[%d]: %w", len(r.Calls), err)
			}
			r.Calls = append(r.Calls, c)
			return nil
		})
		if err != nil {
			return fmt.Errorf("call_multiple_tools: %w", err)
		}
	}
	if len(r.Calls) > 0 {
		return nil
	}
	if f.has("tool_names") {
		d := strictjson.NewDecoder(f["tool_names"])
		if err := d.Array(func() error {
			name, err := d.String()
			r.Calls = append(r.Calls, Call{name, []byte("{}")})
			return err
		}); err != nil {
			return fmt.Errorf("call_multiple_tools: tool_names: expected a list of strings")
		}
	}
	if len(r.Calls) == 0 {
		return fmt.Errorf("call_multiple_tools: expected tool_calls or tool_names with at least one tool")
	}
	return nil
}

// fields are the members of an object as they stand.
type fields map[string][]byte

func (f fields) has(name string) bool {
	raw, ok := f[name]
	return ok && string(raw) != "null"
}

// text is the first of some members that has text. Other values count as Python
// would print them in JSON.
func (f fields) text(names ...string) string {
	for _, name := range names {
		if !f.has(name) {
			continue
		}
		d := strictjson.NewDecoder(f[name])
		if d.Kind() != strictjson.String {
			if text, err := dna.Dumps(nil, f[name]); err == nil {
				return string(text)
			}
			continue
		}
		if text, err := d.String(); err == nil && text != "" {
			return text
		}
	}
	return ""
}

func (f fields) call(name, otherName, params, otherParams string) (Call, error) {
	tool := f.word(name)
	if tool == "" {
		tool = f.word(otherName)
	}
	if tool == "" {
		return Call{}, fmt.Errorf("expected %s with the name of a tool", name)
	}
	for _, p := range []string{params, otherParams} {
		if !f.has(p) {
			continue
		}
		if strictjson.NewDecoder(f[p]).Kind() != strictjson.Object {
			return Call{}, fmt.Errorf("%s: expected an object", p)
		}
		return Call{tool, f[p]}, nil
	}
	return Call{tool, []byte("{}")}, nil
}

// word is a member that must be a string.
func (f fields) word(name string) string {
	d := strictjson.NewDecoder(f[name])
	if d.Kind() != strictjson.String {
		return ""
	}
	word, _ := d.String()
	return word
}

// agent is the name in the order that was decided: metadata.agent_name,
// metadata.model, name, agent_name.
func (f fields) agent() string {
	metadata := fields{}
	if d := strictjson.NewDecoder(f["metadata"]); d.Kind() == strictjson.Object {
		// An error leaves what was read; the text as a whole has been checked.
		_ = d.Object(func(name string) (err error) {
			metadata[name], err = d.Raw()
			return err
		})
	}
	for _, name := range []string{metadata.word("agent_name"), metadata.word("model"), f.word("name"), f.word("agent_name")} {
		if name = clean(name); name != "" {
			return name
		}
	}
	return ""
}

// clean keeps a name on one line: it is printed on terminals.
func clean(name string) string {
	const most = 200
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	for len(name) > most {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return strings.TrimSpace(name)
}
