package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"weir/abi/strictjson"
	"weir/cmd/weir/internal/agentv/judge"
	"weir/cmd/weir/internal/agentv/ledger"
	"weir/cmd/weir/internal/agentv/python"
	"weir/cmd/weir/internal/agentv/reply"
	"weir/cmd/weir/internal/agentv/sandbox"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

// maxCalls bounds the tools of one reply.
const maxCalls = 128

// talk is the conversation about one node. It returns the final answer, or nil
// with the reason in out.
func (a *attempt) talk(ctx context.Context, n scenario.Node, out *Node) *reply.Reply {
	most := a.scenario.MaxTurns
	if most == 0 {
		most = a.opts.MaxTurns
	}
	if broken := judge.Hygiene(n, a.box.State()); len(broken) > 0 {
		return a.fail(out, broken...)
	}
	message := n.Task
	a.say("user", message, strictjson.AppendString(nil, message))
	wait := a.opts.Poll
	for out.Turns < most {
		out.Turns++
		a.ledger.Append("turn_start", ledger.F("turn", out.Turns), ledger.F("task_id", n.ID), ledger.F("attempt", a.number))
		r, err := a.ask(ctx, n, message, out.Turns)
		if err != nil {
			return a.fail(out, "Agent Node Error: "+err.Error())
		}
		a.opts.Progress(Progress{a.number, a.opts.Attempts, n.ID, out.Turns, what(r)})
		next, done, err := a.act(ctx, n, r, out.Turns)
		a.ledger.Append("turn_end", ledger.F("turn", out.Turns), ledger.F("task_id", n.ID), ledger.F("attempt", a.number))
		if err != nil {
			return a.fail(out, err.Error())
		}
		if done {
			return r
		}
		if r.Want != reply.Processing {
			message, wait = next, a.opts.Poll
			continue
		}
		if !sleep(ctx, wait) {
			return a.fail(out, "Agent Node Error: the run was cancelled")
		}
		wait = min(2*wait, 8*a.opts.Poll)
	}
	return a.fail(out, fmt.Sprintf("expected a final answer within %d turns", most))
}

func (a *attempt) fail(out *Node, reasons ...string) *reply.Reply {
	for _, reason := range reasons {
		a.ledger.Append("error", ledger.F("message", reason), ledger.F("attempt", a.number), ledger.F("node_id", out.ID))
	}
	out.Reasons = append(out.Reasons, reasons...)
	return nil
}

// say puts something into the history, and into the ledger for programs that show
// conversations.
func (a *attempt) say(role, text string, content []byte) {
	a.history = append(a.history, entry(role, content))
	a.ledger.Append("prompt", ledger.F("role", role), ledger.F("content", text))
}

// ask sends one request and reads the reply.
func (a *attempt) ask(ctx context.Context, n scenario.Node, message string, turn int) (*reply.Reply, error) {
	q := request{task: message, turn: turn, run: a.id, protocol: a.target.Address.Protocol, traceparent: span(a.trace),
		history: a.history, payload: n.InputPayload, template: a.target.Template}
	body, err := q.encode(a.opts.Payload)
	if err != nil {
		return nil, err
	}
	if a.opts.Payload != Contract {
		q.traceparent = "" // no release has sent it
	}
	a.ledger.Append("step_start", ledger.F("step", a.target.Address.Protocol), ledger.F("turn", turn))
	begun := time.Now()
	answer, err := a.session.Ask(ctx, body, q.traceparent)
	took := time.Since(begun)
	a.waited += took
	a.asked++
	var r *reply.Reply
	if err == nil {
		r, err = reply.Parse(answer.Body)
	}
	a.meet(r)
	if answer.Stderr != "" {
		a.trouble("stderr", answer.Stderr)
	}
	if err != nil {
		return nil, err
	}
	a.history = append(a.history, entry("agent", r.Object))
	a.ledger.Append("agent_response", ledger.F("content", r.Text), ledger.F("action", r.Action), ledger.F("turn", turn),
		ledger.F("task_id", n.ID), ledger.F("attempt", a.number), ledger.F("latency_ms", took.Milliseconds()), ledger.F("response", json.RawMessage(r.Object)))
	return r, nil
}

