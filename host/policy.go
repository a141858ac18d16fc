package host

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"weir/abi"
	"weir/host/guard"
	"weir/host/plugin"
	"weir/host/run"
	"weir/host/telemetry"
)

// policy is one generation at work: everything that a run takes with it. It
// does not change; a change of anything in it is another policy.
type policy struct {
	*draft
	variants []*policy // of the base, in agent.toml's order; current together with it
	named    string    // what its runs are called; empty: there are no variants
	waiting  []string  // keys of the draft's file that wait for a restart
	unpinned []string  // tools that agent.lock does not name
	since    time.Time

	generation *plugin.Generation
	workflow   *plugin.Plugin
	chain      *guard.Chain
	tools      tools
	engine     *run.Engine
	asks       bool // a person can be asked
	parts      []run.Part

	tracer *telemetry.Tracer
	log    *slog.Logger
}

// all are the base and its variants; none of nil.
func (p *policy) all() []*policy {
	if p == nil {
		return nil
	}
	return append([]*policy{p}, p.variants...)
}

// generations are those of all, each once: two variants that do not differ have
// one.
func (p *policy) generations() (list []*plugin.Generation) {
	for _, one := range p.all() {
		if !slices.Contains(list, one.generation) {
			list = append(list, one.generation)
		}
	}
	return list
}

// has tells whether one of all is the generation.
func (p *policy) has(generation string) bool { return p.find(generation) != nil }

func (p *policy) find(generation string) *policy {
	for _, one := range p.all() {
		if one.id == generation {
			return one
		}
	}
	return nil
}

func (p *policy) Generation() string { return p.generation.ID() }
func (p *policy) Workflow() string   { return p.workflow.Name() }

// Parts implements run.Policy.
func (p *policy) Parts() []run.Part { return p.parts }

func (p *policy) Step(ctx context.Context, req *abi.StepRequest) (*abi.StepReply, error) {
	reply, _, err := p.workflow.Step(ctx, req)
	return reply, err
}

func (p *policy) Prompt(plugin, name string) (string, bool) {
	text, ok := p.prompts[plugin][name]
	return text, ok
}

func (p *policy) Guards(ctx context.Context, s run.GuardSession) run.Guards {
	return guards{p.chain.Session(guard.SessionOptions{
		Context:   ctx,
		Roles:     s.Roles,
		Stamp:     func() abi.Call { return s.Call },
		Ask:       s.Ask,
		Release:   s.Release,
		Hold:      p.generation.Acquire,
		Approvals: s.People,
		Observer:  observer{ctx, p},
	})}
}

// observer records the verdicts of one run's guards.
type observer struct {
	ctx    context.Context
	policy *policy
}

// GuardVerdict implements guard.Observer. A verdict's reason is the guest's own
// text and stays out of spans and the log.
func (o observer) GuardVerdict(v guard.Verdict) {
	failure := ""
	if v.Err != nil {
		failure = v.ReasonCode
		o.policy.log.WarnContext(o.ctx, "a guardrail failed", "plugin", v.Guard, "stage", v.Stage, "error", v.Err)
	}
	if v.Verdict == guard.VerdictWouldBlock || v.Verdict == guard.VerdictWouldModify {
		o.policy.log.InfoContext(o.ctx, "a guardrail in monitor mode would have acted", "plugin", v.Guard, "stage", v.Stage,
			"verdict", v.Verdict, "reason_code", v.ReasonCode)
	}
	o.policy.tracer.GuardVerdict(o.ctx, telemetry.GuardVerdict{
		Stage: v.Stage, Name: v.Guard, Digest: v.Digest, Monitor: v.Monitor, Verdict: v.Verdict,
		ReasonCode: v.ReasonCode, Fuel: v.Fuel, Took: v.Took, Failure: failure,
	})
}

// guards gives a guard session the engine's own result types.
type guards struct{ session *guard.Session }

func (g guards) CheckInput(ctx context.Context, turns []abi.Turn) (run.InputVerdict, error) {
	v, err := g.session.CheckInput(ctx, turns)
	return run.InputVerdict(v), err
}

func (g guards) CheckToolCall(ctx context.Context, call run.ToolCheck) (run.ToolVerdict, error) {
	v, err := g.session.CheckToolCall(ctx, guard.ToolCheck(call))
	return run.ToolVerdict(v), err
}

func (g guards) CheckToolResult(ctx context.Context, call run.ToolCheck, result string, failed bool) (run.ToolVerdict, error) {
	v, err := g.session.CheckToolResult(ctx, guard.ToolCheck(call), result, failed)
	return run.ToolVerdict(v), err
}

func (g guards) Display(ctx context.Context, value abi.Raw) abi.Raw {
	return g.session.Display(ctx, value)
}

func (g guards) Sink() run.Sink { return sink{g.session.Sink()} }

type sink struct{ *guard.Sink }

func (s sink) Finish(ctx context.Context) run.OutputVerdict {
	v := s.Sink.Finish(ctx)
	out := run.OutputVerdict{Cut: v.Cut, RawChars: v.RawChars, Decision: v.Decision}
	for _, e := range v.Edits {
		out.Edits = append(out.Edits, run.Edit(e))
	}
	if v.Stop != nil {
		stop := run.Stop(*v.Stop)
		out.Stop = &stop
	}
	return out
}

// closeChains closes the chains of all that have a generation.
func (p *policy) closeChains(ctx context.Context, g *plugin.Generation) error {
	var err error
	for _, one := range p.all() {
		if one.generation == g {
			err = errors.Join(err, one.chain.Close(ctx))
		}
	}
	return err
}

// close frees all that is loaded, and waits for it.
func (p *policy) close(ctx context.Context) error {
	var err error
	for _, g := range p.generations() {
		err = errors.Join(err, p.closeChains(ctx, g), g.Close(ctx))
	}
	return err
}
