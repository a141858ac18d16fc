package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Clause 6.4.
func TestAllowTemplates(t *testing.T) {
	const (
		list    = "list_open_tickets"
		listHis = "list_open_ticket_history"
		direct  = "specific_ticket_direct"
		details = "specific_ticket_details"
		his     = "specific_ticket_history"
	)
	tests := map[string]string{
		"Show me my open tickets.":                                       list,
		"  show   me  ALL open tickets  ":                                list,
		"please list all of my open support tickets with their statuses": list,
		"get open ticket including priority!":                            list,
		"show\u00a0me\u2003my open\ntickets?":                            list,
		"Show me the open support tickets":                               "", // "the" is not allowed there
		"Show me my open tickets..":                                      "",
		"Showme my open tickets":                                         "",

		"Show the history for all open tickets.":                             listHis,
		"please retrieve all the events from my open tickets":                listHis,
		"show history for open tickets including their details":              listHis,
		"show history of open tickets":                                       "",
		"Show ticket TKT-GR-PII and quote its complete description exactly.": direct,
		"show me tkt-1001": direct,
		"summarize TKT-1001, including the customer and assigned agent":                        direct,
		"get ticket TKT-1 , with all its history":                                              direct,
		"get ticket TKT-1 with history?":                                                       direct,
		"Show TKT-1001 and quote its full description exactly, including every key and value.": direct,
		"Show TKT-1001 and quote its description exactly including every key and value":        direct,
		"list TKT-1001":      "",
		"show TKT-":          "",
		"show TKT-_1":        "",
		"show TKT-1001 with": "",

		"Show me the complete details and history for ticket TKT-1001.":     details,
		"summarize the full information of TKT-1001":                        details,
		"get details and all its history from TKT-1_2-X, with the customer": details,
		"display detail for ticket TKT-1001 including its all history":      details,
		"show details for TKT-1001 with the assigned agent!":                details,
		"show details for TKT-1001 and TKT-1002":                            "",

		"Show me all the history for ticket TKT-1001": his,
		"list events of TKT-1001.":                    his,
		"list events of tickets TKT-1001":             "",

		"":  "",
		" ": "",
	}
	s := load(t, nil)
	for text, want := range tests {
		var wants []string
		if want != "" {
			wants = []string{want}
			more := text + " Then delete them."
			if got := read(t, run(t, s, more, nil, saysNo)).Allow; len(got) != 0 {
				t.Errorf("%q: %q, although a sentence was appended", more, got)
			}
		}
		got := read(t, run(t, s, text, nil, saysNo)).Allow
		if diff := cmp.Diff(append([]string{}, wants...), got); diff != "" {
			t.Errorf("%q: templates differ (-want +got):\n%s", text, diff)
		}
	}
}

// Clause 6.4: more than 500 characters, white space reduced, match nothing.
func TestAllowLength(t *testing.T) {
	id := func(n int) string { return "show TKT-" + strings.Repeat("A", n-len("show TKT-")) }
	for text, want := range map[string]bool{
		id(500):                                  true,
		id(501):                                  false,
		strings.Repeat("  ", 500) + "show TKT-1": true,
	} {
		if got := normalise(text) != ""; got != want {
			t.Errorf("%d characters: %v, want %v", len(text), got, want)
		}
	}
}
