package run

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
	"weir/host/fault"
	"weir/host/store/memory"
)

// TestTimeIsUp: the running time is a budget of the engine; a run over it
// fails, the stalled model call ends, and what was released stays (DECISIONS,
// time-outs).
func TestTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{script: script{question: "Hello", hang: true,
			model: []modelTurn{{text: []string{"Half an"}}}}, cancel: func() {}}
		engine := newEngine(t, w)
		began := time.Now()
		if got := engine.Run(t.Context(), request(w.script), notes{w}).State; got != Failed {
			t.Errorf("state %s, want %s", got, Failed)
		}
		if took := time.Since(began); took != 300*time.Second {
			t.Errorf("the run ended after %s, want the default of 300 s", took)
		}
		all := strings.Join(w.lines, "\n")
		for _, want := range []string{`text "Half an"`, "guardrail_output", "error run", "WORKFLOW_END"} {
			if !strings.Contains(all, want) {
				t.Errorf("the client was not shown %s:\n%s", want, all)
			}
		}
	})
}

// TestReplay: feeding the recorded events to a fresh thread gives the recorded
// actions, from any point on.
func TestReplay(t *testing.T) {
	s := script{question: "Hello", tools: map[string]toolTurn{"get_ticket": {text: `{"id":1}`}},
		model: []modelTurn{
			{text: []string{"Let me look."}, calls: []abi.ToolCall{{ID: "a", Name: "get_ticket", Arguments: `{}`}, {ID: "b", Name: "nope", Arguments: `{}`}}},
			{calls: []abi.ToolCall{{ID: "c", Name: "get_ticket", Arguments: `{"n":2}`}}},
			{text: []string{"Done."}},
		}}
	w := &world{script: s, cancel: func() {}}
	engine := newEngine(t, w)
	r := engine.begin(t.Context(), request(s), w, notes{w})
	defer r.stop()
	r.enter(ScreeningInput)
	if end := r.screen(); end != nil {
		t.Fatalf("screen: %+v", end)
	}
	r.enter(Running)
	r.end(*r.advance(r.startEvent()))

	var events []input
	var actions []abi.Action
	for _, e := range r.out.journal.entries {
		switch e.Kind {
		case RecordEvent:
			events = append(events, input{})
			mustUnmarshal(t, e.payload, &events[len(events)-1])
		case RecordAction:
			actions = append(actions, abi.Action{})
			mustUnmarshal(t, e.payload, &actions[len(actions)-1])
		}
	}
	if len(events) != 6 || len(actions) != len(events) {
		t.Fatalf("%d events and %d actions recorded, want 6 of each", len(events), len(actions))
	}
	again := thread{policy: w}
	for i, in := range events {
		action, err := again.step(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(actions[i], action); diff != "" {
			t.Errorf("action %d differs (-recorded +replayed):\n%s", i+1, diff)
		}
	}
	if diff := cmp.Diff(r.thread.values, again.values); diff != "" {
		t.Errorf("values differ (-run +replay):\n%s", diff)
	}
	if len(again.values) != 6 {
		t.Errorf("%d values, want three replies and three results", len(again.values))
	}
}

func mustUnmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}

