// Package gatewaytest has an agent for tests that speaks the agent-service
// contract from a script: the streams that a host would send for the demo's
// conversations, and broken variants of them.
package gatewaytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Variants of [Agent].
const (
	Good      = "good"
	Leaky     = "leaky"     // the credential gets through in a fragment
	LeakyStep = "leakystep" // … and in a tool's displayed result
	Unmasked  = "unmasked"  // personal data in the answer
	Eager     = "eager"     // a tool starts before the input decision
	Lax       = "lax"       // the injection is answered
	Broken    = "broken"    // every run fails
	Torn      = "torn"      // every stream breaks off
	Silent    = "silent"    // no decision events
)

// Agent returns the agent. It calls ask whenever a host would ask its model.
func Agent(variant, key string, ask func()) http.Handler {
	return AgentWith(variant, key, ask, nil)
}

// AgentWith returns an agent with approvals; nil is none.
func AgentWith(variant, key string, ask func(), approvals *Approvals) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/health"):
			_, _ = w.Write([]byte("ready"))
		case r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("x-authenticated-user-id") == "":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"invalid or missing internal API key"}`))
		case strings.HasPrefix(r.URL.Path, "/executions/") && approvals != nil:
			approvals.serve(w, r, variant)
		default:
			serve(w, r, &script{w: w, variant: variant, ask: ask, approvals: approvals, requestID: r.Header.Get("x-request-id"), done: r.Context().Done()})
		}
	})
}

func serve(w http.ResponseWriter, r *http.Request, s *script) {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s.play(body.Messages[len(body.Messages)-1].Content)
}

type script struct {
	w       http.ResponseWriter
	variant string
	ask     func()

	approvals *Approvals // nil: changes are not proposed
	requestID string
	done      <-chan struct{} // the client has left
}

func (s *script) play(question string) {
	if s.variant == Torn {
		_, _ = fmt.Fprint(s.w, "intermediate_data: {\"id\":")
		_ = http.NewResponseController(s.w).Flush() // the client may have left
		panic(http.ErrAbortHandler)
	}
	if s.variant == Broken {
		s.decision("input", `{"outcome":"passed"}`)
		_, _ = fmt.Fprint(s.w, `{"error":"workflow_error","message":"The agent run failed."}`+"\n\n")
		return
	}
	switch {
	case strings.Contains(question, "raise TKT-1001") && s.approvals != nil:
		s.change()
	case strings.Contains(question, "history of ticket TKT-1001"):
		s.run("get_ticket", `{"ticket_id":"TKT-1001"}`, `{"ticket":{}}`, `{"outcome":"passed","masked_entities":{}}`,
			"Status: open, priority: high\nHistory, newest first (4):", "\n- Priority changed from medium to high after a person approved it.")
	case strings.Contains(question, "Ignore"):
		s.refuse()
	case strings.Contains(question, "GR-REGEX"):
		s.regex()
	case strings.Contains(question, "GR-PII"):
		s.pii()
	case strings.Contains(question, "TKT-1005"):
		s.run("get_ticket", `{"ticket_id":"TKT-1005"}`, `{"ticket":{}}`, `{"outcome":"passed","masked_entities":{}}`,
			"TKT-1005 of Sofia Marin, ORD-5477:", " refund of $54.20,", " 2026-09-19T09:15:00Z")
	default:
		s.run("search_tickets", `{ "status" : "open" }`, `{"count":5}`, `{"outcome":"passed","masked_entities":{}}`,
			"TKT-1001 TKT-1002", " TKT-1003\nTKT-1004 TKT-1005 urgent")
	}
}

func (s *script) refuse() {
	if s.variant == Lax {
		s.run("search_tickets", `{}`, `{}`, `{"outcome":"passed"}`, "You are a support assistant")
		return
	}
	s.decision("input", `{"outcome":"blocked","blocked":true,"decision_source":"llm_and_deterministic_block"}`)
	s.text("I'm sorry, I can't respond to that.")
}

func (s *script) regex() {
	notice := "I can't share the rest of that response because it may contain sensitive information."
	result, text := `{"ticket":{"description":"[REDACTED]"}}`, "The description is: "
	if s.variant == Leaky {
		text += "api_key=DEMOSECRET1234567890 "
	}
	if s.variant == LeakyStep {
		result = `{"ticket":{"description":"api_key=DEMOSECRET1234567890"}}`
	}
	s.run("get_ticket", `{"ticket_id":"TKT-GR-REGEX"}`, result, `{"outcome":"blocked","blocked":true,"masked_entities":{}}`, text, notice)
}

func (s *script) pii() {
	text := "Synthetic test contact: <EMAIL_ADDRESS>, phone <PHONE_NUMBER>, IBAN <IBAN_CODE>."
	if s.variant == Unmasked {
		text = "Synthetic test contact: alice.guardrail@example.com"
	}
	s.run("get_ticket", `{"ticket_id":"TKT-GR-PII"}`, `{"ticket":{"description":"<EMAIL_ADDRESS>"}}`,
		`{"outcome":"modified","modified":true,"masked_entities":{"EMAIL_ADDRESS":1,"PHONE_NUMBER":1,"IBAN_CODE":1}}`, text)
}

func (s *script) run(tool, input, output, decided string, texts ...string) {
	if s.variant != Eager {
		s.decision("input", `{"outcome":"passed","decision_source":"llm"}`)
	}
	s.ask()
	s.step("t", "TOOL_START", "tickets_mcp__"+tool, `{"input":`+input+`}`)
	s.step("t", "TOOL_END", "tickets_mcp__"+tool, `{"input":`+input+`,"output":`+output+`}`)
	if s.variant == Eager {
		s.decision("input", `{"outcome":"passed","decision_source":"llm"}`)
	}
	s.ask()
	for _, text := range texts {
		s.text(text)
	}
	s.decision("output", decided)
}

func (s *script) decision(stage, output string) {
	if s.variant != Silent {
		s.step("d-"+stage, "FUNCTION_END", "guardrail_"+stage+"_demo_decision", `{"input":{},"output":`+output+`}`)
	}
}

func (s *script) step(id, kind, name, data string) {
	_, _ = fmt.Fprintf(s.w, "intermediate_data: {\"id\":%q,\"parent_id\":\"w\",\"type\":%q,\"name\":%q,\"payload\":{\"event_type\":%q,\"name\":%q,\"UUID\":%q,\"data\":%s}}\n\n",
		id, kind, name, kind, name, id, data)
}

func (s *script) text(value string) {
	b, err := json.Marshal(map[string]string{"value": value})
	if err != nil {
		panic(err) // a string always marshals
	}
	s.write(fmt.Sprintf("data: %s\n\n", b))
}

// write sends a block at once.
func (s *script) write(block string) {
	_, _ = fmt.Fprint(s.w, block)
	_ = http.NewResponseController(s.w).Flush() // the client may have left
}
