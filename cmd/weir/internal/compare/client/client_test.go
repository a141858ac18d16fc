package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir/host/contract/stream/consumer"
	"weir/host/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// step is one intermediate_data block.
func block(kind, id, name, payload string) string {
	return fmt.Sprintf("intermediate_data: {\"id\":%q,\"parent_id\":null,\"type\":%q,\"name\":%q,\"payload\":%s}\n\n", id, kind, name, payload)
}

func text(value string) string {
	data, _ := json.Marshal(map[string]string{"value": value})
	return "data: " + strings.ReplaceAll(string(data), "\u0085", `\u0085`) + "\n\n"
}

var (
	begin = block("WORKFLOW_START", "W", "x.invoke", `{"metadata":{"provided_metadata":{"workflow_trace_id":"t1","workflow_run_id":"r1","generation":"g"}}}`)
	end   = block("WORKFLOW_END", "W", "x.invoke", `{"metadata":{"provided_metadata":{}}}`)
)

func decision(name, output string) string {
	return block("FUNCTION_END", "D", name, `{"data":{"input":{},"output":`+output+`}}`)
}

func readAll(t testing.TB, stream string) (*Observation, error) {
	t.Helper()
	r := &reader{tools: []string{"search_tickets", "get_ticket"}, now: time.Now, started: time.Now()}
	err := r.read(strings.NewReader(stream))
	return &r.got, err
}

// 10.3: what an evaluator makes of answer blocks.
func TestAnswer(t *testing.T) {
	for _, tt := range []struct{ name, stream, want string }{
		{"plain", text("hi ") + text("there"), "hi there"},
		{"scalars stay text", text("100") + text("true") + text("null"), "100truenull"},
		{"a list is its items", text(`["a",1,{"content":"b"}]`), "a1b"},
		{"an object's members in their order", text(`{"content":"c","answer":"a","value":""}`), "a"},
		{"an object without them is lost", text(`{"x":"y"}`), ""},
		{"what only looks like a container", text("[see below"), "[see below"},
		{"a printed object", text("x content='y' z"), "y"},
		{"space around a container", text(" [\"a\"]\n"), "a"},
		{"value is a number", "data: {\"value\":100}\n\n", ""},
		{"no space after the colon", "data:{\"value\":\"a\"}\n\n", "a"},
		{"only the first data line of a block", "data: {\"value\":\"a\"}\ndata: {\"value\":\"b\"}\n\n", "a"},
		{"data: anywhere in the block", "event: x\ndata: {\"value\":\"a\"}\n\n", "a"},
		{"CRLF", strings.ReplaceAll(text("a"), "\n", "\r\n"), "a"},
		{"no blank line at the end", "data: {\"value\":\"a\"}", "a"},
		{"comments", ": keep-alive\n\n" + text("a"), "a"},
		{"done marker", text("a") + "data: [DONE]\n\n", "a"},
		{"escaped separators", text("a\u0085b\u2028c"), "a\u0085b\u2028c"},
	} {
		got, err := readAll(t, tt.stream)
		if err != nil || got.Answer != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got.Answer, err, tt.want)
		}
	}
}