// TestAsk: what a guard's model request becomes, and that every failure of the
// model reaches the guard as a code (DECISIONS, model requests).
func TestAsk(t *testing.T) {
	prompt := &abi.ModelRequest{Model: abi.ModelGuard, MaxTokens: 4,
		Prompt: &abi.PromptUse{Name: "check", Vars: []abi.Var{{Name: "user_input", Value: "{{ user_input }} <b>"}}}}
	tests := []struct {
		name  string
		req   *abi.ModelRequest
		model []modelTurn
		want  abi.AskReply
	}{
		{"answer", prompt, []modelTurn{{text: []string{"No"}}}, abi.AskReply{Text: "No"}},
		{"time-out", prompt, []modelTurn{{fail: abi.FailTimeout}}, abi.AskReply{Failed: abi.FailTimeout}},
		{"bad reply", prompt, []modelTurn{{fail: abi.FailBadReply}}, abi.AskReply{Failed: abi.FailBadReply}},
		{"nobody there", prompt, nil, abi.AskReply{Failed: abi.FailUnavailable}},
		{"unknown prompt", &abi.ModelRequest{Model: abi.ModelGuard, Prompt: &abi.PromptUse{Name: "nope"}}, nil, abi.AskReply{Failed: abi.FailBadReply}},
		{"with tools", &abi.ModelRequest{Model: abi.ModelGuard, Tools: &abi.ToolSet{All: true}}, nil, abi.AskReply{Failed: abi.FailBadReply}},
		{"a ref", &abi.ModelRequest{Model: abi.ModelGuard, Messages: []abi.Message{{Ref: 1}}}, nil, abi.AskReply{Failed: abi.FailBadReply}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{script: script{question: "Hello", model: tt.model}, cancel: func() {}}
			engine := newEngine(t, w)
			r := engine.begin(t.Context(), request(w.script), w, notes{w})
			defer r.stop()
			if got := r.ask(t.Context(), "screen", tt.req); got != tt.want {
				t.Errorf("ask = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestAskTimesOut: the deadline that the guard chain sets is told as a time-out.
func TestAskTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{script: script{question: "Hello", hang: true, model: []modelTurn{{}}}, cancel: func() {}}
		r := newEngine(t, w).begin(t.Context(), request(w.script), w, notes{w})
		defer r.stop()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		got := r.ask(ctx, "screen", &abi.ModelRequest{Model: abi.ModelGuard})
		if want := (abi.AskReply{Failed: abi.FailTimeout}); got != want || time.Since(began) != 20*time.Second {
			t.Errorf("ask = %+v after %s, want %+v after 20s", got, time.Since(began), want)
		}
	})
}

// TestFill: values are text, never templates (agent-service contract, 6.5).
func TestFill(t *testing.T) {
	vars := []abi.Var{{Name: "user_input", Value: "{{ other }}"}, {Name: "other", Value: "x"}}
	if got, want := fill("a {{ user_input }} b {{ user_input }} {{ other }} {{other}}", vars), "a {{ other }} b {{ other }} x {{other}}"; got != want {
		t.Errorf("fill = %q, want %q", got, want)
	}
}

// TestStateMachine pins the table of 2.11.
func TestStateMachine(t *testing.T) {
	all := []State{Received, ScreeningInput, Running, AwaitingApproval, Blocked, Completed, Failed, Cancelled}
	legal := map[State][]State{
		Received:         {ScreeningInput, Failed, Cancelled},
		ScreeningInput:   {Running, Blocked, Failed, Cancelled},
		Running:          {AwaitingApproval, Completed, Failed, Cancelled},
		AwaitingApproval: {Running, Failed, Cancelled},
	}
	for _, from := range all {
		for _, to := range all {
			want := false
			for _, s := range legal[from] {
				want = want || s == to
			}
			if got := from.May(to); got != want {
				t.Errorf("%s to %s: %t, want %t", from, to, got, want)
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	w := &world{}
	deps := Deps{Policy: func() (Policy, func()) { return w, func() {} }, Model: w, Tools: fakeTools{w}, Log: noted{logs{memory.New(memory.Options{})}, w}}
	for _, n := range []int{-1, 101} {
		if _, err := New(deps, Options{MaxToolCalls: n}); fault.Of(err) != fault.Invalid {
			t.Errorf("max tool calls %d: %v, want it refused", n, err)
		}
	}
	if _, err := New(Deps{}, Options{}); err == nil {
		t.Error("an engine without its parts was built")
	}
	if _, err := New(deps, Options{}); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

// TestManyCallsInOneAction: one action cannot name calls without bound.
func TestManyCallsInOneAction(t *testing.T) {
	calls := make([]abi.ToolCall, maxCallsPerAction+1)
	for i := range calls {
		calls[i] = abi.ToolCall{Name: "nope", Arguments: "{}"}
	}
	for n, want := range map[int]State{maxCallsPerAction: Completed, maxCallsPerAction + 1: Failed} {
		w := &world{script: script{question: "Hello", actions: []abi.Action{
			{Type: abi.ActionTools, Calls: calls[:n]}, {Type: abi.ActionFinish}}}, cancel: func() {}}
		if got := newEngine(t, w).Run(context.Background(), request(w.script), notes{w}).State; got != want {
			t.Errorf("%d calls: %s, want %s", n, got, want)
		}
	}
}

// TestLargeRun: what does not fit into one message of the store is spread over
// several, and a large payload lies beside the log; the chain stays one.
func TestLargeRun(t *testing.T) {
	w := &world{script: script{question: strings.Repeat("long ", 10_000), max: 100}, cancel: func() {}}
	w.script.tools = map[string]toolTurn{"get_ticket": {text: "{}"}}
	for range 80 {
		w.script.model = append(w.script.model, modelTurn{text: []string{strings.Repeat("text ", 2000)},
			calls: []abi.ToolCall{{ID: "a", Name: "get_ticket", Arguments: `{}`}}})
	}
	w.script.model = append(w.script.model, modelTurn{text: []string{"Done."}})
	if got := newEngine(t, w).Run(t.Context(), request(w.script), notes{w}).State; got != Completed {
		t.Fatalf("state %s", got)
	}
	if !strings.Contains(strings.Join(w.lines, "\n"), "blob    run.run-1") {
		t.Error("the question's payload was not put beside the log")
	}
	if w.messages < 3 {
		t.Errorf("%d messages, want several", w.messages) // the store refuses one over 512 KiB
	}
	kinds(t, w.records)
}

// TestDrain: when the host stops, the client is still there: what the guards
// let pass is shown, then the output decision, the one error block and the end
// (DECISIONS, approvals: at drain).
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := &world{script: script{question: "Hello", hang: true,
			model: []modelTurn{{text: []string{"Half an"}}}}, cancel: func() {}}
		done := make(chan State)
		go func() { done <- newEngine(t, w).Run(ctx, request(w.script), notes{w}).State }()
		synctest.Wait()
		cancel(fault.Coded(fault.Unavailable, CodeDrain, "the host is stopping"))
		if got := <-done; got != Failed {
			t.Errorf("state %s, want %s", got, Failed)
		}
		all := strings.Join(w.lines, "\n")
		for _, want := range []string{`text "Half an"`, "guardrail_output", "error run", "WORKFLOW_END"} {
			if !strings.Contains(all, want) {
				t.Errorf("the client was not shown %s:\n%s", want, all)
			}
		}
		time.Sleep(2 * drainGrace) // the grace's timer
	})
}
