package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/host/contract/stream/consumer"
)

// turn is one message of a conversation.
type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func user(text string) turn      { return turn{"user", text} }
func assistant(text string) turn { return turn{"assistant", text} }

// allSteps is what the evaluator asks for.
const allSteps = "WORKFLOW_START,WORKFLOW_END,TOOL_START,TOOL_END,FUNCTION_START,FUNCTION_END"

// request is the gateway's chat request of 10.1.
func (w *world) request(ctx context.Context, t testing.TB, turns ...turn) *http.Request {
	t.Helper()
	body, err := json.Marshal(map[string]any{"messages": turns})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		w.url+"/v1/workflow/full?filter_steps="+url.QueryEscape(allSteps), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + serviceKey, "Content-Type": "application/json", "Accept": "text/event-stream",
		"x-request-id": "11111111-2222-4333-8444-555555555555", "x-authenticated-user-id": userID,
		"x-authenticated-username": userName, "x-authenticated-roles": "support", "x-authenticated-email": userEmail,
	} {
		req.Header.Set(name, value)
	}
	return req
}

// open sends a request and returns the response as soon as its head is there.
func (w *world) open(ctx context.Context, t testing.TB, turns ...turn) *http.Response {
	t.Helper()
	resp, err := client.Do(w.request(ctx, t, turns...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	return resp
}

// transcript is a whole stream as everybody reads it.
type transcript struct {
	head      http.Header
	raw       []byte
	steps     []consumer.Step
	fragments []string
	order     []string // what kind of block came when
	page      *consumer.Page
	eval      *consumer.Evaluation
}

// ask has one turn and holds the stream against what is true of every stream.
func (w *world) ask(t testing.TB, turns ...turn) *transcript {
	t.Helper()
	resp := w.open(t.Context(), t, turns...)
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the body does not end cleanly: %v\n%s", err, raw)
	}
	return read(t, resp.Header, raw)
}

func read(t testing.TB, head http.Header, raw []byte) *transcript {
	t.Helper()
	s := &transcript{head: head, raw: raw, page: consumer.ReadPage(raw), eval: consumer.Evaluate(raw)}
	if !bytes.HasSuffix(raw, []byte("\n\n")) || bytes.Contains(raw, []byte("\r")) {
		t.Fatalf("the last block is not ended, or there is a CR:\n%s", raw)
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\n\n"), "\n\n") {
		s.block(t, block)
	}
	s.checkOrder(t)
	return s
}

func (s *transcript) block(t testing.TB, block string) {
	t.Helper()
	if data, ok := strings.CutPrefix(block, "intermediate_data: "); ok {
		var step consumer.Step
		if err := json.Unmarshal([]byte(data), &step); err != nil {
			t.Fatalf("%s: %v", block, err)
		}
		s.steps = append(s.steps, step)
		s.order = append(s.order, step.Type+" "+step.Name)
		return
	}
	if data, ok := strings.CutPrefix(block, "data: "); ok {
		var fragment map[string]string
		if err := json.Unmarshal([]byte(data), &fragment); err != nil || len(fragment) != 1 {
			t.Fatalf("%s: %v", block, err)
		}
		s.fragments = append(s.fragments, fragment["value"])
		if n := len(s.order); n == 0 || s.order[n-1] != "text" {
			s.order = append(s.order, "text")
		}
		return
	}
	switch {
	case strings.HasPrefix(block, ": "):
	case strings.HasPrefix(block, "event: interaction_required\ndata: "):
		s.order = append(s.order, "interaction")
	case strings.HasPrefix(block, "{"):
		s.order = append(s.order, block)
	default:
		t.Fatalf("an unknown block %q", block)
	}
}

// Names of the decision events.
const (
	workflow       = "support-tickets-agent.invoke"
	inputDecision  = "guardrail_input_self_check_decision"
	outputDecision = "guardrail_output_regex_pii_decision"
)

// checkOrder holds the stream against 2.6 and 2.8.
func (s *transcript) checkOrder(t testing.TB) {
	t.Helper()
	n := len(s.order)
	if n < 2 || s.order[0] != "WORKFLOW_START "+workflow || s.order[n-1] != "WORKFLOW_END "+workflow {
		t.Fatalf("it does not begin and end with the workflow: %q", s.order)
	}
	root, open, failed := s.steps[0].ID, map[string]string{}, false
	for _, what := range s.order {
		if strings.HasPrefix(what, "{") {
			if failed {
				t.Errorf("two error blocks: %q", s.order)
			}
			failed = true
		} else if failed && !strings.HasPrefix(what, "WORKFLOW_END") {
			t.Errorf("%s after the error block", what)
		}
	}
	for i, step := range s.steps {
		switch {
		case strings.HasPrefix(step.Type, "WORKFLOW_"):
			if step.ID != root || step.ParentID != nil || step.Payload.Metadata.Provided["agent_runtime"] != "weir" {
				t.Errorf("the workflow step %+v", step)
			}
		case step.ParentID == nil || *step.ParentID != root:
			t.Errorf("step %s has another parent", step.Name)
		case strings.HasSuffix(step.Type, "_START"):
			if open[step.ID] != "" {
				t.Errorf("step %s starts twice", step.Name)
			}
			open[step.ID] = step.Name
		case step.Name == outputDecision && i != len(s.steps)-2:
			t.Errorf("the output decision is not the last but one step")
		case strings.HasPrefix(step.Type, "TOOL_"), step.Name == inputDecision, step.Name == changeStep:
			if open[step.ID] != step.Name {
				t.Errorf("step %s ends without a start", step.Name)
			}
			delete(open, step.ID)
		}
	}
	if !failed && len(open) > 0 {
		t.Errorf("steps without an end: %v", open)
	}
}

func (s *transcript) text() string { return strings.Join(s.fragments, "") }

// decision returns a decision event's output.
func (s *transcript) decision(t testing.TB, name string) map[string]any {
	t.Helper()
	var found map[string]any
	for _, step := range s.steps {
		if step.Type != "FUNCTION_END" || step.Name != name {
			continue
		}
		if found != nil {
			t.Fatalf("two decisions %s", name)
		}
		if err := json.Unmarshal(step.Payload.Data.Output, &found); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func (s *transcript) count(kind string) (n int) {
	for _, step := range s.steps {
		if step.Type == kind {
			n++
		}
	}
	return n
}

// blocks reads a stream block by block while it is still open.
type blocks struct{ r *bufio.Reader }

func blocksOf(resp *http.Response) *blocks { return &blocks{bufio.NewReader(resp.Body)} }

func (b *blocks) next(t testing.TB) string {
	t.Helper()
	var block strings.Builder
	for {
		line, err := b.r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if line == "\n" {
			return block.String()
		}
		block.WriteString(line)
	}
}

// until reads on to the first block that holds a text.
func (b *blocks) until(t testing.TB, text string) string {
	t.Helper()
	for {
		if block := b.next(t); strings.Contains(block, text) {
			return block
		}
	}
}

// drain reads a response to its end.
func drain(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%v after %s", err, raw)
	}
	return string(raw)
}
