package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Desk is the MCP server that carries out approved changes, for whoever wants
// to see that it does so once.
type Desk struct {
	URL string // its origin, http://host:port
	Key string // its own key, which a gateway would not have
	// Accepted returns the token of the newest change that it committed, and
	// the request id that came with it.
	Accepted func() (token, requestID string, ok bool)
}

// changeStep is the function step of a proposed change (2.6).
const changeStep = "ticket_priority_change"

// Approval is a conversation in which a person approves a change: both prompts
// are answered, the change is made, its token is sent to the desk a second time
// and refused, and the record shows one change. It follows [Demo].
func Approval(desk Desk) Conversation {
	return Conversation{Title: "A change that a person approves, once", Turns: []Turn{{
		User: "Please raise TKT-1001 to high.",
		Answers: []Answer{
			{Choose: "high", Shown: []string{"Ticket TKT-1001 is currently 'medium' priority.", "The assistant proposes 'high'."}},
			{Write: "The customer travels on the 24th.", Shown: []string{"TKT-1001", "You are changing it to 'high'."}},
		},
		Expect: Expectation{
			Summary: "read, proposed, asked twice, committed",
			Input:   "passed", Output: "passed",
			ModelCalls: 3,
			Calls:      []Call{{"get_ticket", `{"ticket_id":"TKT-1001"}`}},
			Function:   changeStep,
			Result:     []string{`"approved":true`, `"committed":true`, `"previous_priority":"medium"`, `"new_priority":"high"`, `"rationale_recorded":true`},
			Answer:     []string{"TKT-1001", "high"},
			Absent:     []string{"actor_id", "approval_token"},
		},
		then: desk.replay,
	}, {
		User: "Show me the history of ticket TKT-1001.",
		Expect: Expectation{
			Summary: "the record has the change, and has it once",
			Input:   "passed", Output: "passed",
			ModelCalls: 2,
			Calls:      []Call{{"get_ticket", `{"ticket_id":"TKT-1001"}`}},
			Answer:     []string{"priority: high", "Priority changed from medium to high", "(4)"},
		},
	}}}
}

// replay sends the token again, which is what somebody would do who got hold of
// it. It reports what is not as it should be.
func (d Desk) replay(ctx context.Context, g *Gateway, seen *transcript) error {
	token, requestID, ok := d.Accepted()
	if !ok {
		return errors.New("the support desk has committed no change")
	}
	for part := range strings.SplitSeq(token, ".") {
		if strings.Contains(seen.raw.String(), part) {
			return errors.New("the approval token stands in the stream")
		}
	}
	g.print.line("replay", "the same token is sent to the support desk a second time")
	status, body, err := d.execute(ctx, g.client, token, requestID)
	if err != nil {
		return err
	}
	var answer struct {
		OK     *bool `json:"ok"`
		Result struct {
			Refused string `json:"refused"`
		} `json:"result"`
	}
	if json.Unmarshal(body, &answer) != nil || status != http.StatusOK || answer.OK == nil || *answer.OK || answer.Result.Refused != "this approval has already been used" {
		return fmt.Errorf("the replayed token got %d: %s", status, short(string(body)))
	}
	g.print.line("refused", g.print.paint(green, answer.Result.Refused))
	return nil
}

// execute is the call that only an agent makes (4.5).
func (d Desk) execute(ctx context.Context, client *http.Client, token, requestID string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]string{"approval_token": token, "request_id": requestID})
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/approvals/execute", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+d.Key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, errors.New("the support desk is unavailable")
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, text, err
}