// What is no stream of the contract, or a run that failed, is an error and
// never an answer.
func TestMalformed(t *testing.T) {
	for _, tt := range []struct{ name, stream, want string }{
		{"nothing", "", "no block of the contract"},
		{"a page", "<html><body>hello</body></html>", "no block of the contract"},
		{"comments only", ": ping\n\n", "no block of the contract"},
		{"half a stream", begin + text("a"), "it ends without WORKFLOW_END"},
		{"a step that is no JSON", "intermediate_data: {\n\n", "a step that is no JSON object"},
		{"a fragment that is no JSON", "data: x\n\n", "a fragment that is no JSON object"},
		{"a raw separator cuts the JSON", "data: {\"value\":\"a\u2028b\"}\n\n", "a fragment that is no JSON object"},
		{"two values in one fragment", "data: {\"value\":\"a\"} {}\n\n", "a fragment that is no JSON object"},
		{"not UTF-8", "data: {\"value\":\"\xff\"}\n\n", "no UTF-8"},
		{"an error block", begin + `{"error":"workflow_error","message":"The agent run failed."}` + "\n\n" + end, `the agent reported an error: "The agent run failed."`},
		{"a question to a person", begin + "event: interaction_required\ndata: {}\n\n", "the agent asked a person"},
		{"the evaluator's trap", text("event: interaction_required"), "the agent asked a person"},
	} {
		if _, err := readAll(t, tt.stream); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// 10.3: tool calls, results and decisions.
func TestSteps(t *testing.T) {
	stream := begin +
		decision("guardrail_input_self_check_decision", `"{\"blocked\": \"true\"}"`) +
		block("TOOL_START", "1", "tickets_mcp__search_tickets", `{"metadata":{"tool_inputs":{"input":"{\"status\":\"open\",\"limit\":\"5\"}"}}}`) +
		block("TOOL_START", "2", "x__y__get_ticket", `{"metadata":{"tool_inputs":{}},"data":{"input":{"ticket_id":{"value":"TKT-1"},"text":{"type":"text","text":"a"}}}}`) +
		block("TOOL_START", "3", "tickets_mcp__unknown", `{}`) +
		block("FUNCTION_START", "4", "get_ticket", `{"data":{"input":{}}}`) +
		block("TOOL_END", "1", "tickets_mcp__search_tickets", `{"data":{"output":"{\"count\":5}"}}`) +
		block("TOOL_END", "1", "tickets_mcp__search_tickets", `{"data":{"output":"again"}}`) +
		block("FUNCTION_END", "2", "get_ticket", `{"data":{"payload":"plain"},"metadata":{"tool_outputs":"other"}}`) +
		`intermediate_data: {"payload":"{\"event_type\":\"tool_end\",\"name\":\"get_ticket\",\"UUID\":\"5\",\"metadata\":{\"span_outputs\":[1]}}"}` + "\n\n" +
		decision("guardrail_output_regex_pii_decision", `{"blocked":false,"modified":true}`) +
		end
	got, err := readAll(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	n := func(s string) json.Number { return json.Number(s) }
	want := &Observation{
		Calls: []ToolCall{
			{"1", "search_tickets", map[string]any{"status": "open", "limit": n("5")}},
			{"2", "get_ticket", map[string]any{"ticket_id": "TKT-1", "text": "a"}},
		},
		Results: []ToolResult{
			{"1", "search_tickets", map[string]any{"count": n("5")}},
			{"2", "get_ticket", "plain"},
			{"5", "get_ticket", []any{n("1")}},
		},
		Input:   &Decision{"guardrail_input_self_check_decision", map[string]any{"blocked": true}, true},
		Output:  &Decision{"guardrail_output_regex_pii_decision", map[string]any{"blocked": false, "modified": true}, false},
		Blocked: true, TraceID: "t1", RunID: "r1",
		Metadata: map[string]any{"workflow_trace_id": "t1", "workflow_run_id": "r1", "generation": "g"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	functions, err := readAll(t, begin+block("FUNCTION_START", "4", "get_ticket", `{}`)+end)
	if err != nil || len(functions.Calls) != 1 || functions.Input != nil || functions.Blocked {
		t.Errorf("without tool steps those of functions count: %+v, %v", functions, err)
	}
}

// One reading, whatever the chunks; and in the parts that both have, it is the
// reading of the host's own test of 10.3.
func TestChunksAndConsumer(t *testing.T) {
	stream := begin + decision("guardrail_input_x", `{"blocked":true}`) + text("é€😀 ") + text("100") + ": x\n\n" +
		block("TOOL_START", "1", "g__get_ticket", `{"data":{"input":{"a":1}}}`) + block("TOOL_END", "1", "g__get_ticket", `{"data":{"output":{"b":2}}}`) + end
	whole, err := readAll(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{tools: []string{"get_ticket"}, now: time.Now, started: time.Now()}
	if err := r.read(iotest.OneByteReader(strings.NewReader(stream))); err != nil {
		t.Fatal(err)
	}
	whole.First, r.got.First = 0, 0
	if diff := cmp.Diff(whole, &r.got); diff != "" {
		t.Errorf("byte by byte:\n%s", diff)
	}
	c := consumer.Evaluate([]byte(stream))
	if c.Text != whole.Answer || c.Blocked != whole.Blocked || len(c.ToolCalls) != len(whole.Calls) || len(c.Results) != len(whole.Results) || c.TraceID != whole.TraceID || c.RunID != whole.RunID {
		t.Errorf("the host's reader: %+v", c)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(begin + text("a") + end)
	f.Add(block("TOOL_START", "1", "get_ticket", `{"data":{"input":"{\"input\":{\"input\":\"[[]]\"}}"}}`) + end)
	f.Add("intermediate_data: {}") // a step without a name
	f.Add("data: {\"value\":\"[[{\\\"content\\\":[]}]]\"}\r\n\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		got, err := readAll(t, stream)
		r := &reader{tools: []string{"search_tickets", "get_ticket"}, now: time.Now, started: time.Now()}
		again := r.read(iotest.OneByteReader(strings.NewReader(stream)))
		if (err == nil) != (again == nil) || err == nil && got.Answer != r.got.Answer {
			t.Errorf("%q: %v and %v", stream, err, again)
		}
	})
}

const secret = "k-5e1f0c9b77"

func open(t *testing.T, h http.HandlerFunc, opts Options) *Agent {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return at(t, s.URL, opts)
}

func at(t *testing.T, url string, opts Options) *Agent {
	t.Helper()
	opts.Backoff = time.Microsecond
	a, err := New(url, secret, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// 10.3 and 11: the request of an evaluator, byte for byte what matters.
func TestRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	a := open(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.WithoutCancel(r.Context()))
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, begin+text("")+text("hi")+end)
	}, Options{})
	obs, err := a.Ask(t.Context(), "CASE-1", "é?")
	if err != nil || obs.Answer != "hi" || obs.Attempts != 1 || obs.First <= 0 || obs.Latency < obs.First {
		t.Fatalf("%+v, %v", obs, err)
	}
	if want := `{"evaluation_case_id":"CASE-1","messages":[{"content":"é?","role":"user"}],"stream":true,"user":"CASE-1"}`; string(body) != want {
		t.Errorf("body %s", body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + secret, "X-Authenticated-User-Id": "evaluation-harness", "X-Evaluation-Case-Id": "CASE-1",
		"Content-Type": "application/json", "Accept": "text/event-stream", "X-Request-Id": "",
	} {
		if values := got.Header.Values(name); strings.Join(values, "|") != want {
			t.Errorf("%s: %q, want %q", name, values, want)
		}
	}
	if want := "/v1/workflow/full?filter_steps=WORKFLOW_START%2CWORKFLOW_END%2CTOOL_START%2CTOOL_END%2CFUNCTION_START%2CFUNCTION_END"; got.URL.String() != want {
		t.Errorf("URL %s", got.URL)
	}
}

// A harness that does not work is told from an agent that answers badly, and
// no message holds the key.
func TestBroken(t *testing.T) {
	closed := porttest.Free(t, 1)[0]
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = io.WriteString(w, body) }
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		opts    Options
		want    string
		final   bool
		asked   int32
	}{
		{"refused key", answer(401, secret), Options{}, "the agent answered 401: it refuses the key or the identity", true, 1},
		{"unknown route", answer(404, ""), Options{}, "it does not serve /v1/workflow/full", true, 1},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, Options{}, "answered 307", false, 1},
		{"busy", answer(503, ""), Options{}, "answered 503", false, 4},
		{"bad request", answer(400, ""), Options{}, "answered 400", false, 1},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begin+text("half "))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, Options{}, "the connection ended inside it", false, 1},
		{"stalled", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, Options{Timeout: 2 * time.Second}, "no whole answer within 2s", false, 1},
		{"endless answer", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begin)
			for range 200 {
				if _, err := io.WriteString(w, text(strings.Repeat("x", 64<<10))); err != nil {
					return
				}
			}
		}, Options{}, "an answer of more than", false, 1},
		{"endless line", func(w http.ResponseWriter, _ *http.Request) {
			for range 300 {
				if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
		}, Options{}, "a line of more than", false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32
			a := open(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				tt.handler(w, r)
			}, tt.opts)
			_, err := a.Ask(t.Context(), "C", "q")
			var broken *Broken
			if !errors.As(err, &broken) || !strings.Contains(broken.Reason, tt.want) || broken.Final != tt.final {
				t.Fatalf("got %#v, want %q, final %v", err, tt.want, tt.final)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the key is shown: %v", err)
			}
			if asked.Load() != tt.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), tt.asked)
			}
		})
	}
	_, err := at(t, "http://"+closed, Options{}).Ask(t.Context(), "C", "q")
	var broken *Broken
	if !errors.As(err, &broken) || !strings.Contains(broken.Reason, "the agent cannot be reached") {
		t.Errorf("nobody listens: %v", err)
	}
}

