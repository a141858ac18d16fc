package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// What our question carries along.
const (
	ourRequestID = "weir-conform-request"
	ourTraceID   = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent  = "00-" + ourTraceID + "-00f067aa0ba902b7-01"
)

// everyStep is what the evaluator asks for.
const everyStep = "WORKFLOW_START,WORKFLOW_END,TOOL_START,TOOL_END,FUNCTION_START,FUNCTION_END"

// stream asks the question with a filter, once for each.
func (s *subject) stream(ctx context.Context, filter string, headers ...header) *transcript {
	if t := s.streams[filter]; t != nil {
		return t
	}
	body, _ := json.Marshal(map[string]any{ // of strings: it cannot fail
		"messages": []any{map[string]string{"role": "user", "content": s.Ask}}, "stream": true, "user": user, "evaluation_case_id": user})
	path := pathWorkflow + "?filter_steps=" + url.QueryEscape(filter)
	t := readTranscript(s.send(ctx, s.opts.AskTimeout, maxStream, http.MethodPost, path, s.caller(headers...), body))
	if s.streams == nil {
		s.streams = map[string]*transcript{}
	}
	s.streams[filter] = t
	return t
}

func (s *subject) whole(ctx context.Context) *transcript {
	return s.stream(ctx, everyStep, header{"x-request-id", ourRequestID}, header{"traceparent", traceparent})
}

// opened is why nothing can be said about a stream, or a pass.
func opened(t *transcript) finding {
	if t.answer.err != nil || t.answer.status != http.StatusOK {
		return skip("the question was not answered (stream)")
	}
	return pass()
}

// streamed makes a check of the stream that answers the question.
func streamed(check func(*transcript) finding) func(context.Context, *subject) finding {
	return asking(func(ctx context.Context, s *subject) finding {
		t := s.whole(ctx)
		if f := opened(t); f.outcome != Passed {
			return f
		}
		return check(t)
	})
}

func asking(check func(context.Context, *subject) finding) func(context.Context, *subject) finding {
	return service(func(ctx context.Context, s *subject) finding {
		if s.Ask == "" {
			return skip("no question was given with --ask")
		}
		return check(ctx, s)
	})
}

