package approval_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/abi"
	"weir/host/approval"
	"weir/host/fault"
	"weir/host/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const apiKey = "mcp-key"

// server is an execution endpoint that counts what reaches it.
type server struct {
	*httptest.Server
	calls atomic.Int32
}

func serve(t *testing.T, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func executor(t *testing.T, url string, change ...func(*approval.ExecutorOptions)) *approval.Executor {
	t.Helper()
	opts := approval.ExecutorOptions{MCPURL: url, APIKey: apiKey, Secret: []byte(secret)}
	for _, f := range change {
		f(&opts)
	}
	e, err := approval.NewExecutor(opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// quick ends in a second what would take half a minute. It is long enough for a
// connection, without which the server cannot have been reached.
func quick(o *approval.ExecutorOptions) { o.Timeout = time.Second }

// 4.5: the address, the header and the body; the token is of the claims.
func TestExecuteRequest(t *testing.T) {
	claims := claimsOf(t, "A note.")
	token, err := approval.Mint([]byte(secret), claims)
	if err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]string{
		"/mcp": "/approvals/execute", "/mcp/": "/approvals/execute", "/mcp//": "/approvals/execute", "": "/approvals/execute",
		"/": "/approvals/execute", "/a/mcp": "/a/approvals/execute", "/mcps": "/mcps/approvals/execute", "/mcp?x=1": "/approvals/execute?x=1",
	} {
		var got *http.Request
		var body map[string]string
		s := serve(t, func(http.ResponseWriter, *http.Request) {})
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			_ = json.NewDecoder(r.Body).Decode(&body)
			_, _ = io.WriteString(w, `{"ok":true,"result":{}}`)
		})
		if o := executor(t, s.URL+base).Execute(t.Context(), claims); !o.Committed {
			t.Fatalf("%s: %+v", base, o)
		}
		if got.URL.RequestURI() != want || got.Method != http.MethodPost || got.Header.Get("Authorization") != "Bearer "+apiKey ||
			got.Header.Get("Content-Type") != "application/json" || !got.Close || got.Header.Get("Traceparent") != "" {
			t.Errorf("%s: %s %s %v", base, got.Method, got.URL, got.Header)
		}
		if len(body) != 2 || body["approval_token"] != token || body["request_id"] != rep().RequestID {
			t.Errorf("%s: body %v", base, body)
		}
	}
}

// verdict says what an outcome is, in one word.
func verdict(o approval.Outcome) string {
	switch {
	case o.Committed && o.Unknown:
		return "both"
	case o.Committed:
		return "committed"
	case o.Unknown:
		return "unknown"
	}
	return "refused"
}

const refusedUsed = `{"ok":false,"result":{"refused":"this approval has already been used"}}`

