package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"weir/abi"
	"weir/host/fault"
)

// desk is people who may authorise a change, and what was executed for them.
type desk struct {
	mu       sync.Mutex
	executed []string // claims, or "settle " and claims
	hold     chan struct{}
	panics   bool
}

func (d *desk) Declared() []Tool { return []Tool{{Name: "change", StepName: "change"}} }

func (d *desk) Propose(_ string, arguments abi.Raw) (Proposal, error) {
	if d.panics {
		panic("a bug")
	}
	var p change
	if err := json.Unmarshal(arguments, &p); err != nil {
		return nil, fault.Coded(fault.Invalid, CodeProposal, "this is no proposal")
	}
	return p, nil
}

func (d *desk) Question(ask *abi.AskHuman) (Prompt, error) {
	return Prompt{Kind: ask.Kind, JSON: jsonString(ask.Text)}, nil
}

func (d *desk) Agreement(tool string, arguments abi.Raw, message string) (Prompt, error) {
	return Prompt{Kind: abi.AskBinaryChoice, JSON: jsonString(message + " " + tool + " " + string(arguments))}, nil
}

func (d *desk) Execute(_ context.Context, claims abi.Raw, settle bool) abi.Raw {
	text := string(claims)
	if settle {
		text = "settle " + text
	}
	d.mu.Lock()
	d.executed = append(d.executed, text)
	d.mu.Unlock()
	if d.hold != nil {
		<-d.hold
	}
	return abi.Raw(`{"approved":true,"committed":true}`)
}

// done returns what was executed so far.
func (d *desk) done() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.executed...)
}

// change is a proposal that asks two questions.
type change struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (c change) Summary() string                     { return c.Why }
func (c change) WithSummary(guarded string) Proposal { c.Why = guarded; return c }
func (c change) Signed() []string                    { return []string{c.What} }
func (c change) NotApplied(message string) abi.Raw {
	return abi.Raw(`{"approved":false,"message":` + string(jsonString(message)) + `}`)
}

func (c change) Next(who Authority, answers []abi.Raw) ProposalStep {
	values := make([]string, len(answers))
	for i, raw := range answers {
		var a answer
		_ = json.Unmarshal(raw, &a)
		if a.Outcome != abi.HumanAnswered {
			return ProposalStep{Result: c.NotApplied("not " + a.Outcome)}
		}
		values[i] = a.Value
	}
	switch len(values) {
	case 0:
		return ProposalStep{Prompt: &Prompt{Kind: abi.AskRadio, JSON: jsonString(c.What + "? " + c.Why)}}
	case 1:
		return ProposalStep{Prompt: &Prompt{Kind: abi.AskText, JSON: jsonString("why " + values[0] + "?")}}
	}
	return ProposalStep{Claims: abi.Raw(fmt.Sprintf(`{"actor":%q,"request":%q,"answers":%q}`, who.Actor, who.RequestID, strings.Join(values, "/")))}
}

// accept takes every answer of the form {"outcome":…,"value":…}.
func accept(outcome, value string) func(string, abi.Raw) (abi.Raw, error) {
	return func(string, abi.Raw) (abi.Raw, error) {
		return abi.Raw(fmt.Sprintf(`{"outcome":%q,"value":%q}`, outcome, value)), nil
	}
}
