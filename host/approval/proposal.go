package approval

import (
	"time"

	"weir/abi"
)

// Proposal is a change that a model proposed, read once: everything that is
// shown and signed of the model's words comes from here. It does not change.
type Proposal struct {
	action *Action

	resource, current, requested, summary, note string
}

// Tool is the name of the tool that was called.
func (p *Proposal) Tool() string { return p.action.Tool }

// Action is the action claim.
func (p *Proposal) Action() string { return p.action.Name }

// Resource is what would be changed.
func (p *Proposal) Resource() string { return p.resource }

// Note is signed as it is shown: if an output guard would change or cut it, the
// proposal has to be refused ([BadProposal]). Empty when there is none.
func (p *Proposal) Note() string { return p.note }

// Signed returns the model's words that are signed as they are shown: the
// resource and, unless empty, the note. What holds for Note holds for them all.
func (p *Proposal) Signed() []string {
	if p.note == "" {
		return []string{p.resource}
	}
	return []string{p.resource, p.note}
}

// Summary is shown and not signed.
func (p *Proposal) Summary() string { return p.summary }

// WithSummary returns the proposal with the summary as the output guards left
// it. The receiver stays as it is.
func (p *Proposal) WithSummary(guarded string) *Proposal {
	q := *p
	q.summary = guarded
	return &q
}

// Authority is on whose behalf a change would be made. Whoever calls Next again
// after a restart gives the same one, from the log.
type Authority struct {
	Actor     string    // the user id as the gateway sent it, not decoded
	RequestID string    // of the request that began the run
	Gateway   bool      // the gateway gave the request id; one of our own binds nothing
	Nonce     string    // fresh and random for each proposal, a UUID
	Now       time.Time // when the token's life begins
}

// Step is what comes next. Exactly one field is set, and Outcome with Result.
type Step struct {
	Prompt  *Prompt // ask this
	Result  abi.Raw // tell the model this; nothing was changed
	Claims  abi.Raw // execute these: the canonical bytes of 4.3
	Outcome string  // why nothing was changed, as section 9 calls it
}

// Outcomes of a proposal that changes nothing.
const (
	OutcomeNoGateway   = "refused_no_gateway_request"
	OutcomeMintRefused = "mint_refused"
	OutcomeCancelled   = "cancelled"
	OutcomeExpired     = "timed_out"
	OutcomeKept        = "kept"
	OutcomeUnknown     = "refused_unknown_choice"
)

// stop is why a proposal changes nothing: for spans, and for the model.
type stop struct{ outcome, message string }

// Messages of results that change nothing (3.7).
const (
	MessageNoGateway = "Human approval requires an authenticated gateway request. Nothing was changed."
	MessageFull      = "too many interactions are pending. Nothing was changed."
	MessageCancelled = "The user cancelled."
	MessageExpired   = "The approval request expired. Nothing was changed."

	nothingChanged = ". Nothing was changed."
)

// NotApplied is the result of a proposal that came to nothing, for instance
// with MessageFull.
func (p *Proposal) NotApplied(message string) abi.Raw {
	return object(field{"approved", false}, field{"resource_id", p.resource},
		field{"action", p.action.Name}, field{"message", message})
}

// Next says what comes after these answers, which are all that were given so
// far and at most two (3.5). It is a function of its arguments alone: with the
// same ones it says the same, and an answer more never changes what it said
// before that answer. Nobody is asked for what could not be signed.
func (p *Proposal) Next(who Authority, answers []Answer) Step {
	if !who.Gateway {
		return p.stopped(&stop{OutcomeNoGateway, MessageNoGateway})
	}
	if err := p.signable(who); err != nil {
		return p.stopped(&stop{OutcomeMintRefused, err.Error() + nothingChanged})
	}
	if len(answers) == 0 {
		return Step{Prompt: p.choicePrompt()}
	}
	choice, end := p.chosen(answers[0])
	if end != nil {
		return p.stopped(end)
	}
	rationale := ""
	if p.action.Rationale == RationaleRequired {
		if len(answers) == 1 {
			return Step{Prompt: p.reasonPrompt(choice)}
		}
		if rationale, end = given(answers[1]); end != nil {
			return p.stopped(end)
		}
	}
	return Step{Claims: p.claims(who, choice, rationale)}
}

func (p *Proposal) stopped(s *stop) Step {
	return Step{Result: p.NotApplied(s.message), Outcome: s.outcome}
}

// chosen reads the answer to the first prompt: a choice that is a change, or
// what ends the matter.
func (p *Proposal) chosen(a Answer) (choice string, end *stop) {
	value, end := given(a)
	switch {
	case end != nil:
		return "", end
	case value == p.current:
		return "", &stop{OutcomeKept, p.fill(p.action.Texts.Kept, value)}
	case !p.action.offers(value):
		return "", &stop{OutcomeUnknown, p.fill(p.action.Texts.Unrecognised, "")}
	}
	return value, nil
}

// given returns an answer's value, or why there is none. What is no outcome
// that this package knows counts as cancelled.
func given(a Answer) (value string, end *stop) {
	switch {
	case a.Outcome == Expired:
		return "", &stop{OutcomeExpired, MessageExpired}
	case a.Outcome != Answered || a.Value == "":
		return "", &stop{OutcomeCancelled, MessageCancelled}
	}
	return a.Value, nil
}
