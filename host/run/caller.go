package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"weir/abi"
	"weir/host/fault"
)

// Caller says that whoever sent the request performs the tools. The workflow
// cannot tell: its tools action is held against policy, budget and guards as
// always, refused calls get their results at once, and the run waits for the
// results of the others like it waits for a person:
//
//	tools ─► judge each ─┬─ refused: a result
//	                     └─ call_proposed … interaction_opened {kind tool_calls}
//	                                             │ parked
//	results ◄─ check_tool_result ◄─ interaction_answered {results}
type Caller struct {
	Tools []Tool // all that there are
	// Past is what the caller says has happened since the latest question: a
	// run whose log is not here begins by taking it in. Its calls are judged
	// like any, nothing is performed, and nothing in it is anybody's consent.
	Past []Exchange
}

// Exchange is one reply of the model with calls, and what came of them.
type Exchange struct {
	Text    string
	Calls   []abi.ToolCall
	Results []CallResult // in the order of the calls
}

// CallResult is what a caller says came of a call.
type CallResult struct {
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// KindCalls is the kind of an interaction that asks a caller to perform calls.
// Its prompt is a [CallsPrompt] and its answer a [CallsAnswer].
const KindCalls = "tool_calls"

// CallsPrompt is the calls to perform, in this order.
type CallsPrompt struct {
	Calls []ProposedCall `json:"calls"`
}

// ProposedCall is one call that everybody has agreed to.
type ProposedCall struct {
	Tool      string  `json:"tool"`
	Arguments abi.Raw `json:"arguments"`
}

// CallsAnswer is the results, in the order of the calls.
type CallsAnswer struct {
	Outcome string       `json:"outcome"` // abi.HumanAnswered
	Results []CallResult `json:"results"`
}

// What a model reads where a caller said nothing of use.
const noResult = errorPrefix + "the caller returned no result for this call"

// maxCallerResult bounds the text of one result in bytes.
const maxCallerResult = 256 << 10

// callerPayload is a Caller without its history, which has become events.
type callerPayload struct {
	Tools []toolPayload `json:"tools"`
}

type toolPayload struct {
	Name        string  `json:"name"`
	StepName    string  `json:"step_name"`
	Description string  `json:"description,omitempty"`
	Schema      abi.Raw `json:"schema,omitempty"`
	ReadOnly    bool    `json:"read_only,omitempty"`
}

// proposedPayload is one call that the caller shall perform. It is dropped at
// the run's end, like the prompt and the answer: no guard has masked them.
type proposedPayload struct {
	Index     int     `json:"index"` // of the call in its action
	Step      string  `json:"step"`  // the tool step that is open meanwhile
	Tool      string  `json:"tool"`
	Arguments abi.Raw `json:"arguments"`

	Note CallNote `json:"note,omitzero"`
}

func recordedCaller(c *Caller) *callerPayload {
	if c == nil {
		return nil
	}
	p := &callerPayload{Tools: make([]toolPayload, len(c.Tools))}
	for i, t := range c.Tools {
		p.Tools[i] = toolPayload(t)
	}
	return p
}

func (p *callerPayload) caller() *Caller {
	if p == nil {
		return nil
	}
	c := &Caller{Tools: make([]Tool, len(p.Tools))}
	for i, t := range p.Tools {
		c.Tools[i] = Tool(t)
	}
	return c
}

// choose decides who performs the run's tools and who can be asked.
func (r *run) choose() {
	r.tools, r.people = r.deps.Tools, r.deps.People
	if r.req.Caller == nil {
		return
	}
	r.people = r.deps.Pauses
	if r.deps.Declare == nil {
		r.unusable = fault.New(fault.Internal, "engine: a caller's tools, and nobody declares them")
		return
	}
	declared, err := r.deps.Declare(r.req.Caller.Tools)
	if err != nil {
		r.unusable = err
		return
	}
	r.tools = declared
}

// judged is what became of one call before the caller is asked: a result, or a
// proposal.
type judged struct {
	note     CallNote
	result   *abi.ToolResult
	proposed *proposedPayload
}

func (p *past) judge(index int, j judged) {
	if p.calls == nil {
		p.calls = map[int]judged{}
	}
	p.calls[index] = j
}

// proposeTools is performTools for a caller's tools: all calls are judged, those
// that are not in known, and the caller performs the ones that remain.
func (r *run) proposeTools(calls []abi.ToolCall, known map[int]judged) (abi.Event, *ending) {
	if len(calls) > maxCallsPerAction {
		return abi.Event{}, r.failed(fault.New(fault.Plugin,
			"workflow %s: %d tool calls in one action, at most %d", r.policy.Workflow(), len(calls), maxCallsPerAction))
	}
	if r.past != nil && !sameCalls(calls, r.past.Calls) {
		r.past = nil // the workflow did not take the history in: it is asked anew
	}
	all := make([]judged, len(calls))
	for i, call := range calls {
		var end *ending
		var done bool
		if all[i], done = known[i]; !done {
			r.judged = CallNote{}
			if all[i], end = r.judgeCall(i, call); end != nil {
				return abi.Event{}, end
			}
		}
	}
	if end := r.fill(all); end != nil {
		return abi.Event{}, end
	}
	r.noteCalls(calls)
	event := abi.Event{Type: abi.EventTools, Results: make([]abi.ToolResult, len(calls))}
	for i, call := range calls {
		result := *all[i].result
		result.Ref, result.CallID, result.Name = r.thread.nextRef()+i, call.ID, call.Name
		event.Results[i] = result
		r.note.Calls = append(r.note.Calls, all[i].note)
	}
	return event, nil
}

func sameCalls(a, b []abi.ToolCall) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (r *run) judgeCall(index int, call abi.ToolCall) (judged, *ending) {
	tool, check, refusal, end := r.judge(call)
	switch {
	case end != nil:
		return judged{}, end
	case refusal != nil:
		r.out.record(RecordResult, resultPayload{Index: index, Result: *refusal, Note: r.judged}, false)
		return judged{result: refusal, note: r.judged}, nil
	}
	note := r.judged
	p := &proposedPayload{Index: index, Note: note, Step: r.opts.NewID(), Tool: tool.Name, Arguments: check.Arguments}
	r.out.Step(r.callStep(tool, p))
	r.out.record(RecordCallProposed, p, false)
	return judged{proposed: p, note: note}, nil
}

func (r *run) callStep(tool Tool, p *proposedPayload) Step {
	return Step{Kind: StepTool, ID: p.Step, Name: tool.StepName, Input: r.guards.Display(r.ctx, p.Arguments)}
}

// fill gives every proposal its result, or leaves the run waiting for them.
func (r *run) fill(all []judged) *ending {
	var open []*judged
	for i := range all {
		if all[i].proposed != nil {
			open = append(open, &all[i])
		}
	}
	results, end := r.results(open)
	if end != nil {
		return end
	}
	for i, j := range open {
		result := abi.ToolResult{Text: noResult, Failed: true}
		if i < len(results) {
			result.Text, result.Failed = capped(results[i].Text), results[i].Failed
		}
		if end := r.settleCall(j, result); end != nil {
			return end
		}
	}
	return nil
}

// results are what the caller has answered, or what its history says.
func (r *run) results(open []*judged) ([]CallResult, *ending) {
	if past := r.past; past != nil {
		r.past = nil
		return pastResults(past, open), nil
	}
	if len(open) == 0 {
		return nil, nil
	}
	g := r.take(gateCalls)
	if g == nil {
		return nil, r.parkCalls(open)
	}
	answer := CallsAnswer{Outcome: abi.HumanCancelled}
	if n := len(g.answers); n > 0 {
		_ = json.Unmarshal(g.answers[n-1], &answer)
	}
	if answer.Outcome != abi.HumanAnswered {
		return nil, &ending{state: Cancelled, reason: "the caller did not come back"}
	}
	return answer.Results, nil
}

// pastResults are the results of those calls of a history that were not refused
// now.
func pastResults(past *Exchange, open []*judged) []CallResult {
	results := make([]CallResult, len(open))
	for i, j := range open {
		results[i] = CallResult{Text: noResult, Failed: true}
		if n := j.proposed.Index; n < len(past.Results) {
			results[i] = past.Results[n]
		}
	}
	return results
}

// settleCall holds one result against the guards.
func (r *run) settleCall(j *judged, result abi.ToolResult) *ending {
	i := indexTool(r.tools.List(), j.proposed.Tool)
	if i < 0 {
		return r.failed(fault.New(fault.Internal, "the log proposes a tool that the request does not have"))
	}
	tool := r.tools.List()[i]
	r.judged = j.note
	settled, err := r.settle(tool, r.check(tool, j.proposed.Arguments), r.callStep(tool, j.proposed), result, nil)
	if err != nil {
		return r.failed(err)
	}
	j.result, j.note = &settled, r.judged
	return nil
}

func (r *run) parkCalls(open []*judged) *ending {
	if !r.room() {
		return r.failed(fault.New(fault.Limit, "too many runs wait"))
	}
	var p CallsPrompt
	for _, j := range open {
		p.Calls = append(p.Calls, ProposedCall{Tool: j.proposed.Tool, Arguments: j.proposed.Arguments})
	}
	body, err := json.Marshal(p)
	if err != nil {
		return r.failed(fault.New(fault.Internal, "calls: %w", err))
	}
	return r.park(gateCalls, "", Prompt{Kind: KindCalls, JSON: body})
}

// capped bounds a result and says so to the model.
func capped(text string) string {
	if len(text) <= maxCallerResult {
		return text
	}
	end := maxCallerResult
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[result cut at %d bytes]", text[:end], maxCallerResult)
}

// replay returns what the caller's history says that the model replied, while
// there is some. A request that offers no tools is not one of the loop's.
func (r *run) replay(call *ModelCall) *Exchange {
	c := r.req.Caller
	if c == nil || len(c.Past) == 0 || len(call.Tools) == 0 {
		return nil
	}
	past := c.Past[0]
	past.Calls = append([]abi.ToolCall(nil), past.Calls...)
	for i := range past.Calls { // ids of ours: those of the history are the caller's to choose
		past.Calls[i].ID = "past_" + strconv.Itoa(len(c.Past)) + "_" + strconv.Itoa(i+1)
	}
	r.req.Caller = &Caller{Tools: c.Tools, Past: c.Past[1:]}
	return &past
}

// performPast is a model call that has happened.
func (r *run) performPast(past *Exchange, call *ModelCall) (abi.Event, *ending) {
	r.note = note{Asked: call.Asked}
	if call.Stream && past.Text != "" {
		r.sink.Push(past.Text)
		r.note.Said = validLen(past.Text)
		if err := r.sink.Sync(r.ctx); err != nil {
			return abi.Event{}, r.failed(err)
		}
		if r.isCut() {
			r.note.Stopped = true
			r.hear(input{Event: abi.Event{Type: abi.EventModel}, Note: r.note})
			return abi.Event{}, &ending{state: Completed}
		}
	}
	r.past = past
	return abi.Event{Type: abi.EventModel, Ref: r.thread.nextRef(), Text: past.Text, ToolCalls: past.Calls}, nil
}

// forget drops the history: whoever waits for a person has taken in what there
// was to take in.
func (c *Caller) forget() *Caller {
	if c == nil {
		return nil
	}
	return &Caller{Tools: c.Tools}
}

// Attach lets a client listen to a run of this user's that waits here without
// one, from now on, and returns what it waits for. Over is called as [Keeper.Run]
// does. Whatever else is wrong with the run is NotFound.
func (k *Keeper) Attach(ctx context.Context, user, run string, out Observer, over func()) (Interaction, error) {
	k.mu.Lock()
	w := k.waiting[run]
	if w == nil || w.out != nil || w.parked.Owner != user || k.draining {
		k.mu.Unlock()
		return Interaction{}, errNoInteraction
	}
	w.ctx, w.out, w.over = ctx, out, over
	k.mu.Unlock()
	w.follow(ctx, k)
	return w.parked.Interaction, nil
}

// Abandon cancels a run of this user's that waits here, whatever happens to
// runs whose clients leave. Without one it does nothing.
func (k *Keeper) Abandon(user, run string) {
	if w := k.find(run); w != nil && w.parked.Owner == user {
		k.do(func() { k.cancel(w) })
	}
}
