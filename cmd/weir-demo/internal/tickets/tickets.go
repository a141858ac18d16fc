// Package tickets is the demo's support desk: a real MCP server over streamable
// HTTP with two read-only tools over a handful of tickets held in memory. The
// tools, their results and their error texts are those of section 5.2 of the
// agent-service contract, the tickets those of 5.7.
package tickets

import (
	"slices"
	"strings"
	"time"
)

// Ticket is one row, in the order of get_ticket's result.
type Ticket struct {
	ID             string  `json:"id"`
	Subject        string  `json:"subject"`
	Status         string  `json:"status"`   // open or resolved
	Priority       string  `json:"priority"` // low, medium, high or urgent
	Description    string  `json:"description"`
	CustomerName   string  `json:"customer_name"`
	OrderReference *string `json:"order_reference"`
	AssignedTo     *string `json:"assigned_to"`
	CreatedAt      string  `json:"created_at"` // RFC 3339, UTC, with Z
	UpdatedAt      string  `json:"updated_at"`
}

// Event is one line of a ticket's history.
type Event struct {
	ID         string `json:"id"`
	TicketID   string `json:"ticket_id"`
	OccurredAt string `json:"occurred_at"`
	EventType  string `json:"event_type"`
	Author     string `json:"author"`
	Summary    string `json:"summary"`
}

// Bounds of search_tickets' limit.
const (
	defaultLimit = 50
	minLimit     = 1
	maxLimit     = 100
)

type listed struct {
	ID           string `json:"id"`
	Subject      string `json:"subject"`
	Status       string `json:"status"`
	Priority     string `json:"priority"`
	CustomerName string `json:"customer_name"`
	CreatedAt    string `json:"created_at"`
}

type filters struct {
	Status *string `json:"status"`
	Limit  int64   `json:"limit"`
}

type searchResult struct {
	Count   int      `json:"count"`
	Filters filters  `json:"filters"`
	Tickets []listed `json:"tickets"`
}

type getResult struct {
	Ticket       Ticket  `json:"ticket"`
	HistoryCount int     `json:"history_count"`
	History      []Event `json:"history"`
}

// desk holds the data, ordered newest first, and is never written to.
type desk struct {
	tickets []Ticket
	events  []Event
}

func newDesk() *desk {
	d := &desk{tickets: allTickets(), events: allEvents()}
	slices.SortStableFunc(d.tickets, func(a, b Ticket) int { return strings.Compare(b.CreatedAt, a.CreatedAt) })
	slices.SortStableFunc(d.events, func(a, b Event) int { return strings.Compare(b.OccurredAt, a.OccurredAt) })
	return d
}

// search lists tickets, newest first. A blank status is no filter.
func (d *desk) search(status *string, limit *int64) searchResult {
	r := searchResult{Filters: filters{Limit: defaultLimit}, Tickets: []listed{}}
	if limit != nil {
		r.Filters.Limit = min(max(*limit, minLimit), maxLimit)
	}
	if status != nil && strings.TrimSpace(*status) != "" {
		trimmed := strings.TrimSpace(*status)
		r.Filters.Status = &trimmed
	}
	for _, t := range d.tickets {
		if int64(len(r.Tickets)) == r.Filters.Limit {
			break
		}
		if r.Filters.Status == nil || strings.EqualFold(t.Status, *r.Filters.Status) {
			r.Tickets = append(r.Tickets, listed{t.ID, t.Subject, t.Status, t.Priority, t.CustomerName, t.CreatedAt})
		}
	}
	r.Count = len(r.Tickets)
	return r
}

// get finds one ticket by its exact id, with its history, newest first.
func (d *desk) get(id string) (getResult, bool) {
	i := slices.IndexFunc(d.tickets, func(t Ticket) bool { return t.ID == id })
	if i < 0 {
		return getResult{}, false
	}
	r := getResult{Ticket: d.tickets[i], History: []Event{}}
	for _, e := range d.events {
		if e.TicketID == id {
			r.History = append(r.History, e)
		}
	}
	r.HistoryCount = len(r.History)
	return r, true
}

// at writes a time of the table, which is given to the minute.
func at(minute string) string {
	t, err := time.Parse("2006-01-02T15:04Z", minute)
	if err != nil {
		panic("tickets: " + err.Error()) // the table below is wrong
	}
	return t.Format(time.RFC3339)
}