// 4.5, and what settlement makes of the same answers (DECISIONS 6).
func TestAnswers(t *testing.T) {
	const cannotBe = `{"error":"the approved change could not be applied"}`
	refusal := func(reason string) http.HandlerFunc {
		return says(200, `{"ok":false,"result":{"refused":"`+reason+`"}}`)
	}
	denial := func(reason string) http.HandlerFunc {
		return says(403, `{"ok":false,"result":{"error":"`+reason+`"}}`)
	}
	answeredWith := func(line string) string {
		return `{"error":"the approval execution endpoint answered ` + line + `"}`
	}
	tests := []struct {
		name             string
		handle           http.HandlerFunc
		executed, result string
		settled          string
	}{
		{"applied", says(200, `{"ok":true, "result":{"resource_id":"TKT-1001","actor_id":"support-rep-1","new_priority":"high","override":true,"more":[{"actor_id":"x","n":1.50}]}}`),
			"committed", `{"resource_id":"TKT-1001","new_priority":"high","override":true,"more":[{"n":1.50}]}`, "committed"},
		{"applied, in other words", says(201, `{"result":null,"ok":true,"extra":[1]}`), "committed", "null", "committed"},
		{"applied, without a result", says(200, `{"ok":true}`), "committed", "null", "committed"},
		{"used", says(200, refusedUsed), "refused", `{"refused":"this approval has already been used"}`, "committed"},
		{"unknown ticket", refusal("TKT-1001 does not exist"), "refused", `{"refused":"TKT-1001 does not exist"}`, "refused"},
		{"no change", refusal("the ticket is already high priority"), "refused", `{"refused":"the ticket is already high priority"}`, "refused"},
		{"another state", denial("approval token was issued against a different authoritative choice"), "refused",
			`{"error":"approval token was issued against a different authoritative choice"}`, "refused"},
		{"expired", denial("approval token has expired"), "refused", `{"error":"approval token has expired"}`, "unknown"},
		{"another secret", denial("approval token signature is invalid"), "refused", `{"error":"approval token signature is invalid"}`, "unknown"},
		{"a failure inside", denial("the approved change could not be applied"), "refused", cannotBe, "unknown"},
		{"an unknown action", denial("unknown approval action: x"), "refused", `{"error":"unknown approval action: x"}`, "unknown"},
		{"another key", says(401, "invalid or missing internal API key"), "refused", answeredWith("401 Unauthorized"), "unknown"},
		{"approvals are off there", says(404, ""), "refused", answeredWith("404 Not Found"), "unknown"},
		{"a failure with words", says(500, "panic at 10.0.0.1:5432"), "refused", answeredWith("500 Internal Server Error"), "unknown"},
		{"a failure that says ok", says(500, `{"ok":true,"result":{"n":1}}`), "refused", `{"n":1}`, "unknown"},
		{"a status that nobody knows", says(599, "x"), "refused", answeredWith("599"), "unknown"},
		{"a proxy that gave up", says(504, "<html>"), "unknown", answeredWith("504 Gateway Timeout"), "unknown"},
		{"no JSON", says(200, "fine"), "unknown", answeredWith("200 OK"), "unknown"},
		{"no object", says(200, `[true]`), "unknown", answeredWith("200 OK"), "unknown"},
		{"ok that is none", says(200, `{"ok":"true"}`), "unknown", answeredWith("200 OK"), "unknown"},
		{"ok twice", says(200, `{"ok":false,"ok":true}`), "unknown", answeredWith("200 OK"), "unknown"},
		{"nothing of it", says(200, `{"status":"ok"}`), "refused", "null", "unknown"},
		{"no body", says(200, ""), "unknown", answeredWith("200 OK"), "unknown"},
		{"too much", says(200, `{"ok":true,"result":"`+strings.Repeat("x", 64<<10)+`"}`), "unknown", answeredWith("200 OK"), "unknown"},
		{"too much of nothing", says(200, `{"ok":true}`+strings.Repeat(" ", 64<<10)), "unknown", answeredWith("200 OK"), "unknown"},
		{"a body that is cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"ok":true,"result":{}}`)
		}, "unknown", answeredWith("200 OK"), "unknown"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "refused", answeredWith("307 Temporary Redirect"), "unknown"},
		{"cut after the request", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"unknown", `{"error":"it is not known whether the approved change was applied"}`, "unknown"},
	}
	claims := claimsOf(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.handle)
			e := executor(t, s.URL+"/mcp")
			o := e.Execute(t.Context(), claims)
			wantText(t, "executed", verdict(o)+" "+string(o.Result), tt.executed+" "+tt.result)
			if n := s.calls.Swap(0); n != 1 {
				t.Errorf("%d requests", n)
			}
			o = e.Settle(t.Context(), claims)
			wantText(t, "settled", verdict(o), tt.settled)
			if n := s.calls.Load(); n != 1 {
				t.Errorf("%d requests to settle", n)
			}
			if tt.settled == "unknown" {
				wantText(t, "settled", string(o.Result), `{"error":"it is not known whether the approved change was applied"}`)
			}
		})
	}
	s := serve(t, says(200, refusedUsed))
	wantText(t, "settled", string(executor(t, s.URL).Settle(t.Context(), claims).Result), `{"settled":true}`)
}

// A server that repeats the token to us does not get it to the model.
func TestTokenStaysHere(t *testing.T) {
	claims := claimsOf(t, "")
	token, err := approval.Mint([]byte(secret), claims)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, says(403, `{"ok":false,"result":{"error":"bad token `+token+`"}}`))
	o := executor(t, s.URL).Execute(t.Context(), claims)
	if text := string(approval.Result(claims, o)); strings.Contains(text, token) || !strings.Contains(text, "answered 403 Forbidden") {
		t.Errorf("%s", text)
	}
}

