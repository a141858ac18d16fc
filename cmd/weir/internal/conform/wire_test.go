package conform

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// breach is an agent that breaks one clause and keeps all others.
type breach struct {
	clause string // spec/id
	broken func(r *http.Request, body string, a *response)
	also   []string // what cannot be broken without it
	many   bool     // and much else
}

// accepted makes a refusal an answer to the empty request: as if what it was
// refused for had passed.
func accepted(a *response) { *a = *refuse(400, msgEmpty) }

// reworded makes a refusal say something else.
func reworded(a *response) { *a = *refuse(a.status, "no") }

func path(want string, do func(*response)) func(*http.Request, string, *response) {
	return func(r *http.Request, _ string, a *response) {
		if r.URL.Path == want {
			do(a)
		}
	}
}

// head acts where a header line is as it says, on authenticated paths.
func head(name string, is func(values []string) bool, do func(*response)) func(*http.Request, string, *response) {
	return func(r *http.Request, _ string, a *response) {
		if r.URL.Path == pathWorkflow && r.Method == http.MethodPost && is(r.Header.Values(name)) {
			do(a)
		}
	}
}

func values(want ...string) func([]string) bool {
	return func(got []string) bool { return slices.Equal(got, want) }
}

// sent acts where a request's body contains a part.
func sent(part string, do func(*response)) func(*http.Request, string, *response) {
	return func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathWorkflow && a.status != 401 && strings.Contains(body, part) {
			do(a)
		}
	}
}

// exactly acts on one body.
func exactly(want string, do func(*response)) func(*http.Request, string, *response) {
	return func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathWorkflow && a.status == 400 && body == want {
			do(a)
		}
	}
}

// edit changes the stream.
func edit(old, new string) func(*http.Request, string, *response) {
	return func(_ *http.Request, _ string, a *response) {
		if a.stream {
			a.body = strings.Replace(a.body, old, new, 1)
		}
	}
}

func editAll(old, new string) func(*http.Request, string, *response) {
	return func(_ *http.Request, _ string, a *response) {
		if a.stream {
			a.body = strings.ReplaceAll(a.body, old, new)
		}
	}
}

func drop(name string) func(*http.Request, string, *response) {
	return func(_ *http.Request, _ string, a *response) {
		if a.stream {
			a.header.Del(name)
		}
	}
}

// answerTo acts on answers to interactions.
func answerTo(status int, part string, do func(*response)) func(*http.Request, string, *response) {
	return func(r *http.Request, body string, a *response) {
		if _, _, ok := interactionIDs(r.URL.Path); ok && a.status == status && strings.Contains(body, part) {
			do(a)
		}
	}
}

// acted changes actions.
func acted(part, old, new string) func(*http.Request, string, *response) {
	return func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathTask && a.status == 200 && strings.Contains(body, part) {
			a.body = strings.Replace(a.body, old, new, 1)
		}
	}
}

func ok200(a *response) { *a = *jsonBody(200, `{}`) }

func isAuth(r *http.Request, want string) bool {
	v := r.Header.Values("Authorization")
	return len(v) == 1 && v[0] == want && r.URL.Path == pathWorkflow && r.Method == http.MethodPost
}

// wrongKey accepts one wrong form of the key.
func wrongKey(value string) func(*http.Request, string, *response) {
	return func(r *http.Request, _ string, a *response) {
		if isAuth(r, value) && len(r.Header.Values("X-Authenticated-User-Id")) == 1 {
			accepted(a)
		}
	}
}

const toolStart = `"data":{"input":{"id":1}},"metadata":{"tool_inputs":{"id":1}}`

