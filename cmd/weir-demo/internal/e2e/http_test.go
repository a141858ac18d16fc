package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/host/plugin/plugintest"
)

// H1, H2, H3: whatever is sent as bytes, nothing runs and the answer is a
// refusal. 401 comes before anything that tells routes apart.
func TestRawRequests(t *testing.T) {
	m := says("RAN")
	w := shared(t, m, nil)
	const (
		key  = "Authorization: Bearer " + serviceKey + "\r\n"
		id   = "x-authenticated-user-id: " + userID + "\r\n"
		body = `{"messages":[{"role":"user","content":"x"}]}`
	)
	post := func(head, content string) string {
		return "POST /v1/workflow/full HTTP/1.1\r\nHost: a\r\n" + head + content
	}
	sized := func(head string) string {
		return post(head, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	}
	at := func(line string) string { return line + "\r\nHost: a\r\nContent-Length: 0\r\n\r\n" }
	for name, tc := range map[string]struct {
		send string
		want []string // one of these statuses, or "closed"
		text string
	}{
		"good, the control":          {sized(key + id), []string{"200"}, "RAN"},
		"no key":                     {sized(id), []string{"401"}, `{"error":"invalid or missing internal API key"}`},
		"two keys":                   {sized(key + key + id), []string{"401"}, "internal API key"},
		"lower-case scheme":          {sized(strings.Replace(key, "Bearer", "bearer", 1) + id), []string{"401"}, "internal API key"},
		"two spaces":                 {sized(strings.Replace(key, "Bearer ", "Bearer  ", 1) + id), []string{"401"}, "internal API key"},
		"key and more":               {sized(strings.Replace(key, "\r\n", ",x\r\n", 1) + id), []string{"401"}, "internal API key"},
		"no identity":                {sized(key), []string{"401"}, `{"error":"missing or ambiguous authenticated identity"}`},
		"blank identity":             {sized(key + "x-authenticated-user-id:  \r\n"), []string{"401"}, "ambiguous"},
		"two identities":             {sized(key + id + id), []string{"401"}, "ambiguous"},
		"two identities, other case": {sized(key + id + "X-AUTHENTICATED-USER-ID: eve\r\n"), []string{"401"}, "ambiguous"},
		"identities in a list":       {sized(key + "x-authenticated-user-id: " + userID + ", eve\r\n"), []string{"401"}, "ambiguous"},
		"identity with NUL":          {sized(key + "x-authenticated-user-id: a\x00b\r\n"), []string{"400", "401"}, ""},
		"identity beyond ASCII":      {sized(key + "x-authenticated-user-id: Zo\xc3\xab\r\n"), []string{"400", "401"}, ""},
		"identity too long":          {sized(key + "x-authenticated-user-id: " + strings.Repeat("a", 257) + "\r\n"), []string{"401"}, "ambiguous"},
		"identity in a folded line":  {sized(key + "X-A: b\r\n x-authenticated-user-id: eve\r\n"), []string{"400", "401"}, ""},
		"folded identity":            {sized(key + "x-authenticated-user-id: a\r\n b\r\n"), []string{"400"}, ""},
		"space before the colon":     {sized(key + "x-authenticated-user-id : eve\r\n"), []string{"400"}, ""},
		"two user names":             {sized(key + id + "x-authenticated-username: a\r\nx-authenticated-username: b\r\n"), []string{"401"}, "ambiguous"},
		"two role headers":           {sized(key + id + "x-authenticated-roles: a\r\nx-authenticated-roles: b\r\n"), []string{"401"}, "ambiguous"},
		"two request ids":            {sized(key + id + "x-request-id: a\r\nx-request-id: b\r\n"), []string{"400"}, `{"error":"invalid x-request-id"}`},
		"request id with a space":    {sized(key + id + "x-request-id: a b\r\n"), []string{"400"}, "x-request-id"},
		"connection names identity":  {sized(key + id + "Connection: x-authenticated-user-id\r\n"), []string{"400"}, ""},
		"two lengths":                {post(key+id+"Content-Length: 3\r\n", "Content-Length: 44\r\n\r\n"+body), []string{"400"}, ""},
		"length with sign":           {post(key+id, "Content-Length: +44\r\n\r\n"+body), []string{"400"}, ""},
		"length and chunks":          {post(key+id+"Transfer-Encoding: chunked\r\n", "Content-Length: 44\r\n\r\n0\r\n\r\n"), []string{"400"}, ""},
		"two codings":                {post(key+id, "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), []string{"400"}, ""},
		"bare LF":                    {strings.ReplaceAll(sized(key+id), "\r\n", "\n"), []string{"400"}, ""},
		"two hosts":                  {sized(key + id + "Host: b\r\n"), []string{"400"}, ""},
		"identity in a trailer":      {post(key+"Transfer-Encoding: chunked\r\nTrailer: x-authenticated-user-id\r\n", "\r\n2c\r\n"+body+"\r\n0\r\nx-authenticated-user-id: eve\r\n\r\n"), []string{"400", "401"}, ""},
		"HTTP/1.0":                   {strings.Replace(sized(key+id), "HTTP/1.1", "HTTP/1.0", 1), []string{"400"}, "HTTP/1.1"},
		"absolute target":            {strings.Replace(sized(key+id), "POST /", "POST http://a/", 1), []string{"404"}, "not found"},
		"double slash":               {strings.Replace(sized(key+id), "POST /v1", "POST //v1", 1), []string{"404"}, "not found"},
		"dots":                       {strings.Replace(sized(key+id), "POST /v1", "POST /x/../v1", 1), []string{"404"}, "not found"},
		"escaped":                    {strings.Replace(sized(key+id), "POST /v1", "POST /%76%31", 1), []string{"404"}, "not found"},
		"upper case":                 {strings.Replace(sized(key+id), "workflow", "WORKFLOW", 1), []string{"404"}, "not found"},
		"final slash":                {strings.Replace(sized(key+id), "full HTTP", "full/ HTTP", 1), []string{"404"}, "not found"},
		"health behind a dot":        {at("GET /x/../health HTTP/1.1"), []string{"401"}, ""},
		"health with a slash":        {at("GET /health/ HTTP/1.1"), []string{"401"}, ""},
		"health in capitals":         {at("GET /HEALTH HTTP/1.1"), []string{"401"}, ""},
		"POST to health":             {at("POST /health HTTP/1.1"), []string{"405"}, ""},
		"unknown route":              {at("GET /docs HTTP/1.1"), []string{"401"}, ""},
		"GET of the stream":          {at("GET /v1/workflow/full HTTP/1.1"), []string{"401"}, ""},
		"interactions":               {at("POST /executions/x/interactions/y/response HTTP/1.1"), []string{"401"}, ""},
		"a method of nobody":         {at("BREW /v1/workflow/full HTTP/1.1"), []string{"401"}, ""},
		"CONNECT":                    {at("CONNECT a:1 HTTP/1.1"), []string{"400", "401"}, ""},
		"star":                       {at("OPTIONS * HTTP/1.1"), []string{"400", "401"}, ""},
		"version without a key":      {at("GET /version HTTP/1.1"), []string{"401"}, ""},
		"head too large":             {sized(key + id + "X-Pad: " + strings.Repeat("canary ", 3000) + "\r\n"), []string{"431"}, ""},
		"HTTP/2":                     {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []string{"400", "401", "closed"}, ""},
		"TLS":                        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []string{"400", "closed"}, ""},
		"expects a go-ahead, no key": {post(id+"Expect: 100-continue\r\n", "Content-Length: 44\r\n\r\n"), []string{"100", "401"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls := m.agentCalls.Load()
			c := w.dial(t)
			c.send(t, tc.send)
			_ = c.SetReadDeadline(time.Now().Add(hang))
			status, raw, err := c.response()
			if !strings.Contains(strings.Join(tc.want, " "), status) || !strings.Contains(string(raw), tc.text) {
				t.Errorf("got %s (%v), want %v with %q:\n%.300s", status, err, tc.want, tc.text, raw)
			}
			if ran := m.agentCalls.Load() != calls; ran != (status == "200") {
				t.Errorf("a run happened: %v", ran)
			}
			if status != "200" {
				noSecrets(t, "the answer", string(raw))
				if strings.Contains(string(raw), "Location:") {
					t.Error("a redirect")
				}
			}
		})
	}
	noSecrets(t, "the log", w.log.String())
}

// response reads one response, head and body.
func (c *wire) response() (status, raw string, err error) {
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return "closed", "", err
	}
	var b strings.Builder
	err = resp.Header.Write(&b)
	if err == nil && resp.StatusCode != http.StatusContinue {
		_, err = io.Copy(&b, resp.Body)
	}
	return strconv.Itoa(resp.StatusCode), b.String(), err
}

// 1.3 and 2.1 as a client gets them, with nothing run and nothing quoted.
func TestBadBodies(t *testing.T) {
	m := says("RAN")
	w := shared(t, m, nil)
	for body, want := range map[string]string{
		`{"messages":[]}`: "at least one chat message is required",
		`{"messages":[{"role":"system","content":"canary"}]}`:                             "only user and assistant chat roles are accepted",
		`{"messages":[{"role":"USER","content":"canary"}]}`:                               "only user and assistant chat roles are accepted",
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`: "the final chat message must have the user role",
		`{"messages":[{"role":"user","content":" \n\u00a0"}]}`:                            "chat messages must not be empty",
		`{"messages":[{"role":"user","content":"x","canary":1}]}`:                         "invalid workflow request: ",
		`{"messages":[{"role":"user","content":"x"}],"canary":1}`:                         "invalid workflow request: ",
		`{"messages":[{"role":"user","role":"user","content":"x"}]}`:                      "invalid workflow request: ",
		`{"Messages":[{"role":"user","content":"x"}]}`:                                    "invalid workflow request: ",
		`{"messages":[{"role":"user","content":null}]}`:                                   "invalid workflow request: ",
		`{"messages":[{"role":"user","content":["canary"]}]}`:                             "invalid workflow request: ",
		`{"messages":[{"role":"user","content":"\ud800"}]}`:                               "invalid workflow request: ",
		`{"messages":[{"role":"user","content":"x"}]} {}`:                                 "invalid workflow request: ",
		`"canary"`:                  "invalid workflow request: ",
		"":                          "invalid workflow request: ",
		"{\"messages\":[\xff\xfe]}": "invalid workflow request: ",
		`{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, 200) + `{"role":"user","content":"x"}]}`: "too many chat messages; maximum is 200",
		`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 600<<10) + `"}]}`:                           "chat history is too large",
	} {
		req := w.request(t.Context(), t, user("x"))
		req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text := drain(t, resp)
		var refusal map[string]string
		if err := json.Unmarshal([]byte(text), &refusal); err != nil || resp.StatusCode != 400 || !strings.HasPrefix(refusal["error"], want) || len(refusal) != 1 {
			t.Errorf("%.80s: %d %s", body, resp.StatusCode, text)
		}
		if !strings.Contains(body, "canary\":1") {
			noSecrets(t, "the refusal", text)
		}
		if resp.Header.Get("x-request-id") != "" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%.80s: %v", body, resp.Header)
		}
	}
	resp, err := client.Do(func() *http.Request {
		req := w.request(t.Context(), t, user("x"))
		big := strings.Repeat(" ", 2<<20+1)
		req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(big)), int64(len(big)), nil
		return req
	}())
	if err != nil {
		t.Fatal(err)
	}
	if text := drain(t, resp); resp.StatusCode != 413 || !json.Valid([]byte(text)) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if m.agentCalls.Load()+m.guardCalls.Load() != 0 {
		t.Error("a model was called")
	}
}