// A server that does not answer: what is said depends on whether it can have
// been reached, and says nothing of the address.
func TestNoAnswer(t *testing.T) {
	claims := claimsOf(t, "")
	release := make(chan struct{})
	wait := func(http.ResponseWriter, *http.Request) { <-release }
	hanging := serve(t, wait)
	trickling := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"ok":true,"result":"`)
		for range 1000 {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-release:
				return
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { close(release) }) // before the servers close
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		url  string
		want string
	}{
		{"nobody listens", t.Context(), "http://" + porttest.Free(t, 1)[0] + "/mcp", "refused"},
		{"no such host", t.Context(), "http://host.invalid/mcp", "refused"},
		{"given up before", cancelled, hanging.URL, "refused"},
		{"hangs", t.Context(), hanging.URL, "unknown"},
		{"trickles", t.Context(), trickling.URL, "unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := executor(t, tt.url, quick)
			began := time.Now()
			o := e.Execute(tt.ctx, claims)
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("took %s", d)
			}
			wantText(t, "executed", verdict(o), tt.want)
			wantText(t, "settled", verdict(e.Settle(tt.ctx, claims)), "unknown")
			for _, secretive := range []string{"127.0.0.1", "host.invalid", "http", "approvals/execute", apiKey} {
				if strings.Contains(string(o.Result), secretive) {
					t.Errorf("%s is in %s", secretive, o.Result)
				}
			}
			if tt.want == "refused" {
				wantText(t, "result", string(o.Result), `{"error":"the approved change could not be applied"}`)
			}
		})
	}
}

// Claims of somebody else's making never leave.
func TestExecuteRefusesClaims(t *testing.T) {
	s := serve(t, says(200, `{"ok":true}`))
	e := executor(t, s.URL)
	for _, claims := range []string{``, `{}`, strings.Replace(vectorA, `"exp":1600,`, "", 1)} {
		wantText(t, "executed", verdict(e.Execute(t.Context(), abi.Raw(claims))), "refused")
		wantText(t, "settled", verdict(e.Settle(t.Context(), abi.Raw(claims))), "unknown")
	}
	if n := s.calls.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// 3.7: what the model reads after an attempt.
func TestResult(t *testing.T) {
	claims := claimsOf(t, "")
	const head = `{"approved":true,"resource_id":"TKT-1001","action":"set_ticket_priority","request_id":"11111111-1111-4111-8111-111111111111",`
	wantText(t, "committed", string(approval.Result(claims, approval.Outcome{Committed: true, Result: abi.Raw(`{"a":1}`)})),
		head+`"committed":true,"result":{"a":1},"next_step":"The change is already applied. Report the outcome."}`)
	wantText(t, "refused", string(approval.Result(claims, approval.Outcome{Result: abi.Raw(`{"refused":"x"}`)})),
		head+`"committed":false,"result":{"refused":"x"},"next_step":"The change was REFUSED and NOTHING was applied. The record is unchanged. `+
			`Report the refusal and the reason given in result; never say or imply that any change occurred."}`)
	unknown := string(approval.Result(claims, approval.Outcome{Unknown: true}))
	contains(t, "unknown", unknown, head+`"committed":false,"outcome_unknown":true,"result":null,`, "NOT KNOWN", "look at the record")
	for _, lie := range []string{"NOTHING was applied", "already applied", "unchanged"} {
		if strings.Contains(unknown, lie) {
			t.Errorf("%q is in %s", lie, unknown)
		}
	}
	if text := string(approval.Result(abi.Raw(`{`), approval.Outcome{})); !strings.Contains(text, `"resource_id":""`) {
		t.Errorf("without claims: %s", text)
	}
	if strings.Contains(unknown, "support-rep-1") {
		t.Error("the result names the actor")
	}
}

func TestNewExecutorRefuses(t *testing.T) {
	for name, change := range map[string]func(*approval.ExecutorOptions){
		"no address":   func(o *approval.ExecutorOptions) { o.MCPURL = "" },
		"no host":      func(o *approval.ExecutorOptions) { o.MCPURL = "http:///mcp" },
		"not http":     func(o *approval.ExecutorOptions) { o.MCPURL = "ftp://h/mcp" },
		"a password":   func(o *approval.ExecutorOptions) { o.MCPURL = "http://u:topsecret@h/mcp" },
		"a fragment":   func(o *approval.ExecutorOptions) { o.MCPURL = "http://h/mcp#x" },
		"no key":       func(o *approval.ExecutorOptions) { o.APIKey = " " },
		"no secret":    func(o *approval.ExecutorOptions) { o.Secret = nil },
		"short secret": func(o *approval.ExecutorOptions) { o.Secret = []byte(secret[:23]) },
		"negative":     func(o *approval.ExecutorOptions) { o.Timeout = -1 },
	} {
		opts := approval.ExecutorOptions{MCPURL: "http://h/mcp", APIKey: apiKey, Secret: []byte(secret)}
		change(&opts)
		_, err := approval.NewExecutor(opts)
		if err == nil || fault.Of(err) != fault.Invalid || strings.Contains(err.Error(), "topsecret") || strings.Contains(err.Error(), secret[:23]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
