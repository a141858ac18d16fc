package run

import (
	"context"
	"encoding/json"
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/telemetry"
)

// What a model or a workflow reads where nobody was asked, or nobody agreed.
const (
	noRoom      = "too many interactions are pending. Nothing was changed."
	notShowable = "a value that a person would sign may not be shown to one"
	notApproved = "a person did not agree to this call"
	notInTime   = "nobody agreed to this call in time"
	nobodyToAsk = "a person has to agree to this call, and nobody can be asked"
)

// given is what a person has answered to the gate that a run was parked at.
type given struct {
	gate    string
	step    string // the function step that is open
	shown   []string
	answers []abi.Raw // in order
	claims  abi.Raw   // journalled before the crash; nil: none were
	result  abi.Raw   // of their execution, if that was journalled too
}

// answer is how an answer stands in the log, as far as the engine reads it.
type answer struct {
	Outcome string `json:"outcome"`
	Value   string `json:"value,omitempty"`
}

// expired is the answer of an interaction that nobody answered in time.
var expired = abi.Raw(`{"outcome":"expired"}`)

// last is the last answer; what is none counts as a cancelled one.
func (g *given) last() answer {
	a := answer{Outcome: abi.HumanCancelled}
	if n := len(g.answers); n > 0 {
		_ = json.Unmarshal(g.answers[n-1], &a)
	}
	if a.Outcome != abi.HumanAnswered {
		a.Value = ""
	}
	return a
}

// take returns what was answered to a gate, once.
func (r *run) take(gate string) *given {
	g := r.given
	if g == nil || g.gate != gate {
		return nil
	}
	r.given = nil
	if gate == gateCalls {
		return g
	}
	a := g.last()
	r.out.record(RecordHuman, humanPayload{Gate: gate, Outcome: a.Outcome, Value: r.redacted(a.Value)}, true)
	return g
}

// declared finds the tool of a declared action.
func (r *run) declared(name string) (Tool, bool) {
	if r.people == nil {
		return Tool{}, false
	}
	tools := r.people.Declared()
	if i := indexTool(tools, name); i >= 0 {
		return tools[i], true
	}
	return Tool{}, false
}

// offered lists every tool that a model may see.
func (r *run) offered() []Tool {
	tools := r.tools.List()
	if r.people == nil {
		return tools
	}
	return append(tools[:len(tools):len(tools)], r.people.Declared()...)
}

// performDeclared takes a proposed change through a person's hands (section 3.5
// of the contract). Between the last answer and the execution nothing is asked
// of a model, a guard or the client's connection.
func (r *run) performDeclared(tool Tool, call abi.ToolCall) (abi.ToolResult, *ending) {
	g := r.take(gateAction)
	proposal, err := r.people.Propose(call.Name, abi.Raw(call.Arguments))
	if g == nil {
		if !r.budget.takeToolCall() {
			r.judged.Why = WhyBudget
			return refused(r.budget.exhausted()), nil
		}
		switch {
		case fault.CodeOf(err) == CodeProposal:
			r.judged.Why = WhyProposal
			return abi.ToolResult{Text: string(proposalRefused(err.Error())), Refused: true}, nil
		case err != nil:
			r.judged.Why = WhyUnreadable
			return refused(err.Error()), nil
		}
		return r.proposed(tool, call, proposal)
	}
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	summary, err := r.guarded(proposal.Summary())
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	return r.proceed(tool, call, proposal.WithSummary(summary), g)
}

// proposed is the first look at a proposal: what the guards say of the call,
// and whether what a person would see is what would be signed.
func (r *run) proposed(tool Tool, call abi.ToolCall, proposal Proposal) (abi.ToolResult, *ending) {
	verdict, err := r.guards.CheckToolCall(r.ctx, r.check(tool, abi.Raw(call.Arguments)))
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	r.decideTool(toolCallDecision, tool, verdict)
	if verdict.Blocked {
		r.judged.Why = WhyGuard
		return refused(verdict.Reason), nil
	}
	for _, signed := range proposal.Signed() {
		shown, err := r.guarded(signed)
		if err != nil {
			return abi.ToolResult{}, r.failed(err)
		}
		if shown != signed {
			r.judged.Why = WhyProposal
			return abi.ToolResult{Text: string(proposalRefused(notShowable)), Refused: true}, nil
		}
	}
	summary, err := r.guarded(proposal.Summary())
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	g := &given{gate: gateAction, step: r.opts.NewID()}
	r.out.Step(Step{Kind: StepFunction, ID: g.step, Name: tool.Name, Input: r.display(call)})
	return r.proceed(tool, call, proposal.WithSummary(summary), g)
}

func (r *run) display(call abi.ToolCall) abi.Raw {
	return r.guards.Display(r.ctx, abi.Raw(call.Arguments))
}