// Section 7: the same prompt file has the same digest, and no secret shows.
func TestVersion(t *testing.T) {
	w := start(t, setup{env: map[string]string{"HITL_APPROVAL_SECRET": approval, "AGENT_BUILD_COMMIT": "c0ffee"}})
	req := w.request(t.Context(), t, user("x"))
	req.Method, req.Body, req.ContentLength = "GET", nil, 0
	req.URL, _ = url.Parse(w.url + "/version")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text := drain(t, resp)
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"available": true, "agent_runtime": "weir", "agent_framework": "wazero", "build_commit": "c0ffee",
		"model": "scripted", "guard_model": "scripted-guard", "prompt_sha256": sha(t, "prompts/system.md"), "guardrails_prompts_digest": "canonical-json"} {
		if v[name] != want {
			t.Errorf("%s is %v, want %v", name, v[name], want)
		}
	}
	if fmt.Sprint(v["tools_exposed"]) != "[get_ticket search_tickets]" || strings.Contains(text, "You answer questions") {
		t.Errorf("%s", text)
	}
	noSecrets(t, "/version", text)
}

// S4: every route and every hook. A guard that takes part in every check is in
// every decision, and only one route makes decisions at all.
func TestEveryRouteAndHook(t *testing.T) {
	m := &model{agent: func(c *chat, n int) {
		if n%2 == 0 {
			c.call(0, "get_ticket", `{"ticket_id":"TKT-1001"}`).call(1, "get_ticket", `{"ticket_id":"TKT-1002"}`).end("tool_calls")
			return
		}
		c.text("It is about ").text("a parcel.").end("stop")
	}}
	w := start(t, setup{model: m, only: []string{"react", "output-pii"},
		modules: map[string][]byte{"extra": plugintest.Build(t, "cmd/weir-demo/internal/e2e/testdata/counter")},
		config:  withGuard(t, "block")})
	names := func(decision map[string]any) (list []string) {
		guards, _ := decision["guards"].([]any)
		for _, g := range guards {
			list = append(list, g.(map[string]any)["name"].(string)+"="+g.(map[string]any)["verdict"].(string))
		}
		return list
	}
	for range 3 {
		s := w.ask(t, user("Hello"))
		if got := names(s.decision(t, inputDecision)); fmt.Sprint(got) != "[extra=allow]" {
			t.Errorf("input: %v", got)
		}
		if got := names(s.decision(t, outputDecision)); fmt.Sprint(got) != "[output-pii=allow extra=modify]" {
			t.Errorf("output: %v", got)
		}
		results := 0
		for _, step := range s.steps {
			if step.Name == "guardrail_tool_result_decision" {
				results++
			}
		}
		// It refuses the second call, and withholds the first one's result.
		if d := s.decision(t, "guardrail_tool_call_decision"); fmt.Sprint(names(d)) != "[extra=block]" || d["decision_source"] != "plugin:extra" {
			t.Errorf("tool call: %v", d)
		}
		if results != 1 || s.count("TOOL_START") != 1 || s.text() != "It is about a PARCEL." {
			t.Errorf("%d results, %q", results, s.order)
		}
	}
	before := m.agentCalls.Load() + m.guardCalls.Load()
	for _, route := range []string{"GET /health", "GET /health/live", "GET /health/ready", "GET /version", "GET /v1/workflow/full",
		"POST /v1/workflow", "POST /v1/chat/completions", "POST /execute_task", "GET /.well-known/agent.json",
		"POST /executions/11111111-2222-4333-8444-555555555555/interactions/11111111-2222-4333-8444-555555555555/response", "GET /executions/x/events"} {
		method, path, _ := strings.Cut(route, " ")
		req := w.request(t.Context(), t, user("Hello"))
		req.Method = method
		req.URL, _ = url.Parse(w.url + path)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text := drain(t, resp); resp.Header.Get("Content-Type") == "text/event-stream" || strings.Contains(text, "guardrail_input") {
			t.Errorf("%s answers %.100s", route, text)
		}
	}
	if m.agentCalls.Load()+m.guardCalls.Load() != before {
		t.Error("another route calls models")
	}
}