// A try that failed before a stream began is made again; its time is not
// counted.
func TestRetry(t *testing.T) {
	var asked atomic.Int32
	a := open(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, begin+text("hi")+end)
	}, Options{})
	got, err := a.Ask(t.Context(), "C", "q")
	if err != nil || got.Attempts != 3 || got.Answer != "hi" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCancelled(t *testing.T) {
	begun := make(chan struct{})
	a := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(begun)
		<-r.Context().Done()
	}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	_, err := a.Ask(ctx, "C", "q")
	if broken := (*Broken)(nil); !errors.Is(err, context.Canceled) || errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://a:1":                       "http://a:1/version",
		"http://a:1/":                      "http://a:1/version",
		"http://a:1/base":                  "http://a:1/base/version",
		"http://a:1/v1/workflow/full":      "http://a:1/version",
		"https://a/base/v1/workflow/full/": "https://a/base/version",
	} {
		a, err := New(address, "k", Options{})
		if err != nil || a.version != want || !strings.Contains(a.workflow, "/v1/workflow/full?") || strings.Count(a.workflow, "/v1/") != 1 {
			t.Errorf("%s: %+v, %v", address, a, err)
		}
	}
	for _, address := range []string{"", "a:1", "ftp://a", "http://", "http://u:p@a", "http://a?x=1", "http://a/#f", "http://a b"} {
		if _, err := New(address, "k", Options{}); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
	for _, key := range []string{"", "a b", "a\n", "é"} {
		if _, err := New("http://a", key, Options{}); err == nil || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestVersion(t *testing.T) {
	body := `{"agent_runtime":"weir","tools_exposed":["a"]}`
	status := http.StatusOK
	a := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" || r.Header.Get("Authorization") == "" || len(r.Header.Values("X-Authenticated-User-Id")) != 1 {
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}, Options{})
	v, err := a.Version(t.Context())
	if err != nil || v.Text("agent_runtime") != "weir" || v.Text("tools_exposed") != "" {
		t.Errorf("%v, %v", v, err)
	}
	body = "[]"
	if _, err := a.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "JSON object") {
		t.Errorf("a list: %v", err)
	}
	status = http.StatusInternalServerError
	if _, err := a.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("500: %v", err)
	}
}
