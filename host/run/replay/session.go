package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/run"
)

// session is one run being replayed: the model, the tools and the people of its
// engine, and what it has learnt so far.
type session struct {
	target Target
	rec    *run.Recorded
	record *run.Recording
	parts  []run.Part // of the target
	log    *memory

	ctx    context.Context
	cancel context.CancelCauseFunc
	fresh  bool // the next guards are the run's own

	stream  stream           // the recording's text as it went into the sink, guarded
	replies []int            // events that are replies, or failures of a model
	batches [][]*call        // of tool calls, in order
	texts   map[int][]string // of their results, by event

	mu         sync.Mutex
	unanswered []Unanswered
	halted     bool
	steps      int // events that the workflow has been given
	events     []abi.Event
	haltedAt   int    // steps at the halt
	diverged   string // why the workflow has been given something else than then; empty: it has not
	reply      int    // replies that were given
	asks       map[string][]run.AskNote
	batch      int // of tool calls
	current    *call
	looked     map[int]int // calls of a batch that were looked at
	endless    bool        // nobody knows how the answer goes on
	again      bool        // the run has been resumed at one
	asked      int         // questions to a person
	main       *sink       // of the run, not of a text of its own
}

// call is one tool call of the recording.
type call struct {
	run.HeardCall
	run.HeardResult
	given  string // the arguments as the model gives them again
	masked bool   // the guards saw other arguments, or another question
	output abi.Raw
}

func newSession(target Target, rec *run.Recorded) *session {
	s := &session{target: target, rec: rec, record: rec.Recording, parts: target.Policy.Parts(),
		log: &memory{blobs: map[string][]byte{}}, asks: map[string][]run.AskNote{}, texts: map[int][]string{}, looked: map[int]int{}, haltedAt: -1}
	s.stream = newStream(rec)
	for _, a := range s.record.Asks {
		s.asks[a.Plugin] = append(s.asks[a.Plugin], a)
	}
	var calls []run.HeardCall
	for i := range s.record.Heard {
		h := &s.record.Heard[i]
		switch {
		case h.Type == abi.EventModel, h.Type == abi.EventModelFailed && h.Code != abi.FailBudget:
			s.replies = append(s.replies, i)
			calls = h.Calls
		case h.Type == abi.EventTools:
			if h.Calls != nil {
				calls = h.Calls
			}
			s.batches = append(s.batches, s.calls(calls, h.Results))
			for _, c := range s.batches[len(s.batches)-1] {
				text, _ := c.text()
				s.texts[i] = append(s.texts[i], text)
			}
		}
	}
	return s
}

func (s *session) calls(calls []run.HeardCall, results []run.HeardResult) []*call {
	out := make([]*call, 0, len(results))
	for i, result := range results {
		c := &call{HeardResult: result}
		if i < len(calls) {
			c.HeardCall = calls[i]
			c.masked = calls[i].Masked || s.record.Masked
			c.given = given(calls[i])
		}
		if step, ok := s.rec.Steps[result.Step]; ok && result.Step != "" {
			c.output = step.Output
		}
		out = append(out, c)
	}
	return out
}

// given is a call's arguments as a model sends them.
func given(c run.HeardCall) string {
	if c.Exact != "" {
		return c.Exact
	}
	if !c.Unreadable {
		return string(c.Arguments)
	}
	text, _ := strictjson.NewDecoder(c.Arguments).String()
	return text
}

// halt ends the replay at a question that the recording does not answer.
func (s *session) halt(u Unanswered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halted {
		return
	}
	s.halted, s.haltedAt = true, s.steps
	u.Step = s.steps
	s.unanswered = append(s.unanswered, u)
	s.cancel(fault.Coded(fault.Unavailable, run.CodeDrain, "unanswerable: %s", u.What))
}

// doubt counts a question that the recording does not answer and that the run
// can do without.
func (s *session) doubt(u Unanswered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.Step = s.steps
	s.unanswered = append(s.unanswered, u)
}

func (s *session) isHalted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted
}