// Many at once: every stream is whole, and everybody gets their own answer.
func TestManyStreams(t *testing.T) {
	streams := 200
	if testing.Short() {
		streams = 40
	}
	m := &model{agent: func(c *chat, _ int) {
		var req struct {
			Messages []turn `json:"messages"`
		}
		_ = json.Unmarshal(c.body, &req)
		last := req.Messages[len(req.Messages)-1].Content
		c.text("You said ").text(last).text(", and your mail is someone@example.org.").end("stop")
	}}
	w := shared(t, m, nil)
	before := ours()
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			word := fmt.Sprintf("word-%03d", i)
			req := w.request(t.Context(), t, user(word))
			req.Header.Set("x-authenticated-user-id", "user-"+word)
			req.Header.Set("x-request-id", "request-"+word)
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("%s: %d %v", word, resp.StatusCode, err)
				return
			}
			s := read(t, resp.Header, raw)
			if s.text() != "You said "+word+", and your mail is <EMAIL_ADDRESS>." || resp.Header.Get("x-request-id") != "request-"+word ||
				!bytes.Contains(raw, []byte(`"request_id":"request-`+word+`"`)) {
				t.Errorf("%s got %q", word, s.text())
			}
		})
	}
	all.Wait()
	client.CloseIdleConnections()
	eventually(t, func() bool { return ours() <= before })
}
