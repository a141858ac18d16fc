package approval

import (
	"slices"
	"time"
)

// Action is one declared change, [actions.<tool>] of agent.toml with every
// default filled in.
type Action struct {
	// Tool is the name by which a model proposes the change: letters, digits, _
	// and -, at most 64.
	Tool string
	// Name is the action claim that the executing server knows, for instance
	// set_ticket_priority.
	Name string
	// Description is what the model reads about the tool. It has to say that a
	// person decides.
	Description string
	// Arguments names the tool's arguments.
	Arguments Arguments
	// Hints are what the model reads about each argument; empty says nothing.
	Hints Arguments
	// Choices are what the resource can be set to, in the order in which a
	// person sees them.
	Choices []string
	// MaxSummary and MaxNote bound these texts in characters.
	MaxSummary, MaxNote int
	// Rationale is RationaleRequired or RationaleNone.
	Rationale string
	// TTL is how long a token may be used, MinTTL to MaxTTL.
	TTL time.Duration
	// Texts are what a person reads.
	Texts Texts
}

// Whether a person has to give a reason.
const (
	RationaleRequired = "required" // for any change
	RationaleNone     = "none"     // never: the claim is null, and the server may refuse it
)

// Bounds of a token's life (4.3).
const (
	MinTTL = 60 * time.Second
	MaxTTL = 1800 * time.Second
)

// Arguments has one text for each argument of the tool.
type Arguments struct {
	Resource  string // what is changed; signed
	Current   string // its state as the model read it; signed as what was shown
	Requested string // what the model proposes
	Summary   string // shown, not signed
	Note      string // shown and signed; no name: the tool has no such argument
}

// Texts are templates. {resource}, {current}, {requested}, {summary}, {note} and
// {choice} stand for values, each where it is known; a line that names {note}
// is left out when there is none. A value is never read as a template.
type Texts struct {
	Question          []string // lines of the first prompt
	Keep              string   // label of the option that changes nothing
	KeepDescription   string
	Change            string // label of the other choices
	ChangeDescription string
	Cancel            string // label of the last option
	CancelDescription string
	Reason            []string // lines of the second prompt
	Placeholder       string   // of its input
	Kept              string   // to the model: the person kept the current state
	Unrecognised      string   // to the model: an answer that is no choice
}

func (a Action) clone() Action {
	a.Choices = slices.Clone(a.Choices)
	a.Texts.Question = slices.Clone(a.Texts.Question)
	a.Texts.Reason = slices.Clone(a.Texts.Reason)
	return a
}

// choicePrompt is the first question (3.4): every choice in order, then cancel.
func (p *Proposal) choicePrompt() *Prompt {
	t := &p.action.Texts
	q := &Prompt{Kind: KindRadio, Text: p.lines(t.Question)}
	for _, choice := range p.action.Choices {
		o := Option{ID: choice, Value: choice, Label: p.fill(t.Change, choice), Description: p.fill(t.ChangeDescription, choice)}
		if choice == p.current {
			o.Label, o.Description = p.fill(t.Keep, choice), p.fill(t.KeepDescription, choice)
		}
		q.Options = append(q.Options, o)
	}
	q.Options = append(q.Options, Option{ID: CancelID, Value: CancelValue, Label: t.Cancel, Description: t.CancelDescription})
	return q
}

// reasonPrompt is the second question.
func (p *Proposal) reasonPrompt(choice string) *Prompt {
	t := &p.action.Texts
	return &Prompt{Kind: KindText, Text: p.linesWith(t.Reason, choice), Placeholder: p.fill(t.Placeholder, choice)}
}