// act does what a reply wants. It returns the next message for the agent.
func (a *attempt) act(ctx context.Context, n scenario.Node, r *reply.Reply, turn int) (next string, done bool, err error) {
	switch r.Want {
	case reply.Final:
		return "", true, nil
	case reply.Tools:
		next, err = a.execute(r, turn)
		return next, false, err
	case reply.Pause:
		next, err = a.pause(ctx, n, r.Prompt)
		return next, false, err
	case reply.Processing:
		return "", false, nil
	case reply.Error:
		return "", false, fault.New(fault.Unavailable, "the agent says: %s", short(r.Text))
	}
	return "", false, fault.New(fault.Invalid, "Unknown Agent Action: '%s'", short(r.Action))
}

// execute calls tools in order and tells the agent what came of them.
func (a *attempt) execute(r *reply.Reply, turn int) (string, error) {
	if len(r.Calls) > maxCalls {
		return "", fault.New(fault.Limit, "expected at most %d tool calls in a reply, got %d", maxCalls, len(r.Calls))
	}
	kind := "tool_execution"
	if r.Many {
		kind = "multi_tool_execution"
	}
	a.ledger.Append("action_start", ledger.F("action_type", kind), ledger.F("tools", names(r.Calls)))
	results := []byte{'['}
	var last sandbox.Call
	for i, c := range r.Calls {
		last = a.call(c, turn)
		if i > 0 {
			results = append(results, ',')
		}
		results = append(results, last.Result...)
	}
	results = append(results, ']')
	a.ledger.Append("action_end", ledger.F("action_type", kind), ledger.F("tools", names(r.Calls)))
	if r.Many {
		text, err := python.Observations(results)
		if err == nil {
			a.say("environment", text, results)
		}
		return text, err
	}
	text, err := python.Observation(last.Result)
	if err == nil {
		a.say("environment", text, last.Result)
	}
	return text, err
}

func (a *attempt) call(c reply.Call, turn int) sandbox.Call {
	params := json.RawMessage(c.Params)
	a.ledger.Append("tool_call", ledger.F("step", turn), ledger.F("tool", c.Tool), ledger.F("arguments", params), ledger.F("args", params), ledger.F("attempt", a.number))
	done := a.box.Call(c.Tool, c.Params)
	a.ledger.Append("tool_result", ledger.F("step", turn), ledger.F("tool", c.Tool), ledger.F("result", json.RawMessage(done.Result)), ledger.F("attempt", a.number))
	if done.Changed {
		a.ledger.Append("world_state_change", ledger.F("state", json.RawMessage(a.box.State().JSON())), ledger.F("shared_state", struct{}{}))
	}
	return done
}

func names(calls []reply.Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.Tool)
	}
	return out
}

func (a *attempt) pause(ctx context.Context, n scenario.Node, prompt string) (string, error) {
	a.ledger.Append("hitl_pause", ledger.F("task_id", n.ID), ledger.F("prompt", prompt), ledger.F("attempt", a.number))
	text, err := a.opts.Human(ctx, prompt)
	if err != nil {
		return "", fmt.Errorf("pause: %w", err)
	}
	a.ledger.Append("hitl_resume", ledger.F("task_id", n.ID), ledger.F("response", text), ledger.F("attempt", a.number))
	a.say("human", text, strictjson.AppendString(nil, text))
	return text, nil
}

// sleep waits, and says whether it could.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func what(r *reply.Reply) string {
	if r.Want == reply.Tools {
		return fmt.Sprintf("%s %.80q", r.Action, names(r.Calls))
	}
	return short(r.Action)
}

// short is an agent's own words where they meet people.
func short(text string) string {
	const most = 300
	if len(text) > most {
		text = text[:most] + "…"
	}
	quoted := fmt.Sprintf("%+q", text)
	if quoted[1:len(quoted)-1] == text {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// answered is the text of an entry of the history, if it is a final answer.
func answered(e []byte) (string, bool) {
	var h struct {
		Role    string
		Content json.RawMessage
	}
	if json.Unmarshal(e, &h) != nil || h.Role != "agent" {
		return "", false
	}
	r, err := reply.Parse(h.Content)
	return textOf(r), err == nil && r.Want == reply.Final
}

func textOf(r *reply.Reply) string {
	if r == nil {
		return ""
	}
	return r.Text
}
