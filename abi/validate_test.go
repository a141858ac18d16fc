package abi_test

import (
	"strings"
	"testing"

	"weir/abi"
)

// refusal is a message that must be refused with err, or be valid if err is "".
type refusal struct {
	name string
	err  error
	want string
}

func check(t *testing.T, list []refusal) {
	t.Helper()
	for _, r := range list {
		got := ""
		if r.err != nil {
			got = r.err.Error()
		}
		if got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

func text(n int) abi.Raw { return abi.Raw(`"` + strings.Repeat("x", n-2) + `"`) }

// Verdicts: decisions 1.
func TestVerdict(t *testing.T) {
	ask := &abi.ModelRequest{Model: abi.ModelGuard, Prompt: &abi.PromptUse{Name: "p"}}
	v := func(m abi.Verdict, hook abi.Hook) error { return m.Validate(hook) }
	const in, call, result = abi.HookCheckInput, abi.HookCheckToolCall, abi.HookCheckToolResult
	check(t, []refusal{
		{"allow", v(abi.Verdict{Verdict: "allow"}, in), ""},
		{"block", v(abi.Verdict{Verdict: "block", Message: "no", ReasonCode: "a_1", Decision: abi.Raw(`{}`)}, result), ""},
		{"no verdict", v(abi.Verdict{}, in), `verdict "": expected one of allow, block, ask_model, require_approval`},
		{"unknown verdict", v(abi.Verdict{Verdict: "Allow"}, in), `verdict "Allow": expected one of allow, block, ask_model, require_approval`},
		{"approval of a call", v(abi.Verdict{Verdict: "require_approval"}, call), ""},
		{"approval of input", v(abi.Verdict{Verdict: "require_approval"}, in), `verdict "require_approval" belongs to check_tool_call only`},
		{"approval of a result", v(abi.Verdict{Verdict: "require_approval"}, result), `verdict "require_approval" belongs to check_tool_call only`},
		{"check_output", v(abi.Verdict{Verdict: "allow"}, abi.HookCheckOutput), `hook "check_output" returns no verdict`},
		{"no hook", v(abi.Verdict{Verdict: "allow"}, ""), `hook "" returns no verdict`},
		{"longest code", v(abi.Verdict{Verdict: "block", ReasonCode: strings.Repeat("a", 64)}, in), ""},
		{"long code", v(abi.Verdict{Verdict: "block", ReasonCode: strings.Repeat("a", 65)}, in),
			`reason_code "` + strings.Repeat("a", 64) + `…": expected 1 to 64 of a-z, 0-9 and _`},
		{"code in capitals", v(abi.Verdict{Verdict: "block", ReasonCode: "No"}, in), `reason_code "No": expected 1 to 64 of a-z, 0-9 and _`},
		{"code with a line end", v(abi.Verdict{Verdict: "block", ReasonCode: "a\nb"}, in), `reason_code "a\nb": expected 1 to 64 of a-z, 0-9 and _`},
		{"decision", v(abi.Verdict{Verdict: "block", Decision: abi.Raw(`[]`)}, in), `decision: expected an object`},

		{"ask", v(abi.Verdict{Verdict: "ask_model", Ask: ask, State: text(16 << 10)}, in), ""},
		{"ask without request", v(abi.Verdict{Verdict: "ask_model"}, in), `ask: missing beside verdict "ask_model"`},
		{"ask without verdict", v(abi.Verdict{Verdict: "allow", Ask: ask}, in), `ask: belongs to verdict "ask_model" only`},
		{"state without ask", v(abi.Verdict{Verdict: "block", State: abi.Raw(`1`)}, in), `state: belongs to verdict "ask_model" only`},
		{"large state", v(abi.Verdict{Verdict: "ask_model", Ask: ask, State: text(16<<10 + 1)}, in), `state: 16385 bytes, expected at most 16384`},
		{"ask for a stream", v(abi.Verdict{Verdict: "ask_model", Ask: &abi.ModelRequest{Model: "guard", Prompt: ask.Prompt, Stream: true}}, in), `ask: stream: a guardrail has none`},
		{"ask with tools", v(abi.Verdict{Verdict: "ask_model", Ask: &abi.ModelRequest{Model: "guard", Prompt: ask.Prompt, Tools: &abi.ToolSet{All: true}}}, in), `ask: tools: a guardrail has none`},
		{"ask about a ref", v(abi.Verdict{Verdict: "ask_model", Ask: &abi.ModelRequest{Model: "guard", Messages: []abi.Message{{Ref: 1}}}}, in), `ask: messages[0]: ref, turn: a guardrail has none`},
	})
}

// The guarded stream: decisions 2.
func TestCheckOutputReply(t *testing.T) {
	q := &abi.CheckOutputRequest{Text: "a é 日 z"} // é at 2…4, 日 at 5…8, 10 bytes
	final := &abi.CheckOutputRequest{Text: q.Text, Final: true}
	v := func(m abi.CheckOutputReply, q *abi.CheckOutputRequest) error { return m.Validate(q) }
	edit := func(start, end int) abi.CheckOutputReply {
		return abi.CheckOutputReply{HoldFrom: 8, Edits: []abi.Edit{{Start: start, End: end, Label: "X"}}}
	}
	cut := func(at int) abi.CheckOutputReply {
		return abi.CheckOutputReply{HoldFrom: 4, Cut: &abi.Cut{At: at, Label: "secret:0"}}
	}
	check(t, []refusal{
		{"nothing decided", v(abi.CheckOutputReply{}, q), ""},
		{"all decided", v(abi.CheckOutputReply{HoldFrom: 10, State: text(4 << 10)}, q), ""},
		{"all decided, final", v(abi.CheckOutputReply{HoldFrom: 10}, final), ""},
		{"held, final", v(abi.CheckOutputReply{HoldFrom: 9}, final), `hold_from 9: expected 10, the length of the final text`},
		{"hold before", v(abi.CheckOutputReply{HoldFrom: -1}, q), `hold_from -1: not a rune boundary inside the text of 10 bytes`},
		{"hold behind", v(abi.CheckOutputReply{HoldFrom: 11}, q), `hold_from 11: not a rune boundary inside the text of 10 bytes`},
		{"hold inside a rune", v(abi.CheckOutputReply{HoldFrom: 3}, q), `hold_from 3: not a rune boundary inside the text of 10 bytes`},
		{"empty text", v(abi.CheckOutputReply{}, &abi.CheckOutputRequest{Final: true}), ""},
		{"large state", v(abi.CheckOutputReply{State: text(4<<10 + 1)}, q), `state: 4097 bytes, expected at most 4096`},

		{"edit", v(edit(5, 8), q), ""},
		{"edit from inside a rune", v(edit(3, 8), q), `edits[0]: start 3: not a rune boundary inside the text of 10 bytes`},
		{"edit into a rune", v(edit(0, 6), q), `edits[0]: end 6: not a rune boundary inside the text of 10 bytes`},
		{"edit of nothing", v(edit(5, 5), q), `edits[0]: end 5: expected more than start 5`},
		{"edit backwards", v(edit(5, 4), q), `edits[0]: end 4: expected more than start 5`},
		{"edit before", v(edit(-1, 4), q), `edits[0]: start -1: not a rune boundary inside the text of 10 bytes`},
		{"edit of what is held", v(edit(5, 9), q), `edits[0]: end 9: behind hold_from 8`},
		{"edit behind", v(edit(5, 1<<40), q), `edits[0]: end 1099511627776: not a rune boundary inside the text of 10 bytes`},
		{"edit without label", v(abi.CheckOutputReply{HoldFrom: 1, Edits: []abi.Edit{{End: 1}}}, q), `edits[0]: label: empty`},
		{"edit of a text of its own", v(abi.CheckOutputReply{HoldFrom: 1, Edits: []abi.Edit{{Index: 1, End: 1, Label: "X"}}}, q), `edits[0]: index: belongs to use "display" only`},

		{"cut", v(cut(0), q), ""},
		{"cut behind hold_from", v(cut(9), q), ""},
		{"cut at the end", v(cut(10), q), ""},
		{"cut in a rune", v(cut(6), q), `cut: at 6: not a rune boundary inside the text of 10 bytes`},
		{"cut behind", v(cut(11), q), `cut: at 11: not a rune boundary inside the text of 10 bytes`},
		{"cut before", v(cut(-1), q), `cut: at -1: not a rune boundary inside the text of 10 bytes`},
		{"cut without label", v(abi.CheckOutputReply{Cut: &abi.Cut{}}, q), `cut: label: empty`},
		{"unknown use", v(abi.CheckOutputReply{}, &abi.CheckOutputRequest{Use: "both"}), `use "both": expected one of answer, display`},
	})
}

func TestCheckOutputReplyForDisplay(t *testing.T) {
	q := &abi.CheckOutputRequest{Use: abi.UseDisplay, Texts: []string{"abc", "é"}}
	v := func(m abi.CheckOutputReply) error { return m.Validate(q) }
	edit := func(index, start, end int) abi.CheckOutputReply {
		return abi.CheckOutputReply{Edits: []abi.Edit{{Index: index, Start: start, End: end, Label: "X"}}}
	}
	check(t, []refusal{
		{"nothing", v(abi.CheckOutputReply{}), ""},
		{"edit of the first", v(edit(0, 0, 3)), ""},
		{"edit of the last", v(edit(1, 0, 2)), ""},
		{"edit of none", v(edit(2, 0, 1)), `edits[0]: index 2: there are 2 texts`},
		{"edit of a negative one", v(edit(-1, 0, 1)), `edits[0]: index -1: there are 2 texts`},
		{"edit longer than its text", v(edit(1, 0, 3)), `edits[0]: end 3: not a rune boundary inside the text of 2 bytes`},
		{"edit in a rune", v(edit(1, 1, 2)), `edits[0]: start 1: not a rune boundary inside the text of 2 bytes`},
		{"hold_from", v(abi.CheckOutputReply{HoldFrom: 1}), `hold_from 1: expected 0 for use "display"`},
		{"cut", v(abi.CheckOutputReply{Cut: &abi.Cut{Label: "x"}}), `cut: a display has none`},
		{"state", v(abi.CheckOutputReply{State: abi.Raw(`1`)}), `state: a display has none`},
	})
}

// Workflow: decisions 1. An action has exactly the members of its type.
func TestStepReply(t *testing.T) {
	request := &abi.ModelRequest{Model: abi.ModelAgent, Messages: []abi.Message{{Turn: 1}, {Ref: 2}}, Tools: &abi.ToolSet{All: true}, Stream: true}
	calls := []abi.ToolCall{{ID: "1", Name: "get"}, {ID: "2", Name: "get"}}
	ask := &abi.AskHuman{Kind: abi.AskText, Text: "why?", Placeholder: "because"}
	v := func(a abi.Action) error { return (&abi.StepReply{Action: a}).Validate() }
	m := func(change func(*abi.ModelRequest)) error {
		q := *request
		change(&q)
		return v(abi.Action{Type: "model", Request: &q})
	}
	msg := func(list ...abi.Message) error { return m(func(q *abi.ModelRequest) { q.Messages = list }) }
	human := func(a abi.AskHuman) error { return v(abi.Action{Type: "ask", Ask: &a}) }
	low, high := -0.1, 2.1
	check(t, []refusal{
		{"largest state", (&abi.StepReply{State: text(1 << 20), Action: abi.Action{Type: "finish"}}).Validate(), ""},
		{"large state", (&abi.StepReply{State: text(1<<20 + 1), Action: abi.Action{Type: "finish"}}).Validate(), `state: 1048577 bytes, expected at most 1048576`},
		{"model", v(abi.Action{Type: "model", Request: request}), ""},
		{"tools", v(abi.Action{Type: "tools", Calls: calls}), ""},
		{"ask", v(abi.Action{Type: "ask", Ask: ask}), ""},
		{"answer", v(abi.Action{Type: "answer", Text: "x"}), ""},
		{"empty answer", v(abi.Action{Type: "answer"}), ""},
		{"finish", v(abi.Action{Type: "finish"}), ""},
		{"fail", v(abi.Action{Type: "fail", Reason: "x"}), ""},
		{"no type", v(abi.Action{}), `action: type "": expected one of model, tools, ask, answer, finish, fail`},
		{"model without request", v(abi.Action{Type: "model"}), `action: request: missing`},
		{"model with calls", v(abi.Action{Type: "model", Request: request, Calls: calls}), `action: calls: belongs to type "tools", not to "model"`},
		{"tools without calls", v(abi.Action{Type: "tools"}), `action: calls: expected at least one`},
		{"tools with a request", v(abi.Action{Type: "tools", Calls: calls, Request: request}), `action: request: belongs to type "model", not to "tools"`},
		{"ask without question", v(abi.Action{Type: "ask"}), `action: ask: missing`},
		{"finish with text", v(abi.Action{Type: "finish", Text: "x"}), `action: text: belongs to type "answer", not to "finish"`},
		{"answer with a reason", v(abi.Action{Type: "answer", Reason: "x"}), `action: reason: belongs to type "fail", not to "answer"`},
		{"fail with a question", v(abi.Action{Type: "fail", Ask: ask}), `action: ask: belongs to type "ask", not to "fail"`},
		{"call without a name", v(abi.Action{Type: "tools", Calls: []abi.ToolCall{{ID: "1"}}}), `action: calls[0]: name: empty`},
		{"call without an id", v(abi.Action{Type: "tools", Calls: []abi.ToolCall{{Name: "get"}}}), `action: calls[0]: id: empty`},
		{"two calls of one id", v(abi.Action{Type: "tools", Calls: []abi.ToolCall{calls[0], calls[0]}}), `action: calls[1]: id: "1" is there already`},

		{"unknown alias", m(func(q *abi.ModelRequest) { q.Model = "gpt" }), `action: request: model "gpt": expected one of agent, guard`},
		{"neither messages nor prompt", m(func(q *abi.ModelRequest) { q.Messages = nil }), `action: request: expected either messages or a prompt`},
		{"messages and prompt", m(func(q *abi.ModelRequest) { q.Prompt = &abi.PromptUse{Name: "p"} }), `action: request: expected either messages or a prompt`},
		{"prompt", m(func(q *abi.ModelRequest) { q.Messages, q.Prompt = nil, &abi.PromptUse{Name: "p"} }), ""},
		{"prompt without a name", m(func(q *abi.ModelRequest) { q.Messages, q.Prompt = nil, &abi.PromptUse{} }), `action: request: prompt: name: empty`},
		{"one variable twice", m(func(q *abi.ModelRequest) {
			q.Messages, q.Prompt = nil, &abi.PromptUse{Name: "p", Vars: []abi.Var{{Name: "a"}, {Name: "a"}}}
		}), `action: request: prompt: vars[1]: name: "a" is there already`},
		{"cold", m(func(q *abi.ModelRequest) { q.Temperature = &low }), `action: request: temperature: expected 0 to 2`},
		{"hot", m(func(q *abi.ModelRequest) { q.Temperature = &high }), `action: request: temperature: expected 0 to 2`},
		{"negative tokens", m(func(q *abi.ModelRequest) { q.MaxTokens = -1 }), `action: request: max_tokens -1: expected 0 to 2147483647`},
		{"one tool twice", m(func(q *abi.ModelRequest) { q.Tools = &abi.ToolSet{Names: []string{"a", "a"}} }), `action: request: tools[1]: "a" is there already`},
		{"no tools", m(func(q *abi.ModelRequest) { q.Tools = &abi.ToolSet{} }), ""},

		{"all roles", msg(abi.Message{Role: "system"}, abi.Message{Role: "user"}, abi.Message{Role: "assistant", ToolCalls: calls}, abi.Message{Role: "tool", ToolCallID: "1"}), ""},
		{"no form", msg(abi.Message{Content: "x"}), `action: request: messages[0]: expected one of role, ref and turn`},
		{"two forms", msg(abi.Message{Role: "user", Ref: 1}), `action: request: messages[0]: expected one of role, ref and turn`},
		{"ref and turn", msg(abi.Message{Turn: 1, Ref: 1}), `action: request: messages[0]: expected one of role, ref and turn`},
		{"ref and content", msg(abi.Message{Ref: 1, Content: "x"}), `action: request: messages[0]: expected one of role, ref and turn`},
		{"negative ref", msg(abi.Message{Ref: -1}), `action: request: messages[0]: ref, turn: expected a number from 1 on`},
		{"unknown role", msg(abi.Message{Role: "developer"}), `action: request: messages[0]: role "developer": expected one of system, user, assistant, tool`},
		{"calls of a user", msg(abi.Message{Role: "user", ToolCalls: calls}), `action: request: messages[0]: tool_calls: belong to role "assistant" only`},
		{"result without id", msg(abi.Message{Role: "tool"}), `action: request: messages[0]: tool_call_id: expected with role "tool" and only there`},
		{"id without result", msg(abi.Message{Role: "user", ToolCallID: "1"}), `action: request: messages[0]: tool_call_id: expected with role "tool" and only there`},
		{"call without a name", msg(abi.Message{Role: "assistant", ToolCalls: []abi.ToolCall{{ID: "1"}}}), `action: request: messages[0]: tool_calls[0]: name: empty`},

		{"radio", human(abi.AskHuman{Kind: "radio", Text: "x", Options: []abi.Option{{ID: "a", Label: "A"}}}), ""},
		{"choice", human(abi.AskHuman{Kind: "binary_choice", Text: "x"}), ""},
		{"unknown kind", human(abi.AskHuman{Kind: "slider", Text: "x"}), `action: ask: kind "slider": expected one of text, radio, binary_choice`},
		{"no question", human(abi.AskHuman{Kind: "text"}), `action: ask: text: empty`},
		{"radio without options", human(abi.AskHuman{Kind: "radio", Text: "x"}), `action: ask: options: expected at least one`},
		{"options of a text", human(abi.AskHuman{Kind: "text", Text: "x", Options: []abi.Option{{ID: "a", Label: "A"}}}), `action: ask: options: belong to kind "radio" only`},
		{"placeholder of a choice", human(abi.AskHuman{Kind: "binary_choice", Text: "x", Placeholder: "y"}), `action: ask: placeholder: belongs to kind "text" only`},
		{"option without id", human(abi.AskHuman{Kind: "radio", Text: "x", Options: []abi.Option{{Label: "A"}}}), `action: ask: options[0]: id: empty`},
		{"option without label", human(abi.AskHuman{Kind: "radio", Text: "x", Options: []abi.Option{{ID: "a"}}}), `action: ask: options[0]: label: empty`},
		{"two options of one id", human(abi.AskHuman{Kind: "radio", Text: "x", Options: []abi.Option{{ID: "a", Label: "A"}, {ID: "a", Label: "B"}}}), `action: ask: options[1]: id: "a" is there already`},
	})
}

func TestDescription(t *testing.T) {
	d := func(change func(*abi.Description)) error {
		m := abi.Description{Name: "x-1", Version: "1.0.0", ABI: 1, Kind: abi.KindGuardrail}
		change(&m)
		return m.Validate()
	}
	selfCheck := func(c abi.Case) error { return d(func(m *abi.Description) { m.Cases = []abi.Case{c} }) }
	list := []refusal{
		{"plain", d(func(*abi.Description) {}), ""},
		{"no name", d(func(m *abi.Description) { m.Name = "" }), `name "": expected 1 to 64 of a-z, 0-9 and -`},
		{"path as name", d(func(m *abi.Description) { m.Name = "../x" }), `name "../x": expected 1 to 64 of a-z, 0-9 and -`},
		{"long name", d(func(m *abi.Description) { m.Name = strings.Repeat("x", 65) }), `name "` + strings.Repeat("x", 64) + `…": expected 1 to 64 of a-z, 0-9 and -`},
		{"another version", d(func(m *abi.Description) { m.ABI = 2 }), `abi 2: expected 1`},
		{"another kind", d(func(m *abi.Description) { m.Kind = "tool" }), `kind "tool": expected one of guardrail, workflow`},
		{"negative limit", d(func(m *abi.Description) { m.Limits = &abi.Limits{TimeoutMS: -1} }), `limits: expected no negative number`},
		{"schema", d(func(m *abi.Description) { m.ConfigSchema = abi.Raw(`true`) }), `config_schema: expected an object`},
		{"one prompt twice", d(func(m *abi.Description) { m.Prompts = []string{"a", "b", "a"} }), `prompts[2]: "a" is there already`},
		{"skill", d(func(m *abi.Description) { m.Skills = []abi.Skill{{ID: "a"}} }), `skills[0]: expected an id and a name`},
		{"most cases", d(func(m *abi.Description) {
			m.Cases = make([]abi.Case, 20)
			for i := range m.Cases {
				m.Cases[i] = abi.Case{Name: "n", Hook: abi.HookCheckInput}
			}
		}), ""},
		{"too many cases", d(func(m *abi.Description) { m.Cases = make([]abi.Case, 21) }), `cases: 21, expected at most 20`},
		{"case", selfCheck(abi.Case{Name: "n", Hook: abi.HookCheckOutput, Request: abi.Raw(`{}`), Expect: abi.Raw(`{}`)}), ""},
		{"case without name", selfCheck(abi.Case{Hook: abi.HookCheckOutput}), `cases[0]: name: empty`},
		{"case of describe", selfCheck(abi.Case{Name: "n", Hook: abi.HookDescribe}), `cases[0]: hook "describe": expected a check or step`},
		{"case of another kind", selfCheck(abi.Case{Name: "n", Hook: abi.HookStep}), `cases[0]: hook "step": a guardrail has none`},
		{"case of a value", selfCheck(abi.Case{Name: "n", Hook: abi.HookCheckInput, Request: abi.Raw(`[]`)}), `cases[0]: request: expected an object`},
	}
	for _, good := range []string{"0.0.0", "1.20.300", "1.0.0-alpha.1", "1.0.0-0a", "1.0.0+001", "1.0.0-rc-1+b.2"} {
		list = append(list, refusal{good, d(func(m *abi.Description) { m.Version = good }), ""})
	}
	for _, bad := range []string{"", "1", "1.0", "1.0.0.0", "01.0.0", "v1.0.0", "1.0.-1", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0-a..b", "1.0.0-é"} {
		list = append(list, refusal{bad, d(func(m *abi.Description) { m.Version = bad }), `version "` + bad + `": expected a semantic version such as 1.0.0`})
	}
	check(t, list)
}

func TestConfigureReply(t *testing.T) {
	v := func(m abi.ConfigureReply) error { return m.Validate() }
	check(t, []refusal{
		{"empty", v(abi.ConfigureReply{}), ""},
		{"error", v(abi.ConfigureReply{Error: "max_chars: expected a number"}), ""},
		{"error and more", v(abi.ConfigureReply{Error: "x", HoldBack: 1}), `error: nothing else may stand beside it`},
		{"patterns", v(abi.ConfigureReply{Patterns: []abi.Pattern{{ID: "a", Expr: "x", Bound: 5}, {ID: "b", Expr: "x"}}, LookBehind: 65536}), ""},
		{"matches", v(abi.ConfigureReply{Patterns: []abi.Pattern{{ID: "a", Expr: "x"}}, SendMatches: true, LookBehind: 4}), ""},
		{"matches of nothing", v(abi.ConfigureReply{SendMatches: true}), `send_matches: there are no patterns`},
		{"error and matches", v(abi.ConfigureReply{Error: "x", SendMatches: true}), `error: nothing else may stand beside it`},
		{"one pattern twice", v(abi.ConfigureReply{Patterns: []abi.Pattern{{ID: "a", Expr: "x"}, {ID: "a", Expr: "y"}}}), `patterns[1]: id: "a" is there already`},
		{"pattern without id", v(abi.ConfigureReply{Patterns: []abi.Pattern{{Expr: "x"}}}), `patterns[0]: id: empty`},
		{"pattern without expression", v(abi.ConfigureReply{Patterns: []abi.Pattern{{ID: "a"}}}), `patterns[0]: expr: empty`},
		{"negative bound", v(abi.ConfigureReply{Patterns: []abi.Pattern{{ID: "a", Expr: "x", Bound: -1}}}), `patterns[0]: bound -1: expected no negative number`},
		{"far look behind", v(abi.ConfigureReply{LookBehind: 65537}), `look_behind 65537: expected 0 to 65536`},
		{"negative hold back", v(abi.ConfigureReply{HoldBack: -1}), `hold_back -1: expected 0 to 65536`},
		{"no prompt", v(abi.ConfigureReply{Prompts: []string{""}}), `prompts[0]: empty`},
	})
}

func TestValidateReply(t *testing.T) {
	r := func(hook abi.Hook, request, reply string) error {
		return abi.ValidateReply(hook, []byte(request), []byte(reply))
	}
	const q = `{"now":0,"seed":"0","stream_pos":0,"text":"abc"}`
	check(t, []refusal{
		{"describe", r(abi.HookDescribe, ``, `{"name":"a","version":"1.0.0","abi":1,"kind":"workflow"}`), ""},
		{"configure", r(abi.HookConfigure, ``, `{}`), ""},
		{"check_input", r(abi.HookCheckInput, ``, `{"verdict":"allow"}`), ""},
		{"check_output", r(abi.HookCheckOutput, q, `{"hold_from":3}`), ""},
		{"step", r(abi.HookStep, ``, `{"action":{"type":"finish"}}`), ""},
		{"form", r(abi.HookStep, ``, `{"action":{"type":"finish","tol":1}}`), `offset 27: unknown field "tol"`},
		{"meaning", r(abi.HookCheckOutput, q, `{"hold_from":4}`), `hold_from 4: not a rune boundary inside the text of 3 bytes`},
		{"request", r(abi.HookCheckOutput, `{}`, `{"hold_from":4}`), `request: missing field "now"`},
		{"empty", r(abi.HookCheckInput, ``, ``), `offset 0: unexpected end, expected an object`},
		{"hook", r("check_mood", ``, `{"verdict":"allow"}`), `hook "check_mood" returns no verdict`},
	})
}

func TestVersionOf(t *testing.T) {
	v := func(want int, exports ...string) error {
		n, err := abi.VersionOf(exports)
		if n != want {
			t.Errorf("VersionOf(%q) = %d, want %d", exports, n, want)
		}
		return err
	}
	check(t, []refusal{
		{"this version", v(1, "memory", "weir_alloc", "weir_abi_1", "step"), ""},
		{"no marker", v(0, "memory", "_start"), `no export weir_abi_1: not a weir plugin`},
		{"nothing", v(0), `no export weir_abi_1: not a weir plugin`},
		{"a later version", v(2, "weir_abi_2"), `the module speaks ABI version 2, this host speaks version 1`},
		{"two versions", v(0, "weir_abi_1", "weir_abi_2"), `exports both weir_abi_1 and weir_abi_2, expected exactly one ABI marker`},
		{"no number", v(0, "weir_abi_x"), `export "weir_abi_x" names no ABI version, expected weir_abi_1`},
		{"leading zero", v(0, "weir_abi_01"), `export "weir_abi_01" names no ABI version, expected weir_abi_1`},
		{"zero", v(0, "weir_abi_0"), `export "weir_abi_0" names no ABI version, expected weir_abi_1`},
		{"sign", v(0, "weir_abi_+1"), `export "weir_abi_+1" names no ABI version, expected weir_abi_1`},
		{"nothing behind", v(0, "weir_abi_"), `export "weir_abi_" names no ABI version, expected weir_abi_1`},
	})
}
