package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/run"
)

// Actions that are sent (1.9).
const (
	actionCall       = "call_tool"
	actionCalls      = "call_multiple_tools"
	actionFinal      = "final_answer"
	actionPause      = "hitl_pause"
	actionProcessing = "processing"
	actionError      = "error"
)

// reply is one action object before it is encoded. All text in it has passed the
// output guards, or is ours.
type reply struct {
	action string
	calls  []run.ProposedCall
	text   string // summary of calls and answers, prompt of a pause, message of an error

	session, id string
	policy      string // generation of the run's policy
	variant     string
	task, round int
}

// settle makes the reply of where the session's run stands, and moves the
// session on.
func (s *session) settle(now outcome, id string) *reply {
	s.round++
	s.reply = id
	if now.variant != "" {
		s.variant = now.variant
	}
	r := &reply{session: s.id, id: id, policy: now.policy, variant: now.variant, task: s.task, round: s.round}
	switch {
	case now.pending != nil:
		s.told = true
		s.waiting.Store(true)
		r.ask(now)
		if now.pending.Kind == run.KindCalls {
			s.run.tell() // a pause says nothing but its prompt
		}
	case !now.over:
		r.action = actionProcessing
	case now.failed || !now.ended:
		r.action, r.text = actionError, failureText(now)
		s.finish()
	default:
		r.action, r.text = actionFinal, now.text
		if strings.TrimSpace(now.text) == "" {
			r.text = noAnswer
		} else {
			s.turns = append(s.turns, abi.Turn{Role: abi.RoleAssistant, Content: now.text})
		}
		s.finish()
	}
	return r
}

// noAnswer is the summary of a run that came to its end without a word: readers
// take an empty one for a broken reply.
const noAnswer = "The agent gave no answer."

// finish ends what the session holds of its run, whose end is told.
func (s *session) finish() {
	s.cancel(nil)
	s.run, s.told = nil, false
}

func (r *reply) ask(now outcome) {
	if now.pending.Kind != run.KindCalls {
		r.action, r.text = actionPause, questionText(now.pending.Prompt)
		return
	}
	r.action, r.calls, r.text = actionCalls, proposed(*now.pending), now.fresh
	if len(r.calls) == 1 {
		r.action = actionCall
	}
}

func proposed(i run.Interaction) []run.ProposedCall {
	var p run.CallsPrompt
	_ = json.Unmarshal(i.Prompt, &p) // the engine wrote it
	return p.Calls
}

func callCount(i run.Interaction) int { return len(proposed(i)) }

// questionText is a prompt as one text: what is asked, and what can be answered.
func questionText(prompt abi.Raw) string {
	m := members(prompt)
	text := textOf(m["text"])
	switch textOf(m["input_type"]) {
	case abi.AskBinaryChoice:
		text += "\nAnswer approve or reject."
	case abi.AskRadio:
		var values []string
		for _, o := range elements(m["options"]) {
			values = append(values, textOf(members(o)["value"]))
		}
		text += "\nAnswer one of: " + strings.Join(values, ", ") + "."
	}
	return text
}

// agrees tells whether a person's word is consent. Everything else is not.
func (h *Handler) agrees(text string) bool {
	text = strings.TrimSpace(text)
	for _, word := range []string{"approve", "approved", "yes"} {
		if strings.EqualFold(text, word) {
			return true
		}
	}
	return h.opts.AcceptAuto && strings.HasPrefix(text, "Auto-approved")
}

// lineLimit bounds a reply over a socket, its line's end included: the harness
// reads 65,536 bytes and no more.
const lineLimit = 65_000

// shortened ends a text that did not fit.
const shortened = " [shortened]"

