package agent_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/host/fault"
)

// agentv.md 1.4: what is sent, and over one connection.
func TestHTTP(t *testing.T) {
	var remotes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		remotes = append(remotes, r.RemoteAddr)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, `{"method":%q,"path":%q,"body":%q,"type":%q,"trace":%q,"auth":%q}`, r.Method, r.URL.Path, body,
			r.Header.Get("Content-Type"), r.Header.Get("traceparent"), r.Header.Get("Authorization"))
	}))
	defer server.Close()
	s := open(t, server.URL+"/execute_task", agent.Options{Header: http.Header{"Authorization": {"Bearer canary"}}})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct{ given, sent string }{{trace, trace}, {strings.ToUpper(trace), ""}, {"", ""}} {
		answer, err := s.Ask(t.Context(), []byte(`{"a":1}`), tt.given)
		want := fmt.Sprintf(`{"method":"POST","path":"/execute_task","body":"{\"a\":1}","type":"application/json","trace":%q,"auth":"Bearer canary"}`, tt.sent)
		if err != nil || string(answer.Body) != want {
			t.Errorf("traceparent %q: %s, %v, want %s", tt.given, answer.Body, err, want)
		}
	}
	if len(remotes) != 3 || remotes[0] != remotes[1] || remotes[1] != remotes[2] {
		t.Errorf("turns came from %q, want one connection", remotes)
	}
}

// Answers that are none, each with its code (agentv.md 1.4 and fact 9).
func TestHTTPAnswers(t *testing.T) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	release := make(chan struct{})
	paths := map[string]http.HandlerFunc{
		"/json":    reply("application/json", `{}`),
		"/problem": reply("application/vnd.x+json", `{}`),
		"/text":    reply("text/plain", `{}`),
		"/none":    reply("application/json", ` `),
		"/large":   reply("application/json", strings.Repeat("x", 5001)),
		"/largest": reply("application/json", strings.Repeat("x", 5000)),
		"/500":     status(500, "broken"),
		"/404":     status(404, ""),
		"/202":     status(202, `{"action":"processing"}`),
		"/near":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/json", http.StatusFound) },
		"/far": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"/loop":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) },
		"/hang":    func(http.ResponseWriter, *http.Request) { <-release },
		"/trickle": trickle(release),
		"/abort": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			reply("application/json", "{}")(w, r)
			panic(http.ErrAbortHandler)
		},
		"/bomb":     bomb,
		"/endless":  endless,
		"/sse":      reply("text/event-stream", ": comment\r\nevent: x\ndata: {\"action\":\"final_answer\",\"content\":\"a\"}\nid: 7\n\ndata:more\n\ndata: {\"content\":\"b\",\"summary\":\"s\"}\ndata: [DONE]\ndata: {\"action\":\"error\"}\n\n"),
		"/sse-none": reply("text/event-stream", ": nothing\n\n"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { paths[r.URL.Path](w, r) }))
	defer server.Close()
	defer close(release)
	for _, tt := range []struct{ path, body, code, text string }{
		{"/json", `{}`, "", ""},
		{"/problem", `{}`, "", ""},
		{"/202", `{"action":"processing"}`, "", ""},
		{"/largest", strings.Repeat("x", 5000), "", ""},
		{"/near", `{}`, "", ""},
		{"/sse", `{"action":"final_answer","summary":"s","content":"amoreb"}`, "", ""},
		{"/text", "", agent.CodeForm, `expected application/json, got "text/plain"`},
		{"/none", "", agent.CodeNoAnswer, "empty body"},
		{"/large", "", agent.CodeTooLarge, "at most 5000 bytes"},
		{"/bomb", "", agent.CodeTooLarge, "at most 5000 bytes"},
		{"/endless", "", agent.CodeTooLarge, "at most 5000 bytes"},
		{"/500", "", agent.CodeStatus, "got 500: broken"},
		{"/404", "", agent.CodeStatus, "got 404"},
		{"/far", "", agent.CodeStatus, "got 307"},
		{"/loop", "", agent.CodeStatus, "got 302"},
		{"/hang", "", agent.CodeTimeout, "within 1s"},
		{"/trickle", "", agent.CodeTimeout, "within 1s"},
		{"/abort", "", agent.CodeNoAnswer, "ended within it"},
		{"/sse-none", "", agent.CodeNoAnswer, "a stream without data"},
	} {
		timeout := time.Minute
		if tt.code == agent.CodeTimeout {
			timeout = time.Second
		}
		s := open(t, server.URL+tt.path, agent.Options{MaxReply: 5000, Timeout: timeout})
		answer, err := s.Ask(t.Context(), []byte(`{}`), "")
		if string(answer.Body) != tt.body || fault.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %q, %v, want %q, %s %s", tt.path, answer.Body, err, tt.body, tt.code, tt.text)
		}
		_ = s.Close()
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := open(t, gone.URL+"/?key=canary", agent.Options{}).Ask(t.Context(), []byte(`{}`), "")
	if fault.CodeOf(err) != agent.CodeConnect || strings.Contains(err.Error(), "canary") {
		t.Errorf("nobody listens: %v", err)
	}
}

// agentv.md 1.5: the protocol sse asks for a stream and takes nothing else.
func TestSSE(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/json" {
			reply("application/json", `{}`)(w, r)
			return
		}
		reply("text/event-stream", fmt.Sprintf("data: {\"action\":\"completed\",\"accept\":%q}", r.Header.Get("Accept")))(w, r)
	}))
	defer server.Close()
	for path, want := range map[string]string{"/": `{"action":"completed","accept":"text/event-stream"}`, "/json": ""} {
		a, err := agent.ParseAddress(server.URL+path, agent.SSE)
		if err != nil {
			t.Fatal(err)
		}
		s, err := agent.Open(a, agent.Options{})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Ask(t.Context(), []byte(`{}`), "")
		if string(answer.Body) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v, want %s", path, answer.Body, err, want)
		}
		_ = s.Close()
	}
}

func reply(media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// trickle sends a little and never ends.
func trickle(release chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reply("application/json", "{")(w, r)
		<-release
	}
}

// bomb is small on the wire.
func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
}

func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
			return
		}
	}
}