// serviceStream are the clauses about the stream's head, framing and filter.
func serviceStream() []Clause {
	head := func(name string, good func(string) bool) func(context.Context, *subject) finding {
		return streamed(func(t *transcript) finding {
			if got := t.answer.header.Get(name); !good(got) {
				return fail("got %s: %q", name, got)
			}
			return pass()
		})
	}
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	return []Clause{
		serviceClause("stream", "2.4", Must, "a question is answered by 200 and a stream that ends cleanly", asking(func(ctx context.Context, s *subject) finding {
			return status(s.whole(ctx).answer, http.StatusOK)
		})),
		serviceClause("stream-type", "2.4", Must, "the content type is text/event-stream", head("Content-Type", func(got string) bool {
			kind, _, _ := strings.Cut(got, ";")
			return strings.TrimSpace(kind) == "text/event-stream"
		})),
		serviceClause("stream-uncached", "2.4", Must, "caches keep nothing: no-cache, no-store", head("Cache-Control", func(got string) bool {
			return strings.Contains(got, "no-cache") && strings.Contains(got, "no-store")
		})),
		serviceClause("stream-unbuffered", "2.4", Must, "x-accel-buffering is no", head("X-Accel-Buffering", is("no"))),
		serviceClause("stream-request-id", "2.4", Must, "the request's x-request-id is echoed", head("X-Request-Id", is(ourRequestID))),
		serviceClause("stream-plain", "10.5", Must, "the stream is chunked, without length or compression", streamed(func(t *transcript) finding {
			if t.answer.length >= 0 || t.answer.header.Get("Content-Encoding") != "" {
				return fail("content-length %d, content-encoding %q", t.answer.length, t.answer.header.Get("Content-Encoding"))
			}
			return pass()
		})),
		serviceClause("stream-lines", "2.5", Must, "lines end with LF alone", streamed(func(t *transcript) finding {
			if i := bytes.IndexByte(t.answer.body, '\r'); i >= 0 {
				return fail("CR at byte %d", i)
			}
			return pass()
		})),
		serviceClause("stream-blocks", "2.5", Must, "the stream consists of steps, answers, interactions, an error and comments, each ended by a blank line", streamed(func(t *transcript) finding {
			if t.odd != "" {
				return fail("%s", t.odd)
			}
			return pass()
		})),
		serviceClause("stream-json", "2.5", Must, "data is JSON", streamed(func(t *transcript) finding {
			if t.broken != "" {
				return fail("%s", t.broken)
			}
			return pass()
		})),
		serviceClause("stream-compact", "2.5", Must, "JSON is compact", streamed(func(t *transcript) finding {
			for _, b := range t.blocks {
				if b.json != "" && json.Valid([]byte(b.json)) && !compact(b.json) {
					return fail("%s", quote([]byte(b.json)))
				}
			}
			return pass()
		})),
		serviceClause("answer-value", "2.5", Must, "a piece of the answer is {\"value\": text} and nothing else", streamed(func(t *transcript) finding {
			for _, b := range t.of(blockAnswer) {
				if _, ok := b.value(); !ok {
					return fail("%s", quote([]byte(b.text)))
				}
			}
			return pass()
		})),
		serviceClause("answer", "2.8", Must, "a run that does not fail shows an answer", streamed(func(t *transcript) finding {
			if len(t.of(blockError)) == 0 && len(t.of(blockAnswer)) == 0 {
				return fail("there is neither an answer nor an error")
			}
			return pass()
		})),
		serviceClause("answer-container", "10.5", Must, "no piece is a JSON object or list on its own, which one page drops", streamed(func(t *transcript) finding {
			for _, b := range t.of(blockAnswer) {
				text, _ := b.value()
				text = strings.TrimSpace(text)
				if text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
					return fail("%s", quote([]byte(b.text)))
				}
			}
			return pass()
		})),
		serviceClause("answer-separators", "10.5", Must, "U+0085, U+2028 and U+2029 are escaped", streamed(func(t *transcript) finding {
			if i := strings.IndexAny(string(t.answer.body), "\u0085\u2028\u2029"); i >= 0 {
				return fail("one stands at byte %d", i)
			}
			return pass()
		})),
		serviceClause("literal-interaction", "10.5", Must, "the words event: interaction_required stand in interactions alone", streamed(func(t *transcript) finding {
			for _, b := range t.blocks {
				if b.kind != blockInteraction && strings.Contains(b.text, "event: interaction_required") {
					return fail("%s", quote([]byte(b.text)))
				}
			}
			return pass()
		})),
		serviceClause("comments", "10.5", Must, "comments do not contain data:", streamed(func(t *transcript) finding {
			for _, b := range t.of(blockComment) {
				if strings.Contains(b.text, "data:") {
					return fail("%s", quote([]byte(b.text)))
				}
			}
			return pass()
		})),
		serviceClause("interaction-event", "2.5", Must, "an interaction names execution, interaction and prompt", streamed(interactionEvents)),
		serviceClause("error-block", "2.9", Must, "an error is one block, a workflow_error whose message has no data:, and no answer comes after it", streamed(errorBlock)),
		serviceClause("filter", "2.3", Must, "filter_steps with %2C keeps the named steps, and the answer", asking(func(ctx context.Context, s *subject) finding {
			return s.filtered(ctx, "TOOL_START,TOOL_END", "TOOL_START", "TOOL_END")
		})),
		serviceClause("filter-empty", "2.3", Must, "an empty filter_steps keeps no step, and the answer", asking(func(ctx context.Context, s *subject) finding {
			return s.filtered(ctx, "")
		})),
		serviceClause("filter-forms", "2.3", Should, "names are trimmed and matched in any case, unknown ones are ignored", asking(func(ctx context.Context, s *subject) finding {
			f := s.filtered(ctx, " workflow_start ,LLM_START", "WORKFLOW_START")
			if t := s.stream(ctx, " workflow_start ,LLM_START"); f.outcome == Passed && len(t.steps("WORKFLOW_START")) != 1 {
				return fail("WORKFLOW_START did not come")
			}
			return f
		})),
		serviceClause("request-id-made", "2.4", Must, "a request without an id gets one", asking(func(ctx context.Context, s *subject) finding {
			t := s.stream(ctx, "TOOL_START,TOOL_END")
			if f := opened(t); f.outcome != Passed {
				return f
			}
			if id := t.answer.header.Get("X-Request-Id"); id == "" || id == ourRequestID {
				return fail("got x-request-id %q", id)
			}
			return pass()
		})),
	}
}