// proceed asks the next question, or executes, or ends with a result.
func (r *run) proceed(tool Tool, call abi.ToolCall, proposal Proposal, g *given) (abi.ToolResult, *ending) {
	result, outcome := g.result, ""
	if result == nil && g.claims != nil { // a crash lies between
		result = r.execute(g.claims, true)
	}
	if result == nil {
		next, err := r.next(proposal, g)
		switch {
		case err != nil:
			return abi.ToolResult{}, r.failed(err)
		case next.Prompt != nil && !r.room():
			result, outcome = proposal.NotApplied(noRoom), telemetry.GateUnavailable
		case next.Prompt != nil:
			end := r.park(gateAction, g.step, *next.Prompt)
			return abi.ToolResult{}, end
		case next.Claims != nil:
			if err := r.claim(next.Claims); err != nil {
				return abi.ToolResult{}, r.failed(err)
			}
			result = r.execute(next.Claims, false)
		default:
			result, outcome = next.Result, next.Outcome
		}
	}
	r.gated(result, outcome)
	step := Step{Kind: StepFunction, ID: g.step, Name: tool.Name, Input: r.display(call)}
	settled, err := r.settle(tool, r.check(tool, abi.Raw(call.Arguments)), step, abi.ToolResult{Text: string(result)}, nil)
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	return settled, nil
}

// gated records how a proposed change ended. Without an outcome it was executed,
// and its result says what came of it.
func (r *run) gated(result abi.Raw, outcome string) {
	var x attempted
	_ = json.Unmarshal(result, &x) // ours
	g := telemetry.Gate{Action: x.Action, Resource: x.Resource, Outcome: outcome, Committed: x.Committed, Override: outcome == ""}
	if outcome == "" {
		g.Outcome = x.outcome()
	}
	r.opts.Tracer.Gated(r.ctx, g)
}

// attempted is the part of a result (3.7) that spans tell of.
type attempted struct {
	Action    string `json:"action"`
	Resource  string `json:"resource_id"`
	Committed bool   `json:"committed"`
	Unknown   bool   `json:"outcome_unknown"`
}

func (x attempted) outcome() string {
	switch {
	case x.Committed:
		return telemetry.GateApplied
	case x.Unknown:
		return telemetry.GateUnknown
	}
	return telemetry.GateRefused
}

// next is the proposal's next step. Each prompt on the way must be what was
// shown then: what is signed is what a person has seen.
func (r *run) next(proposal Proposal, g *given) (ProposalStep, error) {
	who := Authority{Actor: r.req.Principal.UserID, RequestID: r.req.RequestID,
		Gateway: r.req.RequestIDSource == SourceGateway, Nonce: r.opts.NewID(), Now: r.opts.Now()}
	for i, shown := range g.shown {
		step := proposal.Next(who, g.answers[:i])
		if step.Prompt == nil || digest(step.Prompt.JSON) != shown {
			return ProposalStep{}, fault.New(fault.Internal, "the question %d is not the one that was shown", i+1)
		}
	}
	return proposal.Next(who, g.answers), nil
}

// claim makes the claims durable, and that they are about to be sent.
func (r *run) claim(claims abi.Raw) error {
	r.out.record(RecordActionClaims, claimsPayload{Claims: claims}, false) // they name the user
	r.out.record(RecordActionSent, struct{}{}, true)
	return r.flush()
}

// execute carries a change out, whoever listens, and makes what came of it
// durable. Should that fail, a resume settles it again.
func (r *run) execute(claims abi.Raw, settle bool) abi.Raw {
	ctx, span := r.opts.Tracer.StartExecute(context.WithoutCancel(r.ctx))
	result := r.people.Execute(ctx, claims, settle)
	var x attempted
	_ = json.Unmarshal(result, &x) // ours
	span.End(x.outcome())
	r.out.record(RecordActionSettled, settledPayload{Result: result}, false)
	if err := r.flush(); err != nil {
		r.opts.Logger.Error("the outcome of a change is not in the log", "run", r.req.RunID, "error", err)
	}
	return result
}

// askApproval asks a person whether a call may be made, with the arguments as
// they will be sent.
func (r *run) askApproval(tool Tool, check ToolCheck, verdict ToolVerdict) (abi.ToolResult, *ending) {
	switch {
	case r.people == nil:
		return refused(nobodyToAsk), nil
	case r.past != nil: // what is posted as history asks nobody and proves nothing
		return refused(notApproved), nil
	case !r.room():
		return refused(noRoom), nil
	case !same(check.Arguments, r.guards.Display(r.ctx, check.Arguments)):
		return refused(notShowable), nil
	}
	message, err := r.guarded(verdict.Message)
	if err != nil {
		return abi.ToolResult{}, r.failed(err)
	}
	prompt, err := r.people.Agreement(tool.Name, check.Arguments, message)
	if err != nil {
		return refused(err.Error()), nil
	}
	return abi.ToolResult{}, r.park(gateVerdict, "", prompt)
}

