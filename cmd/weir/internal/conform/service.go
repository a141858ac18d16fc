package conform

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Messages of the contract's section 1.3.
const (
	msgKey       = "invalid or missing internal API key"
	msgIdentity  = "missing or ambiguous authenticated identity"
	msgRequestID = "invalid x-request-id"
	msgEmpty     = "at least one chat message is required"
	msgShape     = "invalid workflow request: "
)

func serviceClause(id, section string, level Level, text string, check func(context.Context, *subject) finding) Clause {
	return Clause{ID: id, Spec: SpecService, Section: section, Level: level, Text: text, check: check}
}

// serviceRoutes are the clauses of 1.1.
func serviceRoutes() []Clause {
	return []Clause{
		serviceClause("workflow-route", "1.1", Must, "POST /v1/workflow/full is served", keyed(func(_ context.Context, s *subject) finding {
			if !s.serves() {
				return fail("expected a refusal of an empty request, got %s", s.served)
			}
			return pass()
		})),
		serviceClause("health-public", "1.1", Must, "GET /health answers 2xx without a key", wire(func(ctx context.Context, s *subject) finding {
			if a := s.do(ctx, http.MethodGet, pathHealth, nil, nil); a.err != nil || a.status/100 != 2 {
				return fail("got %s", a)
			}
			return pass()
		})),
		serviceClause("health-live", "1.1", Should, "GET /health/live answers 200 and ok, without a key", service(func(ctx context.Context, s *subject) finding {
			a := s.do(ctx, http.MethodGet, "/health/live", nil, nil)
			if a.err != nil || a.status != http.StatusOK || strings.TrimSpace(string(a.body)) != "ok" {
				return fail("got %s", a)
			}
			return pass()
		})),
		serviceClause("health-ready", "1.1", Should, "GET /health/ready answers 200 and ready or 503 and why, without a key", service(func(ctx context.Context, s *subject) finding {
			a := s.do(ctx, http.MethodGet, "/health/ready", nil, nil)
			ready := a.status == http.StatusOK && strings.TrimSpace(string(a.body)) == "ready"
			if a.err != nil || !ready && (a.status != http.StatusServiceUnavailable || len(a.body) == 0) {
				return fail("got %s", a)
			}
			return pass()
		})),
		serviceClause("closed", "1.1", Must, "every other path is 401 without the key", service(func(ctx context.Context, s *subject) finding {
			for _, path := range []string{pathWorkflow, pathVersion, "/docs", "/v1/chat/completions", "/executions/x/interactions/y/response", "/"} {
				if f := refusal(s.do(ctx, http.MethodGet, path, nil, nil), http.StatusUnauthorized, msgKey); f.outcome != Passed {
					return f
				}
			}
			return pass()
		})),
		serviceClause("closed-exactly", "1.1", Should, "public paths are matched exactly", service(func(ctx context.Context, s *subject) finding {
			for _, path := range []string{"/health/", "/HEALTH", "/health/live/"} {
				if f := status(s.do(ctx, http.MethodGet, path, nil, nil), http.StatusUnauthorized); f.outcome != Passed {
					return f
				}
			}
			return pass()
		})),
		serviceClause("unknown-path", "1.1", Should, "an unknown path is 404 and not found, with key and identity", service(func(ctx context.Context, s *subject) finding {
			return refusal(s.do(ctx, http.MethodGet, "/weir-conform", s.caller(), nil), http.StatusNotFound, "not found")
		})),
		serviceClause("method", "1.1", Should, "another method on a known path is 405, after authentication", service(func(ctx context.Context, s *subject) finding {
			return status(s.do(ctx, http.MethodGet, pathWorkflow, s.caller(), nil), http.StatusMethodNotAllowed)
		})),
		serviceClause("no-redirect", "10.1", Must, "no path is answered by a redirect", service(func(ctx context.Context, s *subject) finding {
			for _, path := range []string{pathWorkflow + "/", "/" + pathWorkflow, pathVersion + "/", "/health/", "/v1/../version"} {
				if a := s.do(ctx, http.MethodGet, path, s.caller(), nil); a.status/100 == 3 {
					return fail("got %s", a)
				}
			}
			return pass()
		})),
	}
}