// encode returns the object, at most limit bytes of it; 0 is no limit.
func (h *Handler) encode(r *reply, limit int) []byte {
	b := h.build(r, true)
	if limit == 0 || len(b) <= limit {
		return b
	}
	if b = h.build(r, false); len(b) <= limit {
		return b
	}
	cut := *r
	fits := func(n int) bool {
		for n > 0 && !utf8.RuneStart(r.text[n]) {
			n--
		}
		cut.text = r.text[:n] + shortened
		b = h.build(&cut, false)
		return len(b) <= limit
	}
	low, high := -1, len(r.text) // low fits or is -1, high does not
	for high-low > 1 {
		if mid := (low + high) / 2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	if low < 0 {
		cut.action, cut.calls = actionError, nil
		cut.text = fmt.Sprintf("the calls do not fit into a reply of %d bytes", limit)
		return h.build(&cut, false)
	}
	fits(low)
	return b
}

// build writes both the documented and the coded members of a row of 1.9.
// Content is the same text for readers of content.
func (h *Handler) build(r *reply, content bool) []byte {
	b := strictjson.AppendString([]byte(`{"action":`), r.action)
	pair := func(name, value string) {
		b = strictjson.AppendString(append(b, `,"`+name+`":`...), value)
	}
	switch r.action {
	case actionCall:
		c := r.calls[0]
		for _, names := range [][2]string{{"tool_name", "tool_params"}, {"tool", "params"}} {
			pair(names[0], c.Tool)
			b = append(append(b, `,"`+names[1]+`":`...), c.Arguments...)
		}
		pair("summary", r.summary())
	case actionCalls:
		b = appendCalls(b, r.calls)
		pair("summary", r.summary())
	case actionFinal:
		pair("summary", r.text)
		if content {
			pair("content", r.text)
		}
	case actionPause:
		pair("prompt", r.text)
		pair("reason", r.text)
	case actionError:
		pair("message", r.text)
	}
	pair("name", h.opts.Name)
	pair("agent_name", h.opts.Name)
	return append(h.appendMetadata(b, r), '}')
}

func appendCalls(b []byte, calls []run.ProposedCall) []byte {
	b = append(b, `,"tool_calls":[`...)
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(append(b, `{"tool":`...), c.Tool)
		b = append(append(append(b, `,"params":`...), c.Arguments...), '}')
	}
	b = append(b, `],"tool_names":[`...)
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, c.Tool)
	}
	return append(b, ']')
}

// summary is what the model said beside its calls, or their names.
func (r *reply) summary() string {
	if strings.TrimSpace(r.text) != "" {
		return r.text
	}
	return calling(r.names())
}

// calling is the summary of calls beside which the model said nothing.
func calling(names []string) string { return "Calling " + strings.Join(names, ", ") + "." }

func (r *reply) names() []string {
	names := make([]string, len(r.calls))
	for i, c := range r.calls {
		names[i] = c.Tool
	}
	return names
}

// appendMetadata writes who answers and where in the run's hierarchy (PHASE,
// SUBTASK, ACTION, STEP: depth counts from 0). Nothing in it is anybody's text.
func (h *Handler) appendMetadata(b []byte, r *reply) []byte {
	b = append(b, `,"metadata":{"agent_name":`...)
	b = strictjson.AppendString(b, h.opts.Name)
	for _, m := range [][2]string{{"name", h.opts.Name}, {"version", h.opts.Version}, {"model", h.opts.Model},
		{"session_id", r.session}, {"reply_id", r.id}, {"generation", r.policy}, {"variant", r.variant}, {"tool_dna_hash", h.dna}} {
		if m[1] != "" {
			b = strictjson.AppendString(append(b, `,"`+m[0]+`":`...), m[1])
		}
	}
	act, step := r.action, "answer"
	switch r.action {
	case actionCall, actionCalls:
		act, step = r.action+" "+strings.Join(r.names(), ", "), "propose"
	case actionPause:
		step = "ask"
	case actionProcessing:
		step = "wait"
	case actionError:
		step = "fail"
	}
	b = strictjson.AppendString(append(b, `,"telemetry":{"phase":`...), fmt.Sprintf("task %d", r.task))
	b = strictjson.AppendString(append(b, `,"subtask":`...), fmt.Sprintf("reply %d", r.round))
	b = strictjson.AppendString(append(b, `,"action":`...), act)
	b = strictjson.AppendString(append(b, `,"step":`...), step)
	return append(b, `,"depth":3}}`...)
}
