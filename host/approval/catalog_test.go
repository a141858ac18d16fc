package approval_test

import (
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/approval"
	"weir/host/fault"
)

// 5.6: the schema that the model gets.
func TestSchema(t *testing.T) {
	c := catalogOf(t, func(a *approval.Action) { a.Hints = approval.Arguments{Resource: "Exact \"id\"."} })
	tools := c.Tools()
	if len(tools) != 1 || tools[0].Name != tool || !c.Has(tool) || c.Has("get_ticket") {
		t.Fatalf("%+v", tools)
	}
	const enum = `{"type":"string","enum":["low","medium","high","urgent"]}`
	wantText(t, "schema", string(tools[0].Schema), `{"type":"object","properties":{"ticket_id":{"type":"string","description":"Exact \"id\".","minLength":1},`+
		`"current_priority":`+enum+`,"requested_priority":`+enum+`,"summary":{"type":"string","minLength":1,"maxLength":1500},`+
		`"note":{"type":["string","null"],"maxLength":4000}},"required":["ticket_id","current_priority","requested_priority","summary"],"additionalProperties":false}`)
	// 5.6: what the description must tell.
	contains(t, "description", tools[0].Description, "approval of a person", "get_ticket", "cannot approve for the user", "Never say", "committed")
}

// An action that has no note offers none and signs none.
func TestWithoutNote(t *testing.T) {
	c := catalogOf(t, func(a *approval.Action) {
		a.Arguments.Note = ""
		a.Texts.Question = []string{"{resource} is {current}: {summary}"}
		a.Texts.Reason = []string{"{resource} to {choice}"}
	})
	if strings.Contains(string(c.Tools()[0].Schema), "note") {
		t.Error("the schema has a note")
	}
	p := escalation(t, c, "")
	wantText(t, "prompt", p.Next(rep(), nil).Prompt.Text, "TKT-1001 is medium: Delayed delivery, asked twice.")
	contains(t, "claims", string(p.Next(rep(), answered("low", "x")).Claims), `"payload":{}`)
	if _, err := c.Propose(tool, abi.Raw(`{"note":"x"}`)); err == nil || err.Error() != `unknown argument "note"` {
		t.Errorf("a note was proposed: %v", err)
	}
}

// A catalog never changes, whatever becomes of what it was made of.
func TestCatalogKeepsItsOwnCopy(t *testing.T) {
	a := ticketAction(t)
	c, err := approval.New([]approval.Action{a}, approval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := promptJSON(escalation(t, c, "n").Next(rep(), nil).Prompt)
	a.Choices[0], a.Texts.Question[0], a.Texts.Reason[0] = "x", "x", "x"
	wantText(t, "prompt", promptJSON(escalation(t, c, "n").Next(rep(), nil).Prompt), before)
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*approval.Action)
		want   string
	}{
		{"tool", func(a *approval.Action) { a.Tool = "a b" }, "tool: expected a name"},
		{"action", func(a *approval.Action) { a.Name = "" }, "action: expected a name"},
		{"description", func(a *approval.Action) { a.Description = " " }, "description: expected text"},
		{"short life", func(a *approval.Action) { a.TTL = 59 * time.Second }, "token lifetime must be between 60 and 1800 seconds"},
		{"long life", func(a *approval.Action) { a.TTL = 1801 * time.Second }, "token lifetime must be between 60 and 1800 seconds"},
		{"rationale", func(a *approval.Action) { a.Rationale = "" }, `rationale: expected "required" or "none"`},
		{"summary", func(a *approval.Action) { a.MaxSummary = 0 }, "max_summary: expected 1 to 4096"},
		{"note", func(a *approval.Action) { a.MaxNote = 4097 }, "max_note: expected 1 to 4096"},
		{"argument", func(a *approval.Action) { a.Arguments.Summary = "the summary" }, "arguments: expected a name"},
		{"argument twice", func(a *approval.Action) { a.Arguments.Summary = "note" }, `got "note" again`},
		{"reserved argument", func(a *approval.Action) { a.Arguments.Note = "Approval_Token" }, `the name "Approval_Token" is reserved`},
		{"one choice", func(a *approval.Action) { a.Choices = []string{"a"} }, "choices: expected 2 to 63, got 1"},
		{"choice twice", func(a *approval.Action) { a.Choices = []string{"a", "b", "a"} }, `got "a" again`},
		{"blank choice", func(a *approval.Action) { a.Choices = []string{"a", " "} }, "entry 2 is none"},
		{"choice with space", func(a *approval.Action) { a.Choices = []string{"a ", "b"} }, "entry 1 is none"},
		{"invisible choice", func(a *approval.Action) { a.Choices = []string{"a\u200b", "a"} }, "entry 1 is none"},
		{"a choice that cancels", func(a *approval.Action) { a.Choices = []string{"a", "cancel"} }, "cancel means that the person cancels"},
		{"another", func(a *approval.Action) { a.Choices = []string{"__CANCEL__", "a"} }, "__CANCEL__ means that the person cancels"},
		{"no question", func(a *approval.Action) { a.Texts.Question = nil }, "texts: question: expected {resource} in it"},
		{"a question without the note", func(a *approval.Action) { a.Texts.Question = []string{"{resource} {current}"} }, "texts: question: expected {note} in it: a person must see what is signed"},
		{"a reason without the choice", func(a *approval.Action) { a.Texts.Reason = []string{"{resource} {note}"} }, "texts: reason: expected {choice} in it"},
		{"an unknown slot", func(a *approval.Action) { a.Texts.Kept = "{actor}" }, "texts: kept: {actor} has no value here"},
		{"a choice before there is one", func(a *approval.Action) { a.Texts.Unrecognised = "{choice}" }, "texts: unrecognised: {choice} has no value here"},
		{"options that look the same", func(a *approval.Action) { a.Texts.Change = "Change" }, "texts: change: expected {choice} in it"},
		{"no way out", func(a *approval.Action) { a.Texts.Cancel = "" }, "texts: cancel: expected text"},
		{"an option too long", func(a *approval.Action) { a.Texts.ChangeDescription = strings.Repeat("x", 2048) }, "texts: question: option 2: its texts: expected at most 2048 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := ticketAction(t)
			tt.change(&a)
			_, err := approval.New([]approval.Action{a}, approval.Options{})
			if err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), `action "`) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	a := ticketAction(t)
	if _, err := approval.New([]approval.Action{a, a}, approval.Options{}); err == nil || !strings.Contains(err.Error(), "declared twice") {
		t.Errorf("twice: %v", err)
	}
	if _, err := approval.New([]approval.Action{a}, approval.Options{Taken: []string{"get_ticket", tool}}); err == nil || !strings.Contains(err.Error(), "another tool has this name") {
		t.Errorf("a name that is taken: %v", err)
	}
	if c, err := approval.New(nil, approval.Options{}); err != nil || len(c.Tools()) != 0 {
		t.Errorf("a read-only agent: %v", err)
	}
}
