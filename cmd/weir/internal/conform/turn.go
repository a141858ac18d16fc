package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// actions are what an agent may answer.
var actionNames = []string{"call_tool", "call_multiple_tools", "final_answer", "hitl_pause"}

// reply is an agent's answer to a turn.
type reply struct {
	answer *answer
	object map[string]any
	bad    string // why it is no action object
}

// turnClauses are those of the AgentV contract that can be seen over HTTP. An
// agent need not serve it.
func turnClauses() []Clause {
	c := func(id, section string, level Level, text string, check func(context.Context, *subject) finding) Clause {
		return Clause{ID: id, Spec: SpecTurn, Section: section, Level: level, Text: text, check: keyed(func(ctx context.Context, s *subject) finding {
			if a := s.task(ctx, []byte(`{}`)); a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed {
				return skip("POST %s is not served", pathTask)
			}
			return check(ctx, s)
		})}
	}
	asked := func(id, section string, level Level, text string, check func(ctx context.Context, s *subject, r *reply) finding) Clause {
		return c(id, section, level, text, func(ctx context.Context, s *subject) finding {
			if s.Ask == "" {
				return skip("no question was given with --ask")
			}
			if s.first == nil {
				s.first = s.turn(ctx, s.documented())
			}
			if s.first.bad != "" && id != "action" {
				return skip("there is no action to look at (action)")
			}
			return check(ctx, s, s.first)
		})
	}
	refused := func(id, text, body string) Clause {
		return c(id, "1.1", Must, text, func(ctx context.Context, s *subject) finding {
			if a := s.task(ctx, []byte(body)); a.err != nil || a.status/100 != 4 || !json.Valid(a.body) {
				return fail("expected a 4xx and JSON, got %s", a)
			}
			return pass()
		})
	}
	return []Clause{
		refused("task-missing", "a request without task_description is refused", `{"turn":1,"run_id":"r"}`),
		refused("task-kind", "a task_description that is no text is refused", `{"task_description":1}`),
		refused("body-empty", "an empty body is refused", ``),
		refused("body-kind", "a body that is no object is refused", `[1]`),
		asked("action", "doc", Must, "the documented request is answered by 200, JSON and one of the four actions", func(_ context.Context, _ *subject, r *reply) finding {
			if r.bad != "" {
				return fail("%s", r.bad)
			}
			return pass()
		}),
		asked("action-shape", "1.9", Must, "the action carries what the harness looks up: tool_name and tool_params, tool_calls, or summary", func(_ context.Context, _ *subject, r *reply) finding {
			if wrong := shape(r.object); wrong != "" {
				return fail("%s", wrong)
			}
			return pass()
		}),
		asked("no-outputs", "doc", Must, "an answer never contains tool_outputs", func(_ context.Context, _ *subject, r *reply) finding {
			if holds(r.object, "tool_outputs") {
				return fail("%s", quote(r.answer.body))
			}
			return pass()
		}),
		asked("in-time", "1.4", Must, "the answer comes within the harness's 30 s", func(_ context.Context, s *subject, r *reply) finding {
			if r.answer.took > s.opts.TurnTimeout {
				return fail("it took %s", r.answer.took.Round(time.Millisecond))
			}
			return pass()
		}),
		asked("name", "4", Should, "the answer names the agent or its model", func(_ context.Context, _ *subject, r *reply) finding {
			meta, _ := r.object["metadata"].(map[string]any)
			for _, v := range []any{meta["agent_name"], meta["model"], r.object["name"], r.object["agent_name"]} {
				if text, ok := v.(string); ok && text != "" {
					return pass()
				}
			}
			return fail("expected metadata.agent_name or metadata.model")
		}),
		asked("markers", "doc", Should, "metadata.telemetry says phase, subtask and action", func(_ context.Context, _ *subject, r *reply) finding {
			meta, _ := r.object["metadata"].(map[string]any)
			telemetry, _ := meta["telemetry"].(map[string]any)
			return texts(telemetry, "phase", "subtask", "action")
		}),
		asked("bare-task", "1.1", Must, "a request with task_description alone is answered", func(ctx context.Context, s *subject, _ *reply) finding {
			return answered(s.turn(ctx, map[string]any{"task_description": s.Ask}))
		}),
		asked("unknown-keys", "1.1", Must, "keys of other harness versions are tolerated", func(ctx context.Context, s *subject, _ *reply) finding {
			return answered(s.turn(ctx, map[string]any{"protocol": "http", "task_description": s.Ask, "history": []any{}, "turn": 1,
				"metadata": map[string]any{}, "input_payload": map[string]any{}, "span_context": map[string]any{"traceparent": "malformed"}}))
		}),
		asked("resume", "doc", Must, "after a tool's result the next action follows", func(ctx context.Context, s *subject, r *reply) finding {
			if a := r.object["action"]; a != "call_tool" && a != "call_multiple_tools" {
				return skip("the agent called no tool")
			}
			request := s.documented()
			result := any(map[string]any{"status": "success", "message": "Executed."})
			if calls, ok := r.object["tool_calls"].([]any); ok && len(calls) > 0 {
				result = slices.Repeat([]any{result}, len(calls))
			}
			request["turn"] = 2
			request["conversation_history"] = []any{
				map[string]any{"role": "user", "content": s.Ask},
				map[string]any{"role": "agent", "content": r.object},
				map[string]any{"role": "environment", "content": result},
			}
			return answered(s.turn(ctx, request))
		}),
	}
}

