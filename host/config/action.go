package config

import (
	"time"
)

// Whether a person has to give a reason.
const (
	RationaleRequired = "required"
	RationaleNone     = "none"
)

// What becomes of a run that waits for a person when its client leaves.
const (
	DisconnectCancel = "cancel"
	DisconnectPark   = "park"
)

// Action is [actions.<tool>]: a change that a person may authorise. Policy. The
// defaults of every key are those of the support tickets' priority change.
type Action struct {
	// Enabled declares the action. Default false.
	Enabled bool `toml:"enabled"`
	// Action is the name that the executing server knows. Default
	// "set_ticket_priority".
	Action string `toml:"action"`
	// Description is what models read about the tool; it has to say that a
	// person decides.
	Description string `toml:"description"`
	// Choices are what the resource can be set to, in the order in which they
	// are offered. Default low, medium, high, urgent.
	Choices []string `toml:"choices"`
	// Rationale is "required", the default: a person gives a reason for any
	// change; or "none": they are not asked for one, and the server may refuse.
	Rationale string `toml:"rationale"`
	// TokenTTL is how long an approval may be used. Default 600s, 60s to 1800s.
	// Too short and a slow server finds it expired; too long and a stolen one
	// is good for longer.
	TokenTTL time.Duration `toml:"token_ttl"`
	// MaxSummary and MaxNote bound these arguments in characters. Defaults 1500
	// and 4000; 1 to 4096.
	MaxSummary int `toml:"max_summary"`
	MaxNote    int `toml:"max_note"`
	// Arguments names the tool's arguments, Hints is what models read about
	// each.
	Arguments ActionArguments `toml:"arguments"`
	Hints     ActionArguments `toml:"hints"`
	// Texts are what a person reads.
	Texts ActionTexts `toml:"texts"`
}

// ActionArguments is [actions.<tool>.arguments] or [actions.<tool>.hints].
type ActionArguments struct {
	Resource  string `toml:"resource"`  // what is changed; signed
	Current   string `toml:"current"`   // its state, as the model read it; signed
	Requested string `toml:"requested"` // what the model proposes
	Summary   string `toml:"summary"`   // shown to the person
	Note      string `toml:"note"`      // shown and signed; an empty name: no such argument
}

// ActionTexts is [actions.<tool>.texts]: templates in which {resource},
// {current}, {requested}, {summary}, {note} and {choice} stand for values. A
// line that names {note} is left out when there is none.
type ActionTexts struct {
	Question          []string `toml:"question"` // lines of the first prompt
	Keep              string   `toml:"keep"`     // the option that changes nothing
	KeepDescription   string   `toml:"keep_description"`
	Change            string   `toml:"change"` // the others
	ChangeDescription string   `toml:"change_description"`
	Cancel            string   `toml:"cancel"`
	CancelDescription string   `toml:"cancel_description"`
	Reason            []string `toml:"reason"` // lines of the second prompt
	Placeholder       string   `toml:"placeholder"`
	Kept              string   `toml:"kept"`         // to the model
	Unrecognised      string   `toml:"unrecognised"` // to the model
}

// Approvals is [approvals] and what the environment says about asking people.
// Restart.
type Approvals struct {
	// OnDisconnect says what becomes of a run that waits for a person when its
	// client leaves: "cancel", the default, or "park": it waits on.
	OnDisconnect string `toml:"on_disconnect"`
	// MaxPending bounds the questions that are open at once, over all users.
	// Default 1024, at least 1; beyond it nobody is asked and nothing changes.
	MaxPending int `toml:"max_pending"`
	// Timeout is how long a person has for one answer. Default 600s, at least
	// 5s. HITL_INTERACTION_TIMEOUT_SECONDS.
	Timeout time.Duration `toml:"timeout"`
	// Interactive is HITL_ENABLE_INTERACTIVE, default false.
	Interactive bool `toml:"-"`
	// Secret is HITL_APPROVAL_SECRET, at least 24 characters when set.
	Secret Secret `toml:"-"`
}

// preset gives a table that exists many times its defaults before it is read:
// the change of a support ticket's priority, word for word as in the contract's
// sections 3.4, 3.7 and 5.6.
func (a *Action) preset() {
	const note = "Model-supplied note (not verified by a human; will be signed and recorded verbatim if you approve): {note}"
	*a = Action{
		Action: "set_ticket_priority",
		Description: "Proposes a change of one support ticket's priority, which needs the approval of a person and is not made by calling this tool. " +
			"Read the ticket with get_ticket first and pass its current priority exactly as it stands there. " +
			"You cannot approve for the user: they are asked, and they may choose otherwise or refuse. " +
			"Never say that anything was changed unless the result says committed: true.",
		Choices:    []string{"low", "medium", "high", "urgent"},
		Rationale:  RationaleRequired,
		TokenTTL:   600 * time.Second,
		MaxSummary: 1500,
		MaxNote:    4000,
		Arguments: ActionArguments{Resource: "ticket_id", Current: "current_priority",
			Requested: "requested_priority", Summary: "summary", Note: "note"},
		Hints: ActionArguments{
			Resource:  "Exact id of the ticket, such as TKT-1001.",
			Current:   "The ticket's priority as get_ticket returned it.",
			Requested: "The priority that you propose.",
			Summary:   "One or two sentences for the person who decides: what the ticket is about and why the change is proposed.",
			Note:      "A note to record with the change, shown to the person word for word.",
		},
		Texts: ActionTexts{
			Question: []string{"Ticket {resource} is currently '{current}' priority.", "The assistant proposes '{requested}'.",
				"Summary: {summary}", note, "Choose the priority to record. Any change requires a reason."},
			Keep:              "Keep — {choice}",
			KeepDescription:   "No change is applied.",
			Change:            "Change to — {choice}",
			ChangeDescription: "Requires a reason, recorded against your identity.",
			Cancel:            "Cancel",
			CancelDescription: "Change nothing.",
			Reason: []string{"Ticket {resource}: {summary}", "The ticket is currently '{current}' priority. You are changing it to '{choice}'. " +
				"This is recorded in the append-only audit trail against your identity and requires a reason.", note},
			Placeholder:  "Why should this ticket's priority change?",
			Kept:         "The user kept the current priority '{current}'. Nothing was changed.",
			Unrecognised: "The selected priority is not recognised. Nothing was changed.",
		},
	}
}

// policy is the action as it stands in a generation's identity.
func (a *Action) policy() map[string]any {
	return map[string]any{
		"action":       a.Action,
		"description":  a.Description,
		"choices":      list(a.Choices),
		"rationale":    a.Rationale,
		"token_ttl_ms": a.TokenTTL.Milliseconds(),
		"max_summary":  int64(a.MaxSummary),
		"max_note":     int64(a.MaxNote),
		"arguments":    a.Arguments.policy(),
		"hints":        a.Hints.policy(),
		"texts": map[string]any{
			"question":           list(a.Texts.Question),
			"keep":               a.Texts.Keep,
			"keep_description":   a.Texts.KeepDescription,
			"change":             a.Texts.Change,
			"change_description": a.Texts.ChangeDescription,
			"cancel":             a.Texts.Cancel,
			"cancel_description": a.Texts.CancelDescription,
			"reason":             list(a.Texts.Reason),
			"placeholder":        a.Texts.Placeholder,
			"kept":               a.Texts.Kept,
			"unrecognised":       a.Texts.Unrecognised,
		},
	}
}

func (a *ActionArguments) policy() map[string]any {
	return map[string]any{"resource": a.Resource, "current": a.Current, "requested": a.Requested, "summary": a.Summary, "note": a.Note}
}