// serviceKey are the clauses of the first step of authentication.
func serviceKey() []Clause {
	// Every one of these is refused although the identity is right.
	wrong := func(id string, level Level, text string, headers func(s *subject) []header) Clause {
		return serviceClause(id, "1.2", level, text, service(func(ctx context.Context, s *subject) finding {
			list := append(headers(s), header{"x-authenticated-user-id", user})
			return s.refusesKey(s.post(ctx, list, emptyRequest))
		}))
	}
	one := func(value func(key string) string) func(*subject) []header {
		return func(s *subject) []header { return []header{{"Authorization", value(s.Key)}} }
	}
	return []Clause{
		wrong("key-missing", Must, "without the key: 401, its message and WWW-Authenticate: Bearer", func(*subject) []header { return nil }),
		wrong("key-wrong", Must, "a wrong key is refused", one(func(string) string { return "Bearer weir-conform-wrong-key" })),
		wrong("key-longer", Must, "a longer key that begins right is refused", one(func(key string) string { return "Bearer " + key + "x" })),
		wrong("key-shorter", Must, "the beginning of the key is refused", one(func(key string) string { return "Bearer " + key[:len(key)-1] })),
		wrong("key-empty", Must, "an empty key is refused", one(func(string) string { return "Bearer" })),
		wrong("key-scheme", Must, "the scheme is Bearer, in this case", one(func(key string) string { return "bearer " + key })),
		wrong("key-basic", Must, "another scheme is refused", one(func(key string) string { return "Basic " + key })),
		wrong("key-twice", Should, "two Authorization headers are refused", func(s *subject) []header { return []header{s.key(), s.key()} }),
		serviceClause("key-first", "1.2", Must, "the key is looked at before identity, request id and body", service(func(ctx context.Context, s *subject) finding {
			for _, list := range [][]header{nil, {{"x-authenticated-user-id", user}, {"x-authenticated-user-id", user}}, {{"x-request-id", "a b"}}} {
				if f := s.refusesKey(s.post(ctx, list, []byte("{"))); f.outcome != Passed {
					return f
				}
			}
			return pass()
		})),
	}
}

func (s *subject) refusesKey(a *answer) finding {
	f := refusal(a, http.StatusUnauthorized, msgKey)
	if f.outcome == Passed && a.header.Get("WWW-Authenticate") != "Bearer" {
		return fail("expected WWW-Authenticate: Bearer, got %q", a.header.Get("WWW-Authenticate"))
	}
	return f
}

