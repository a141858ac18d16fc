package turn

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// Bounds of a request, those of the agent service.
const (
	maxCharacters = 512 * 1024 // of the conversation that a run sees
	maxEntries    = 4096       // of a history
	maxRunID      = 256        // bytes
)

// request is one message of a caller, in whichever form it came (1.1).
type request struct {
	task        string
	turn        int    // 0: not said
	run         string // run_id
	traceparent string // of span_context
	identity    *binding
	history     []entry

	session, reply string // of our last reply in the history
}

// entry is one entry of a history (1.3).
type entry struct {
	role    string
	content []byte // JSON
}

// Roles of entries.
const (
	roleUser        = "user"
	roleAgent       = "agent"
	roleAssistant   = "assistant" // another word for it
	roleEnvironment = "environment"
)

// decodeRequest reads a request of any of the contract's eras. Unknown members
// are ignored; members of another type than expected are refused only where
// they decide something. Errors are of kind Invalid.
func decodeRequest(data []byte, aliases []string) (*request, error) {
	q, err := parseRequest(data, aliases)
	if err != nil {
		return nil, fault.New(fault.Invalid, "invalid request: %w", err)
	}
	if last := q.lastAgent(); last != nil {
		q.session, q.reply = marks(last)
	}
	return q, nil
}

func parseRequest(data []byte, aliases []string) (*request, error) {
	q := &request{}
	texts := map[string]string{}
	d := strictjson.NewDecoder(data)
	err := d.Object(func(name string) (err error) {
		switch {
		case name == "task_description":
			texts[name], err = d.String()
		case name == "turn" && d.Kind() == strictjson.Number:
			q.turn, err = readTurn(d)
		case name == "run_id" && d.Kind() == strictjson.String:
			q.run, err = d.String()
		case name == "conversation_history" || name == "history" && q.history == nil:
			q.history, err = readHistory(d)
		case name == "identity_binding" && d.Kind() != strictjson.Null:
			q.identity, err = readBinding(d)
		case name == "span_context" && d.Kind() == strictjson.Object:
			q.traceparent, err = readSpanContext(d)
		case slices.Contains(aliases, name) && d.Kind() == strictjson.String:
			texts[name], err = d.String()
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, err
	}
	if len(q.run) > maxRunID {
		return nil, fault.New(fault.Invalid, "run_id: expected at most %d bytes", maxRunID)
	}
	for _, name := range append([]string{"task_description"}, aliases...) {
		if text, ok := texts[name]; ok {
			q.task = strings.Clone(text)
			return q, nil
		}
	}
	return nil, strictjson.Missing("task_description")
}

// readTurn takes any number; what is none of 1, 2, 3 … was not said.
func readTurn(d *strictjson.Decoder) (int, error) {
	raw, err := d.Raw()
	if err != nil {
		return 0, err
	}
	n, err := strictjson.NewDecoder(raw).Int()
	if err != nil || n < 1 || n > 1<<30 {
		return 0, nil
	}
	return int(n), nil
}

// readHistory reads entries; what is none is left out, because ledgers have
// entries of their own.
func readHistory(d *strictjson.Decoder) ([]entry, error) {
	if d.Kind() != strictjson.Array {
		return nil, d.Skip()
	}
	list := []entry{}
	err := d.Array(func() error {
		if len(list) >= maxEntries {
			return fault.New(fault.Invalid, "history: expected at most %d entries", maxEntries)
		}
		if d.Kind() != strictjson.Object {
			return d.Skip()
		}
		var e entry
		err := d.Object(func(name string) (err error) {
			switch {
			case name == "role" && d.Kind() == strictjson.String:
				e.role, err = d.String()
			case name == "content":
				e.content, err = d.Raw()
			default:
				err = d.Skip()
			}
			return err
		})
		if e.role == roleAssistant {
			e.role = roleAgent
		}
		if e.content != nil && !e.idle() {
			e.content = slices.Clone(e.content)
			list = append(list, e)
		}
		return err
	})
	return list, err
}

// idle tells a reply that only asked for time.
func (e entry) idle() bool { return e.role == roleAgent && actionOf(e.content) == actionProcessing }

func (e entry) text() string {
	s, err := strictjson.NewDecoder(e.content).String()
	if err != nil {
		return ""
	}
	return strings.Clone(s)
}

// message is what makes a request the same as another.
type message struct {
	task, run, reply string
	turn             int
}

func (q *request) message() message {
	return message{task: q.task, run: q.run, reply: q.reply, turn: q.turn}
}

// past tells whether the history holds more than questions: then it, and nothing
// that is only likely, says which conversation this is.
func (q *request) past() bool {
	return slices.ContainsFunc(q.history, func(e entry) bool { return e.role != roleUser })
}

// newTask tells that the history ends with another question.
func (q *request) newTask() bool {
	return q.past() && q.history[len(q.history)-1].role == roleUser
}

func (q *request) lastAgent() []byte {
	for i := len(q.history) - 1; i >= 0; i-- {
		if q.history[i].role == roleAgent {
			return q.history[i].content
		}
	}
	return nil
}

// last is the last entry if it has this role.
func (q *request) last(role string) (entry, bool) {
	if n := len(q.history); n > 0 && q.history[n-1].role == role {
		return q.history[n-1], true
	}
	return entry{}, false
}

func checkLength(total int, text string) (int, error) {
	total += utf8.RuneCountInString(text)
	if total > maxCharacters {
		return total, fault.New(fault.Invalid, "the conversation is too large")
	}
	return total, nil
}