// filtered asks again with a filter and compares what came.
func (s *subject) filtered(ctx context.Context, filter string, kept ...string) finding {
	t := s.stream(ctx, filter)
	if f := opened(t); f.outcome != Passed {
		return f
	}
	for _, step := range t.steps() {
		if !slices.Contains(kept, step.Type) {
			return fail("a step of type %s came through", step.Type)
		}
	}
	if len(t.of(blockAnswer))+len(t.of(blockError)) == 0 {
		return fail("the answer did not come through")
	}
	// Whether a tool is called is the model's to say, so it may differ; that
	// every tool step is lost is another matter.
	if slices.Contains(kept, "TOOL_END") && len(t.steps()) == 0 && len(s.whole(ctx).steps("TOOL_END")) > 0 {
		return fail("the steps that were asked for did not come through")
	}
	return pass()
}

func interactionEvents(t *transcript) finding {
	for _, b := range t.of(blockInteraction) {
		var v struct {
			Execution   string         `json:"execution_id"`
			Interaction string         `json:"interaction_id"`
			Prompt      map[string]any `json:"prompt"`
		}
		if json.Unmarshal([]byte(b.json), &v) != nil || !uuid.MatchString(v.Execution) || !uuid.MatchString(v.Interaction) || v.Prompt == nil {
			return fail("%s", quote([]byte(b.text)))
		}
	}
	return pass()
}

func errorBlock(t *transcript) finding {
	seen := false
	for _, b := range t.blocks {
		switch b.kind {
		case blockError:
			var v map[string]any
			_ = json.Unmarshal([]byte(b.json), &v) // what it is not, is missing
			message, _ := v["message"].(string)
			if seen || v["error"] != "workflow_error" || message == "" || strings.Contains(b.text, "data:") {
				return fail("%s", quote([]byte(b.text)))
			}
			seen = true
		case blockAnswer:
			if seen {
				return fail("%s comes after the error", quote([]byte(b.text)))
			}
		}
	}
	return pass()
}