// serviceIdentity are the clauses of the steps after the key.
func serviceIdentity() []Clause {
	refused := func(id string, level Level, text string, headers ...header) Clause {
		return serviceClause(id, "1.2", level, text, service(func(ctx context.Context, s *subject) finding {
			a := s.post(ctx, append([]header{s.key()}, headers...), emptyRequest)
			f := refusal(a, http.StatusUnauthorized, msgIdentity)
			if f.outcome == Passed && a.header.Get("WWW-Authenticate") != "" {
				return fail("expected no WWW-Authenticate where the key is right")
			}
			return f
		}))
	}
	// An empty request that is refused as such has passed everything before.
	taken := func(id, section string, level Level, text string, headers ...header) Clause {
		return serviceClause(id, section, level, text, service(func(ctx context.Context, s *subject) finding {
			return refusal(s.post(ctx, append([]header{s.key()}, headers...), emptyRequest), http.StatusBadRequest, msgEmpty)
		}))
	}
	id := func(value string) header { return header{"x-authenticated-user-id", value} }
	return []Clause{
		refused("identity-missing", Must, "without identity: 401, its message and no WWW-Authenticate"),
		refused("identity-empty", Must, "an empty identity is refused", id("")),
		refused("identity-blank", Must, "a blank identity is refused", id("   ")),
		refused("identity-twice", Must, "two identities are refused", id("a"), id("b")),
		refused("identity-same-twice", Must, "the same identity twice is refused", id(user), id(user)),
		refused("identity-ascii", Should, "bytes beyond visible ASCII are refused", id("zo\xc3\xab")),
		refused("identity-long", Should, "more than 256 characters are refused", id(strings.Repeat("a", 257))),
		refused("name-twice", Must, "two user names are refused", id(user), header{"x-authenticated-username", "a"}, header{"x-authenticated-username", "b"}),
		refused("roles-twice", Must, "two lists of roles are refused", id(user), header{"x-authenticated-roles", "a"}, header{"x-authenticated-roles", "b"}),
		serviceClause("identity-first", "1.2", Must, "identity is looked at before request id and body", service(func(ctx context.Context, s *subject) finding {
			return refusal(s.post(ctx, []header{s.key(), {"x-request-id", "a b"}}, []byte("{")), http.StatusUnauthorized, msgIdentity)
		})),
		taken("identity-encoded", "1.2", Must, "a percent-encoded identity is taken", id("Zo%C3%AB Smith")),
		taken("email-ignored", "1.2", Must, "x-authenticated-email may repeat", id(user), header{"x-authenticated-email", "a@example.org"}, header{"x-authenticated-email", "b@example.org"}),
		taken("names-empty", "1.2", Should, "an empty user name and empty roles count as absent", id(user), header{"x-authenticated-username", ""}, header{"x-authenticated-roles", ""}),
		taken("request-id-absent", "1.2", Must, "a request without x-request-id is taken", id(user)),
		taken("request-id-any", "10.4", Must, "a request id need not be a UUID", id(user), header{"x-request-id", "conform-1"}),
		serviceClause("request-id-bad", "1.2", Should, "a request id with a space or of more than 128 bytes is 400", service(func(ctx context.Context, s *subject) finding {
			for _, value := range []string{"a b", strings.Repeat("a", 129)} {
				if f := refusal(s.post(ctx, s.caller(header{"x-request-id", value}), emptyRequest), http.StatusBadRequest, msgRequestID); f.outcome != Passed {
					return f
				}
			}
			return pass()
		})),
		serviceClause("request-id-twice", "1.2", Should, "two request ids are 400", service(func(ctx context.Context, s *subject) finding {
			return refusal(s.post(ctx, s.caller(header{"x-request-id", "a"}, header{"x-request-id", "b"}), emptyRequest), http.StatusBadRequest, msgRequestID)
		})),
		serviceClause("request-id-first", "1.2", Should, "the request id is looked at before the body", service(func(ctx context.Context, s *subject) finding {
			return refusal(s.post(ctx, s.caller(header{"x-request-id", "a b"}), []byte("{")), http.StatusBadRequest, msgRequestID)
		})),
	}
}

