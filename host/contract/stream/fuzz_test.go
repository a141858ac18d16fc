package stream

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/abi"
	"weir/host/contract/stream/consumer"
	"weir/host/fault"
	"weir/host/run"
)

// The decoder agrees with the standard library on what it accepts, and keeps
// the limits of section 2.1.
func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{`{"messages":[{"role":"user","content":"hi"}]}`, `{"messages":[],"stream":null}`,
		`{"messages":[{"role":"assistant","content":"\ud83d\ude00"},{"content":"x","role":"user"}],"user":"u"}`,
		`{"messages":[{"role":"user","content":"` + "\u0085" + `"}]}`, "\xff", `{"messages":`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := slices.Clone(data)
		turns, err := decodeRequest(data)
		if !slices.Equal(before, data) {
			t.Error("the body was changed")
		}
		if err != nil {
			if fault.Of(err) != fault.Invalid || !utf8.ValidString(err.Error()) || len(err.Error()) > 512 {
				t.Errorf("refusal: %v %q", fault.Of(err), err)
			}
			return
		}
		var want struct{ Messages []abi.Turn }
		if err := json.Unmarshal(data, &want); err != nil || !slices.Equal(turns, want.Messages) {
			t.Errorf("decoded %q, the library %q (%v)", turns, want.Messages, err)
		}
		kept := Trim(turns, 20)
		if len(kept) == 0 || len(kept) > 20 || kept[0].Role != "user" || kept[len(kept)-1] != turns[len(turns)-1] {
			t.Errorf("trimmed to %q", kept)
		}
	})
}

// Where the standard library understands a query, so does the filter.
func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"", "filter_steps=TOOL_START%2CTOOL_END", "filter_steps", "a=b&filter_steps=+tool_end", "filter_steps=%", "filter%5Fsteps=%zz&&=", "filter_steps=ſ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := parseFilter(query)
		if got&^allSteps != 0 {
			t.Errorf("unknown bits: %b", got)
		}
		values, err := url.ParseQuery(query)
		if err != nil || strings.Contains(query, ";") {
			return
		}
		want := allSteps
		if list, ok := values["filter_steps"]; ok {
			want = parseTypes(list[0])
		}
		if got != want {
			t.Errorf("%q: %06b, want %06b", query, got, want)
		}
	})
}

// stream of pieces of an answer between steps that quote them.
func render(t testing.TB, pieces ...string) []byte {
	t.Helper()
	e := newEmitter(t.Context(), allSteps, "w", run.Info{RunID: "r"})
	done := make(chan []byte)
	go func() {
		var all []byte
		for block := range e.blocks {
			all = append(all, block...)
		}
		done <- all
	}()
	e.Started(run.Info{RunID: "E", StepID: "W", TraceID: "T"})
	for _, p := range pieces {
		raw, _ := json.Marshal(map[string]string{"q": p})
		e.Step(run.Step{Kind: run.StepTool, ID: "1", Name: "g__get_ticket", Input: raw})
		e.Text(p)
		e.Step(run.Step{Kind: run.StepTool, End: true, ID: "1", Name: "g__get_ticket", Input: raw, Output: abi.Raw(`"` + "\u0085\u2028\u2029" + `"`)})
	}
	e.Ended(run.Info{})
	e.close()
	return <-done
}

// both reads a stream as both consumers do; both must have the same text.
func both(t testing.TB, stream []byte, want string) (*consumer.Page, *consumer.Evaluation) {
	t.Helper()
	half := len(stream) / 2
	p, e := consumer.ReadPage(stream[:half], stream[half:]), consumer.Evaluate(stream)
	if p.Text != want || p.Err != "" {
		t.Errorf("the page reads %q, error %q; want %q\n%s", p.Text, p.Err, want, stream)
	}
	if e.Text != want || e.Err != "" {
		t.Errorf("the evaluator reads %q, error %q; want %q\n%s", e.Text, e.Err, want, stream)
	}
	return p, e
}

