package host

import (
	"context"
	"encoding/json"

	"weir/abi"
	"weir/host/approval"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/telemetry"
)

// people is what a person may authorise, as the engine asks for it.
type people struct {
	catalog  *approval.Catalog
	executor *approval.Executor
	declared []run.Tool
}

func newPeople(catalog *approval.Catalog, executor *approval.Executor) people {
	p := people{catalog: catalog, executor: executor}
	for _, t := range catalog.Tools() {
		p.declared = append(p.declared, run.Tool{Name: t.Name, StepName: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return p
}

func (p people) Declared() []run.Tool { return p.declared }

func (p people) Propose(name string, arguments abi.Raw) (run.Proposal, error) {
	found, err := p.catalog.Propose(name, arguments)
	if err != nil {
		return nil, err
	}
	return proposal{found}, nil
}

func (p people) Question(ask *abi.AskHuman) (run.Prompt, error) {
	return prompt(approval.Question(ask))
}

func (p people) Agreement(tool string, arguments abi.Raw, message string) (run.Prompt, error) {
	return prompt(approval.CallQuestion(tool, arguments, message))
}

func prompt(p *approval.Prompt, err error) (run.Prompt, error) {
	if err != nil {
		return run.Prompt{}, err
	}
	return run.Prompt{Kind: string(p.Kind), JSON: p.AppendJSON(nil)}, nil
}

func (p people) Execute(ctx context.Context, claims abi.Raw, settle bool) abi.Raw {
	if settle {
		return approval.Result(claims, p.executor.Settle(ctx, claims))
	}
	return approval.Result(claims, p.executor.Execute(ctx, claims))
}

// proposal is a proposed change, as the engine takes it through its questions.
type proposal struct{ *approval.Proposal }

func (p proposal) WithSummary(guarded string) run.Proposal {
	return proposal{p.Proposal.WithSummary(guarded)}
}

func (p proposal) Next(who run.Authority, answers []abi.Raw) run.ProposalStep {
	read := make([]approval.Answer, len(answers))
	for i, raw := range answers {
		if json.Unmarshal(raw, &read[i]) != nil {
			read[i] = approval.Answer{Outcome: approval.Cancelled}
		}
	}
	step := p.Proposal.Next(approval.Authority(who), read)
	next := run.ProposalStep{Result: step.Result, Claims: step.Claims, Outcome: step.Outcome}
	if step.Prompt != nil {
		next.Prompt = &run.Prompt{Kind: string(step.Prompt.Kind), JSON: step.Prompt.AppendJSON(nil)}
	}
	return next
}

// contract is the engine and the keeper as the stream contract calls them.
type contract struct {
	keeper *run.Keeper
	tracer *telemetry.Tracer
}

func (c contract) Run(ctx context.Context, req run.Request, out run.Observer, over func()) {
	c.keeper.Run(ctx, req, out, over)
}

func (c contract) Follow(ctx context.Context, user, execution, after string) (func(context.Context, run.Follower), error) {
	return c.keeper.Follow(ctx, user, execution, after)
}

// Respond reads a person's answer before it looks for the question, as section
// 3.2 of the contract has it.
func (c contract) Respond(ctx context.Context, user, execution, interaction string, body []byte) error {
	response, err := approval.DecodeResponse(body)
	if err != nil {
		return err
	}
	err = c.keeper.Answer(ctx, user, execution, interaction, func(kind string, shown abi.Raw) (abi.Raw, error) {
		if kind == run.KindCalls { // those are for the caller that performs them
			return nil, fault.New(fault.NotFound, "no pending interaction with that id")
		}
		p, err := approval.ParsePrompt(shown)
		if err != nil {
			return nil, fault.New(fault.Internal, "the prompt in the log: %w", err)
		}
		answer, err := p.Accept(response)
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	})
	c.tracer.Responded(ctx, execution, interaction, responded(err))
	return err
}

// responded is what became of an answer, as section 9 calls it.
func responded(err error) string {
	switch kind := fault.Of(err); {
	case err == nil:
		return "accepted"
	case kind == fault.NotFound:
		return "not_found"
	case kind == fault.Denied:
		return "not_owner"
	case kind == fault.Gone:
		return "gone"
	case kind == fault.Invalid:
		return "not_offered"
	}
	return "unavailable"
}
