package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"weir/host"
	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
)

// reacting is a world with the shipped workflow, which asks the model.
func reacting(t *testing.T) *hosttest.World {
	return hosttest.Start(t, hosttest.Options{Write: func(w *hosttest.World) {
		w.WriteFile(t, "plugins/flow.wasm", plugintest.Build(t, "plugins/react"))
		w.WriteFile(t, "plugins/screen.wasm", hosttest.Guard("a"))
		w.WriteFile(t, "prompts/system.md", []byte("Prompt one.\n"))
		w.WriteFile(t, "agent.toml", []byte(w.Config(t, "a")))
	}})
}

// modelRequest is what the tests read of a request to the model.
type modelRequest struct {
	Model    string
	Messages []struct{ Role, Content string }
	Tools    []struct {
		Function struct{ Name, Description string }
	}
}

// Every hot key acts from the next run on: model, history, prompt, override,
// include list.
func TestHotKeysAct(t *testing.T) {
	w := reacting(t)
	const four = `{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},{"role":"user","content":"3"},{"role":"user","content":"4"}]}`
	request := func() modelRequest {
		if _, err := w.AskAll(t.Context(), four); err != nil {
			t.Fatal(err)
		}
		asked := w.Model.Asked()
		var r modelRequest
		if len(asked) != 1 || json.Unmarshal([]byte(asked[0]), &r) != nil {
			t.Fatalf("the model was asked %q", asked)
		}
		return r
	}
	r := request()
	if r.Model != "qwen3:8b" || len(r.Messages) != 5 || !strings.Contains(r.Messages[0].Content, "Prompt one.") ||
		len(r.Tools) != 1 || r.Tools[0].Function.Description != "finds tickets" {
		t.Errorf("before: %+v", r)
	}
	w.WriteFile(t, "prompts/system.md", []byte("Prompt two.\n"))
	edit(t, w, "[agent]", "[agent]\nmax_history = 2")
	edit(t, w, "[guard]", "[model.agent]\nname = \"another\"\n[guard]")
	edit(t, w, `include = ["search_tickets"]`, `include = ["search_tickets", "get_ticket"]`)
	edit(t, w, "[prompts]", "[tools.mcp.overrides.search_tickets]\ndescription = \"ours\"\n[prompts]")
	reload(t, w, host.OutcomeSwapped)
	r = request()
	if r.Model != "another" || len(r.Messages) != 3 || r.Messages[1].Content != "3" || !strings.Contains(r.Messages[0].Content, "Prompt two.") ||
		len(r.Tools) != 2 || r.Tools[0].Function.Name != "get_ticket" || r.Tools[1].Function.Description != "ours" {
		t.Errorf("after: %+v", r)
	}
	if v := w.Get(t, "/version"); !strings.Contains(v, `"model":"another"`) || !strings.Contains(v, w.Host.Status().Active.Generation) {
		t.Errorf("/version: %s", v)
	}
	// A prompt alone compiles nothing and asks nobody.
	edit(t, w, `description = "ours"`, `description = "ours, too"`)
	reload(t, w, host.OutcomeSwapped)
	if r = request(); r.Tools[1].Function.Description != "ours, too" {
		t.Errorf("an override alone: %+v", r)
	}
}

// P9: a run keeps the generation that it began with, and that one is freed when
// the run has ended.
func TestRunKeepsItsGeneration(t *testing.T) {
	w := reacting(t)
	arrived, answer := w.Model.Hold()
	first := w.Host.Status().Active.Generation
	type result struct {
		hosttest.Answer
		err error
	}
	ended := make(chan result, 1)
	go func() {
		a, err := w.Ask(context.Background(), "hello")
		ended <- result{a, err}
	}()
	<-arrived
	w.Variant(t, "b") // another workflow and another guard
	reload(t, w, host.OutcomeSwapped)
	if a := ask(t, w); a.Text != "answer-b" {
		t.Errorf("a new run: %s", a.Raw)
	}
	s := w.Host.Status()
	if len(s.Draining) != 1 || s.Draining[0].Generation != first || s.Draining[0].Runs != 1 {
		t.Errorf("draining: %+v", s.Draining)
	}
	close(answer)
	r := <-ended
	if r.err != nil || r.Text != "from the model" || len(r.Generations) != 1 || r.Generations[0] != first || !strings.Contains(r.Raw, `"variant":"a"`) {
		t.Errorf("the run that was begun before: %v, %s", r.err, r.Raw)
	}
	eventually(t, "the old generation is freed", func() bool { return len(w.Host.Status().Draining) == 0 })
}

// Stopping while policies are built and runs are under way ends everything.
func TestStopDuringReload(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			w.Variant(t, string("ba"[i%2]))
			if _, err := w.Host.Reload(context.Background()); err != nil {
				return
			}
		}
	}()
	eventually(t, "it swaps", func() bool { return w.Host.Status().Swaps > 2 })
	w.Stop(t)
	<-done
	if resp, err := http.Get(w.URL + "/health"); err == nil {
		resp.Body.Close()
		t.Error("it still answers")
	}
	if outcome, err := w.Host.Reload(t.Context()); outcome != host.OutcomeFailed || err == nil {
		t.Errorf("after the stop: %s, %v", outcome, err)
	}
}
