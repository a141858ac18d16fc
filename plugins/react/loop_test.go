package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"weir/abi"
	"weir/pdk"
)

func newLoop(t testing.TB, config string) *loop {
	t.Helper()
	l, err := readConfig(abi.Raw(config))
	if err != nil {
		t.Fatal(err)
	}
	l.prompt = "Tools:\n{tools}\nUse {tool_names}."
	return l
}

// run is one run of the loop.
type run struct {
	t     testing.TB
	loop  *loop
	state abi.Raw
}

func (r *run) step(e abi.Event) abi.Action {
	r.t.Helper()
	reply, err := r.loop.step(&abi.StepRequest{State: r.state, Event: e})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := reply.Validate(); err != nil {
		r.t.Fatalf("the host would refuse the reply: %v", err)
	}
	r.state = reply.State
	return reply.Action
}

func startEvent() abi.Event {
	return abi.Event{
		Type:          abi.EventStart,
		ToolCallsLeft: 20,
		Turns:         []abi.Turn{{Role: "user", Content: "a"}, {Role: "assistant", Content: "b"}, {Role: "user", Content: "c"}},
		Tools:         []abi.ToolInfo{{Name: "search", Description: "finds {tool_names}"}, {Name: "get", Description: "gets one"}},
	}
}

// asks is the action that asks the model with all that is known so far.
func asks(refs int) abi.Action {
	temperature := 0.0
	messages := []abi.Message{
		{Role: "system", Content: "Tools:\nsearch: finds {tool_names}\nget: gets one\nUse search, get."},
		{Turn: 1}, {Turn: 2}, {Turn: 3},
	}
	for i := range refs {
		messages = append(messages, abi.Message{Ref: i + 1})
	}
	return abi.Action{Type: abi.ActionModel, Request: &abi.ModelRequest{Model: abi.ModelAgent, Messages: messages,
		Temperature: &temperature, MaxTokens: 4096, Tools: &abi.ToolSet{All: true}, Stream: true}}
}

func equal(t *testing.T, what string, got, want abi.Action) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: action differs (-want +got):\n%s", what, diff)
	}
}

// Clauses 5.3, 5.5 and 15: the loop over two rounds of tools.
func TestLoop(t *testing.T) {
	r := &run{t: t, loop: newLoop(t, `{}`)}
	equal(t, "start", r.step(startEvent()), asks(0))
	calls := []abi.ToolCall{{ID: "c1", Name: "search", Arguments: `{"limit":1}`}, {ID: "c2", Name: "get", Arguments: ``}}
	equal(t, "calls", r.step(abi.Event{Type: abi.EventModel, Ref: 1, Text: "Let me see.", ToolCalls: calls}),
		abi.Action{Type: abi.ActionTools, Calls: calls})
	equal(t, "results", r.step(abi.Event{Type: abi.EventTools, Results: []abi.ToolResult{
		{Ref: 2, CallID: "c1", Name: "search", Text: "…"}, {Ref: 3, CallID: "c2", Name: "get", Text: "refused", Refused: true}}}), asks(3))
	equal(t, "one more", r.step(abi.Event{Type: abi.EventModel, Ref: 4, ToolCalls: calls[:1]}),
		abi.Action{Type: abi.ActionTools, Calls: calls[:1]})
	equal(t, "its result", r.step(abi.Event{Type: abi.EventTools, Results: []abi.ToolResult{{Ref: 5, CallID: "c1", Name: "search"}}}), asks(5))
	equal(t, "answer", r.step(abi.Event{Type: abi.EventModel, Ref: 6, Text: "Done."}), abi.Action{Type: abi.ActionFinish})
}

func TestEndings(t *testing.T) {
	tests := []struct {
		name  string
		event abi.Event
		want  abi.Action
	}{
		{"neither text nor calls", abi.Event{Type: abi.EventModel, Ref: 1}, abi.Action{Type: abi.ActionFinish}},
		{"budget (2.10)", abi.Event{Type: abi.EventModelFailed, Code: "budget"},
			abi.Action{Type: abi.ActionAnswer, Text: "The agent could not produce a final answer within 20 tool calls."}},
		{"unavailable", abi.Event{Type: abi.EventModelFailed, Code: "unavailable"}, abi.Action{Type: abi.ActionFail, Reason: "the model failed: unavailable"}},
		{"timeout", abi.Event{Type: abi.EventModelFailed, Code: "timeout"}, abi.Action{Type: abi.ActionFail, Reason: "the model failed: timeout"}},
		{"bad reply", abi.Event{Type: abi.EventModelFailed, Code: "bad_reply"}, abi.Action{Type: abi.ActionFail, Reason: "the model failed: bad_reply"}},
		{"human", abi.Event{Type: abi.EventHuman, Outcome: abi.HumanAnswered, Answer: "yes"}, abi.Action{Type: abi.ActionFail, Reason: "unexpected event: human"}},
		{"unknown", abi.Event{Type: "other"}, abi.Action{Type: abi.ActionFail, Reason: "unexpected event: other"}},
	}
	for _, tt := range tests {
		r := &run{t: t, loop: newLoop(t, `{}`)}
		r.step(startEvent())
		equal(t, tt.name, r.step(tt.event), tt.want)
	}
}