// serviceRequest are the clauses of 2.1. Whatever a body is refused for, the
// last message is never a question that an agent would answer, or the body is
// beyond a limit.
func serviceRequest() []Clause {
	refused := func(id string, level Level, text string, code int, message string, body func() string) Clause {
		return serviceClause(id, "2.1", level, text, service(func(ctx context.Context, s *subject) finding {
			a := s.post(ctx, s.caller(), []byte(body()))
			if !strings.HasSuffix(message, ": ") {
				return refusal(a, code, message)
			}
			if got := errorText(a); a.err != nil || a.status != code || !strings.HasPrefix(got, message) || len(got) == len(message) {
				return fail("expected %d and the error %q with the parser's words, got %s", code, message, a)
			}
			return pass()
		}))
	}
	bad := func(id string, level Level, text, message, body string) Clause {
		return refused(id, level, text, http.StatusBadRequest, message, func() string { return body })
	}
	turn := func(role, content string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, content) }
	list := func(turns ...string) string { return `{"messages":[` + strings.Join(turns, ",") + `]}` }
	const (
		msgRole  = "only user and assistant chat roles are accepted"
		msgBlank = "chat messages must not be empty"
		msgLast  = "the final chat message must have the user role"
		msgLarge = "chat history is too large"
	)
	return []Clause{
		bad("messages-empty", Must, "an empty list of messages is refused", msgEmpty, string(emptyRequest)),
		refused("messages-many", Must, "more than 200 messages are refused", http.StatusBadRequest, "too many chat messages; maximum is 200",
			func() string { return list(slices.Repeat([]string{turn("assistant", "x")}, 201)...) }),
		bad("role-system", Must, "other roles than user and assistant are refused", msgRole, list(turn("system", "x"))),
		bad("role-case", Must, "roles are lower case", msgRole, list(turn("USER", "x"))),
		bad("content-blank", Must, "a message of white space is refused", msgBlank, list(turn("user", " \n\t"))),
		bad("last-user", Must, "the last message is the user's", msgLast, list(turn("user", "x"), turn("assistant", "y"))),
		refused("characters-many", Must, "more than 524,288 characters are refused with 400", http.StatusBadRequest, msgLarge,
			func() string { return list(turn("assistant", strings.Repeat("x", 600*1024))) }),
		refused("characters-count", Must, "characters are counted, not bytes", http.StatusBadRequest, msgLast,
			func() string { return list(turn("assistant", strings.Repeat("é", 300*1024))) }),
		refused("body-large", Must, "a body of more than 2 MiB is 413", http.StatusRequestEntityTooLarge, "", func() string { return list(turn("assistant", strings.Repeat("x", 2<<20))) }).anyBody(),
		bad("unknown-field", Must, "an unknown field is refused", msgShape, `{"messages":[],"model":"x"}`),
		bad("unknown-message-field", Must, "an unknown field of a message is refused", msgShape, `{"messages":[{"role":"assistant","content":"x","name":"y"}]}`),
		bad("not-an-object", Must, "a text in place of the object is refused", msgShape, `"hello"`),
		bad("messages-missing", Must, "messages is required", msgShape, `{}`),
		bad("messages-null", Must, "null in place of messages is refused", msgShape, `{"messages":null}`),
		bad("content-missing", Must, "content is required", msgShape, `{"messages":[{"role":"assistant"}]}`),
		bad("content-kind", Must, "content is a text", msgShape, `{"messages":[{"role":"assistant","content":1}]}`),
		bad("trailing-data", Must, "data after the object is refused", msgShape, `{"messages":[]} {}`),
		bad("not-json", Must, "a body that is no JSON is refused", msgShape, `{"messages":[`),
		bad("key-case", Should, "names of fields are matched exactly", msgShape, `{"Messages":[]}`),
		bad("duplicate-field", Should, "a field that stands twice is refused", msgShape, `{"messages":[],"messages":[]}`),
		bad("invalid-utf8", Should, "bytes that are no UTF-8 are refused", msgShape, "{\"messages\":[{\"role\":\"assistant\",\"content\":\"\xff\"}]}"),
		bad("lone-surrogate", Should, "half of a surrogate pair is refused", msgShape, `{"messages":[{"role":"assistant","content":"\ud800"}]}`),
		bad("optional-fields", Must, "stream, user and evaluation_case_id are taken", msgEmpty, `{"messages":[],"stream":true,"user":"u","evaluation_case_id":"c"}`),
		bad("optional-null", Must, "they may be null", msgEmpty, `{"messages":[],"stream":null,"user":null,"evaluation_case_id":null}`),
		bad("messages-order", Should, "messages are checked one after the other: role, content, length, then the last role", msgBlank, list(turn("assistant", " "), turn("system", "x"))),
		serviceClause("content-type-ignored", "2.1", Should, "the content type is not looked at", service(func(ctx context.Context, s *subject) finding {
			return refusal(s.post(ctx, s.caller(header{"Content-Type", "text/plain"}), emptyRequest), http.StatusBadRequest, msgEmpty)
		})),
	}
}

// anyBody makes a refusal a matter of its status alone.
func (c Clause) anyBody() Clause {
	check := c.check
	c.check = func(ctx context.Context, s *subject) finding {
		f := check(ctx, s)
		if f.outcome == Failed && len(s.seen) > 0 {
			// A server may close before it has read what it refuses.
			if a := s.seen[len(s.seen)-1]; a.status == http.StatusRequestEntityTooLarge {
				return pass()
			}
		}
		return f
	}
	return c
}