// documented is the request as the contract's page has it.
func (s *subject) documented() map[string]any {
	return map[string]any{"task_description": s.Ask, "turn": 1, "run_id": "weir-conform-" + nobody, "conversation_history": []any{},
		"span_context": map[string]any{"traceparent": traceparent}}
}

func (s *subject) task(ctx context.Context, body []byte) *answer {
	return s.do(ctx, http.MethodPost, pathTask, s.caller(header{"Content-Type", "application/json"}), body)
}

func (s *subject) turn(ctx context.Context, request map[string]any) *reply {
	body, _ := json.Marshal(request) // of strings, numbers and decoded JSON: it cannot fail
	r := &reply{answer: s.send(ctx, s.opts.AskTimeout, maxBody, http.MethodPost, pathTask, s.caller(header{"Content-Type", "application/json"}), body)}
	v, f := object(r.answer)
	name, _ := v["action"].(string)
	switch {
	case f.outcome != Passed:
		r.bad = f.reason
	case !slices.Contains(actionNames, name):
		r.bad = fmt.Sprintf("expected one of %q in action, got %v", actionNames, v["action"])
	}
	r.object = v
	return r
}

func answered(r *reply) finding {
	if r.bad != "" {
		return fail("%s", r.bad)
	}
	if wrong := shape(r.object); wrong != "" {
		return fail("%s", wrong)
	}
	return pass()
}

// shape is what is wrong with an action, by its name.
func shape(v map[string]any) string {
	text := func(m map[string]any, name string) bool { t, ok := m[name].(string); return ok && t != "" }
	switch v["action"] {
	case "call_tool":
		if _, ok := v["tool_params"].(map[string]any); !ok || !text(v, "tool_name") {
			return fmt.Sprintf("call_tool: tool_name %v, tool_params %v", v["tool_name"], v["tool_params"])
		}
	case "call_multiple_tools":
		calls, _ := v["tool_calls"].([]any)
		for _, item := range calls {
			call, _ := item.(map[string]any)
			if _, ok := call["params"].(map[string]any); !ok || !text(call, "tool") {
				return fmt.Sprintf("call_multiple_tools: a call is %v", item)
			}
		}
		if len(calls) == 0 {
			return "call_multiple_tools: expected tool_calls"
		}
	case "final_answer", "hitl_pause":
		for _, name := range []string{"summary", "instructions", "message", "content", "prompt"} {
			if text(v, name) {
				return ""
			}
		}
		return fmt.Sprintf("%v: expected summary", v["action"])
	}
	return ""
}

// holds tells whether a name stands anywhere in a value.
func holds(v any, name string) bool {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v[name]; ok {
			return true
		}
		for _, item := range v {
			if holds(item, name) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holds(item, name) })
	}
	return false
}