// uuid is version 4, as ids of steps and executions are.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// serviceSteps are the clauses about steps, decisions and their order.
func serviceSteps() []Clause {
	each := func(types []string, check func(t *transcript, s *step) string) func(context.Context, *subject) finding {
		return streamed(func(t *transcript) finding {
			list := t.steps(types...)
			if len(list) == 0 {
				return skip("there was no such step")
			}
			for _, s := range list {
				if wrong := check(t, s); wrong != "" {
					return fail("%s %s: %s", s.Type, s.Name, wrong)
				}
			}
			return pass()
		})
	}
	return []Clause{
		serviceClause("step-type", "2.6", Must, "steps are of the six types", each(nil, func(_ *transcript, s *step) string {
			if !slices.Contains(strings.Split(everyStep, ","), s.Type) {
				return "not one of them"
			}
			return ""
		})),
		serviceClause("step-payload", "2.6", Must, "a payload repeats type, name and id", each(nil, func(_ *transcript, s *step) string {
			if p := s.payload; p.EventType != s.Type || p.Name != s.Name || p.UUID != s.ID || s.Name == "" {
				return fmt.Sprintf("the payload says %s %s %s", p.EventType, p.Name, p.UUID)
			}
			return ""
		})),
		serviceClause("step-id", "2.6", Must, "ids are UUIDs of version 4", each(nil, func(_ *transcript, s *step) string {
			if !uuid.MatchString(s.ID) {
				return fmt.Sprintf("the id is %q", s.ID)
			}
			return ""
		})),
		serviceClause("step-parent", "2.6", Must, "the workflow's steps have no parent, all others have the workflow's id", streamed(func(t *transcript) finding {
			first := t.steps("WORKFLOW_START")
			if len(first) == 0 {
				return skip("there was no WORKFLOW_START (order)")
			}
			for _, s := range t.steps() {
				switch {
				case strings.HasPrefix(s.Type, "WORKFLOW_"):
					if s.ParentID != nil {
						return fail("%s has the parent %s", s.Type, *s.ParentID)
					}
				case s.ParentID == nil || *s.ParentID != first[0].ID:
					return fail("%s %s has another parent", s.Type, s.Name)
				}
			}
			return pass()
		})),
		serviceClause("step-pairs", "2.6", Must, "START and END of one call share id and name, and each stands once", streamed(pairs)),
		serviceClause("tool-start", "2.6", Must, "a TOOL_START carries its input, twice", each([]string{"TOOL_START"}, func(_ *transcript, s *step) string {
			return inputs(s)
		})),
		serviceClause("tool-end", "2.6", Must, "a TOOL_END carries its input and output, twice", each([]string{"TOOL_END"}, func(_ *transcript, s *step) string {
			if wrong := inputs(s); wrong != "" {
				return wrong
			}
			if len(s.payload.Data.Output) == 0 || !bytes.Equal(s.payload.Data.Output, s.payload.Metadata.ToolOutputs) {
				return "data.output and metadata.tool_outputs differ, or are missing"
			}
			return ""
		})),
		serviceClause("tool-name", "2.6", Must, "a tool's step is <group>__<tool>", each([]string{"TOOL_START", "TOOL_END"}, func(_ *transcript, s *step) string {
			if group, tool, ok := strings.Cut(s.Name, "__"); !ok || group == "" || tool == "" {
				return "expected a group and a tool"
			}
			return ""
		})),
		serviceClause("tool-cards", "10.5", Must, "no FUNCTION step looks like one of the tools", each([]string{"FUNCTION_START", "FUNCTION_END"}, func(t *transcript, s *step) string {
			for _, tool := range t.steps("TOOL_START", "TOOL_END") {
				if lastPart(tool.Name) == lastPart(s.Name) {
					return "it would be drawn a second time"
				}
			}
			return ""
		})),
		serviceClause("provenance", "2.6", Must, "the workflow's steps name trace, run, request and runtime", each([]string{"WORKFLOW_START", "WORKFLOW_END"}, func(_ *transcript, s *step) string {
			p := s.payload.Metadata.Provided
			for _, name := range []string{"workflow_trace_id", "workflow_run_id", "request_id", "agent_runtime"} {
				if text, ok := p[name].(string); !ok || text == "" && name != "workflow_trace_id" {
					return fmt.Sprintf("%s is %v", name, p[name])
				}
			}
			if p["request_id"] != ourRequestID {
				return fmt.Sprintf("request_id is %v", p["request_id"])
			}
			return ""
		})),
		serviceClause("trace", "9", Should, "the caller's trace is joined, or there is none", each([]string{"WORKFLOW_START"}, func(_ *transcript, s *step) string {
			if id := s.payload.Metadata.Provided["workflow_trace_id"]; id != "" && id != ourTraceID {
				return fmt.Sprintf("workflow_trace_id is %v", id)
			}
			return ""
		})),
		serviceClause("order", "2.8", Must, "WORKFLOW_START comes first, WORKFLOW_END last, each once and with the same id", streamed(order)),
		serviceClause("decision-input", "2.7", Must, "one input decision says its stage, outcome and whether it blocked, before anything of tools or answer", streamed(inputDecision)),
		serviceClause("decision-output", "2.7", Must, "one output decision comes after the answer, and none after a refusal", streamed(outputDecision)),
	}
}

func lastPart(name string) string {
	parts := strings.Split(name, "__")
	return parts[len(parts)-1]
}

// inputs is what is wrong with a step's input.
func inputs(s *step) string {
	d := s.payload.Data
	if d == nil || len(d.Input) == 0 || !bytes.Equal(d.Input, s.payload.Metadata.ToolInputs) {
		return "data.input and metadata.tool_inputs differ, or are missing"
	}
	return ""
}