// serviceErrors are said of all answers together, so they come last.
func serviceErrors() []Clause {
	return []Clause{
		serviceClause("errors-json", "1.3", Must, "refusals with 400 and 401 are JSON with the one member error", service(func(ctx context.Context, s *subject) finding {
			for _, a := range []*answer{s.post(ctx, nil, emptyRequest), s.post(ctx, []header{s.key()}, emptyRequest), s.post(ctx, s.caller(), emptyRequest), s.post(ctx, s.caller(), []byte("{"))} {
				if a.err != nil || errorText(a) == "" || !isJSON(a) {
					return fail("got %s, content-type %q", a, a.header.Get("Content-Type"))
				}
			}
			return pass()
		})),
		serviceClause("key-concealed", "1.3", Must, "no answer contains the service key", keyed(func(_ context.Context, s *subject) finding {
			for _, a := range s.seen {
				if strings.Contains(string(a.body), s.Key) || strings.Contains(fmt.Sprint(a.header), s.Key) {
					return fail("%s: the key is in the answer", a.request)
				}
			}
			return pass()
		})),
	}
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// serviceVersion are the clauses of section 7.
func serviceVersion() []Clause {
	version := func(check func(v map[string]any) finding) func(context.Context, *subject) finding {
		return service(func(ctx context.Context, s *subject) finding {
			v, f := object(s.do(ctx, http.MethodGet, pathVersion, s.caller(), nil))
			if f.outcome != Passed {
				return skip("there is no /version to read")
			}
			return check(v)
		})
	}
	return []Clause{
		serviceClause("version", "7", Must, "GET /version answers 200 and a JSON object", service(func(ctx context.Context, s *subject) finding {
			_, f := object(s.do(ctx, http.MethodGet, pathVersion, s.caller(), nil))
			return f
		})),
		serviceClause("version-closed", "7", Must, "/version is 401 without the key, and without identity", service(func(ctx context.Context, s *subject) finding {
			if f := s.refusesKey(s.do(ctx, http.MethodGet, pathVersion, nil, nil)); f.outcome != Passed {
				return f
			}
			return refusal(s.do(ctx, http.MethodGet, pathVersion, []header{s.key()}, nil), http.StatusUnauthorized, msgIdentity)
		})),
		serviceClause("version-fields", "7", Must, "the fields common to all runtimes are there", version(func(v map[string]any) finding {
			if _, ok := v["available"].(bool); !ok {
				return fail("expected true or false in available, got %v", v["available"])
			}
			for _, name := range []string{"model", "guard_model", "reasoning_effort", "guard_reasoning_effort", "build_commit"} {
				if _, ok := v[name].(string); !ok {
					return fail("expected a text in %s, got %v", name, v[name])
				}
			}
			return pass()
		})),
		serviceClause("version-digests", "7", Must, "digests are lower-case SHA-256", version(func(v map[string]any) finding {
			for _, name := range []string{"config_sha256", "prompt_sha256", "guardrails_prompts_sha256"} {
				text, ok := v[name].(string)
				if unread := name == "config_sha256" && v[name] == nil && v["available"] == false; !unread && (!ok || !digest.MatchString(text)) {
					return fail("%s: got %v", name, v[name])
				}
			}
			return pass()
		})),
		serviceClause("version-tools", "7", Must, "tools_exposed is a sorted list of names", version(func(v map[string]any) finding {
			list, ok := v["tools_exposed"].([]any)
			last := ""
			for _, item := range list {
				name, text := item.(string)
				if ok = ok && text && name > last; !ok {
					break
				}
				last = name
			}
			if !ok {
				return fail("got %v", v["tools_exposed"])
			}
			return pass()
		})),
		serviceClause("version-runtime", "7", Should, "agent_runtime names the runtime", version(func(v map[string]any) finding {
			return texts(v, "agent_runtime")
		})),
	}
}

// Identifiers that no agent can have given out: they are fixed and of version 4.
const (
	nobody  = "5f9a1c1e-0d5b-4c8a-9c55-0f6d3b1e7a01"
	nothing = "5f9a1c1e-0d5b-4c8a-9c55-0f6d3b1e7a02"
)

func interactionPath(execution, interaction string) string {
	return "/executions/" + execution + "/interactions/" + interaction + "/response"
}

const textAnswer = `{"response":{"type":"text","text":"x"}}`

// serviceInteractions are the clauses of 3.2 that need no pending question.
func serviceInteractions() []Clause {
	const msgUnknown = "no pending interaction with that id"
	asked := func(id string, text string, code int, message, path, body string) Clause {
		return serviceClause(id, "3.2", Must, text, service(func(ctx context.Context, s *subject) finding {
			if !s.approves(ctx) {
				return skip("approvals are off, so there is no such route")
			}
			a := s.do(ctx, http.MethodPost, path, s.caller(), []byte(body))
			if got, prefix := errorText(a), strings.TrimSuffix(message, "*"); prefix != message {
				if a.err != nil || a.status != code || !strings.HasPrefix(got, prefix) {
					return fail("expected %d and %q, got %s", code, prefix, a)
				}
				return pass()
			}
			return refusal(a, code, message)
		}))
	}
	known := interactionPath(nobody, nothing)
	long := `{"response":{"type":"text","text":"` + strings.Repeat("x", 16384) + `"}}`
	const shape = "invalid interaction response: *"
	return []Clause{
		serviceClause("interaction-closed", "3.2", Must, "answers to interactions are 401 without the key and without identity", service(func(ctx context.Context, s *subject) finding {
			if f := s.refusesKey(s.do(ctx, http.MethodPost, known, nil, []byte(textAnswer))); f.outcome != Passed {
				return f
			}
			return refusal(s.do(ctx, http.MethodPost, known, []header{s.key()}, []byte(textAnswer)), http.StatusUnauthorized, msgIdentity)
		})),
		asked("interaction-unknown", "an interaction that nobody has opened is 404", 404, msgUnknown, known, textAnswer),
		asked("interaction-execution-id", "an execution id that is no UUID is 400", 400, "invalid execution ID", interactionPath("x", nothing), textAnswer),
		asked("interaction-id", "an interaction id that is no UUID is 400", 400, "invalid interaction ID", interactionPath(nobody, "y"), textAnswer),
		asked("interaction-ids-order", "the execution id is looked at first, and both before the body", 400, "invalid execution ID", interactionPath("x", "y"), long),
		asked("interaction-large", "a body of more than 16,384 bytes is 400", 400, "interaction response is too large", known, long),
		asked("interaction-large-first", "its size is looked at before its shape", 400, "interaction response is too large", known, strings.Repeat("x", 16385)),
		asked("interaction-shape", "a body of another shape is 400", 400, shape, known, `{"answer":"x"}`),
		asked("interaction-unknown-field", "an unknown field is 400", 400, shape, known, `{"response":{"type":"text","text":"x","more":1}}`),
		asked("interaction-kind", "a kind that does not exist is 400", 400, shape, known, `{"response":{"type":"voice","text":"x"}}`),
		asked("interaction-radio", "a radio answer is read", 404, msgUnknown, known, `{"response":{"type":"radio","selected_option":{"id":"a","label":"A","value":"a"}}}`),
		asked("interaction-binary", "a binary answer is read", 404, msgUnknown, known, `{"response":{"type":"binary_choice","selected_option":{"id":"confirm","label":"Yes","value":true}}}`),
	}
}

// approves finds out whether interactions are served: without approvals the
// path is unknown like any other.
func (s *subject) approves(ctx context.Context) bool {
	if s.approvals == nil {
		a := s.do(ctx, http.MethodPost, interactionPath("x", "y"), s.caller(), []byte(textAnswer))
		b := s.do(ctx, http.MethodPost, interactionPath(nobody, nothing), s.caller(), []byte(textAnswer))
		off := (a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed) && (b.status == http.StatusMethodNotAllowed ||
			b.status == http.StatusNotFound && !strings.Contains(errorText(b), "interaction"))
		on := !off
		s.approvals = &on
	}
	return *s.approvals
}
