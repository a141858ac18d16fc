package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/approval"
	"weir/host/config"
)

const (
	tool   = "ticket_priority_change"
	secret = "a-test-secret-of-at-least-24-characters"
)

// ticketAction is the action of the shipped agent.toml.
func ticketAction(t testing.TB) approval.Action {
	t.Helper()
	cfg, err := config.Load(config.Source{Path: "../../agent.toml", Keyless: true})
	if err != nil {
		t.Fatal(err)
	}
	a := cfg.Actions[tool]
	return approval.Action{Tool: tool, Name: a.Action, Description: a.Description, Arguments: approval.Arguments(a.Arguments),
		Hints: approval.Arguments(a.Hints), Choices: a.Choices, MaxSummary: a.MaxSummary, MaxNote: a.MaxNote,
		Rationale: a.Rationale, TTL: a.TokenTTL, Texts: approval.Texts(a.Texts)}
}

func catalogOf(t testing.TB, change ...func(*approval.Action)) *approval.Catalog {
	t.Helper()
	a := ticketAction(t)
	for _, f := range change {
		f(&a)
	}
	c, err := approval.New([]approval.Action{a}, approval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// escalation proposes medium → high for TKT-1001; an empty note is left out.
func escalation(t testing.TB, c *approval.Catalog, note string) *approval.Proposal {
	t.Helper()
	args := map[string]any{"ticket_id": " TKT-1001 ", "current_priority": "medium", "requested_priority": "high",
		"summary": "Delayed delivery, asked twice.\n"}
	if note != "" {
		args["note"] = note
	}
	p, err := c.Propose(tool, encode(t, args))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encode(t testing.TB, v any) abi.Raw {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rep is the representative of the contract's vectors: now is 1000 seconds, so
// tokens of 600 seconds expire at 1600.
func rep() approval.Authority {
	return approval.Authority{Actor: "support-rep-1", RequestID: "11111111-1111-4111-8111-111111111111", Gateway: true,
		Nonce: "22222222-2222-4222-8222-222222222222", Now: time.Unix(1000, 0)}
}

func answered(values ...string) []approval.Answer {
	var list []approval.Answer
	for _, v := range values {
		list = append(list, approval.Answer{Outcome: approval.Answered, ID: v, Value: v})
	}
	return list
}

// claimsOf are those of an approved change to high.
func claimsOf(t testing.TB, note string) abi.Raw {
	t.Helper()
	step := escalation(t, catalogOf(t), note).Next(rep(), answered("high", "Customer has followed up twice."))
	if step.Claims == nil {
		t.Fatalf("no claims: %s", step.Result)
	}
	return step.Claims
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in %s", what, part, text)
		}
	}
}