// pairs holds STARTs and ENDs against each other. A FUNCTION_END without START
// is a decision.
func pairs(t *transcript) finding {
	type ends struct{ start, end *step }
	byID := map[string]*ends{}
	for _, s := range t.steps() {
		e := byID[s.ID]
		if e == nil {
			e = &ends{}
			byID[s.ID] = e
		}
		at := &e.start
		if strings.HasSuffix(s.Type, "_END") {
			at = &e.end
		}
		if *at != nil {
			return fail("%s %s: the id stands twice", s.Type, s.Name)
		}
		if at == &e.start && e.end != nil {
			return fail("%s %s comes after its end", s.Type, s.Name)
		}
		*at = s
		if e.start != nil && e.end != nil && (e.start.Name != e.end.Name || strings.TrimSuffix(e.start.Type, "_START") != strings.TrimSuffix(e.end.Type, "_END")) {
			return fail("%s %s and %s %s share an id", e.start.Type, e.start.Name, e.end.Type, e.end.Name)
		}
	}
	failed := len(t.of(blockError)) > 0
	for _, e := range byID {
		if e.end == nil && !failed {
			return fail("%s %s has no end", e.start.Type, e.start.Name)
		}
		if e.start == nil && !strings.HasPrefix(e.end.Type, "FUNCTION_") {
			return fail("%s %s has no start", e.end.Type, e.end.Name)
		}
	}
	return pass()
}

func order(t *transcript) finding {
	var events []block
	for _, b := range t.blocks {
		if b.kind != blockComment {
			events = append(events, b)
		}
	}
	starts, ends := t.steps("WORKFLOW_START"), t.steps("WORKFLOW_END")
	if len(starts) != 1 || len(ends) != 1 {
		return fail("%d WORKFLOW_START and %d WORKFLOW_END", len(starts), len(ends))
	}
	if events[0].step != starts[0] || events[len(events)-1].step != ends[0] {
		return fail("something comes before WORKFLOW_START or after WORKFLOW_END")
	}
	if starts[0].ID != ends[0].ID {
		return fail("they have different ids")
	}
	return pass()
}

// place is where a step stands, and where the first and the last of the others
// are that matter.
func place(t *transcript, s *step) (at, first, last int) {
	first, last = len(t.blocks), -1
	for i, b := range t.blocks {
		tool := b.step != nil && strings.HasPrefix(b.step.Type, "TOOL_")
		switch {
		case b.step == s && s != nil:
			at = i
		case tool || b.kind == blockAnswer:
			first, last = min(first, i), i
		}
	}
	return at, first, last
}

func inputDecision(t *transcript) finding {
	list := t.decisions("input")
	if len(list) != 1 {
		return fail("expected one, got %d", len(list))
	}
	out, wrong := decided(list[0], "input")
	if wrong != "" {
		return fail("%s", wrong)
	}
	if blocked, outcome := out["blocked"], out["outcome"]; blocked == true != (outcome == "blocked") {
		return fail("blocked is %v and the outcome %v", blocked, outcome)
	}
	if at, first, _ := place(t, list[0]); at > first {
		return fail("it comes after tools or answer have begun")
	}
	return pass()
}

func outputDecision(t *transcript) finding {
	list := t.decisions("output")
	if in := t.decisions("input"); len(in) == 1 {
		if out, _ := decided(in[0], "input"); out["blocked"] == true {
			if len(list) != 0 {
				return fail("the question was refused and there is an output decision")
			}
			return pass()
		}
	}
	if len(list) != 1 {
		return fail("expected one, got %d", len(list))
	}
	if _, wrong := decided(list[0], "output"); wrong != "" {
		return fail("%s", wrong)
	}
	if at, _, last := place(t, list[0]); at < last {
		return fail("tools or answer come after it")
	}
	return pass()
}

// decided reads a decision's output, and says what is wrong with it.
func decided(s *step, stage string) (out map[string]any, wrong string) {
	if s.Type != "FUNCTION_END" {
		return nil, "expected FUNCTION_END, got " + s.Type
	}
	if s.payload.Data == nil || json.Unmarshal(s.payload.Data.Output, &out) != nil {
		return nil, "expected an object in data.output"
	}
	_, isBool := out["blocked"].(bool)
	if outcome, _ := out["outcome"].(string); out["stage"] != stage || outcome == "" || !isBool {
		return out, fmt.Sprintf("stage %v, outcome %v, blocked %v", out["stage"], out["outcome"], out["blocked"])
	}
	return out, ""
}