// same tells whether two JSON values are the same.
func same(a, b abi.Raw) bool {
	x, err1 := strictjson.Canonical(nil, a)
	y, err2 := strictjson.Canonical(nil, b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// approved is the call that a person was asked about, as it was then.
func (r *run) approved(call abi.ToolCall, g *given) (Tool, ToolCheck, *abi.ToolResult, *ending) {
	no := func(reason string) (Tool, ToolCheck, *abi.ToolResult, *ending) {
		result := refused(reason)
		return Tool{}, ToolCheck{}, &result, nil
	}
	switch answer := g.last(); {
	case answer.Outcome == abi.HumanExpired:
		r.judged.Why = WhyPerson
		return no(notInTime)
	case answer.Outcome != abi.HumanAnswered:
		r.judged.Why = WhyPerson
		return no(notApproved)
	}
	tool, args, err := r.tools.Parse(call.Name, call.Arguments)
	if err != nil {
		return no(err.Error())
	}
	return tool, r.check(tool, args), nil, nil
}

// performAsk asks a person what the workflow wants to know.
func (r *run) performAsk(ask *abi.AskHuman) (abi.Event, *ending) {
	if g := r.take(gateAsk); g != nil {
		answer := g.last()
		return abi.Event{Type: abi.EventHuman, Outcome: answer.Outcome, Answer: answer.Value}, nil
	}
	r.past, r.req.Caller = nil, r.req.Caller.forget()
	if r.people == nil || !r.room() {
		return abi.Event{Type: abi.EventHuman, Outcome: abi.HumanUnavailable}, nil
	}
	prompt, err := r.question(ask)
	if err != nil {
		return abi.Event{}, r.failed(err)
	}
	return abi.Event{}, r.park(gateAsk, "", prompt)
}

// question is a question of a plugin's with every text in it guarded.
func (r *run) question(ask *abi.AskHuman) (Prompt, error) {
	shown := *ask
	shown.Options = append([]abi.Option(nil), ask.Options...)
	texts := []*string{&shown.Text, &shown.Placeholder}
	for i := range shown.Options {
		texts = append(texts, &shown.Options[i].Label, &shown.Options[i].Description)
	}
	for _, text := range texts {
		guarded, err := r.guarded(*text)
		if err != nil {
			return Prompt{}, err
		}
		*text = guarded
	}
	for _, o := range ask.Options { // they come back as they are
		for _, mark := range []string{o.ID, o.Value} {
			if guarded, err := r.guarded(mark); err != nil || guarded != mark {
				return Prompt{}, fault.New(fault.Plugin, "ask: an option holds text that may not be shown")
			}
		}
	}
	return r.people.Question(&shown)
}

// guarded is a text of its own as the output guards let people see it: what a
// stream of just this text would show.
func (r *run) guarded(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	var shown strings.Builder
	sink := r.policy.Guards(ctx, GuardSession{Roles: r.req.Principal.Roles, Call: r.stamped, Ask: r.ask, People: r.people != nil,
		Release: func(text string) { shown.WriteString(text) }}).Sink()
	sink.Push(text)
	sink.Finish(ctx)
	return shown.String(), ctx.Err()
}

// room tells whether one more question may wait.
func (r *run) room() bool { return r.deps.Keeper.room(r.req.Principal.UserID) }

// park makes a question durable and leaves the run waiting for its answer.
func (r *run) park(gate, step string, prompt Prompt) *ending {
	i := Interaction{Run: r.req.RunID, ID: r.opts.NewID(), Kind: prompt.Kind, Prompt: prompt.JSON,
		Owner: r.req.Principal.UserID, Expires: r.opts.Now().Add(r.opts.AskTimeout)}
	r.out.record(RecordParked, parkedPayload{ElapsedMS: (r.before + r.opts.Now().Sub(r.began)).Milliseconds(),
		ToolCalls: r.budget.toolCalls, ModelCalls: r.budget.modelCalls, Steps: r.budget.steps, Told: r.budgetTold,
		Asks: r.allAsked()}, true)
	r.out.record(RecordInteractionOpened, openedPayload{ID: i.ID, Kind: i.Kind, Owner: i.Owner, Prompt: i.Prompt,
		Shown: digest(i.Prompt), Expires: i.Expires.UnixMilli(), Gate: gate, Step: step}, gate != gateCalls)
	if err := r.deps.Keeper.announce(r.ctx, r.req.RunID, r.policy.Generation(), i.Expires); err != nil {
		return r.failed(err)
	}
	if err := r.flush(); err != nil {
		return r.failed(err)
	}
	return &ending{parked: &Parked{Interaction: i, Generation: r.policy.Generation(), Info: r.info,
		Position: r.out.journal.position}}
}

// flush makes everything so far durable. Conflict means that somebody else has
// gone on with the run.
func (r *run) flush() error {
	err := r.out.journal.flush(r.ctx, r.deps.Log, r.opts.NewID, false)
	if taken(err) {
		return fault.New(fault.Conflict, "run %s: somebody else goes on with it", r.req.RunID)
	}
	return err
}

// proposalRefused is the result object of a call that is no proposal (3.7).
func proposalRefused(reason string) abi.Raw {
	b := append([]byte(`{"approved":false,"message":`), jsonString(reason)...)
	return append(b, '}')
}
