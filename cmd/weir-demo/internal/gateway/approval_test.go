package gateway

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/cmd/weir-demo/internal/gateway/gatewaytest"
	"weir/cmd/weir-demo/internal/tickets"
)

const (
	deskKey = "desk-key"
	secret  = "a-test-secret-of-at-least-24-characters"
)

// approve has the conversation with an agent that is a fake and a desk that is
// not.
func approve(t *testing.T, variant string, desk func(Desk) Desk) (failures int, output string) {
	t.Helper()
	var last tickets.LastApproval
	server, err := tickets.New(tickets.Options{Key: deskKey, ApprovalSecret: secret, Committed: last.Remember})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ds := httptest.NewServer(server)
	defer ds.Close()
	var asked atomic.Int64
	ts := httptest.NewServer(gatewaytest.AgentWith(variant, key, func() { asked.Add(1) },
		&gatewaytest.Approvals{DeskURL: ds.URL, DeskKey: deskKey, Secret: secret}))
	defer ts.Close()
	var out bytes.Buffer
	g := New(Options{Address: ts.Listener.Addr().String(), Key: key, Out: &out, Timeout: 20 * time.Second,
		ModelCalls: func() int { return int(asked.Load()) }})
	defer g.Close()
	return g.Play(t.Context(), append(Demo(), Approval(desk(Desk{URL: ds.URL, Key: deskKey, Accepted: last.Accepted})))), out.String()
}

func same(d Desk) Desk { return d }

// Both prompts are answered, the change is made once, and all of it can be read.
func TestApproval(t *testing.T) {
	failures, out := approve(t, gatewaytest.Good, same)
	if failures != 0 || strings.Contains(out, "✗") || strings.Count(out, "✓") != 7 {
		t.Fatalf("%d failures:\n%s", failures, out)
	}
	for _, want := range []string{
		"── 5 of 5  A change that a person approves, once ──",
		"  asks      Ticket TKT-1001 is currently 'medium' priority.\n            The assistant proposes 'high'.\n",
		"            ○ Keep — medium  No change is applied.\n            ● Change to — high  ",
		"  person    Change to — high\n",
		"  person    The customer travels on the 24th.\n",
		`  proposal  ticket_priority_change {"ticket_id":"TKT-1001"`,
		`"committed":true`,
		"  replay    the same token is sent to the support desk a second time\n  refused   this approval has already been used\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

// Each way in which an agent or a desk can be wrong about it is found and said.
func TestBadApprovals(t *testing.T) {
	again := func(status int, body string) func(Desk) Desk {
		return func(d Desk) Desk {
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			}))
			t.Cleanup(ts.Close)
			d.URL = ts.URL
			return d
		}
	}
	for name, tc := range map[string]struct {
		variant string
		desk    func(Desk) Desk
		want    string
	}{
		"one prompt":     {gatewaytest.Hasty, same, "✗ the agent asked a person 1 times, expected 2"},
		"three prompts":  {gatewaytest.Curious, same, "✗ the stream broke: the agent asks a person, which was not expected here"},
		"not executed":   {gatewaytest.Boastful, same, "✗ the support desk has committed no change"},
		"not committed":  {gatewaytest.Refused, same, `✗ the result of ticket_priority_change lacks "committed":true`},
		"token shown":    {gatewaytest.Talkative, same, "✗ the approval token stands in the stream"},
		"actor shown":    {gatewaytest.Personal, same, `✗ "actor_id" stands in the stream`},
		"not heard":      {gatewaytest.Deaf, same, `✗ the stream broke: the answer got 404: {"error":"no such interaction"}`},
		"no input check": {gatewaytest.Silent, same, "✗ there is no input decision"},
		"executed twice": {gatewaytest.Good, again(200, `{"ok":true,"result":{}}`), `✗ the replayed token got 200: {"ok":true,"result":{}}`},
		"other refusal":  {gatewaytest.Good, again(200, `{"ok":false,"result":{"refused":"TKT-1001 does not exist"}}`), "✗ the replayed token got 200"},
		"other status":   {gatewaytest.Good, again(403, `{"ok":false,"result":{"refused":"this approval has already been used"}}`), "✗ the replayed token got 403"},
		"key refused":    {gatewaytest.Good, func(d Desk) Desk { d.Key = "other"; return d }, "✗ the replayed token got 401"},
		"desk is gone":   {gatewaytest.Good, func(d Desk) Desk { d.URL = "http://127.0.0.1:1"; return d }, "✗ the support desk is unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			failures, out := approve(t, tc.variant, tc.desk)
			if failures == 0 || !strings.Contains(out, tc.want) {
				t.Errorf("%d failures, want %q in:\n%s", failures, tc.want, out)
			}
		})
	}
}

// 3.3, 3.4: only what a prompt offers is answered, and only what was expected.
func TestAnswer(t *testing.T) {
	radio := prompt{InputType: "radio", Text: "Which?", Required: true, Options: []option{{"a", "A", "1", "first"}, {"b", "B", "2", ""}}}
	text := prompt{InputType: "text", Text: "Why?", Required: true}
	for name, tc := range map[string]struct {
		answer Answer
		prompt prompt
		want   string // of the error; "" for none
	}{
		"choose":         {Answer{Choose: "b", Shown: []string{"Which"}}, radio, ""},
		"write":          {Answer{Write: "So."}, text, ""},
		"not offered":    {Answer{Choose: "c"}, radio, `the prompt does not offer "c"`},
		"by value":       {Answer{Choose: "1"}, radio, `the prompt does not offer "1"`},
		"not shown":      {Answer{Choose: "a", Shown: []string{"Where"}}, radio, `the prompt does not show "Where"`},
		"other kind":     {Answer{Choose: "a"}, text, `a prompt of the kind "text" was not expected here`},
		"unknown kind":   {Answer{Write: "x"}, prompt{InputType: "binary_choice", Required: true}, `a prompt of the kind "binary_choice" was not expected here`},
		"not required":   {Answer{Write: "x"}, prompt{InputType: "text"}, "the prompt is not marked as required"},
		"nobody answers": {Answer{}, text, `a prompt of the kind "text" was not expected here`},
	} {
		response, _, err := tc.answer.respond(tc.prompt)
		if tc.want == "" && (err != nil || response == nil) || tc.want != "" && (err == nil || err.Error() != tc.want) {
			t.Errorf("%s: %v, %v; want %q", name, response, err, tc.want)
		}
	}
}

// A question where nobody is expected to answer is a failure, not a hang; one
// that cannot be answered as well.
func TestUnexpectedPrompts(t *testing.T) {
	for block, want := range map[string]string{
		"event: interaction_required\ndata: {\"execution_id\":\"e\",\"interaction_id\":\"i\",\"prompt\":{}}\n\n": "nobody is there",
		"event: interaction_required\ndata: {\"execution_id\":\"e\",\"interaction_id\":\"\"}\n\n":                "an interaction is not",
		"event: interaction_required\ndata: {\n\n":                                                               "an interaction is not",
		"event: interaction_required\n\n":                                                                        "an interaction is not",
	} {
		err := (&transcript{}).read(strings.NewReader(block), &printer{out: &bytes.Buffer{}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", block, err)
		}
	}
}
