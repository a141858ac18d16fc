package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/cmd/weir-demo/internal/scripted"
)

// proposer is a model that proposes what a question after "propose " says, and
// repeats what came of it; it leaves all other questions to the scripted one.
func proposer(t testing.TB) http.Handler {
	usual := scripted.New(scripted.Options{GuardTemplate: guardTemplate(t)})
	odd := &model{agent: func(c *chat, _ int) {
		messages := messagesOf(c.body)
		if last := messages[len(messages)-1]; last.Role == "tool" {
			c.text("RESULT " + last.Content).end("stop")
			return
		}
		c.call(0, changeStep, strings.TrimPrefix(messages[len(messages)-1].Content, "propose ")).end("tool_calls")
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		asked := ""
		for _, m := range messagesOf(body) {
			if m.Role == "user" {
				asked = m.Content
			}
		}
		if strings.HasPrefix(asked, "propose ") {
			odd.ServeHTTP(w, r)
			return
		}
		usual.ServeHTTP(w, r)
	})
}

type sent struct{ Role, Content string }

func messagesOf(body []byte) []sent {
	var b struct{ Messages []sent }
	_ = json.Unmarshal(body, &b)
	return b.Messages
}

// proposal is a question to the proposer with some arguments in place of the
// usual ones; nil takes one out.
func proposal(t testing.TB, change map[string]any) string {
	t.Helper()
	args := map[string]any{"ticket_id": "TKT-1003", "current_priority": "medium", "requested_priority": "high", "summary": "It is late."}
	for name, value := range change {
		if args[name] = value; value == nil {
			delete(args, name)
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return "propose " + string(text)
}

// The bytes of 3.4, whose ids differ each time.
const (
	radioBlock = `event: interaction_required` + "\n" + `data: {"execution_id":"E","interaction_id":"I","prompt":{"input_type":"radio",` +
		`"text":"Ticket TKT-1001 is currently 'medium' priority.\nThe assistant proposes 'high'.\n` +
		`Summary: Delayed delivery (open). The user asks for high priority in place of medium.\n` +
		`Model-supplied note (not verified by a human; will be signed and recorded verbatim if you approve): Proposed because the user asked for it in the chat.\n` +
		`Choose the priority to record. Any change requires a reason.","required":true,"options":[` +
		`{"id":"low","label":"Change to — low","value":"low","description":"Requires a reason, recorded against your identity."},` +
		`{"id":"medium","label":"Keep — medium","value":"medium","description":"No change is applied."},` +
		`{"id":"high","label":"Change to — high","value":"high","description":"Requires a reason, recorded against your identity."},` +
		`{"id":"urgent","label":"Change to — urgent","value":"urgent","description":"Requires a reason, recorded against your identity."},` +
		`{"id":"cancel","label":"Cancel","value":"__CANCEL__","description":"Change nothing."}]}}` + "\n"
	textBlock = `event: interaction_required` + "\n" + `data: {"execution_id":"E","interaction_id":"I","prompt":{"input_type":"text",` +
		`"text":"Ticket TKT-1001: Delayed delivery (open). The user asks for high priority in place of medium.\n` +
		`The ticket is currently 'medium' priority. You are changing it to 'high'. This is recorded in the append-only audit trail against your identity and requires a reason.\n` +
		`Model-supplied note (not verified by a human; will be signed and recorded verbatim if you approve): Proposed because the user asked for it in the chat.",` +
		`"placeholder":"Why should this ticket's priority change?","required":true}}` + "\n"
	settledStep = `"input":{"current_priority":"medium","note":"Proposed because the user asked for it in the chat.","requested_priority":"high",` +
		`"summary":"Delayed delivery (open). The user asks for high priority in place of medium.","ticket_id":"TKT-1001"},` +
		`"output":{"approved":true,"resource_id":"TKT-1001","action":"set_ticket_priority","request_id":"11111111-2222-4333-8444-555555555555","committed":true,` +
		`"result":{"resource_id":"TKT-1001","action":"set_ticket_priority","previous_priority":"medium","new_priority":"high","override":true,` +
		`"policy_version":"tickets-priority-policy/1","note_recorded":true,"rationale_recorded":true},"next_step":"The change is already applied. Report the outcome."}`
)

func (q *question) bytes() string {
	return strings.NewReplacer(q.Execution, "E", q.Interaction, "I").Replace(q.block)
}

// Sections 1.3, 2.5, 3.2 to 3.5 and 3.7 against the shipped binary: the bytes of
// both prompts, the order of checks with every status, and what is never seen.
func TestApprovalOnTheWire(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeSetup{setup: setup{model: proposer(t), only: []string{"react", "output-pii", "output-secrets"},
		env: map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_LOGS_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"}}})
	w := o.open(t)
	var seen strings.Builder
	t.Run("change", func(t *testing.T) {
		l := w.propose(t)
		first := l.asked(t)
		if got := first.bytes(); got != radioBlock {
			t.Errorf("the first prompt\n%s, want\n%s", got, radioBlock)
		}
		if id, err := uuid.Parse(first.Interaction); err != nil || id.Version() != 4 || first.Execution != l.id {
			t.Errorf("interaction %q, execution %q, x-execution-id %q", first.Interaction, first.Execution, l.id)
		}
		w.refusals(t, first, radioRefusals())
		if status, text := w.answer(t, userID, first, chooseHigh); status != http.StatusNoContent || text != "" {
			t.Errorf("status %d: %s", status, text)
		}
		second := l.asked(t)
		if got := second.bytes(); got != textBlock {
			t.Errorf("the second prompt\n%s, want\n%s", got, textBlock)
		}
		if second.Interaction == first.Interaction || second.Execution != first.Execution {
			t.Error("the ids of the second prompt")
		}
		w.refusals(t, first, []refusal{{"answered", userID, "", chooseHigh, 404, noPending}})
		w.refusals(t, second, textRefusals())
		if status, text := w.answer(t, userID, second, `{"response":{"type":"text","text":"  `+why+` "}}`); status != http.StatusNoContent || text != "" {
			t.Errorf("status %d: %s", status, text)
		}
		raw := l.rest(t)
		seen.WriteString(raw)
		if !strings.Contains(raw, settledStep) {
			t.Errorf("the stream lacks\n%s:\n%s", settledStep, raw)
		}
		s := read(t, l.resp.Header, []byte(raw))
		want := []string{"WORKFLOW_START " + workflow, "FUNCTION_START " + inputDecision, "FUNCTION_END " + inputDecision,
			"TOOL_START tickets_mcp__get_ticket", "TOOL_END tickets_mcp__get_ticket", "FUNCTION_START " + changeStep, "interaction", "interaction",
			"FUNCTION_END " + changeStep, "text", "FUNCTION_END " + outputDecision, "WORKFLOW_END " + workflow}
		if !slices.Equal(s.order, want) {
			t.Errorf("order\n%q, want\n%q", s.order, want)
		}
		w.refusals(t, second, []refusal{{"run has ended", userID, "", giveReason, 404, noPending}})
		if p, n := o.priority(t, "TKT-1001"); p != "high" || n != 1 {
			t.Errorf("priority %s, %d changes", p, n)
		}
	})
	t.Run("nothing is changed", func(t *testing.T) {
		for _, tc := range []struct {
			name     string
			question string
			answers  []string // to the prompts that come
			want     string   // in the result
			header   map[string]string
		}{
			{"cancelled", proposal(t, nil), []string{cancelChoice}, `"message":"The user cancelled."`, nil},
			{"cancelled at the reason", proposal(t, nil), []string{chooseHigh, `{"response":{"type":"text","text":" __CANCEL__ "}}`}, `"message":"The user cancelled."`, nil},
			{"kept", proposal(t, nil), []string{keepMedium}, `"message":"The user kept the current priority 'medium'. Nothing was changed."`, nil},
			{"no request id of a gateway", proposal(t, nil), nil, `"message":"Human approval requires an authenticated gateway request. Nothing was changed."`, map[string]string{"x-request-id": ""}},
			{"unknown argument", proposal(t, map[string]any{"approval_token": "x"}), nil, `RESULT Tool call refused by policy: unknown argument "approval_token"`, nil},
			{"missing argument", proposal(t, map[string]any{"summary": nil}), nil, `RESULT Tool call refused by policy: missing required argument "summary"`, nil},
			{"another choice", proposal(t, map[string]any{"requested_priority": "highest"}), nil, `RESULT Tool call refused by policy: argument "requested_priority" must be one of the allowed values`, nil},
			{"a note that a guard masks", proposal(t, map[string]any{"note": "Call anna@example.org."}), nil, "a value that a person would sign may not be shown", nil},
			{"a note that a guard cuts", proposal(t, map[string]any{"note": "use AKIAABCDEFGHIJKLMNOP"}), nil, "a value that a person would sign may not be shown", nil},
		} {
			t.Run(tc.name, func(t *testing.T) {
				req := w.request(t.Context(), t, user(tc.question))
				for name, value := range tc.header {
					req.Header.Set(name, value)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				l := listen(resp)
				for _, answer := range tc.answers {
					if status, text := w.answer(t, userID, l.asked(t), answer); status != http.StatusNoContent {
						t.Fatalf("status %d: %s", status, text)
					}
				}
				if q, err := l.question(); err == nil {
					t.Fatalf("one more prompt: %s", q.block)
				}
				raw := l.all.String()
				seen.WriteString(raw)
				if got := textOf(raw); !strings.Contains(got, tc.want) || strings.Contains(got, `"approved":true`) {
					t.Errorf("the model was told %q", got)
				}
			})
		}
		if p, n := o.priority(t, "TKT-1003"); p != "medium" || n != 0 || o.desk.executes.Load() != 1 {
			t.Errorf("priority %s, %d changes, %d executions", p, n, o.desk.executes.Load())
		}
	})
	t.Run("the summary is masked and the run goes on", func(t *testing.T) {
		l := listen(w.open(t.Context(), t, user(proposal(t, map[string]any{"summary": "Ask anna@example.org about it."}))))
		q := l.asked(t)
		if !strings.Contains(string(q.Prompt), "Ask <EMAIL_ADDRESS> about it.") || strings.Contains(l.all.String(), "anna@example.org") {
			t.Errorf("the prompt is %s", q.Prompt)
		}
		if status, text := w.answer(t, userID, q, cancelChoice); status != http.StatusNoContent {
			t.Errorf("status %d: %s", status, text)
		}
		seen.WriteString(l.rest(t))
	})
	t.Run("nothing is told", func(t *testing.T) {
		w.leave(t)
		stderr := w.proc.stderr.String()
		if !strings.Contains(stderr, "mcp.tool.name") || !strings.Contains(stderr, "support-tickets") {
			t.Errorf("no span is on stderr:\n%s", stderr)
		}
		noSecrets(t, "the streams", seen.String())
		noSecrets(t, "stderr and spans", stderr)
		for _, token := range o.desk.used() {
			for where, text := range map[string]string{"the streams": seen.String(), "stderr": stderr} {
				if payload, mac, _ := strings.Cut(token, "."); strings.Contains(text, payload) || strings.Contains(text, mac) {
					t.Errorf("the token stands in %s", where)
				}
			}
		}
		if strings.Contains(seen.String(), "actor_id") {
			t.Error("actor_id stands in a stream")
		}
	})
}

const noPending = `{"error":"no pending interaction with that id"}`

// refusal is an answer that is not taken: the path of the question unless path
// says another one.
type refusal struct {
	name, who, path, body string
	status                int
	want                  string
}

// refusals holds the route against 3.2: each of these leaves the prompt open.
func (w *world) refusals(t *testing.T, q *question, all []refusal) {
	t.Helper()
	for _, tc := range all {
		path := "/executions/E/interactions/I/response"
		if tc.path != "" {
			path = tc.path
		}
		path = strings.NewReplacer("/E/", "/"+q.Execution+"/", "/I/", "/"+q.Interaction+"/",
			"UPPER", strings.ToUpper(q.Execution), "OTHER", uuid.NewString()).Replace(path)
		resp, err := client.Do(w.as(t.Context(), t, tc.who, http.MethodPost, path, tc.body))
		if err != nil {
			t.Fatal(err)
		}
		if text := drain(t, resp); resp.StatusCode != tc.status || text != tc.want || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d, %s: %s, want %d: %s", tc.name, resp.StatusCode, resp.Header.Get("Content-Type"), text, tc.status, tc.want)
		}
	}
}

// Later checks fail as well in most of these: the first one counts.
func radioRefusals() []refusal {
	const (
		notOffered = `{"error":"the submitted choice was not offered by this prompt"}`
		foreign    = `{"error":"this approval was not addressed to the authenticated user"}`
	)
	radio := func(id, value string) string {
		return `{"response":{"type":"radio","selected_option":{"id":"` + id + `","label":"","value":"` + value + `","description":"x"}}}`
	}
	const ids = "/executions/E/interactions/I/response"
	return []refusal{
		{"both ids are none", "other", "/executions/x/interactions/y/response", "", 400, `{"error":"invalid execution ID"}`},
		{"the second id is none", "other", "/executions/OTHER/interactions/y/response", "", 400, `{"error":"invalid interaction ID"}`},
		{"too large and of nobody", "other", "/executions/OTHER/interactions/OTHER/response", strings.Repeat("x", 16385), 400, `{"error":"interaction response is too large"}`},
		{"too large", userID, ids, `{"response":{"type":"text","text":"` + strings.Repeat("x", 16384) + `"}}`, 400, `{"error":"interaction response is too large"}`},
		{"unknown and well formed", userID, "/executions/OTHER/interactions/OTHER/response", giveReason, 404, noPending},
		{"unknown interaction of the run", userID, "/executions/E/interactions/OTHER/response", giveReason, 404, noPending},
		{"the id in another form", userID, "/executions/UPPER/interactions/I/response", chooseHigh, 404, noPending},
		{"another user, wrong kind", "other", "", giveReason, 403, foreign},
		{"another user, right answer", "other", "", chooseHigh, 403, foreign},
		{"wrong kind", userID, "", giveReason, 422, `{"error":"response type \"text\" does not match the pending prompt type \"radio\""}`},
		{"wrong kind, a boolean", userID, "", `{"response":{"type":"binary_choice","selected_option":{"id":"confirm","label":"","value":true}}}`, 422,
			`{"error":"response type \"binary_choice\" does not match the pending prompt type \"radio\""}`},
		{"not offered", userID, "", radio("highest", "highest"), 422, notOffered},
		{"a pair that was not offered together", userID, "", radio("high", "low"), 422, notOffered},
		{"half a cancel, the id", userID, "", radio("cancel", "high"), 422, notOffered},
		{"half a cancel, the value", userID, "", radio("high", "__CANCEL__"), 422, notOffered},
	}
}

func textRefusals() []refusal {
	return []refusal{
		{"blank", userID, "", `{"response":{"type":"text","text":" \n\t"}}`, 422, `{"error":"a text answer must not be empty"}`},
		{"another user", "other", "", giveReason, 403, `{"error":"this approval was not addressed to the authenticated user"}`},
		{"wrong kind", userID, "", chooseHigh, 422, `{"error":"response type \"radio\" does not match the pending prompt type \"text\""}`},
	}
}

// 3.2, check 4, and 1.2: what stands before the body, and the body's own form.
// No run is needed: all of it is refused before anything is looked up.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}}})
	w := o.open(t)
	path := "/executions/" + uuid.NewString() + "/interactions/" + uuid.NewString() + "/response"
	for _, body := range []string{"", "null", "[]", "{}", `{"response":null}`, `{"response":{}}`, `{"response":{"type":"radio"}}`,
		`{"response":{"type":"text"}}`, `{"response":{"type":"text","text":null}}`, `{"response":{"type":"text","text":"x","extra":1}}`,
		`{"response":{"type":"text","text":"x"},"extra":1}`, `{"response":{"type":"text","text":"x"}} x`, `{"response":{"Type":"text","text":"x"}}`,
		`{"response":{"type":"text","text":"x","text":"y"}}`, `{"response":{"type":"checkbox","text":"x"}}`,
		`{"response":{"type":"radio","selected_option":{"id":1,"label":"","value":"x"}}}`,
		`{"response":{"type":"radio","selected_option":{"id":"x","label":"","value":"x","more":"x"}}}`,
		`{"response":{"type":"binary_choice","selected_option":{"id":"confirm","label":"","value":"true"}}}`,
		"{\"response\":{\"type\":\"text\",\"text\":\"\xff\"}}"} {
		resp, err := client.Do(w.as(t.Context(), t, userID, http.MethodPost, path, body))
		if err != nil {
			t.Fatal(err)
		}
		if text := drain(t, resp); resp.StatusCode != 400 || !strings.HasPrefix(text, `{"error":"invalid interaction response: `) {
			t.Errorf("%q: status %d: %s", body, resp.StatusCode, text)
		}
	}
	for _, tc := range []struct {
		name   string
		change func(http.Header)
		status int
		want   string
	}{
		{"no key", func(h http.Header) { h.Del("Authorization") }, 401, "invalid or missing internal API key"},
		{"no identity", func(h http.Header) { h.Del("x-authenticated-user-id") }, 401, "missing or ambiguous authenticated identity"},
		{"two identities", func(h http.Header) { h.Add("x-authenticated-user-id", "b") }, 401, "missing or ambiguous authenticated identity"},
		{"request id", func(h http.Header) { h.Set("x-request-id", "a b") }, 400, "invalid x-request-id"},
		{"control", func(http.Header) {}, 404, "no pending interaction with that id"},
	} {
		for _, where := range []string{path, strings.TrimSuffix(path, "response") + "response"} {
			req := w.as(t.Context(), t, userID, http.MethodPost, where, giveReason)
			tc.change(req.Header)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if text := drain(t, resp); resp.StatusCode != tc.status || text != `{"error":"`+tc.want+`"}` {
				t.Errorf("%s: status %d: %s", tc.name, resp.StatusCode, text)
			}
		}
	}
	for method, status := range map[string]int{http.MethodGet: 405, http.MethodPut: 405, http.MethodDelete: 405} {
		resp, err := client.Do(w.as(t.Context(), t, userID, method, path, ""))
		if err != nil {
			t.Fatal(err)
		}
		if text := drain(t, resp); resp.StatusCode != status {
			t.Errorf("%s: status %d: %s", method, resp.StatusCode, text)
		}
	}
}

// 1.1: with approvals off there is no route, and no tool either.
func TestNoRouteWithoutApprovals(t *testing.T) {
	w := shared(t, nil, nil)
	path := "/executions/" + uuid.NewString() + "/interactions/" + uuid.NewString() + "/response"
	resp, err := client.Do(w.as(t.Context(), t, userID, http.MethodPost, path, giveReason))
	if err != nil {
		t.Fatal(err)
	}
	if text := drain(t, resp); resp.StatusCode != 404 || text != `{"error":"not found"}` {
		t.Errorf("status %d: %s", resp.StatusCode, text)
	}
	if s := w.ask(t, user(changeQuestion)); !strings.Contains(s.text(), "I cannot change tickets") {
		t.Errorf("got %q", s.text())
	}
}

// 3.6: nobody answers in time. The run goes on, also when it is the time that
// the host was away, and a late answer finds nothing.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}, env: map[string]string{"HITL_INTERACTION_TIMEOUT_SECONDS": "5"}}})
	first := o.open(t)
	begun := time.Now() // nobody is asked before
	l := first.propose(t)
	q := l.asked(t)
	if raw := l.rest(t); !strings.Contains(textOf(raw), "The approval request expired. Nothing was changed.") {
		t.Errorf("the user was told %q", textOf(raw))
	}
	if took := time.Since(begun); took < 4900*time.Millisecond {
		t.Errorf("it expired after %s", took)
	}
	if status, text := first.answer(t, userID, q, chooseHigh); status != 404 || text != noPending {
		t.Errorf("status %d: %s", status, text)
	}
	away := first.propose(t)
	q = away.asked(t)
	asked := time.Now()
	first.kill(t)
	eventually(t, func() bool { return time.Since(asked) > 5100*time.Millisecond })
	second := o.open(t)
	if raw := second.approve(t, second.again(t, away.id)); !strings.Contains(textOf(raw), "The approval request expired. Nothing was changed.") {
		t.Errorf("after a restart the user was told %q", textOf(raw))
	}
	if status, text := second.answer(t, userID, q, chooseHigh); status != 404 || text != noPending {
		t.Errorf("status %d: %s", status, text)
	}
	if p, n := o.priority(t, "TKT-1001"); p != "medium" || n != 0 || o.desk.executes.Load() != 0 {
		t.Errorf("priority %s, %d changes", p, n)
	}
}