// wait lets the engine find that its run is over.
func (s *session) wait(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// unchanged tells whether a stage's guards are the same, in the same order.
func (s *session) unchanged(stage string) bool {
	return sameStage(s.record.Parts, s.parts, stage)
}

func sameStage(a, b []run.Part, stage string) bool {
	return slices.Equal(inStage(a, stage), inStage(b, stage))
}

func inStage(parts []run.Part, stage string) []run.Part {
	var out []run.Part
	for _, p := range parts {
		if strings.Contains(p.Stages, stage) {
			out = append(out, p)
		}
	}
	return out
}

// same tells whether one plugin is the same.
func (s *session) same(name string) bool {
	was, ok := s.record.Part(name)
	return ok && slices.Contains(s.parts, was)
}

// event notes that the workflow is given one, with the recorded clock and seed
// while it is the one that it was given then.
func (s *session) event(req *abi.StepRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.steps
	s.steps++
	s.events = append(s.events[:k], req.Event)
	if k >= len(s.record.Heard) {
		s.diverge("the run went on")
		return
	}
	h := &s.record.Heard[k]
	if why := otherEvent(h, &req.Event, s.texts[k]); why != "" {
		s.diverge(why)
	}
	if s.diverged == "" {
		req.Call = h.Call
	}
	if req.Event.Type == abi.EventTools {
		s.batch++
		s.current = nil
	}
}

// rewind is for a run that is resumed: the workflow is given everything again,
// and the engine looks at the call again that it was parked at, unless a person
// did not agree to it.
func (s *session) rewind(outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.batch, s.fresh = 0, 0, true
	refused := s.asked <= len(s.rec.Questions) && s.rec.Questions[s.asked-1].Gate == run.GateVerdict && outcome != abi.HumanAnswered
	s.again = !refused
}

// over tells whether the next event is behind the halt.
func (s *session) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted && s.steps >= s.haltedAt
}

func (s *session) diverge(why string) {
	if s.diverged == "" {
		s.diverged = why
	}
}

func otherEvent(h *run.Heard, e *abi.Event, texts []string) string {
	switch {
	case h.Type != e.Type:
		return "the workflow made another step"
	case e.Type == abi.EventModelFailed && h.Code != e.Code:
		return "a model call ended otherwise"
	case e.Type == abi.EventTools && len(h.Results) != len(e.Results):
		return "other tools were called"
	}
	for i := range e.Results {
		if e.Results[i].Refused != h.Results[i].Refused || e.Results[i].Failed != h.Results[i].Failed {
			return "a tool call had another outcome"
		}
		if e.Results[i].Text != texts[i] && !sameJSON([]byte(e.Results[i].Text), []byte(texts[i])) {
			return "a tool call had another result"
		}
	}
	return ""
}

// Complete implements run.Model with what was replied then.
func (s *session) Complete(ctx context.Context, req *run.ModelCall, onText func(string)) (*run.ModelReply, error) {
	if s.isHalted() {
		return nil, s.wait(ctx)
	}
	if !s.isWorkflow(req.Plugin) {
		return s.classify(ctx, req)
	}
	h, text, why := s.next(req)
	if why != "" {
		s.halt(Unanswered{Stage: StageModel, Was: WasAllow, What: "a model call", Why: why})
		return nil, s.wait(ctx)
	}
	if onText != nil && text != "" {
		onText(text)
	}
	if h.Stopped && s.main != nil {
		if !s.main.cutHere() {
			return nil, s.wait(ctx)
		}
	}
	if h.Type == abi.EventModelFailed {
		return nil, fault.Coded(fault.Unavailable, h.Code, "the model call failed then")
	}
	reply := &run.ModelReply{Text: text, FinishReason: h.Finish, InputTokens: h.InputTokens, OutputTokens: h.OutputTokens}
	for i, c := range h.Calls {
		reply.ToolCalls = append(reply.ToolCalls, abi.ToolCall{ID: callID(s.reply, i), Name: c.Name, Arguments: given(c)})
	}
	return reply, nil
}

