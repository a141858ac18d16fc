package run

import (
	"context"

	"weir/abi"
	"weir/host/fault"
)

// thread is the fold of a run's events: everything that the next step depends
// on and nothing else. Feeding the recorded events of a run to a new thread
// gives the same actions, because a workflow is a pure function and clock and
// seed are recorded with each event.
type thread struct {
	policy Policy
	turns  []abi.Turn
	state  abi.Raw
	values []abi.Message // {"ref": n} is values[n-1]
}

// input is one event as the workflow is given it, and as the log keeps it.
type input struct {
	abi.Call
	Event abi.Event `json:"event"`
	Note  note      `json:"note,omitzero"` // of the engine, for the recording
}

// step takes one event in and returns what to do next.
func (t *thread) step(ctx context.Context, in input) (abi.Action, error) {
	t.take(in.Event)
	reply, err := t.policy.Step(ctx, &abi.StepRequest{Call: in.Call, State: t.state, Event: in.Event})
	if err != nil {
		return abi.Action{}, err
	}
	t.state = reply.State
	return reply.Action, nil
}

// take keeps what an event brought, under the numbers that the event names.
func (t *thread) take(e abi.Event) {
	switch e.Type {
	case abi.EventStart:
		t.turns = e.Turns
	case abi.EventModel:
		t.values = append(t.values, abi.Message{Role: abi.RoleAssistant, Content: e.Text, ToolCalls: e.ToolCalls})
	case abi.EventTools:
		for _, r := range e.Results {
			t.values = append(t.values, abi.Message{Role: abi.RoleTool, Content: r.Text, ToolCallID: r.CallID})
		}
	}
}

// nextRef is the number of the next value that arrives.
func (t *thread) nextRef() int { return len(t.values) + 1 }

// resolve replaces every ref and turn by the message that it names.
func (t *thread) resolve(messages []abi.Message) ([]abi.Message, error) {
	out := make([]abi.Message, 0, len(messages))
	for _, m := range messages {
		switch {
		case m.Ref != 0:
			if m.Ref < 0 || m.Ref > len(t.values) {
				return nil, fault.New(fault.Plugin, "workflow: a message names ref %d, of %d values", m.Ref, len(t.values))
			}
			m = t.values[m.Ref-1]
		case m.Turn != 0:
			if m.Turn < 0 || m.Turn > len(t.turns) {
				return nil, fault.New(fault.Plugin, "workflow: a message names turn %d, of %d turns", m.Turn, len(t.turns))
			}
			turn := t.turns[m.Turn-1]
			m = abi.Message{Role: turn.Role, Content: turn.Content}
		}
		out = append(out, m)
	}
	return out, nil
}