// nasty texts, each of which some consumer would misread if it were sent as it
// is (10.2, 10.3, 10.5).
var nasty = []string{"100", "true", "null", "20260920", `"quoted"`, "{}", "[]", "[1,2]", `{"value":"x"}`, ` [ "a" ] `, "[[1]]", "{[}]", "]", "[",
	"\ufeff[1]\ufeff", "\u0085[1]\u0085", "\x1c{}\x1f", "\u00a0{}\u3000", "a\u0085b", "\u2028", "a\u2029b", "\v\f\x1c\x1d\x1e", "\r\n", "\n\n", "data: x", "data:", "\n\ndata: {\"value\":\"x\"}\n\n", "[DONE]",
	"event: interaction_required", "event: interaction_required\ndata: {}", "x event: interaction_requiredevent: interaction_required", `\event: interaction_required`,
	"content='x'", `content="x"`, "ChoiceDelta(content='x')", "ChatResponseChunkChoice(", `ChoiceMessage(content="x", y)`, "content=content='a'", "content='[1]'", `[content="]`,
	"intermediate_data: {}", `{"error":"workflow_error","message":"m"}`, ": keep-alive", "é€😀", "\x00", "\u007f", "<script>&amp;</script>", `\u0085`, "\\"}

func TestConsumersReadTheSame(t *testing.T) {
	for _, text := range nasty {
		p, e := both(t, render(t, text), text)
		if len(p.Cards) != 1 || !p.Cards[0].Done || len(e.ToolCalls) != 1 || len(e.Results) != 1 || e.RunID != "E" || e.TraceID != "T" {
			t.Errorf("%q: page %+v, evaluator %+v", text, p, e)
		}
	}
	both(t, render(t, nasty...), strings.Join(nasty, ""))
}

// Every kind of event, read by both; the error block ends their reading.
func TestConsumersReadEveryKind(t *testing.T) {
	e := newEmitter(t.Context(), allSteps, "w", run.Info{RunID: "r"})
	info := run.Info{RunID: "E", StepID: "W", TraceID: "T", RequestID: "R"}
	in := func(id, name, output string, kind run.StepKind, end bool) run.Step {
		return run.Step{Kind: kind, End: end, ID: id, Name: name, Input: abi.Raw(`{"a":1}`), Output: abi.Raw(output)}
	}
	e.Started(info)
	e.Step(in("D", "guardrail_input_self_check_decision", "", run.StepFunction, false))
	e.Step(in("D", "guardrail_input_self_check_decision", `{"blocked":true}`, run.StepFunction, true))
	e.Step(in("T", "tickets_mcp__search_tickets", "", run.StepTool, false))
	e.Step(in("T", "tickets_mcp__search_tickets", `{"error":"data: x"}`, run.StepTool, true))
	e.Text("said")
	e.Step(in("O", "guardrail_output_regex_pii_decision", `{"outcome":"passed"}`, run.StepFunction, true))
	e.Failed(run.FailureModel)
	e.Ended(info)
	e.close()
	all := []byte(keepAlive)
	for block := range e.blocks {
		all = append(append(all, block...), keepAlive...)
	}
	p, ev := consumer.ReadPage(all), consumer.Evaluate(all)
	const message = "The model provider failed to answer."
	if p.Text != "said" || p.Err != message || len(p.Cards) != 1 || string(p.Cards[0].Output) != `{"error":"data: x"}` {
		t.Errorf("page: %+v", p)
	}
	if ev.Text != "said" || ev.Err != message || !ev.Blocked || len(ev.Decisions) != 2 || len(ev.ToolCalls) != 1 || ev.TraceID != "T" || ev.RunID != "E" {
		t.Errorf("evaluator: %+v", ev)
	}
}

func FuzzConsumers(f *testing.F) {
	for i, text := range nasty {
		f.Add(text, nasty[(i+1)%len(nasty)])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		want := strings.ToValidUTF8(a, "\ufffd") + strings.ToValidUTF8(b, "\ufffd")
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return // the engine's text is valid; how many U+FFFD stand for a bad one is not promised
		}
		both(t, render(t, a, b), want)
	})
}

// Keep what a run shows in order when several of its goroutines show it.
func TestObserverIsSafe(t *testing.T) {
	e := newEmitter(context.Background(), allSteps, "w", run.Info{RunID: "r"})
	e.Started(run.Info{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			e.Text("x")
		}
	}()
	go func() {
		<-done
		e.close()
	}()
	n := 0
	for range e.blocks {
		n++
	}
	e.Text("late")
	e.Ended(run.Info{})
	if n != 2+1000+2 {
		t.Errorf("%d blocks", n)
	}
}
