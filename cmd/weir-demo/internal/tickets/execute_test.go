package tickets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/cmd/weir-demo/internal/approval/approvaltest"
)

const (
	secret    = "a-test-secret-of-at-least-24-characters"
	requestID = "11111111-1111-4111-8111-111111111111"
)

// clock is the moment of these tests.
func clock() time.Time { return time.Date(2026, 9, 21, 10, 30, 0, 0, time.UTC) }

// open returns a server with approvals.
func open(t testing.TB, opts Options) (*Server, *httptest.Server) {
	t.Helper()
	opts.Key, opts.ApprovalSecret, opts.Now = key, secret, clock
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(func() { ts.Close(); s.Close() })
	return s, ts
}

// token mints the usual claims with changes; a nil deletes a claim.
func token(nonce string, changes map[string]any) string {
	claims := approvaltest.Claims(clock(), nonce)
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return approvaltest.Mint(secret, claims)
}

func body(t testing.TB, token, requestID string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"approval_token": token, "request_id": requestID})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// send posts a body and returns the status and the answer.
func send(t testing.TB, ts *httptest.Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.URL+"/approvals/execute", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	return do(t, ts, req)
}

func do(t testing.TB, ts *httptest.Server, req *http.Request) (int, string) {
	t.Helper()
	resp, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// count is the number of rows that a condition finds.
func count(t testing.TB, s *Server, from string, args ...any) (n int) {
	t.Helper()
	if err := s.desk.read.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const committed = `{"ok":true,"result":{"resource_id":"TKT-1001","action":"set_ticket_priority","previous_priority":"medium","new_priority":"high",` +
	`"actor_id":"support-rep-1","override":true,"policy_version":"tickets-priority-policy/1","note_recorded":true,"rationale_recorded":true}}`

// 4.5, 5.8: an approved change is made, told, audited and in the history, which
// names nobody; the same token does nothing more.
func TestExecute(t *testing.T) {
	var accepted []string
	s, ts := open(t, Options{Committed: func(token, requestID string) { accepted = append(accepted, token, requestID) }})
	once := token("n-1", nil)
	if status, text := send(t, ts, body(t, once, requestID)); status != 200 || text != committed {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := send(t, ts, body(t, once, requestID)); status != 200 || text != `{"ok":false,"result":{"refused":"this approval has already been used"}}` {
		t.Errorf("replayed: %d %s", status, text)
	}
	if !slices.Equal(accepted, []string{once, requestID}) {
		t.Errorf("remembered %q", accepted)
	}
	found, _, err := s.desk.get(t.Context(), "TKT-1001")
	if err != nil {
		t.Fatal(err)
	}
	event := Event{"EVT-9001", "TKT-1001", "2026-09-21T10:30:00Z", "status_change", "Support desk", "Priority changed from medium to high after a person approved it."}
	if found.Ticket.Priority != "high" || found.Ticket.UpdatedAt != event.OccurredAt || found.HistoryCount != 4 || found.History[0] != event {
		t.Errorf("got %+v", found)
	}
	var row [11]any
	var fields []any
	for i := range row {
		fields = append(fields, &row[i])
	}
	if err := s.desk.read.QueryRowContext(t.Context(), `SELECT ticket_id, action, previous_priority, new_priority, actor_id, request_id,
		nonce, rationale, payload, policy_context, recorded_at FROM ticket_audit`).Scan(fields...); err != nil {
		t.Fatal(err)
	}
	if want := [11]any{"TKT-1001", "set_ticket_priority", "medium", "high", "support-rep-1", requestID, "n-1", "Customer has followed up twice.",
		`{"note":"Escalated after the second follow-up."}`,
		`{"expected_choice":"medium","override":true,"override_requested":true,"policy_version":"tickets-priority-policy/1"}`, "2026-09-21T10:30:00Z"}; row != want {
		t.Errorf("audited %q", row)
	}
	if n := count(t, s, `approval_nonces WHERE nonce = 'n-1' AND action = 'set_ticket_priority' AND resource_id = 'TKT-1001'
		AND actor_id = 'support-rep-1' AND request_id = ? AND consumed_at = '2026-09-21T10:30:00Z'`, requestID); n != 1 {
		t.Errorf("%d nonces", n)
	}
}

// 5.8: from any priority to any other, and back, each with a token of its own.
func TestEveryChange(t *testing.T) {
	s, ts := open(t, Options{})
	current, n := "medium", 0
	for _, from := range priorities() {
		for _, to := range priorities() {
			if from == to {
				continue
			}
			for _, step := range []string{from, to} {
				if step == current {
					continue
				}
				n++
				status, text := send(t, ts, body(t, token(fmt.Sprint(n), map[string]any{"expected_choice": current, "choice": step}), requestID))
				if status != 200 || !strings.Contains(text, `"ok":true`) {
					t.Fatalf("%s to %s: %d %s", current, step, status, text)
				}
				current = step
			}
		}
	}
	if got := count(t, s, "ticket_audit"); got != n {
		t.Errorf("%d rows for %d changes", got, n)
	}
}

// 4.4, 4.5, 5.8: whatever is refused, for whatever reason, changes nothing and
// uses nothing up: afterwards the genuine approval with that nonce still works.
func TestRefused(t *testing.T) {
	last := 0
	s, ts := open(t, Options{Committed: func(string, string) { last++ }})
	good := token("n", nil)
	payload, signature, _ := strings.Cut(good, ".")
	longPast := map[string]any{"exp": clock().Unix() - 1}
	refused := func(reason string) string { return `{"ok":false,"result":{"refused":` + reason + `}}` }
	failed := func(reason string) string { return `{"ok":false,"result":{"error":"` + reason + `"}}` }
	shape := failed("approval token payload is invalid")
	for name, tc := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no dot":              {body(t, "token", requestID), 403, failed("approval token has invalid format")},
		"tampered payload":    {body(t, "x"+payload[1:]+"."+signature, requestID), 403, failed("approval token signature is invalid")},
		"tampered signature":  {body(t, payload+".x"+signature[1:], requestID), 403, failed("approval token signature is invalid")},
		"padding":             {body(t, good+"=", requestID), 403, failed("approval token signature is not base64url")},
		"expired":             {body(t, token("n", longPast), requestID), 403, failed("approval token has expired")},
		"too long":            {body(t, token("n", map[string]any{"exp": clock().Unix() + 1861}), requestID), 403, failed("approval token lifetime exceeds the maximum this server accepts")},
		"another action":      {body(t, token("n", map[string]any{"action": "close <ticket>"}), requestID), 403, failed("unknown approval action: close <ticket>")},
		"another request":     {body(t, good, "22222222-2222-4222-8222-222222222222"), 403, failed("approval token is not bound to this authenticated request")},
		"changed meanwhile":   {body(t, token("n", map[string]any{"expected_choice": "low"}), requestID), 403, failed("approval token was issued against a different authoritative choice")},
		"another payload":     {body(t, token("n", map[string]any{"payload": map[string]any{"note": "x"}}), requestID), 403, failed("approval token payload does not match its own signature")},
		"blank actor":         {body(t, token("n", map[string]any{"actor_id": " "}), requestID), 403, failed("approval token is missing audit identity or request correlation")},
		"no such ticket":      {body(t, token("n", map[string]any{"resource_id": "TKT-9"}), requestID), 200, refused(`"TKT-9 does not exist"`)},
		"another case":        {body(t, token("n", map[string]any{"resource_id": "tkt-1001"}), requestID), 200, refused(`"tkt-1001 does not exist"`)},
		"no choice":           {body(t, token("n", map[string]any{"choice": nil}), requestID), 200, refused(`"this action requires a choice and the approval carries none"`)},
		"bad choice":          {body(t, token("n", map[string]any{"choice": "asap"}), requestID), 200, refused(`"\"asap\" is not a choice this action accepts"`)},
		"choice in capitals":  {body(t, token("n", map[string]any{"choice": "High"}), requestID), 200, refused(`"\"High\" is not a choice this action accepts"`)},
		"same priority":       {body(t, token("n", map[string]any{"choice": "medium"}), requestID), 200, refused(`"the ticket is already medium priority"`)},
		"no rationale":        {body(t, token("n", map[string]any{"rationale": nil}), requestID), 200, refused(`"overriding the current state requires a rationale"`)},
		"blank rationale":     {body(t, token("n", map[string]any{"rationale": " \n"}), requestID), 200, refused(`"overriding the current state requires a rationale"`)},
		"disowned override":   {body(t, token("n", map[string]any{"rationale": nil, "override_requested": false}), requestID), 200, refused(`"overriding the current state requires a rationale"`)},
		"no body":             {"", 403, shape},
		"no object":           {`[]`, 403, shape},
		"no token":            {`{"request_id":"x"}`, 403, shape},
		"null token":          {`{"approval_token":null,"request_id":"x"}`, 403, shape},
		"no request id":       {`{"approval_token":"` + good + `"}`, 403, shape},
		"another member":      {strings.TrimSuffix(body(t, good, requestID), "}") + `,"actor":"x"}`, 403, shape},
		"a member twice":      {strings.TrimSuffix(body(t, good, requestID), "}") + `,"request_id":"` + requestID + `"}`, 403, shape},
		"member in capitals":  {strings.Replace(body(t, good, requestID), "request_id", "Request_id", 1), 403, shape},
		"trailing data":       {body(t, good, requestID) + "{}", 403, shape},
		"bad UTF-8":           {strings.Replace(body(t, good, requestID), requestID, "\xff", 1), 403, shape},
		"larger than allowed": {body(t, good, strings.Repeat("x", maxExecuteBody)), 413, failed("the approval request is too large")},
	} {
		t.Run(name, func(t *testing.T) {
			if status, text := send(t, ts, tc.body); status != tc.status || text != tc.want {
				t.Errorf("%d %s, want %d %s", status, text, tc.status, tc.want)
			}
			if n := count(t, s, "approval_nonces") + count(t, s, "ticket_audit") + count(t, s, "ticket_events WHERE id > 'EVT-9'") +
				count(t, s, "tickets WHERE id = 'TKT-1001' AND priority <> 'medium'"); n != 0 {
				t.Errorf("%d rows are left", n)
			}
		})
	}
	if status, text := send(t, ts, body(t, good, requestID)); status != 200 || text != committed {
		t.Errorf("afterwards: %d %s", status, text)
	}
	if last != 1 {
		t.Errorf("%d tokens were remembered", last)
	}
}

// 4.4: the last second still counts, and claims that may be missing may.
func TestAccepted(t *testing.T) {
	noted := map[string]any{}
	approvaltest.SetPayload(noted, map[string]any{})
	for name, tc := range map[string]struct {
		token string
		note  string
	}{
		"last second":   {token("n", map[string]any{"exp": clock().Unix()}), "true"},
		"longest":       {token("n", map[string]any{"exp": clock().Unix() + 1860}), "true"},
		"unknown claim": {token("n", map[string]any{"tenant": 7}), "true"},
		"no payload":    {token("n", map[string]any{"payload": nil, "payload_sha256": nil}), "false"},
		"empty payload": {token("n", noted), "false"},
		"no override":   {token("n", map[string]any{"override_requested": nil}), "true"},
	} {
		_, ts := open(t, Options{})
		want := strings.Replace(committed, `"note_recorded":true`, `"note_recorded":`+tc.note, 1)
		if status, text := send(t, ts, body(t, tc.token, requestID)); status != 200 || text != want {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// 5.8, A3: however often and wherever one approval is sent at once, it is used
// once; two servers share the file, so no pool and no mutex can be the reason.
func TestConcurrentReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tickets.db")
	first, one := open(t, Options{Database: file})
	_, two := open(t, Options{Database: file})
	again := body(t, token("n", nil), requestID)
	answers := make(chan string, 32)
	var all sync.WaitGroup
	for i := range cap(answers) {
		all.Go(func() {
			_, text := send(t, []*httptest.Server{one, two}[i%2], again)
			answers <- text
		})
	}
	all.Wait()
	close(answers)
	tally := map[string]int{}
	for text := range answers {
		tally[text]++
	}
	if tally[committed] != 1 || tally[`{"ok":false,"result":{"refused":"this approval has already been used"}}`] != 31 {
		t.Errorf("got %v", tally)
	}
	if n := count(t, first, "ticket_audit"); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

// 5.8: different approvals of one shown state: the first one counts, the
// others were made for a ticket that is no more.
func TestConcurrentApprovals(t *testing.T) {
	s, ts := open(t, Options{})
	answers := make(chan string, 16)
	var all sync.WaitGroup
	for i := range cap(answers) {
		all.Go(func() {
			_, text := send(t, ts, body(t, token(fmt.Sprint("n", i), nil), requestID))
			answers <- text
		})
	}
	all.Wait()
	close(answers)
	tally := map[string]int{}
	for text := range answers {
		tally[text]++
	}
	if tally[committed] != 1 || tally[`{"ok":false,"result":{"error":"approval token was issued against a different authoritative choice"}}`] != 15 {
		t.Errorf("got %v", tally)
	}
	if n := count(t, s, "approval_nonces"); n != 1 {
		t.Errorf("%d nonces are used", n)
	}
}

// A7: a change that fails half-way leaves nothing, says so, and the approval
// can be used once what was wrong is repaired.
func TestExecutionFails(t *testing.T) {
	for name, tc := range map[string]struct{ trigger, want, log, repair string }{
		"event": {"CREATE TRIGGER broken BEFORE INSERT ON ticket_events BEGIN SELECT RAISE(ABORT, 'canary'); END",
			"the approved change could not be applied", "canary", "DROP TRIGGER broken"},
		"audit": {"CREATE TRIGGER broken BEFORE INSERT ON ticket_audit BEGIN SELECT RAISE(ROLLBACK, 'canary'); END",
			"the approved change could not be applied", "canary", "DROP TRIGGER broken"},
		"update": {"CREATE TRIGGER broken BEFORE UPDATE ON tickets BEGIN SELECT RAISE(IGNORE); END",
			"the approved change affected no rows", "affected no rows", "DROP TRIGGER broken"},
		"nonce": {"ALTER TABLE approval_nonces RENAME TO elsewhere",
			"the approved change could not be applied", "no such table", "ALTER TABLE elsewhere RENAME TO approval_nonces"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s, ts := open(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			exec := func(statement string) {
				if _, err := s.desk.write.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			exec(tc.trigger)
			once := body(t, token("n", nil), requestID)
			if status, text := send(t, ts, once); status != 403 || text != `{"ok":false,"result":{"error":"`+tc.want+`"}}` {
				t.Errorf("%d %s", status, text)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), tc.log) || strings.Contains(log.String(), "support-rep") {
				t.Errorf("logged %s", &log)
			}
			exec(tc.repair)
			if n := count(t, s, "approval_nonces") + count(t, s, "ticket_audit"); n != 0 {
				t.Errorf("%d rows are left", n)
			}
			if status, text := send(t, ts, once); status != 200 || text != committed {
				t.Errorf("repaired: %d %s", status, text)
			}
		})
	}
}

// A caller that leaves while it waits for the lock has changed nothing.
func TestCallerLeaves(t *testing.T) {
	s, ts := open(t, Options{})
	tx, err := s.desk.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	once := body(t, token("n", nil), requestID)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.execute(ctx, []byte(once))
		left <- err
	}()
	cancel()
	if err := <-left; err == nil {
		t.Error("a change was made for a caller who has left")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, "approval_nonces"); n != 0 {
		t.Errorf("%d nonces", n)
	}
	if status, text := send(t, ts, once); status != 200 || text != committed {
		t.Errorf("afterwards: %d %s", status, text)
	}
}

// 4.5: the key, the method, the Host header; no route without a secret.
func TestExecuteBoundary(t *testing.T) {
	_, with := open(t, Options{})
	without := serve(t)
	once := body(t, token("n", nil), requestID)
	for name, tc := range map[string]struct {
		at     *httptest.Server
		method string
		auth   []string
		host   string
		status int
		want   string
	}{
		"no secret":   {without, "POST", []string{"Bearer " + key}, "", 404, ""},
		"no key":      {with, "POST", nil, "", 401, "invalid or missing internal API key"},
		"wrong key":   {with, "POST", []string{"Bearer other"}, "", 401, "invalid or missing internal API key"},
		"two keys":    {with, "POST", []string{"Bearer " + key, "Bearer " + key}, "", 401, "invalid or missing internal API key"},
		"key first":   {with, "GET", nil, "evil.example", 401, "invalid or missing internal API key"},
		"rebinding":   {with, "POST", []string{"Bearer " + key}, "evil.example", 403, "this Host is not allowed"},
		"a GET":       {with, "GET", []string{"Bearer " + key}, "", 405, ""},
		"everything":  {with, "POST", []string{"Bearer " + key}, "", 200, committed},
		"once before": {without, "POST", nil, "", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, tc.at.URL+"/approvals/execute", strings.NewReader(once))
			if err != nil {
				t.Fatal(err)
			}
			req.Host, req.Header["Authorization"] = tc.host, tc.auth
			resp, err := tc.at.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tc.status || tc.want != "" && string(text) != tc.want ||
				(tc.status == 401) != (resp.Header.Get("WWW-Authenticate") == "Bearer") || (tc.status == 405) != (resp.Header.Get("Allow") == "POST") {
				t.Errorf("%d %v %s, %v", resp.StatusCode, resp.Header, text, err)
			}
		})
	}
	if _, err := New(Options{Key: key, ApprovalSecret: "too short"}); err == nil {
		t.Error("a short secret is accepted")
	}
}

// FuzzExecute: whatever is sent, only the one approval that is in it changes
// the ticket, and every answer is one of 4.5.
func FuzzExecute(f *testing.F) {
	for _, seed := range []string{
		body(f, token("n", nil), requestID), body(f, "a.b", "x"), `{"approval_token":"","request_id":""}`, `{"approval_token":1}`, "{", "",
		body(f, token("n", map[string]any{"choice": "asap"}), requestID),
	} {
		f.Add(seed)
	}
	s, err := New(Options{Key: key, ApprovalSecret: secret, Now: clock})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, sent string) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/approvals/execute", strings.NewReader(sent))
		req.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		var answer struct {
			OK     *bool          `json:"ok"`
			Result map[string]any `json:"result"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.OK == nil || len(answer.Result) == 0 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if *answer.OK && !strings.Contains(sent, "approval_token") || w.Code != 200 && w.Code != 403 && w.Code != 413 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
