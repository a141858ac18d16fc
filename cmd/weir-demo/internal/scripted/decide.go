package scripted

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// reply is what the model says next: text, or calls of tools.
type reply struct {
	text  string
	calls []call
}

type call struct{ name, arguments string }

const help = "I can list support tickets (all, open or resolved ones) and show one ticket by its id, " +
	"such as TKT-1001, with its details, its history or its exact description."

// maxTickets bounds how many tickets one question fetches.
const maxTickets = 10

// decide reads the conversation like a model does: the latest question, and
// what tools have answered since.
func decide(req *chatRequest) reply {
	last := -1
	for i, m := range req.Messages {
		if m.Role == "user" {
			last = i
		}
	}
	if last < 0 {
		return reply{text: help}
	}
	t := turn{question: req.Messages[last].Content, since: req.Messages[last+1:], tools: map[string]bool{}}
	for _, tool := range req.Tools {
		t.tools[tool.Function.Name] = true
	}
	return t.next()
}

// turn is one question and what has happened since.
type turn struct {
	question string
	since    []message
	tools    map[string]bool
}

func (t *turn) next() reply {
	results := t.results()
	ids, wanted := ticketIDs(t.question), t.wanted()
	switch names := t.named(); {
	case len(names) > 0:
		return t.use(names, results)
	case len(ids) > 0 && wanted != "":
		return t.change(ids, wanted, results)
	case len(ids) > 0 && len(results) == 0:
		return t.fetch(ids)
	case len(ids) > 0:
		return reply{text: t.describe(results)}
	case t.asks(`\btickets?\b`) && len(results) == 0:
		return t.search()
	case len(results) == 1 && t.wantsHistory():
		if found := foundIDs(results[0]); len(found) > 0 {
			return t.fetch(found)
		}
		return reply{text: list(results[0])}
	case len(results) == 1:
		return reply{text: list(results[0])}
	case len(results) > 1:
		return reply{text: t.describe(results[1:])}
	}
	return reply{text: help}
}

// results are the texts of the tools, in the order of their calls.
func (t *turn) results() []string {
	var texts []string
	for _, m := range t.since {
		if m.Role == "tool" {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

func (t *turn) asks(expr string) bool {
	return regexp.MustCompile(`(?i)` + expr).MatchString(t.question)
}

func (t *turn) wantsHistory() bool { return t.asks(`\b(history|events?|happened)\b`) }

func (t *turn) search() reply {
	if !t.tools["search_tickets"] {
		return reply{text: "I have no tool to search tickets with."}
	}
	arguments := map[string]any{}
	switch {
	case t.asks(`\bopen\b`):
		arguments["status"] = "open"
	case t.asks(`\b(resolved|closed|solved)\b`):
		arguments["status"] = "resolved"
	}
	return reply{calls: []call{{"search_tickets", encode(arguments)}}}
}

func (t *turn) fetch(ids []string) reply {
	if !t.tools["get_ticket"] {
		return reply{text: "I have no tool to read a ticket with."}
	}
	var calls []call
	for _, id := range ids[:min(len(ids), maxTickets)] {
		calls = append(calls, call{"get_ticket", encode(map[string]any{"ticket_id": id})})
	}
	return reply{calls: calls}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("scripted: " + err.Error()) // strings always marshal
	}
	return string(b)
}

// ticketIDs are the distinct ids of a question, upper-cased as ids are.
func ticketIDs(text string) []string {
	var ids []string
	for _, id := range regexp.MustCompile(`(?i)\bTKT-[A-Z0-9][A-Z0-9_-]*`).FindAllString(text, -1) {
		if id = strings.ToUpper(id); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// ticket and the rest are the tool results as a reader finds them.
type ticket struct {
	ID           string  `json:"id"`
	Subject      string  `json:"subject"`
	Status       string  `json:"status"`
	Priority     string  `json:"priority"`
	Description  string  `json:"description"`
	CustomerName string  `json:"customer_name"`
	Order        *string `json:"order_reference"`
	AssignedTo   *string `json:"assigned_to"`
	CreatedAt    string  `json:"created_at"`
}

func foundIDs(result string) []string {
	var r struct{ Tickets []ticket }
	if json.Unmarshal([]byte(result), &r) != nil {
		return nil
	}
	var ids []string
	for _, t := range r.Tickets {
		ids = append(ids, t.ID)
	}
	return ids
}

func list(result string) string {
	var r struct {
		Count   int `json:"count"`
		Filters struct {
			Status *string `json:"status"`
		} `json:"filters"`
		Tickets []ticket `json:"tickets"`
	}
	if json.Unmarshal([]byte(result), &r) != nil {
		return failed(result)
	}
	kind := ""
	if r.Filters.Status != nil {
		kind = *r.Filters.Status + " "
	}
	if r.Count == 0 {
		return fmt.Sprintf("There are no %stickets.", kind)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "There are %d %stickets:\n", r.Count, kind)
	for _, t := range r.Tickets {
		fmt.Fprintf(&b, "- %s: %s (%s, %s priority, %s)\n", t.ID, t.Subject, t.Status, t.Priority, t.CustomerName)
	}
	return strings.TrimRight(b.String(), "\n")
}

func failed(result string) string {
	return "I could not look that up: " + strings.TrimPrefix(result, "Error: ")
}

func (t *turn) describe(results []string) string {
	var parts []string
	for _, result := range results {
		parts = append(parts, t.describeOne(result))
	}
	return strings.Join(parts, "\n\n")
}

func (t *turn) describeOne(result string) string {
	var r struct {
		Ticket  *ticket `json:"ticket"`
		History []struct {
			OccurredAt string `json:"occurred_at"`
			EventType  string `json:"event_type"`
			Author     string `json:"author"`
			Summary    string `json:"summary"`
		} `json:"history"`
	}
	if json.Unmarshal([]byte(result), &r) != nil || r.Ticket == nil {
		return failed(result)
	}
	var b strings.Builder
	if t.asks(`\b(quote|exact(ly)?|verbatim)\b`) {
		fmt.Fprintf(&b, "The description of %s is: %s", r.Ticket.ID, r.Ticket.Description)
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s\nStatus: %s, priority: %s\nCustomer: %s, order: %s, assigned to: %s\nOpened: %s\n%s",
		r.Ticket.ID, r.Ticket.Subject, r.Ticket.Status, r.Ticket.Priority, r.Ticket.CustomerName,
		orNone(r.Ticket.Order), orNone(r.Ticket.AssignedTo), r.Ticket.CreatedAt, r.Ticket.Description)
	if !t.wantsHistory() {
		return b.String()
	}
	fmt.Fprintf(&b, "\nHistory, newest first (%d):", len(r.History))
	for _, e := range r.History {
		fmt.Fprintf(&b, "\n- %s, %s by %s: %s", e.OccurredAt, e.EventType, e.Author, e.Summary)
	}
	return b.String()
}

func orNone(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}
