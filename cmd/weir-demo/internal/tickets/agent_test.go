package tickets

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"weir/host/approval"
	"weir/host/config"
)

// signed is what the agent's own code signs, with the shipped agent.toml, when
// a person picks high for TKT-1001 and gives a reason.
func signed(t *testing.T, nonce, note string) []byte {
	t.Helper()
	cfg, err := config.Load(config.Source{Path: "../../../../agent.toml", Keyless: true})
	if err != nil {
		t.Fatal(err)
	}
	a := cfg.Actions["ticket_priority_change"]
	catalog, err := approval.New([]approval.Action{{Tool: "ticket_priority_change", Name: a.Action, Description: a.Description,
		Arguments: approval.Arguments(a.Arguments), Hints: approval.Arguments(a.Hints), Choices: a.Choices, MaxSummary: a.MaxSummary,
		MaxNote: a.MaxNote, Rationale: a.Rationale, TTL: a.TokenTTL, Texts: approval.Texts(a.Texts)}}, approval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]string{"ticket_id": "TKT-1001", "current_priority": "medium",
		"requested_priority": "urgent", "summary": "Late.", "note": note})
	if err != nil {
		t.Fatal(err)
	}
	p, err := catalog.Propose("ticket_priority_change", arguments)
	if err != nil {
		t.Fatal(err)
	}
	step := p.Next(approval.Authority{Actor: "Zo%C3%AB", RequestID: requestID, Gateway: true, Nonce: nonce, Now: clock()}, []approval.Answer{
		{Outcome: approval.Answered, ID: "high", Value: "high"},
		{Outcome: approval.Answered, Value: "Kundin hat «zweimal» nachgefragt \u2028 <b>&\x7f."},
	})
	if step.Claims == nil {
		t.Fatalf("nothing is signed: %+v", step)
	}
	return step.Claims
}

// Section 4 between the two programs: what the agent signs the desk accepts,
// once; what the desk answers the agent understands, also when it asks again
// after a crash.
func TestAgentAndDesk(t *testing.T) {
	s, ts := open(t, Options{})
	agent, err := approval.NewExecutor(approval.ExecutorOptions{MCPURL: ts.URL + "/mcp/", APIKey: key, Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	first := signed(t, "n-1", "Zoë’s \"2nd\" follow-up\n日本語 \u2028 \b\x1f</b>")
	if got := agent.Execute(t.Context(), first); !got.Committed || got.Unknown || string(got.Result) !=
		`{"resource_id":"TKT-1001","action":"set_ticket_priority","previous_priority":"medium","new_priority":"high","override":true,`+
			`"policy_version":"tickets-priority-policy/1","note_recorded":true,"rationale_recorded":true}` {
		t.Errorf("executed: %+v %s", got, got.Result)
	}
	if n := count(t, s, "ticket_audit WHERE actor_id = 'Zo%C3%AB' AND rationale LIKE '%«zweimal»%' AND json_extract(payload, '$.note') LIKE '%日本語%'"); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	if got := agent.Execute(t.Context(), first); got.Committed || got.Unknown || string(got.Result) != `{"refused":"this approval has already been used"}` {
		t.Errorf("executed again: %+v %s", got, got.Result)
	}
	if got := agent.Settle(t.Context(), first); !got.Committed || string(got.Result) != `{"settled":true}` {
		t.Errorf("settled: %+v %s", got, got.Result)
	}
	second := signed(t, "n-2", "")
	for name, call := range map[string]approval.Outcome{"executed": agent.Execute(t.Context(), second), "settled": agent.Settle(t.Context(), second)} {
		if call.Committed || call.Unknown || !strings.Contains(string(call.Result), "different authoritative choice") {
			t.Errorf("a change of a ticket that has changed, %s: %+v %s", name, call, call.Result)
		}
	}
	stranger, err := approval.NewExecutor(approval.ExecutorOptions{MCPURL: ts.URL, APIKey: "other", Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	if got := stranger.Execute(t.Context(), signed(t, "n-3", "")); got.Committed || !strings.Contains(string(got.Result), http.StatusText(http.StatusUnauthorized)) {
		t.Errorf("without the key: %+v %s", got, got.Result)
	}
}