// The sentence has the number that the run began with, not what is left.
func TestBudgetSentence(t *testing.T) {
	r := &run{t: t, loop: newLoop(t, `{"budget_sentence":"{max_tool_calls} of {max_tool_calls}, {tools}"}`)}
	e := startEvent()
	e.ToolCallsLeft = 7
	r.step(e)
	got := r.step(abi.Event{Type: abi.EventModelFailed, Code: "budget", ToolCallsLeft: 0})
	equal(t, "budget", got, abi.Action{Type: abi.ActionAnswer, Text: "7 of 7, {tools}"})
}

func TestConfig(t *testing.T) {
	l := newLoop(t, `{"temperature":0.5,"max_tokens":10}`)
	a := (&run{t: t, loop: l}).step(startEvent())
	if *a.Request.Temperature != 0.5 || a.Request.MaxTokens != 10 {
		t.Errorf("request %+v", a.Request)
	}
	for config, want := range map[string]string{
		`{"temperature":-1}`:      "temperature: expected 0 to 2",
		`{"max_tokens":0}`:        "max_tokens: expected 1 to",
		`{"budget_sentence":" "}`: "budget_sentence: expected",
		`{"budget":"x"}`:          `unknown field "budget"`,
		`null`:                    "expected an object",
	} {
		if _, err := readConfig(abi.Raw(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}

func TestConfigureThroughThePdk(t *testing.T) {
	t.Cleanup(func() { current = nil })
	for prompts, want := range map[string]string{
		`[{"name":"system","text":"Hello"}]`: `{"prompts":["system"]}`,
		`[{"name":"system","text":" \n"}]`:   `{"error":"prompt system: blank"}`,
		`[]`:                                 `{"error":"prompt system: missing"}`,
	} {
		got, err := pdk.Invoke(abi.HookConfigure, []byte(`{"now":0,"seed":"0","config":{},"prompts":`+prompts+`}`))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", prompts, got, err, want)
		}
	}
}

// The page shows the defaults.
func TestReadmeShowsTheDefaults(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```toml\n")
	block, _, _ = strings.Cut(block, "```")
	var doc struct {
		Plugins map[string]struct {
			Config map[string]any `toml:"config"`
		} `toml:"plugins"`
	}
	if _, err := toml.Decode(block, &doc); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(doc.Plugins["react"].Config)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := readConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(newLoop(t, `{}`).budget, shown.budget); diff != "" || shown.maxTokens != 4096 || shown.temperature != 0 {
		t.Errorf("README.md shows %+v", shown)
	}
}

func TestSelfCheckCasesHold(t *testing.T) {
	t.Cleanup(func() { current = nil })
	current = newLoop(t, `{}`)
	for _, c := range cases() {
		got, err := pdk.Invoke(c.Hook, c.Request)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		var want, have map[string]any
		if err := json.Unmarshal(c.Expect, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(have["action"], want["action"]) {
			t.Errorf("%s: %v, want %v", c.Name, have["action"], want["action"])
		}
	}
	if !json.Valid([]byte(configSchema)) {
		t.Error("config schema is not valid JSON")
	}
}

func TestStateIsChecked(t *testing.T) {
	l := newLoop(t, `{}`)
	for _, state := range []string{``, `{"turns":-1}`, `{"ref":99999999999}`, `{"other":1}`, `[]`, `{} 1`} {
		q := &abi.StepRequest{State: abi.Raw(state), Event: abi.Event{Type: abi.EventModel}}
		if r, err := l.step(q); err == nil {
			t.Errorf("state %q: %+v, want an error", state, r)
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"system":"Zoë\u2028","turns":3,"ref":5,"max":20}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := readState(raw)
		if err != nil {
			return
		}
		again, err := readState(s.appendJSON(nil))
		if err != nil || again != s {
			t.Fatalf("%s reads as %+v, again as %+v, %v", raw, s, again, err)
		}
	})
}

func BenchmarkStep(b *testing.B) {
	l := newLoop(b, `{}`)
	l.prompt += strings.Repeat(" Be kind.", 200)
	reply, err := l.step(&abi.StepRequest{Event: startEvent()})
	if err != nil {
		b.Fatal(err)
	}
	q := &abi.StepRequest{State: reply.State, Event: abi.Event{Type: abi.EventTools, Results: []abi.ToolResult{{Ref: 2}}}}
	for b.Loop() {
		if _, err := l.step(q); err != nil {
			b.Fatal(err)
		}
	}
}