var breaches = []breach{
	{clause: "platform/health", broken: path(pathHealth, func(a *response) { a.body = strings.Replace(a.body, "healthy", "fine", 1) })},
	{clause: "platform/health-service", broken: path(pathHealth, func(a *response) { a.body = `{"status":"healthy","version":"1"}` })},
	{clause: "platform/health-version", broken: path(pathHealth, func(a *response) { a.body = `{"status":"healthy","service":"x"}` })},
	{clause: "platform/manifest", broken: path(pathManifest, func(a *response) { a.body = strings.Replace(a.body, `"url":"/"`, `"url":1`, 1) })},
	{clause: "platform/manifest", broken: path(pathManifest, func(a *response) { *a = *refuse(401, msgKey) })},
	{clause: "platform/manifest", broken: path(pathManifest, func(a *response) { a.header.Set("Content-Type", "text/html") })},
	{clause: "platform/manifest-skills", broken: path(pathManifest, func(a *response) {
		a.body = strings.NewReplacer(`"skills":[`, `"skills":{"a":[`, `}],"capabilities"`, `}]},"capabilities"`).Replace(a.body)
	})},
	{clause: "platform/manifest-skills", broken: path(pathManifest, func(a *response) { a.body = strings.Replace(a.body, `"tags":["t"],`, ``, 1) })},
	{clause: "platform/manifest-capabilities", broken: path(pathManifest, func(a *response) { a.body = strings.Replace(a.body, `"direct_api":false`, `"direct_api":"no"`, 1) })},

	{clause: "agent-service/workflow-route", broken: path(pathWorkflow, func(a *response) {
		if a.status != 401 {
			*a = *refuse(404, "not found")
		}
	})},
	{clause: "agent-service/health-public", broken: path(pathHealth, func(a *response) { a.status = 301 }), also: []string{"platform/health"}},
	{clause: "agent-service/health-live", broken: path("/health/live", func(a *response) { a.body = "alive" })},
	{clause: "agent-service/health-ready", broken: path("/health/ready", func(a *response) { *a = *plain(""); a.status = 503 })},
	{clause: "agent-service/closed", broken: path("/docs", ok200)},
	{clause: "agent-service/closed", broken: path("/executions/x/interactions/y/response", func(a *response) {
		if a.status == 401 {
			*a = *refuse(404, "not found")
		}
	})},
	{clause: "agent-service/closed-exactly", broken: path("/HEALTH", ok200)},
	{clause: "agent-service/unknown-path", broken: path("/weir-conform", reworded)},
	{clause: "agent-service/method", broken: func(r *http.Request, _ string, a *response) {
		if a.status == 405 {
			*a = *refuse(404, "not found")
		}
	}},
	{clause: "agent-service/no-redirect", broken: path(pathWorkflow+"/", func(a *response) { *a = *plain(""); a.status = 307; a.header.Set("Location", pathWorkflow) })},

	{clause: "agent-service/key-missing", broken: head("Authorization", func(v []string) bool { return len(v) == 0 }, func(a *response) { a.header.Del("WWW-Authenticate") }),
		also: []string{"agent-service/key-first"}},
	{clause: "agent-service/key-wrong", broken: wrongKey("Bearer weir-conform-wrong-key")},
	{clause: "agent-service/key-longer", broken: wrongKey("Bearer " + key + "x")},
	{clause: "agent-service/key-shorter", broken: wrongKey("Bearer " + key[:len(key)-1])},
	{clause: "agent-service/key-empty", broken: wrongKey("Bearer")},
	{clause: "agent-service/key-scheme", broken: wrongKey("bearer " + key)},
	{clause: "agent-service/key-basic", broken: wrongKey("Basic " + key)},
	{clause: "agent-service/key-twice", broken: head("Authorization", values("Bearer "+key, "Bearer "+key), accepted)},
	{clause: "agent-service/key-first", broken: func(r *http.Request, body string, a *response) {
		if a.status == 401 && body == "{" && len(r.Header.Values("X-Authenticated-User-Id")) == 0 && len(r.Header.Values("Authorization")) == 0 {
			*a = *refuse(401, msgIdentity)
		}
	}},
	{clause: "agent-service/identity-missing", broken: func(r *http.Request, body string, a *response) {
		if isAuth(r, "Bearer "+key) && a.status == 401 && len(r.Header.Values("X-Authenticated-User-Id")) == 0 && body != "{" {
			a.header.Set("WWW-Authenticate", "Bearer")
		}
	}},
	{clause: "agent-service/identity-empty", broken: head("X-Authenticated-User-Id", values(""), accepted), also: []string{"agent-service/identity-blank"}},
	{clause: "agent-service/identity-blank", broken: head("X-Authenticated-User-Id", values(""), accepted), also: []string{"agent-service/identity-empty"}},
	{clause: "agent-service/identity-twice", broken: head("X-Authenticated-User-Id", values("a", "b"), accepted)},
	{clause: "agent-service/identity-same-twice", broken: func(r *http.Request, body string, a *response) {
		if isAuth(r, "Bearer "+key) && slices.Equal(r.Header.Values("X-Authenticated-User-Id"), []string{user, user}) {
			accepted(a)
		}
	}},
	{clause: "agent-service/identity-ascii", broken: head("X-Authenticated-User-Id", values("zo\xc3\xab"), accepted)},
	{clause: "agent-service/identity-long", broken: head("X-Authenticated-User-Id", func(v []string) bool { return len(v) == 1 && len(v[0]) == 257 }, accepted)},
	{clause: "agent-service/name-twice", broken: head("X-Authenticated-Username", values("a", "b"), accepted)},
	{clause: "agent-service/roles-twice", broken: head("X-Authenticated-Roles", values("a", "b"), accepted)},
	{clause: "agent-service/identity-first", broken: func(r *http.Request, body string, a *response) {
		if isAuth(r, "Bearer "+key) && a.status == 401 && body == "{" {
			*a = *refuse(400, msgRequestID)
		}
	}},
	{clause: "agent-service/identity-encoded", broken: head("X-Authenticated-User-Id", values("Zo%C3%AB Smith"), func(a *response) { *a = *refuse(401, msgIdentity) })},
	{clause: "agent-service/email-ignored", broken: head("X-Authenticated-Email", func(v []string) bool { return len(v) == 2 }, func(a *response) { *a = *refuse(401, msgIdentity) })},
	{clause: "agent-service/names-empty", broken: head("X-Authenticated-Username", values(""), func(a *response) { *a = *refuse(401, msgIdentity) })},
	{clause: "agent-service/request-id-absent", many: true, broken: head("X-Request-Id", values(), func(a *response) {
		if a.status == 400 {
			*a = *refuse(400, msgRequestID)
		}
	})},
	{clause: "agent-service/request-id-any", broken: head("X-Request-Id", values("conform-1"), func(a *response) { *a = *refuse(400, msgRequestID) })},
	{clause: "agent-service/request-id-bad", broken: func(r *http.Request, _ string, a *response) {
		if v := r.Header.Values("X-Request-Id"); len(v) == 1 && len(v[0]) == 129 {
			accepted(a)
		}
	}},
	{clause: "agent-service/request-id-twice", broken: head("X-Request-Id", values("a", "b"), accepted)},
	{clause: "agent-service/request-id-first", broken: func(r *http.Request, body string, a *response) {
		if a.status == 400 && body == "{" && r.Header.Get("X-Request-Id") != "" {
			*a = *refuse(400, msgShape+"x")
		}
	}},

	{clause: "agent-service/messages-empty", many: true, broken: exactly(string(emptyRequest), reworded)},
	{clause: "agent-service/messages-many", broken: sent(`"x"},{"role":"assistant","content":"x"},{`, accepted)},
	{clause: "agent-service/role-system", broken: exactly(`{"messages":[{"role":"system","content":"x"}]}`, reworded)},
	{clause: "agent-service/role-case", broken: sent("USER", accepted)},
	{clause: "agent-service/content-blank", broken: sent(`\n\t`, accepted)},
	{clause: "agent-service/last-user", broken: sent(`"content":"y"`, accepted)},
	{clause: "agent-service/characters-many", broken: func(r *http.Request, body string, a *response) {
		if a.status == 400 && len(body) > 600*1024 && len(body) < 2<<20 && strings.Contains(body, "xxx") {
			a.status = 413
		}
	}},
	{clause: "agent-service/characters-count", broken: sent("éé", func(a *response) { *a = *refuse(400, "chat history is too large") })},
	{clause: "agent-service/body-large", broken: func(_ *http.Request, _ string, a *response) {
		if a.status == 413 {
			*a = *refuse(400, msgShape+"x")
		}
	}},
	{clause: "agent-service/unknown-field", broken: sent(`"model"`, accepted)},
	{clause: "agent-service/unknown-message-field", broken: sent(`"name"`, accepted)},
	{clause: "agent-service/not-an-object", broken: exactly(`"hello"`, func(a *response) { a.status = 422 })},
	{clause: "agent-service/messages-missing", broken: exactly(`{}`, accepted)},
	{clause: "agent-service/messages-null", broken: exactly(`{"messages":null}`, accepted)},
	{clause: "agent-service/content-missing", broken: exactly(`{"messages":[{"role":"assistant"}]}`, accepted)},
	{clause: "agent-service/content-kind", broken: sent(`"content":1`, accepted)},
	{clause: "agent-service/trailing-data", broken: sent(`]} {}`, accepted)},
	{clause: "agent-service/not-json", broken: exactly(`{"messages":[`, func(a *response) { *a = *refuse(500, "boom") })},
	{clause: "agent-service/key-case", broken: sent(`"Messages"`, accepted)},
	{clause: "agent-service/duplicate-field", broken: exactly(`{"messages":[],"messages":[]}`, accepted)},
	{clause: "agent-service/invalid-utf8", broken: sent("\xff", accepted)},
	{clause: "agent-service/lone-surrogate", broken: sent(`\ud800`, accepted)},
	{clause: "agent-service/optional-fields", broken: sent(`"stream":true,"user":"u"`, func(a *response) { *a = *refuse(400, msgShape+"x") })},
	{clause: "agent-service/optional-null", broken: sent(`"stream":null`, func(a *response) { *a = *refuse(400, msgShape+"x") })},
	{clause: "agent-service/messages-order", broken: sent(`" "},{"role":"system"`, func(a *response) { *a = *refuse(400, "only user and assistant chat roles are accepted") })},
	{clause: "agent-service/content-type-ignored", broken: head("Content-Type", values("text/plain"), func(a *response) { *a = *refuse(415, "no") })},

	{clause: "agent-service/stream", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && len(r.URL.RawQuery) > 60 {
			*a = *refuse(500, "boom")
		}
	}},
	{clause: "agent-service/stream-type", broken: drop("Content-Type")},
	{clause: "agent-service/stream-uncached", broken: drop("Cache-Control")},
	{clause: "agent-service/stream-unbuffered", broken: drop("X-Accel-Buffering")},
	{clause: "agent-service/stream-request-id", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && r.Header.Get("X-Request-Id") != "" {
			a.header.Set("X-Request-Id", "another")
		}
	}},
	{clause: "agent-service/stream-plain", broken: func(_ *http.Request, _ string, a *response) {
		if a.stream {
			a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
		}
	}},
	{clause: "agent-service/stream-lines", broken: editAll("\n", "\r\n")},
	{clause: "agent-service/stream-blocks", broken: edit("data: {\"value\":\"Hello\"}", "data:{\"value\":\"Hello\"}")},
	{clause: "agent-service/stream-blocks", broken: edit(": keep-alive", "id: 1")},
	{clause: "agent-service/stream-blocks", broken: edit(": keep-alive\n\n", ": keep-alive\n\nretry: 5\n\n")},
	{clause: "agent-service/stream-json", broken: edit(`data: {"value":"Hello"}`, `data: {"value":"Hello"`), also: []string{"agent-service/answer-value"}},
	{clause: "agent-service/stream-compact", broken: edit(`{"value":"Hello"}`, `{"value": "Hello"}`)},
	{clause: "agent-service/answer-value", broken: edit(`{"value":"Hello"}`, `{"value":100}`)},
	{clause: "agent-service/answer-value", broken: edit(`{"value":"Hello"}`, `{"value":"Hello","n":1}`)},
	{clause: "agent-service/answer", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && len(r.URL.RawQuery) > 60 {
			a.body = strings.NewReplacer("data: {\"value\":\"Hello\"}\n\n", "", "data: {\"value\":\" there.\"}\n\n", "").Replace(a.body)
		}
	}},
	{clause: "agent-service/answer-container", broken: edit(`"Hello"`, `"{\"a\":1}"`)},
	{clause: "agent-service/answer-separators", broken: edit("Hello", "Hel\u2028lo")},
	{clause: "agent-service/literal-interaction", broken: edit("Hello", "event: interaction_required")},
	{clause: "agent-service/comments", broken: edit(": keep-alive", ": data: keep-alive")},
	{clause: "agent-service/interaction-event", broken: edit(": keep-alive", "event: interaction_required\ndata: {\"execution_id\":\""+idRun+"\",\"interaction_id\":\"\",\"prompt\":{}}")},
	{clause: "agent-service/error-block", broken: edit("data: {\"value\":\" there.\"}", "{\"error\":\"workflow_error\",\"message\":\"no data: at all\"}")},
	{clause: "agent-service/error-block", broken: edit("data: {\"value\":\" there.\"}", "{\"error\":\"workflow_error\",\"message\":\"no\"}\n\ndata: {\"value\":\"more\"}")},
	{clause: "agent-service/error-block", broken: edit("data: {\"value\":\" there.\"}", "{\"error\":\"workflow_error\",\"message\":\"no\"}\n\n{\"error\":\"workflow_error\",\"message\":\"no\"}")},
	{clause: "agent-service/filter", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && strings.HasSuffix(r.URL.RawQuery, "=TOOL_START%2CTOOL_END") {
			a.body = stepBlock(idRun, "null", "WORKFLOW_START", "fake.invoke", `"metadata":{}`) + a.body
		}
	}},
	{clause: "agent-service/filter", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && strings.HasSuffix(r.URL.RawQuery, "=TOOL_START%2CTOOL_END") {
			a.body = a.body[strings.Index(a.body, "data: {\"value\""):] // as if %2C had not been decoded
		}
	}},
	{clause: "agent-service/filter-empty", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && r.URL.RawQuery == "filter_steps=" {
			a.body += stepBlock(idRun, "null", "WORKFLOW_END", "fake.invoke", `"metadata":{}`)
		}
	}},
	{clause: "agent-service/filter-forms", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && strings.Contains(r.URL.RawQuery, "workflow_start") {
			a.body = a.body[strings.Index(a.body, "data: {\"value\""):]
		}
	}},
	{clause: "agent-service/request-id-made", broken: func(r *http.Request, _ string, a *response) {
		if a.stream && r.Header.Get("X-Request-Id") == "" {
			a.header.Del("X-Request-Id")
		}
	}},
	{clause: "agent-service/step-type", broken: edit(": keep-alive\n\n", stepBlock("55555555-5555-4555-8555-555555555555", idRun, "LLM_START", "x", `"metadata":{}`)+
		stepBlock("55555555-5555-4555-8555-555555555555", idRun, "LLM_END", "x", `"metadata":{}`)), also: []string{"agent-service/filter", "agent-service/filter-empty", "agent-service/filter-forms"}},
	{clause: "agent-service/step-payload", broken: edit(`"UUID":"`+idTool, `"UUID":"`+idOut)},
	{clause: "agent-service/step-id", broken: editAll(idTool, "tool-1")},
	{clause: "agent-service/step-parent", broken: edit(`"id":"`+idTool+`","parent_id":"`+idRun+`"`, `"id":"`+idTool+`","parent_id":null`)},
	{clause: "agent-service/step-pairs", broken: func(_ *http.Request, _ string, a *response) {
		if i := strings.LastIndex(a.body, `"id":"`+idTool); a.stream && i > 0 {
			a.body = a.body[:i] + strings.ReplaceAll(a.body[i:], idTool, "66666666-6666-4666-8666-666666666666")
		}
	}},
	{clause: "agent-service/tool-start", broken: edit(toolStart, `"data":{"input":{"id":1}},"metadata":{}`)},
	{clause: "agent-service/tool-end", broken: edit(`"tool_outputs":{"n":2}`, `"tool_outputs":{"n":3}`)},
	{clause: "agent-service/tool-name", broken: editAll("mcp__get_ticket", "get_ticket")},
	{clause: "agent-service/tool-cards", broken: editAll("guardrail_input_self_check_decision", "x__get_ticket"), also: []string{"agent-service/decision-input"}},
	{clause: "agent-service/provenance", broken: editAll(`"agent_runtime":"fake"`, `"agent_runtime":""`)},
	{clause: "agent-service/trace", broken: editAll(`"workflow_trace_id":""`, `"workflow_trace_id":"`+strings.Repeat("a", 32)+`"`)},
	{clause: "agent-service/order", broken: func(_ *http.Request, _ string, a *response) {
		if i := strings.LastIndex(a.body, "intermediate_data: "); a.stream && i > 0 && strings.Contains(a.body[i:], "WORKFLOW_END") {
			a.body = a.body[:i]
		}
	}, also: []string{"agent-service/step-pairs"}},
	{clause: "agent-service/order", broken: func(_ *http.Request, _ string, a *response) {
		if a.stream && strings.Contains(a.body, "WORKFLOW_END") {
			a.body += "data: {\"value\":\"late\"}\n\n"
		}
	}, also: []string{"agent-service/decision-output"}},
	{clause: "agent-service/decision-input", broken: func(_ *http.Request, _ string, a *response) {
		tool := strings.Index(a.body, `intermediate_data: {"id":"`+idTool)
		input := strings.Index(a.body, `intermediate_data: {"id":"`+idInput)
		answer := strings.Index(a.body, "data: {\"value\"")
		if a.stream && input >= 0 && tool > input && answer > tool {
			a.body = a.body[:input] + a.body[tool:answer] + a.body[input:tool] + a.body[answer:]
		}
	}},
	{clause: "agent-service/decision-input", broken: edit(`"outcome":"passed","blocked":false`, `"outcome":"passed"`)},
	{clause: "agent-service/decision-input", broken: edit(`"outcome":"passed","blocked":false`, `"outcome":"blocked","blocked":false`)},
	{clause: "agent-service/decision-output", broken: edit(`"stage":"output"`, `"stage":"input"`)},
	{clause: "agent-service/decision-output", broken: edit(`"outcome":"passed","blocked":false`, `"outcome":"blocked","blocked":true`)},

	{clause: "agent-service/version", broken: path(pathVersion, func(a *response) {
		if a.status == 200 {
			a.header.Set("Content-Type", "text/plain")
		}
	})},
	{clause: "agent-service/version-closed", broken: func(r *http.Request, _ string, a *response) {
		if r.URL.Path == pathVersion && a.status == 401 && r.Header.Get("Authorization") != "" {
			ok200(a)
		}
	}},
	{clause: "agent-service/version-fields", broken: path(pathVersion, func(a *response) { a.body = strings.Replace(a.body, `"available":true`, `"available":"yes"`, 1) })},
	{clause: "agent-service/version-digests", broken: path(pathVersion, func(a *response) { a.body = strings.Replace(a.body, sha, strings.ToUpper(sha), 1) })},
	{clause: "agent-service/version-tools", broken: path(pathVersion, func(a *response) {
		a.body = strings.Replace(a.body, `["get_ticket","search_tickets"]`, `["search_tickets","get_ticket"]`, 1)
	})},
	{clause: "agent-service/version-runtime", broken: path(pathVersion, func(a *response) { a.body = strings.Replace(a.body, `"agent_runtime":"fake",`, ``, 1) })},

	{clause: "agent-service/interaction-closed", broken: func(r *http.Request, _ string, a *response) {
		if _, _, ok := interactionIDs(r.URL.Path); ok && a.status == 401 && r.Method == http.MethodPost {
			a.header.Del("WWW-Authenticate")
		}
	}},
	{clause: "agent-service/interaction-unknown", broken: answerTo(404, `"type":"text"`, func(a *response) { *a = *refuse(404, "no interaction") })},
	{clause: "agent-service/interaction-execution-id", broken: func(r *http.Request, body string, a *response) {
		if e, i, ok := interactionIDs(r.URL.Path); ok && e == "x" && i == nothing {
			*a = *refuse(404, "not found")
		}
	}},
	{clause: "agent-service/interaction-id", broken: func(r *http.Request, _ string, a *response) {
		if e, _, ok := interactionIDs(r.URL.Path); ok && e == nobody && a.status == 400 {
			if errorBodyIs(a, "invalid interaction ID") {
				reworded(a)
			}
		}
	}},
	{clause: "agent-service/interaction-ids-order", broken: func(r *http.Request, body string, a *response) {
		if e, i, ok := interactionIDs(r.URL.Path); ok && e == "x" && i == "y" && len(body) > 16384 {
			*a = *refuse(400, "interaction response is too large")
		}
	}},
	{clause: "agent-service/interaction-large", broken: answerTo(400, `"xxxx`, func(a *response) {
		if errorBodyIs(a, "interaction response is too large") {
			a.status = 413
		}
	})},
	{clause: "agent-service/interaction-large-first", broken: func(r *http.Request, body string, a *response) {
		if errorBodyIs(a, "interaction response is too large") && body[0] == 'x' {
			*a = *refuse(400, "invalid interaction response: not JSON")
		}
	}},
	{clause: "agent-service/interaction-shape", broken: answerTo(400, `"answer"`, func(a *response) { *a = *refuse(404, "no pending interaction with that id") })},
	{clause: "agent-service/interaction-unknown-field", broken: answerTo(400, `"more"`, func(a *response) { *a = *refuse(404, "no pending interaction with that id") })},
	{clause: "agent-service/interaction-kind", broken: answerTo(400, `"voice"`, func(a *response) { *a = *refuse(404, "no pending interaction with that id") })},
	{clause: "agent-service/interaction-radio", broken: answerTo(404, `"radio"`, func(a *response) { *a = *refuse(400, "invalid interaction response: x") })},
	{clause: "agent-service/interaction-binary", broken: answerTo(404, `"binary_choice"`, func(a *response) { *a = *refuse(400, "invalid interaction response: x") })},

	{clause: "agent-service/errors-json", broken: func(r *http.Request, body string, a *response) {
		if a.status == 401 && len(r.Header.Values("Authorization")) == 1 && isAuth(r, "Bearer "+key) {
			a.header.Set("Content-Type", "text/plain")
		}
	}},
	{clause: "agent-service/key-concealed", broken: path("/weir-conform", func(a *response) { a.header.Set("X-Debug", "Bearer "+key) })},

	{clause: "agentv/task-missing", broken: func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathTask && strings.Contains(body, `"run_id":"r"`) {
			a.status = 500
		}
	}},
	{clause: "agentv/task-kind", broken: func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathTask && body == `{"task_description":1}` {
			ok200(a)
		}
	}},
	{clause: "agentv/body-empty", broken: func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathTask && body == "" {
			a.status = 500
		}
	}},
	{clause: "agentv/body-kind", broken: func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathTask && body == "[1]" {
			*a = *plain("bad")
			a.status = 400
		}
	}},
	{clause: "agentv/action", broken: acted("run_id", `"action":"call_tool"`, `"action":"think"`)},
	{clause: "agentv/action-shape", broken: acted(`"run_id"`, `"tool_name"`, `"tool"`)},
	{clause: "agentv/no-outputs", broken: acted("run_id", `"summary":"s"`, `"summary":"s","tool_outputs":[]`)},
	{clause: "agentv/in-time", broken: func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathTask && strings.Contains(body, `"turn":1}`) && strings.Contains(body, `"run_id"`) {
			<-time.After(turnTimeout + time.Millisecond)
		}
	}},
	{clause: "agentv/name", broken: acted("", `"agent_name"`, `"agent"`)},
	{clause: "agentv/markers", broken: acted("", `"subtask"`, `"sub"`)},
	{clause: "agentv/bare-task", broken: func(r *http.Request, body string, a *response) {
		if r.URL.Path == pathTask && strings.HasPrefix(body, `{"task_description":"What`) && strings.HasSuffix(body, `?"}`) {
			*a = *refuse(400, "expected turn")
		}
	}},
	{clause: "agentv/unknown-keys", broken: acted(`"protocol"`, `call_tool`, `nothing`)},
	{clause: "agentv/resume", broken: acted(`"environment"`, `"summary"`, `"text"`)},
}

func errorBodyIs(a *response, message string) bool {
	return a.body == refuse(400, message).body
}