func (s *session) isWorkflow(plugin string) bool { return plugin == s.target.Policy.Workflow() }

// next returns the reply that comes next, or why nobody knows one.
func (s *session) next(req *run.ModelCall) (*run.Heard, string, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.reply >= len(s.replies):
		return nil, "", "it was never made"
	case s.diverged != "":
		return nil, "", "it would have asked something else: " + s.diverged
	}
	h := &s.record.Heard[s.replies[s.reply]]
	if h.Asked != req.Asked && !s.same(req.Plugin) {
		return nil, "", "it would have asked something else: the workflow or its prompt is another one"
	}
	text := h.Text
	if h.Said > 0 {
		text = s.stream.said(s.replies[s.reply])
	}
	s.reply++
	return h, text, ""
}

// classify answers a guard's model call.
func (s *session) classify(ctx context.Context, req *run.ModelCall) (*run.ModelReply, error) {
	s.mu.Lock()
	why := "it was never made"
	if list := s.asks[req.Plugin]; len(list) > 0 {
		a := list[0]
		switch {
		case a.Asked != req.Asked && !s.same(req.Plugin), s.diverged != "":
			why = "it would have asked something else"
		case a.Reply == "" && a.Failed == "":
			why = "its reply is not kept"
		default:
			s.asks[req.Plugin] = list[1:]
			s.mu.Unlock()
			if a.Failed != "" {
				return nil, fault.Coded(fault.Unavailable, a.Failed, "the model call failed then")
			}
			return &run.ModelReply{Text: a.Reply}, nil
		}
	}
	s.mu.Unlock()
	s.halt(Unanswered{Stage: StageModel, Was: WasAllow, What: "the model call of guard " + req.Plugin, Why: why})
	return nil, s.wait(ctx)
}

// Name implements run.Model.
func (s *session) Name(alias string) string { return alias }

// find looks up the call that the engine looks at now, among those that it made
// then at this place and that it has not looked at yet. After a park it looks at
// the same one again.
func (s *session) find(name, arguments string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
	if s.batch >= len(s.batches) || s.diverged != "" {
		return nil
	}
	from := s.looked[s.batch]
	if s.again && from > 0 {
		from--
	}
	s.again = false
	for i, c := range s.batches[s.batch] {
		if i >= from && c.Name == name && (c.given == arguments || sameJSON([]byte(c.given), []byte(arguments))) {
			s.looked[s.batch], s.current = i+1, c
			return c
		}
	}
	return nil
}

func (s *session) now() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func sameJSON(a, b []byte) bool {
	x, err1 := strictjson.Canonical(nil, a)
	y, err2 := strictjson.Canonical(nil, b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// answer is what a person answered to this question.
func (s *session) answer(i run.Interaction) (outcome, value string) {
	s.mu.Lock()
	k := s.asked
	s.asked++
	s.mu.Unlock()
	why := ""
	switch {
	case k >= len(s.rec.Questions):
		why = "nobody was asked"
	case !bytes.Equal(i.Prompt, s.rec.Questions[k].Prompt):
		why = "people were asked something else"
	case !s.rec.Questions[k].Answered:
		why = "no answer is recorded"
	default:
		return s.rec.Questions[k].Outcome, s.rec.Questions[k].Value
	}
	s.halt(Unanswered{Stage: StageApproval, Was: WasAllow, What: "a person's answer", Why: why})
	return abi.HumanCancelled, ""
}

// text is the text that a result's display copy stands for.
func (c *call) text() (text string, failed bool) {
	if c.Step == "" {
		return c.HeardResult.Text, c.Failed
	}
	if c.Failed || c.Refused {
		var object struct {
			Error *string `json:"error"`
		}
		if json.Unmarshal(c.output, &object) == nil && object.Error != nil {
			return *object.Error, c.Failed
		}
	}
	if text, err := strictjson.NewDecoder(c.output).String(); err == nil && strictjson.Valid([]byte(text)) != nil {
		return text, c.Failed
	}
	return string(c.output), c.Failed
}
