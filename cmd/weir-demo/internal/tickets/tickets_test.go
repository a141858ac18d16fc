package tickets

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"weir/host/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "demo-key"

func start(t *testing.T) (*httptest.Server, *Server) {
	t.Helper()
	s, err := New(Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(func() { ts.Close(); s.Close() })
	return ts, s
}

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	ts, _ := start(t)
	return ts
}

func connectTo(t *testing.T) (*tool.Client, *Server) {
	t.Helper()
	ts, s := start(t)
	c, err := tool.Connect(t.Context(), tool.Options{URL: ts.URL + "/mcp", Key: key, FunctionGroup: "tickets_mcp",
		Include: []string{"search_tickets", "get_ticket"}, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

func connect(t *testing.T) *tool.Client {
	t.Helper()
	c, _ := connectTo(t)
	return c
}

// 5.2: shapes, order, filters, clamp and error texts, through the host's client.
func TestTools(t *testing.T) {
	c := connect(t)
	for _, tc := range []struct{ tool, arguments, want string }{
		{"search_tickets", `{"status":"open","limit":2}`, `{"count":2,"filters":{"status":"open","limit":2},"tickets":[` +
			`{"id":"TKT-1002","subject":"Damaged item on arrival","status":"open","priority":"urgent","customer_name":"Marcus Lee","created_at":"2026-09-17T08:10:00Z"},` +
			`{"id":"TKT-1004","subject":"Duplicate charge","status":"open","priority":"high","customer_name":"Wei Zhang","created_at":"2026-09-16T13:45:00Z"}]}`},
		{"search_tickets", `{"status":" NoSuch "}`, `{"count":0,"filters":{"status":"NoSuch","limit":50},"tickets":[]}`},
		{"search_tickets", `{"status":"OPEN","limit":0}`, `{"count":1,"filters":{"status":"OPEN","limit":1},"tickets":[{"id":"TKT-1002"`},
		{"search_tickets", `{"status":"  ","limit":9999}`, `{"count":11,"filters":{"status":null,"limit":100},`},
		{"search_tickets", `{"status":null,"limit":null}`, `{"count":11,"filters":{"status":null,"limit":50},`},
		{"search_tickets", ``, `{"count":11,"filters":{"status":null,"limit":50},`},
		{"get_ticket", `{"ticket_id":" TKT-1006 "}`, `{"ticket":{"id":"TKT-1006","subject":"Product question: blender jar compatibility","status":"resolved","priority":"low","description":"`},
		{"get_ticket", `{"ticket_id":"TKT-GR-PII"}`, `{"ticket":{"id":"TKT-GR-PII",`},
		{"get_ticket", `{"ticket_id":"  "}`, "Error: ticket_id must not be empty"},
		{"get_ticket", `{"ticket_id":"tkt-1001"}`, "Error: Ticket 'tkt-1001' was not found"},
	} {
		text, failed, err := c.Call(t.Context(), tc.tool, []byte(tc.arguments))
		if err != nil || !strings.HasPrefix(text, tc.want) || failed != strings.HasPrefix(tc.want, "Error: ") {
			t.Errorf("%s %s: got %.200s, %v, %v; want %s", tc.tool, tc.arguments, text, failed, err, tc.want)
		}
	}
}

// 5.7: every ticket is consistent with its history; the fixtures are verbatim.
func TestData(t *testing.T) {
	c := connect(t)
	descriptions := map[string]string{}
	for _, ticket := range allTickets() {
		text, failed, err := c.Call(t.Context(), "get_ticket", []byte(`{"ticket_id":"`+ticket.ID+`"}`))
		if err != nil || failed {
			t.Fatalf("%s: %s, %v", ticket.ID, text, err)
		}
		var r getResult
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		descriptions[ticket.ID] = r.Ticket.Description
		if r.HistoryCount != len(r.History) {
			t.Errorf("%s: count %d of %d", ticket.ID, r.HistoryCount, len(r.History))
		}
		if strings.HasPrefix(ticket.ID, "TKT-1") && (len(r.History) != 3 ||
			r.History[2].OccurredAt != r.Ticket.CreatedAt || r.History[0].OccurredAt != r.Ticket.UpdatedAt) {
			t.Errorf("%s: history %v does not span %s to %s", ticket.ID, r.History, r.Ticket.CreatedAt, r.Ticket.UpdatedAt)
		}
	}
	for id, want := range map[string]string{
		"TKT-GR-PII":   "Synthetic test contact: alice.guardrail@example.com, phone +41 44 668 18 00, IBAN DE89370400440532013000.",
		"TKT-GR-REGEX": "Synthetic credential for output-rail testing only: api_key=DEMOSECRET1234567890.",
	} {
		if descriptions[id] != want {
			t.Errorf("%s = %q", id, descriptions[id])
		}
	}
}

// 5.1: the key, the Host header, /health.
func TestBoundary(t *testing.T) {
	ts := serve(t)
	for name, tc := range map[string]struct {
		path, auth, host string
		status           int
	}{
		"health":        {"/health", "", "anything.example", 200},
		"no key":        {"/mcp", "", "", 401},
		"wrong key":     {"/mcp", "Bearer other", "", 401},
		"wrong scheme":  {"/mcp", "bearer " + key, "", 401},
		"rebinding":     {"/mcp", "Bearer " + key, "evil.example", 403},
		"allowed":       {"/mcp", "Bearer " + key, "localhost:8080", 400}, // a GET without a session
		"another route": {"/", "", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tc.host
		if tc.auth != "" {
			req.Header.Set("Authorization", tc.auth)
		}
		resp, err := ts.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tc.status || tc.status == 401 && resp.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %d %v, want %d", name, resp.StatusCode, resp.Header, tc.status)
		}
	}
}
