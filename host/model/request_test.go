package model

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/fault"
)

// Clause 15: what the agent sends.
func TestRequestBody(t *testing.T) {
	hot, cold := 0.5, 0.0
	schema := abi.Raw(`{ "type": "object",` + "\n" + `  "properties": {"n": {"minimum": 9007199254740993, "description": "a <b> & c"}} }`)
	for _, c := range []struct {
		name  string
		alias Alias
		req   Request
		want  string
	}{
		{
			name:  "an agent's call",
			alias: Alias{Temperature: &cold, MaxTokens: 4096, ReasoningEffort: "none"},
			req: Request{Stream: true,
				Messages: []abi.Message{{Role: "system", Content: "be <kind>"}, {Role: "user", Content: "é \"q\"\n"}},
				Tools:    []Tool{{Name: "get_ticket", Description: "reads one", Schema: schema}, {Name: "bare"}}},
			want: `{"model":"m","messages":[{"role":"system","content":"be <kind>"},{"role":"user","content":"é \"q\"\n"}],` +
				`"tools":[{"type":"function","function":{"name":"get_ticket","description":"reads one","parameters":` + string(schema) + `}},` +
				`{"type":"function","function":{"name":"bare","description":""}}],` +
				`"stream":true,"temperature":0,"max_tokens":4096,"reasoning_effort":"none"}`,
		},
		{
			name:  "a guard's call has no stream",
			alias: Alias{Temperature: &cold, MaxTokens: 4096},
			req:   Request{Messages: []abi.Message{{Role: "user", Content: "x"}}, Temperature: &hot, MaxTokens: 4},
			want:  `{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":0.5,"max_tokens":4}`,
		},
		{
			name: "calls and results; arguments keep their text",
			req: Request{Messages: []abi.Message{
				{Role: "assistant", ToolCalls: []abi.ToolCall{{ID: "c1", Name: "f", Arguments: `{"n": 9007199254740993, "x":1e3}`}, {ID: "c2", Name: "g"}}},
				{Role: "tool", ToolCallID: "c1", Content: "[1]"},
				{Role: "assistant", Content: "so", ToolCalls: []abi.ToolCall{{ID: "c3", Name: "h", Arguments: `{"broken`}}},
				{Role: "tool", ToolCallID: "c3"}}},
			want: `{"model":"m","messages":[` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\": 9007199254740993, \"x\":1e3}"}},` +
				`{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
				`{"role":"tool","content":"[1]","tool_call_id":"c1"},` +
				`{"role":"assistant","content":"so","tool_calls":[{"id":"c3","type":"function","function":{"name":"h","arguments":"{}"}}]},` +
				`{"role":"tool","content":"","tool_call_id":"c3"}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.alias.Name = "m"
			got, err := (&endpoint{model: c.alias}).body(&c.req)
			if err != nil || string(got) != c.want {
				t.Errorf("body = %s, %v\nwant   %s", got, err, c.want)
			}
		})
	}
}

// Clause 15: the path, the bearer token, and nothing that invites trouble.
func TestRequestHead(t *testing.T) {
	var got *http.Request
	var body []byte
	c := serve(t, Options{Agent: Alias{APIKey: "key-1"}}, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(r.Context())
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n")
	})
	if _, err := c.Complete(t.Context(), streamed(), nil); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.URL.Path != "/v1/chat/completions" {
		t.Errorf("%s %s, want POST /v1/chat/completions", got.Method, got.URL.Path)
	}
	for name, want := range map[string]string{"Authorization": "Bearer key-1", "Content-Type": "application/json",
		"Accept": "text/event-stream", "Accept-Encoding": "", "Idempotency-Key": ""} {
		if v := strings.Join(got.Header.Values(name), "|"); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
	if int64(len(body)) != got.ContentLength {
		t.Errorf("content length %d, body of %d", got.ContentLength, len(body))
	}
}

func TestRequestRefusals(t *testing.T) {
	c := client(t, Options{Agent: Alias{BaseURL: "http://127.0.0.1:1/v1"}})
	for name, req := range map[string]*Request{
		"an alias that is none":  {Alias: "other", Messages: []abi.Message{{Role: "user"}}},
		"a reference":            {Alias: abi.ModelAgent, Messages: []abi.Message{{Ref: 1}}},
		"a turn":                 {Alias: abi.ModelAgent, Messages: []abi.Message{{Turn: 1}}},
		"a schema that is none":  {Alias: abi.ModelAgent, Messages: []abi.Message{{Role: "user"}}, Tools: []Tool{{Name: "f", Schema: abi.Raw("{")}}},
		"a schema and something": {Alias: abi.ModelAgent, Messages: []abi.Message{{Role: "user"}}, Tools: []Tool{{Name: "f", Schema: abi.Raw(`{}},"x":{`)}}},
	} {
		if _, err := c.Complete(t.Context(), req, nil); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v, want kind invalid", name, err)
		}
	}
}

// The base may end in a slash or carry a query, as some gateways want it.
func TestAddress(t *testing.T) {
	for base, want := range map[string]string{
		"http://h/v1":                 "http://h/v1/chat/completions",
		"http://h/v1/":                "http://h/v1/chat/completions",
		"https://h:8443":              "https://h:8443/chat/completions",
		"https://h/d/x?api-version=1": "https://h/d/x/chat/completions?api-version=1",
	} {
		if e, err := newEndpoint("agent", Alias{BaseURL: base, Name: "m"}); err != nil || e.url != want {
			t.Errorf("%s: %+v, %v, want %s", base, e, err, want)
		}
	}
}

func TestOptionsRefusals(t *testing.T) {
	good := Alias{BaseURL: "https://models.example/v1/", APIKey: "k", Name: "m"}
	if _, err := New(Options{Agent: good, Guard: good}); err != nil {
		t.Fatalf("good options: %v", err)
	}
	for name, change := range map[string]func(*Alias){
		"no address":       func(a *Alias) { a.BaseURL = "" },
		"relative address": func(a *Alias) { a.BaseURL = "models.example/v1" },
		"another scheme":   func(a *Alias) { a.BaseURL = "file:///etc" },
		"user in address":  func(a *Alias) { a.BaseURL = "http://u:secret@models.example/v1" },
		"fragment":         func(a *Alias) { a.BaseURL = "http://models.example/v1#secret" },
		"control in key":   func(a *Alias) { a.APIKey = "secret\nX: y" },
		"no name":          func(a *Alias) { a.Name = "" },
	} {
		bad := good
		change(&bad)
		_, err := New(Options{Agent: good, Guard: bad})
		if fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v, want kind invalid", name, err)
		} else if strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "model guard: ") {
			t.Errorf("%s: text %q tells a secret or not where", name, err)
		}
	}
}
