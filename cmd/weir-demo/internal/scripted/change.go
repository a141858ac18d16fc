package scripted

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// changeTool is how a change is proposed (5.6). A person decides about it.
const changeTool = "ticket_priority_change"

// wanted is the priority that the question asks to set, the last one that it
// names: "from medium to high" means high.
func (t *turn) wanted() string {
	expr := `(?is)\b(?:raise|lower|set|change|move|escalate|increase|reduce|put|make)\b.*\b(low|medium|high|urgent)\b`
	if found := regexp.MustCompile(expr).FindStringSubmatch(t.question); found != nil {
		return strings.ToLower(found[1])
	}
	return ""
}

// change reads the ticket, proposes the change with what the record says, and
// reports what came of it.
func (t *turn) change(ids []string, wanted string, results []string) reply {
	switch {
	case !t.tools[changeTool]:
		return reply{text: "I cannot change tickets, I can only read them. Nothing was changed."}
	case len(ids) > 1:
		return reply{text: "I can propose one change at a time. Please ask for one of " + strings.Join(ids, ", ") + "."}
	case len(results) == 0:
		return t.fetch(ids)
	case len(results) == 1:
		return propose(results[0], wanted)
	}
	return reply{text: report(ids[0], results[len(results)-1])}
}

// propose fills in the tool's arguments. The current priority is the record's,
// whatever the question says about it.
func propose(result, wanted string) reply {
	var r struct {
		Ticket *ticket `json:"ticket"`
	}
	if json.Unmarshal([]byte(result), &r) != nil || r.Ticket == nil {
		return reply{text: failed(result)}
	}
	if r.Ticket.Priority == wanted {
		return reply{text: fmt.Sprintf("%s already has %s priority. Nothing was changed.", r.Ticket.ID, wanted)}
	}
	return reply{calls: []call{{changeTool, encode(map[string]string{
		"ticket_id":          r.Ticket.ID,
		"current_priority":   r.Ticket.Priority,
		"requested_priority": wanted,
		"summary":            fmt.Sprintf("%s (%s). The user asks for %s priority in place of %s.", r.Ticket.Subject, r.Ticket.Status, wanted, r.Ticket.Priority),
		"note":               "Proposed because the user asked for it in the chat.",
	})}}}
}

// outcome is a result object of 3.7. What is missing stays nil: only what was
// said may be reported.
type outcome struct {
	Approved  *bool  `json:"approved"`
	Message   string `json:"message"`
	Committed *bool  `json:"committed"`
	Unknown   bool   `json:"outcome_unknown"`
	Result    struct {
		Previous string `json:"previous_priority"`
		New      string `json:"new_priority"`
		Refused  string `json:"refused"`
		Error    string `json:"error"`
	} `json:"result"`
}

// report says what came of a proposal: a success only where the tool says
// committed, and that nothing happened only where the tool says that.
func report(id, result string) string {
	if reason, ok := strings.CutPrefix(result, "Tool call refused by policy: "); ok {
		return "I could not propose the change: " + reason + ". Nothing was changed."
	}
	var o outcome
	if json.Unmarshal([]byte(result), &o) != nil || o.Approved == nil {
		return unsure(id)
	}
	switch {
	case !*o.Approved && o.Message != "":
		return "The priority of " + id + " was not changed: " + o.Message
	case !*o.Approved:
		return "The priority of " + id + " was not changed."
	case o.Unknown || o.Committed == nil:
		return unsure(id)
	case *o.Committed && o.Result.New != "":
		return fmt.Sprintf("Done: %s had %s priority and has %s priority now, as you approved.", id, o.Result.Previous, o.Result.New)
	case *o.Committed:
		return "The change of " + id + " that you approved has been applied. Please look at the record for its priority."
	}
	return "The change of " + id + " was refused and nothing was applied: " + o.reason()
}

func (o *outcome) reason() string {
	for _, text := range []string{o.Result.Refused, o.Result.Error} {
		if text != "" {
			return text + "."
		}
	}
	return "no reason was given."
}

func unsure(id string) string {
	return "It is not known whether the change of " + id + " was applied. Please look at the record before anything else is done."
}
