package gatewaytest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"weir/cmd/weir-demo/internal/approval/approvaltest"
)

// Variants of [Agent] that are wrong about approvals only.
const (
	Hasty     = "hasty"     // one prompt is enough
	Curious   = "curious"   // a third prompt
	Boastful  = "boastful"  // says committed and has executed nothing
	Refused   = "refused"   // executes with another request id
	Talkative = "talkative" // the token stands in the stream
	Deaf      = "deaf"      // answers are not found
	Personal  = "personal"  // the result names the actor
)

// Approvals makes an [Agent] propose changes: it asks, waits for the answers and
// has the desk execute, with a token that it really signs.
type Approvals struct {
	DeskURL string // the desk's origin
	DeskKey string
	Secret  string

	mu      sync.Mutex
	pending map[string]chan string // by path
}

// open makes a place for an answer; the path is where it must be sent.
func (a *Approvals) open(path string) <-chan string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending == nil {
		a.pending = map[string]chan string{}
	}
	answer := make(chan string, 1)
	a.pending[path] = answer
	return answer
}

// serve is the route for answers (3.2), as far as a well-behaved gateway sees.
func (a *Approvals) serve(w http.ResponseWriter, r *http.Request, variant string) {
	var body struct {
		Response struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Selected struct {
				ID    string `json:"id"`
				Value string `json:"value"`
			} `json:"selected_option"`
		} `json:"response"`
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	a.mu.Lock()
	answer := a.pending[r.URL.Path]
	delete(a.pending, r.URL.Path)
	a.mu.Unlock()
	switch {
	case err != nil || r.Header.Get("x-authenticated-email") != "" || r.Header.Get("x-request-id") == "":
		w.WriteHeader(http.StatusBadRequest)
	case answer == nil || variant == Deaf:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"no such interaction"}`))
	case body.Response.Type == "radio" && body.Response.Selected.ID == body.Response.Selected.Value:
		answer <- body.Response.Selected.Value
		w.WriteHeader(http.StatusNoContent)
	case body.Response.Type == "text":
		answer <- body.Response.Text
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
}

const (
	execution = "0b1f4a52-6c1d-4f0e-9a51-3f7a1f0c9d11"
	proposal  = `{"ticket_id":"TKT-1001","current_priority":"medium","requested_priority":"high","summary":"Late."}`
)

// change is the whole of a proposal, from the call to the answer's text.
func (s *script) change() {
	s.decision("input", `{"outcome":"passed","decision_source":"llm"}`)
	s.ask()
	s.step("t", "TOOL_START", "tickets_mcp__get_ticket", `{"input":{"ticket_id":"TKT-1001"}}`)
	s.step("t", "TOOL_END", "tickets_mcp__get_ticket", `{"input":{"ticket_id":"TKT-1001"},"output":{}}`)
	s.ask()
	s.step("f", "FUNCTION_START", "ticket_priority_change", `{"input":`+proposal+`}`)
	choice := s.prompt("5d0c1b7e-0f39-4ab1-8d5f-7a4f1c2b3d01", `{"input_type":"radio","text":"Ticket TKT-1001 is currently 'medium' priority.\nThe assistant proposes 'high'.\nSummary: Late.\nChoose the priority to record. Any change requires a reason.","required":true,"options":[`+
		`{"id":"medium","label":"Keep — medium","value":"medium","description":"No change is applied."},`+
		`{"id":"high","label":"Change to — high","value":"high","description":"Requires a reason, recorded against your identity."},`+
		`{"id":"cancel","label":"Cancel","value":"__CANCEL__","description":"Change nothing."}]}`)
	reason := "none"
	if s.variant != Hasty {
		reason = s.prompt("5d0c1b7e-0f39-4ab1-8d5f-7a4f1c2b3d02", `{"input_type":"text","text":"Ticket TKT-1001: Late.\nThe ticket is currently 'medium' priority. You are changing it to 'high'.","placeholder":"Why should this ticket's priority change?","required":true}`)
	}
	if s.variant == Curious {
		s.prompt("5d0c1b7e-0f39-4ab1-8d5f-7a4f1c2b3d03", `{"input_type":"text","text":"Are you sure?","placeholder":"","required":true}`)
	}
	s.step("f", "FUNCTION_END", "ticket_priority_change", `{"input":`+proposal+`,"output":`+s.execute(choice, reason)+`}`)
	s.ask()
	s.text("Done: TKT-1001 has high priority now.")
	s.decision("output", `{"outcome":"passed"}`)
}

// prompt asks and waits for the answer.
func (s *script) prompt(id, prompt string) string {
	answer := s.approvals.open("/executions/" + execution + "/interactions/" + id + "/response")
	s.write("event: interaction_required\ndata: {\"execution_id\":\"" + execution + "\",\"interaction_id\":\"" + id + "\",\"prompt\":" + prompt + "}\n\n")
	select {
	case text := <-answer:
		return text
	case <-s.done:
		panic(http.ErrAbortHandler) // the client has left, and with it the run
	}
}

// execute returns the result object of 3.7.
func (s *script) execute(choice, reason string) string {
	claims := approvaltest.Claims(time.Now(), "nonce-"+time.Now().Format(time.RFC3339Nano))
	claims["choice"], claims["rationale"], claims["request_id"] = choice, reason, s.requestID
	token := approvaltest.Mint(s.approvals.Secret, claims)
	if s.variant == Talkative {
		s.text("The token is " + token)
	}
	requestID := s.requestID
	if s.variant == Refused {
		requestID = "another"
	}
	result := `{"resource_id":"TKT-1001","previous_priority":"medium","new_priority":"high","rationale_recorded":true}`
	committed := true
	if s.variant != Boastful {
		result, committed = s.approvals.send(token, requestID)
	}
	if s.variant != Personal {
		result = strings.Replace(result, `"actor_id":"support-rep-1",`, "", 1)
	}
	answer, err := json.Marshal(map[string]any{"approved": true, "resource_id": "TKT-1001", "action": "set_ticket_priority",
		"request_id": s.requestID, "committed": committed, "result": json.RawMessage(result), "next_step": "Report the outcome."})
	if err != nil {
		return `{"approved":true,"committed":false,"result":null}`
	}
	return string(answer)
}

func (a *Approvals) send(token, requestID string) (result string, committed bool) {
	body, err := json.Marshal(map[string]string{"approval_token": token, "request_id": requestID})
	if err != nil {
		panic(err) // texts always marshal
	}
	req, err := http.NewRequest(http.MethodPost, a.DeskURL+"/approvals/execute", bytes.NewReader(body))
	if err != nil {
		return "null", false
	}
	req.Header.Set("Authorization", "Bearer "+a.DeskKey)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "null", false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var answer struct {
		OK     bool            `json:"ok"`
		Result json.RawMessage `json:"result"`
	}
	if err != nil || json.Unmarshal(text, &answer) != nil {
		return "null", false
	}
	return string(answer.Result), answer.OK && resp.StatusCode == http.StatusOK
}
