package conform

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/abi/strictjson"
)

const key = "fake-service-key-3f81"

// response is what the fake agent is about to answer.
type response struct {
	status int
	header http.Header
	body   string
	stream bool
}

// fake is a small agent that keeps every clause, until broken makes it break
// one. It answers nothing by thinking.
type fake struct {
	broken func(r *http.Request, body string, a *response)
}

func (f *fake) start(t *testing.T) string {
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	body := string(data)
	a := route(r, body)
	if f.broken != nil {
		f.broken(r, body, a)
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	if a.stream {
		w.(http.Flusher).Flush() // chunked from here
	}
	_, _ = io.WriteString(w, a.body)
}

func plain(text string) *response { return &response{status: 200, header: http.Header{}, body: text} }

func jsonBody(status int, text string) *response {
	return &response{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: text}
}

func refuse(status int, message string) *response {
	return jsonBody(status, fmt.Sprintf(`{"error":%q}`, message))
}

const (
	manifestJSON = `{"name":"Fake","version":"1.0.0","description":"d","url":"/","skills":[{"id":"a","name":"A","description":"d","tags":["t"],"examples":["e"]}],` +
		`"capabilities":{"streaming":true,"conversational":true,"direct_api":false}}`
	sha         = "b80edd75bc87725392c6bee6c4752c6f15d32142ba26e37d887a65e665e84e35"
	versionJSON = `{"available":true,"agent_runtime":"fake","model":"m","guard_model":"g","reasoning_effort":"","guard_reasoning_effort":"","build_commit":"c",` +
		`"config_sha256":"` + sha + `","prompt_sha256":"` + sha + `","guardrails_prompts_sha256":"` + sha + `","tools_exposed":["get_ticket","search_tickets"]}`
)

func route(r *http.Request, body string) *response {
	switch r.URL.Path {
	case pathHealth:
		return jsonBody(200, `{"status":"healthy","service":"Fake","version":"1.0.0"}`)
	case "/health/live":
		return plain("ok")
	case "/health/ready":
		return plain("ready")
	case pathManifest:
		return jsonBody(200, manifestJSON)
	}
	if a := authenticate(r); a != nil {
		return a
	}
	execution, interaction, isAnswer := interactionIDs(r.URL.Path)
	switch {
	case r.URL.Path == pathWorkflow && r.Method == http.MethodPost:
		return workflow(r, body)
	case r.URL.Path == pathWorkflow:
		return refuse(405, "method not allowed")
	case r.URL.Path == pathVersion:
		return jsonBody(200, versionJSON)
	case isAnswer && r.Method == http.MethodPost:
		return interact(execution, interaction, body)
	case r.URL.Path == pathTask && r.Method == http.MethodPost:
		return act(body)
	}
	return refuse(404, "not found")
}

func authenticate(r *http.Request) *response {
	if v := r.Header.Values("Authorization"); len(v) != 1 || v[0] != "Bearer "+key {
		a := refuse(401, msgKey)
		a.header.Set("WWW-Authenticate", "Bearer")
		return a
	}
	good := func(name string, required bool) bool {
		v := r.Header.Values(name)
		if len(v) == 0 {
			return !required
		}
		visible := !strings.ContainsFunc(v[0], func(c rune) bool { return c < 0x20 || c > 0x7e })
		return len(v) == 1 && visible && len(v[0]) <= 256 && (!required || strings.TrimSpace(v[0]) != "")
	}
	if !good("X-Authenticated-User-Id", true) || !good("X-Authenticated-Username", false) || !good("X-Authenticated-Roles", false) {
		return refuse(401, msgIdentity)
	}
	if v := r.Header.Values("X-Request-Id"); len(v) > 1 || len(v) == 1 && (strings.Contains(v[0], " ") || len(v[0]) > 128) {
		return refuse(400, msgRequestID)
	}
	return nil
}

func workflow(r *http.Request, body string) *response {
	if len(body) > 2<<20 {
		return refuse(413, "too large")
	}
	type message struct{ role, content string }
	var messages []message
	d := strictjson.NewDecoder([]byte(body))
	seen := false
	err := d.Object(func(name string) (err error) {
		switch name {
		case "messages":
			seen = true
			return d.Array(func() error {
				var m message
				n := 0
				err := d.Object(func(name string) (err error) {
					n++
					switch name {
					case "role":
						m.role, err = d.String()
					case "content":
						m.content, err = d.String()
					default:
						err = strictjson.Unknown(name)
					}
					return err
				})
				messages = append(messages, m)
				if err == nil && n != 2 {
					err = strictjson.Missing("content")
				}
				return err
			})
		case "stream":
			if !d.Null() {
				_, err = d.Bool()
			}
			return err
		case "user", "evaluation_case_id":
			if !d.Null() {
				_, err = d.String()
			}
			return err
		}
		return strictjson.Unknown(name)
	})
	if err == nil {
		err = d.End()
	}
	if err == nil && !seen {
		err = strictjson.Missing("messages")
	}
	if err != nil {
		return refuse(400, msgShape+err.Error())
	}
	if len(messages) == 0 {
		return refuse(400, msgEmpty)
	}
	if len(messages) > 200 {
		return refuse(400, "too many chat messages; maximum is 200")
	}
	characters := 0
	for _, m := range messages {
		if m.role != "user" && m.role != "assistant" {
			return refuse(400, "only user and assistant chat roles are accepted")
		}
		if strings.TrimSpace(m.content) == "" {
			return refuse(400, "chat messages must not be empty")
		}
		if characters += utf8.RuneCountInString(m.content); characters > 512*1024 {
			return refuse(400, "chat history is too large")
		}
	}
	if messages[len(messages)-1].role != "user" {
		return refuse(400, "the final chat message must have the user role")
	}
	return stream(r)
}

// Ids of the stream's steps.
const (
	idRun   = "11111111-1111-4111-8111-111111111111"
	idInput = "22222222-2222-4222-8222-222222222222"
	idTool  = "33333333-3333-4333-8333-333333333333"
	idOut   = "44444444-4444-4444-8444-444444444444"
)

func stepBlock(id, parent, kind, name, rest string) string {
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`intermediate_data: {"id":%q,"parent_id":%s,"type":%q,"name":%q,"payload":{"event_type":%q,"name":%q,"UUID":%q,%s}}`,
		id, parent, kind, name, kind, name, id, rest) + "\n\n"
}

