// Package tickets is the demo's support desk: a real MCP server over streamable
// HTTP with two read-only tools over a handful of tickets, and beside it the
// route that carries out a change which a person approved. The tools, their
// results and their error texts are those of section 5.2 of the agent-service
// contract, the tickets those of 5.7, the route and its policy those of 4.4,
// 4.5 and 5.8. The tickets live in an SQLite database, in a file or in memory.
package tickets

import "time"

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

// at writes a time of the table, which is given to the minute.
func at(minute string) string {
	t, err := time.Parse("2006-01-02T15:04Z", minute)
	if err != nil {
		panic("tickets: " + err.Error()) // the table below is wrong
	}
	return t.Format(time.RFC3339)
}
