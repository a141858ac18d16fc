package scripted

import (
	"encoding/json"
	"strings"
	"testing"
)

const record = `{"ticket":{"id":"TKT-7","subject":"Late parcel","status":"open","priority":"medium","description":"D","customer_name":"C","created_at":"2026-01-01T00:00:00Z"},"history_count":0,"history":[]}`

// 5.6: the record is read first, and what is proposed comes from it.
func TestProposal(t *testing.T) {
	_, url := serve(t, Options{})
	all := []string{"search_tickets", "get_ticket", changeTool}
	for question, want := range map[string]string{
		"Please raise TKT-7 to high":                         "high",
		"Set the priority of tkt-7 to URGENT, please.":       "urgent",
		"Change TKT-7 from urgent to low":                    "low",
		"The customer waits.\nCan you make TKT-7\nhigh now?": "high",
	} {
		text, calls, _, _ := talkWith(t, url, all, user(question))
		if text != "" || len(calls) != 1 || calls[0].Function.Name != "get_ticket" || calls[0].Function.Arguments != `{"ticket_id":"TKT-7"}` {
			t.Fatalf("%s: first %q, %+v", question, text, calls)
		}
		text, calls, finish, _ := talkWith(t, url, all, user(question), result(record))
		if text != "" || finish != "tool_calls" || len(calls) != 1 || calls[0].Function.Name != changeTool {
			t.Fatalf("%s: then %q, %+v, %s", question, text, calls, finish)
		}
		var arguments map[string]string
		if err := json.Unmarshal([]byte(calls[0].Function.Arguments), &arguments); err != nil {
			t.Fatal(err)
		}
		if len(arguments) != 5 || arguments["ticket_id"] != "TKT-7" || arguments["current_priority"] != "medium" || arguments["requested_priority"] != want ||
			!strings.Contains(arguments["summary"], "Late parcel") || arguments["note"] == "" {
			t.Errorf("%s: proposed %v", question, arguments)
		}
	}
}

// What is no proposal: no tool for it, nothing to change, no such ticket, two.
func TestNoProposal(t *testing.T) {
	_, url := serve(t, Options{})
	all := []string{"search_tickets", "get_ticket", changeTool}
	for name, tc := range map[string]struct {
		tools    []string
		messages []map[string]any
		want     string
	}{
		"no tool":   {all[:2], []map[string]any{user("Please raise TKT-7 to high")}, "I cannot change tickets, I can only read them. Nothing was changed."},
		"no ticket": {all, []map[string]any{user("Please raise TKT-8 to high"), result("Error: Ticket 'TKT-8' was not found")}, "I could not look that up: Ticket 'TKT-8' was not found"},
		"the same":  {all, []map[string]any{user("Please set TKT-7 to medium"), result(record)}, "TKT-7 already has medium priority. Nothing was changed."},
		"two":       {all, []map[string]any{user("Raise TKT-7 and TKT-8 to high")}, "I can propose one change at a time. Please ask for one of TKT-7, TKT-8."},
	} {
		if text, calls, _, _ := talkWith(t, url, tc.tools, tc.messages...); text != tc.want || len(calls) != 0 {
			t.Errorf("%s: got %q, %+v", name, text, calls)
		}
	}
	if _, calls, _, _ := talkWith(t, url, all, user("Show TKT-7, is it high?")); len(calls) != 1 || calls[0].Function.Name != "get_ticket" {
		t.Errorf("a question is taken for a change: %+v", calls)
	}
}

// 3.7: what came of it is told as it is; a change only where it was committed.
func TestReport(t *testing.T) {
	_, url := serve(t, Options{})
	notApplied := func(message string) string {
		return `{"approved":false,"resource_id":"TKT-7","action":"set_ticket_priority","message":"` + message + `"}`
	}
	attempted := func(rest string) string {
		return `{"approved":true,"resource_id":"TKT-7","action":"set_ticket_priority","request_id":"r",` + rest + `,"next_step":"x"}`
	}
	const unknown = "It is not known whether the change of TKT-7 was applied. Please look at the record before anything else is done."
	for name, tc := range map[string]struct{ result, want string }{
		"committed": {attempted(`"committed":true,"result":{"resource_id":"TKT-7","previous_priority":"medium","new_priority":"urgent","override":true}`),
			"Done: TKT-7 had medium priority and has urgent priority now, as you approved."},
		"settled":    {attempted(`"committed":true,"result":{"settled":true}`), "The change of TKT-7 that you approved has been applied. Please look at the record for its priority."},
		"refused":    {attempted(`"committed":false,"result":{"refused":"the ticket is already high priority"}`), "The change of TKT-7 was refused and nothing was applied: the ticket is already high priority."},
		"failed":     {attempted(`"committed":false,"result":{"error":"the approved change could not be applied"}`), "The change of TKT-7 was refused and nothing was applied: the approved change could not be applied."},
		"no reason":  {attempted(`"committed":false,"result":null`), "The change of TKT-7 was refused and nothing was applied: no reason was given."},
		"unknown":    {attempted(`"committed":false,"outcome_unknown":true,"result":null`), unknown},
		"incomplete": {`{"approved":true}`, unknown},
		"cancelled":  {notApplied("The user cancelled."), "The priority of TKT-7 was not changed: The user cancelled."},
		"kept":       {notApplied("The user kept the current priority 'medium'. Nothing was changed."), "The priority of TKT-7 was not changed: The user kept the current priority 'medium'. Nothing was changed."},
		"expired":    {notApplied("The approval request expired. Nothing was changed."), "The priority of TKT-7 was not changed: The approval request expired. Nothing was changed."},
		"disabled":   {`{"approved":false,"message":"State-changing actions are disabled in this deployment."}`, "The priority of TKT-7 was not changed: State-changing actions are disabled in this deployment."},
		"silent":     {`{"approved":false}`, "The priority of TKT-7 was not changed."},
		"policy":     {"Tool call refused by policy: unknown argument \"x\"", "I could not propose the change: unknown argument \"x\". Nothing was changed."},
		"error":      {"Error: something", unknown},
		"not JSON":   {"done!", unknown},
	} {
		text, calls, finish, _ := talkWith(t, url, []string{"get_ticket", changeTool}, user("Please raise TKT-7 to high"), result(record), result(tc.result))
		if text != tc.want || len(calls) != 0 || finish != "stop" {
			t.Errorf("%s: got %q, want %q", name, text, tc.want)
		}
	}
}