func stream(r *http.Request) *response {
	id := r.Header.Get("X-Request-Id")
	if id == "" {
		id = "made-here"
	}
	provided := fmt.Sprintf(`"metadata":{"provided_metadata":{"workflow_trace_id":"","workflow_run_id":%q,"request_id":%q,"agent_runtime":"fake"}}`, idRun, id)
	blocks := []string{
		stepBlock(idRun, "null", "WORKFLOW_START", "fake.invoke", provided),
		stepBlock(idInput, idRun, "FUNCTION_START", "guardrail_input_self_check_decision", `"data":{"input":{}},"metadata":{"tool_inputs":{}}`),
		stepBlock(idInput, idRun, "FUNCTION_END", "guardrail_input_self_check_decision",
			`"data":{"input":{},"output":{"stage":"input","outcome":"passed","blocked":false}},"metadata":{"tool_inputs":{},"tool_outputs":{}}`),
		": keep-alive\n\n",
		stepBlock(idTool, idRun, "TOOL_START", "mcp__get_ticket", `"data":{"input":{"id":1}},"metadata":{"tool_inputs":{"id":1}}`),
		stepBlock(idTool, idRun, "TOOL_END", "mcp__get_ticket", `"data":{"input":{"id":1},"output":{"n":2}},"metadata":{"tool_inputs":{"id":1},"tool_outputs":{"n":2}}`),
		"data: {\"value\":\"Hello\"}\n\n",
		"data: {\"value\":\" there.\"}\n\n",
		stepBlock(idOut, idRun, "FUNCTION_END", "guardrail_output_regex_pii_decision",
			`"data":{"input":{},"output":{"stage":"output","outcome":"passed","blocked":false}},"metadata":{"tool_inputs":{},"tool_outputs":{}}`),
		stepBlock(idRun, "null", "WORKFLOW_END", "fake.invoke", provided),
	}
	query, _ := url.ParseQuery(r.URL.RawQuery)
	if query.Has("filter_steps") {
		wanted := map[string]bool{}
		for name := range strings.SplitSeq(query.Get("filter_steps"), ",") {
			wanted[strings.ToUpper(strings.TrimSpace(name))] = true
		}
		var kept []string
		for _, b := range blocks {
			_, kind, _ := strings.Cut(b, `"type":"`)
			kind, _, _ = strings.Cut(kind, `"`)
			if !strings.HasPrefix(b, "intermediate_data") || wanted[kind] {
				kept = append(kept, b)
			}
		}
		blocks = kept
	}
	return &response{status: 200, stream: true, body: strings.Join(blocks, ""), header: http.Header{
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache, no-store"}, "X-Accel-Buffering": {"no"}, "X-Request-Id": {id}}}
}

func interactionIDs(path string) (execution, interaction string, ok bool) {
	parts := strings.Split(path, "/")
	if len(parts) != 6 || parts[1] != "executions" || parts[3] != "interactions" || parts[5] != "response" {
		return "", "", false
	}
	return parts[2], parts[4], true
}

func interact(execution, interaction, body string) *response {
	switch {
	case !uuid.MatchString(execution):
		return refuse(400, "invalid execution ID")
	case !uuid.MatchString(interaction):
		return refuse(400, "invalid interaction ID")
	case len(body) > 16384:
		return refuse(400, "interaction response is too large")
	}
	for _, bad := range []string{`"answer"`, `"more"`, `"voice"`} {
		if strings.Contains(body, bad) {
			return refuse(400, "invalid interaction response: unknown")
		}
	}
	return refuse(404, "no pending interaction with that id")
}

const metadataJSON = `"metadata":{"agent_name":"Fake","telemetry":{"phase":"p","subtask":"s","action":"a"}}`

func act(body string) *response {
	d := strictjson.NewDecoder([]byte(body))
	task := ""
	err := d.Object(func(name string) (err error) {
		if name == "task_description" {
			task, err = d.String()
			return err
		}
		return d.Skip()
	})
	if err != nil || task == "" {
		return refuse(400, "expected task_description")
	}
	if strings.Contains(body, `"environment"`) {
		return jsonBody(200, `{"action":"final_answer","summary":"Done.",`+metadataJSON+`}`)
	}
	return jsonBody(200, `{"action":"call_tool","tool_name":"get_time","tool_params":{},"summary":"s",`+metadataJSON+`}`)
}
