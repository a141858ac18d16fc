package harness

import (
	"regexp"
	"strings"

	"weir/abi/strictjson"
)

// A Payload is a form of requests. The document and AgentV's releases differ, and
// an agent meets all of them (agentv.md 1.1).
type Payload string

// The payloads.
const (
	Contract Payload = "contract" // the document's: task, turn, run id, history, trace
	V14      Payload = "1.4"      // task, turn, history
	V16      Payload = "1.6"      // task, turn and history under other names, with empty objects
	V17      Payload = "1.7"      // the task's text alone
)

// Payloads are the names of all payloads.
func Payloads() []string {
	return []string{string(Contract), string(V14), string(V16), string(V17)}
}

func (p Payload) valid() bool {
	return p == Contract || p == V14 || p == V16 || p == V17
}

// request is what is known when an agent is asked.
type request struct {
	task        string
	turn        int
	run         string
	protocol    string
	traceparent string
	history     [][]byte
	payload     []byte // of the node; nil for none
	template    []byte // nil for none
}

// encode writes a request on one line.
func (q request) encode(p Payload) ([]byte, error) {
	if q.template != nil {
		return q.fill()
	}
	b := strictjson.AppendString([]byte(`{"task_description":`), q.task)
	turn := func() { b = strictjson.AppendInt(append(b, `,"turn":`...), int64(q.turn)) }
	history := func(name string) {
		b = append(append(b, `,"`...), name...)
		b = append(b, `":[`...)
		for i, entry := range q.history {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, entry...)
		}
		b = append(b, ']')
	}
	switch p {
	case Contract:
		turn()
		b = strictjson.AppendString(append(b, `,"run_id":`...), q.run)
		history("conversation_history")
		b = strictjson.AppendString(append(b, `,"span_context":{"traceparent":`...), q.traceparent)
		b = append(b, '}')
	case V14:
		turn()
		history("conversation_history")
	case V16:
		b = strictjson.AppendString(append(b, `,"protocol":`...), q.protocol)
		turn()
		history("history")
		b = append(b, `,"metadata":{},"input_payload":`...)
		b = append(b, q.object()...)
	}
	// Entries of the history hold replies as the agent wrote them, on several
	// lines perhaps; a request is one line.
	return strictjson.Compact(nil, append(b, '}'))
}

func (q request) object() []byte {
	if q.payload == nil {
		return []byte("{}")
	}
	return q.payload
}

// fill puts the task and the node's payload into the route's template.
func (q request) fill() ([]byte, error) {
	d := strictjson.NewDecoder(q.template)
	b, err := q.value(nil, d)
	if err != nil {
		return nil, err
	}
	return strictjson.Compact(nil, b)
}

func (q request) value(b []byte, d *strictjson.Decoder) ([]byte, error) {
	separator := ""
	switch d.Kind() {
	case strictjson.Object:
		b = append(b, '{')
		err := d.Object(func(name string) (err error) {
			b = strictjson.AppendString(append(b, separator...), name)
			separator = ","
			b, err = q.value(append(b, ':'), d)
			return err
		})
		return append(b, '}'), err
	case strictjson.Array:
		b = append(b, '[')
		err := d.Array(func() (err error) {
			b = append(b, separator...)
			separator = ","
			b, err = q.value(b, d)
			return err
		})
		return append(b, ']'), err
	case strictjson.String:
		s, err := d.String()
		switch s {
		case "{task_description}":
			s = q.task
		case "{input_payload}":
			return append(b, q.object()...), err
		}
		return strictjson.AppendString(b, s), err
	}
	raw, err := d.Raw()
	return append(b, raw...), err
}

// entry is one entry of the history; the content is JSON.
func entry(role string, content []byte) []byte {
	b := strictjson.AppendString([]byte(`{"role":`), role)
	b = append(append(b, `,"content":`...), content...)
	return append(b, '}')
}

var traceparentForm = regexp.MustCompile(`^00-([a-f0-9]{32})-[a-f0-9]{16}-([a-f0-9]{2})$`)

// trace is the trace of one attempt: that of the scenario, or one of its own.
func trace(given string) string {
	if m := traceparentForm.FindStringSubmatch(given); m != nil && strings.Trim(m[1], "0") != "" {
		return m[1]
	}
	return random(16)
}

// span is a traceparent with a span of its own.
func span(trace string) string {
	return "00-" + trace + "-" + random(8) + "-01"
}
