package model

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/abi"
	"weir/host/benchtest"
	"weir/host/fault"
	"weir/host/porttest"
)

const internalHost = "gpu-7.internal.example"

// wantFailure checks kind and code, and that the text tells nothing.
func wantFailure(t *testing.T, reply *Reply, err error, code string) {
	t.Helper()
	if err == nil {
		t.Fatalf("reply %+v, want a failure %s", reply, code)
	}
	if fault.Of(err) != fault.Unavailable || fault.CodeOf(err) != code {
		t.Errorf("%v: kind %v, code %q, want unavailable, %q", err, fault.Of(err), fault.CodeOf(err), code)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, secret := range []string{internalHost, "127.0.0.1", "http://", "key-1", "secret", "completions"} {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("text %q holds %q", e.Error(), secret)
			}
		}
	}
}

// FAULTS M1, clause 15: what is no reply is a failure, never an empty success.
func TestBadStreams(t *testing.T) {
	for name, stream := range map[string]string{
		"empty body":                   "",
		"only comments":                ": ping\n\n: ping\n\n",
		"only [DONE]":                  events(`[DONE]`),
		"only usage and [DONE]":        events(`{"choices":[],"usage":{"prompt_tokens":1}}`, `[DONE]`),
		"an error object":              events(content("a"), `{"error":{"message":"`+internalHost+`"}}`),
		"an error object and [DONE]":   events(`{"error":{"message":"`+internalHost+`"}}`, `[DONE]`),
		"an error text":                events(content("a"), `{"error":"`+internalHost+`"}`, finish("stop"), `[DONE]`),
		"an error after the finish":    events(content("a"), finish("stop"), `{"error":{"message":"x"}}`),
		"an error as the object":       events(`{"object":"error","message":"`+internalHost+`","code":400}`, `[DONE]`),
		"an error event":               "event: error\n" + events(`{"message":"`+internalHost+`"}`),
		"an error as finish reason":    events(content("a"), finish("error"), `[DONE]`),
		"no finish reason":             events(content("a")),
		"the last chunk is cut":        events(content("a")) + `data: {"choices":[{"finish_reason":"st`,
		"the last chunk has no end":    events(content("a")) + "data: " + finish("stop"),
		"JSON in place of a stream":    `{"choices":[{"message":{"content":"` + internalHost + `"},"finish_reason":"stop"}]}`,
		"HTML in place of a stream":    "<html>\n\n<p>data: none</p>\n\n</html>",
		"a chunk that is no JSON":      events(content("a"), internalHost, finish("stop")),
		"two values in one chunk":      events(content("a"), `{} {}`, finish("stop")),
		"a bracket too many":           events(content("a")+"}", finish("stop")),
		"a chunk that is no object":    events(`[]`, finish("stop")),
		"a tool call without a name":   events(called(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), finish("tool_calls")),
		"an event over the limit":      events(content(strings.Repeat("x", 5000)), finish("stop")),
		"text over the limit":          strings.Repeat(events(content(strings.Repeat("x", 1000))), 9) + events(finish("stop")),
		"arguments over the limit":     strings.Repeat(events(called(`{"index":0,"id":"a","function":{"name":"f","arguments":"`+strings.Repeat("x", 1000)+`"}}`)), 9) + events(finish("stop")),
		"a stream over the limit":      strings.Repeat(": "+strings.Repeat("x", 1000)+"\n\n", 70) + events(content("a"), finish("stop")),
		"more tool calls than allowed": events(called(strings.Repeat(`{"function":{"name":"f"}},`, 60)+`{"function":{"name":"f"}}`), called(strings.Repeat(`{"function":{"name":"f"}},`, 60)+`{"function":{"name":"f"}}`), called(strings.Repeat(`{"function":{"name":"f"}},`, 60)+`{"function":{"name":"f"}}`), called(strings.Repeat(`{"function":{"name":"f"}},`, 60)+`{"function":{"name":"f"}}`), called(strings.Repeat(`{"function":{"name":"f"}},`, 60)+`{"function":{"name":"f"}}`), finish("tool_calls")),
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, Options{MaxEvent: 4096, MaxReply: 8000, MaxStream: 64 << 10, Agent: Alias{APIKey: "key-1"}},
				sends("text/event-stream", stream))
			reply, _, err := collect(t.Context(), c, streamed())
			wantFailure(t, reply, err, abi.FailBadReply)
		})
	}
}

// The limits of TestBadStreams let an ordinary reply through.
func TestLimitsControl(t *testing.T) {
	c := serve(t, Options{MaxEvent: 4096, MaxReply: 8000, MaxStream: 64 << 10},
		sends("text/event-stream", strings.Repeat(events(content(strings.Repeat("x", 1000))), 7)+events(finish("stop"))))
	reply, text, err := collect(t.Context(), c, streamed())
	if err != nil || len(text) != 7000 || reply.Text != text {
		t.Errorf("reply of %d characters, %v, want 7000", len(text), err)
	}
}

// Clause 6.5, 15: a guard's call is not streamed.
func TestWholeReplies(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want string // code of the failure, or the text
		bad  bool
	}{
		"plain":                 {body: `{"choices":[{"index":0,"message":{"role":"assistant","content":"No"},"finish_reason":"stop"}],"usage":{}}`, want: "No"},
		"no finish reason":      {body: `{"choices":[{"message":{"content":"No"}}]}`, want: "No"},
		"nothing said":          {body: `{"choices":[{"message":{"content":null,"reasoning":"hm"},"finish_reason":"length"}]}`, want: ""},
		"empty body":            {body: ``, bad: true},
		"no choices":            {body: `{"choices":[]}`, bad: true},
		"no message":            {body: `{"choices":[{"finish_reason":"stop"}]}`, bad: true},
		"a message that is one": {body: `{"choices":[{"message":"No"}]}`, bad: true},
		"an error":              {body: `{"error":{"message":"` + internalHost + `"}}`, bad: true},
		"an error and a choice": {body: `{"error":{"message":"x"},"choices":[{"message":{"content":"No"}}]}`, bad: true},
		"cut":                   {body: `{"choices":[{"message":{"content":"No"}}`, bad: true},
		"a stream":              {body: events(content("No"), finish("stop"), "[DONE]"), bad: true},
		"over the limit":        {body: `{"choices":[{"message":{"content":"` + strings.Repeat("x", 9000) + `"}}]}`, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, Options{MaxReply: 8000}, sends("application/json", c.body))
			reply, text, err := collect(t.Context(), client, whole())
			if c.bad {
				wantFailure(t, reply, err, abi.FailBadReply)
			} else if err != nil || reply.Text != c.want || text != "" {
				t.Errorf("reply %+v, onText %q, %v, want %q and nothing streamed", reply, text, err, c.want)
			}
		})
	}
}

// Clause 2.9: nothing of the provider's text; clause 14.5: no redirects.
func TestStatusIsUnavailable(t *testing.T) {
	requests := 0
	for _, status := range []int{301, 307, 400, 401, 404, 413, 429, 500, 503, 529} {
		requests = 0
		c := serve(t, Options{Agent: Alias{APIKey: "key-1"}}, func(w http.ResponseWriter, r *http.Request) {
			requests++
			w.Header().Set("Location", "/v1/elsewhere")
			w.WriteHeader(status)
			io.WriteString(w, `{"error":{"message":"upstream http://`+internalHost+`:8000 secret"}}`)
		})
		reply, _, err := collect(t.Context(), c, streamed())
		wantFailure(t, reply, err, abi.FailUnavailable)
		if requests != 1 {
			t.Errorf("status %d: %d requests, want 1", status, requests)
		}
	}
}

// A body that ends before its length is bad; after the finish reason it is
// nobody's loss.
func TestBrokenConnections(t *testing.T) {
	for name, c := range map[string]struct {
		send string
		code string
	}{
		"before the response":     {"", abi.FailUnavailable},
		"in the head":             {"HTTP/1.1 200 OK\r\nContent-", abi.FailUnavailable},
		"no HTTP":                 {internalHost + "\r\n\r\n", abi.FailUnavailable},
		"before the first chunk":  {"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", abi.FailBadReply},
		"after a chunk":           {"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + events(content("a")), abi.FailBadReply},
		"after the finish reason": {"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + events(content("a"), finish("stop")), ""},
		"after [DONE]":            {"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + events(content("a"), "[DONE]"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				requests++
				io.Copy(io.Discard, r.Body)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(conn, c.send)
				conn.Close()
			})
			reply, _, err := collect(t.Context(), client, streamed())
			if c.code != "" {
				wantFailure(t, reply, err, c.code)
			} else if err != nil || reply.Text != "a" {
				t.Errorf("reply %+v, %v, want the text a", reply, err)
			}
			if requests != 1 {
				t.Errorf("%d requests, want 1: nothing is repeated after a connection", requests)
			}
		})
	}
}

// DECISIONS 10: one retry on connect, none after it.
func TestConnectIsTriedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		fail int
		code string
		want int
	}{
		"once":  {1, "", 2},
		"twice": {2, abi.FailUnavailable, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dials := 0
			opts := Options{dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials++; dials <= c.fail {
					return nil, errors.New("connect to " + internalHost + " failed")
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}}
			client := serve(t, opts, sends("text/event-stream", events(content("a"), finish("stop"))))
			reply, _, err := collect(t.Context(), client, streamed())
			if c.code != "" {
				wantFailure(t, reply, err, c.code)
			} else if err != nil {
				t.Errorf("%v, want a reply", err)
			}
			if dials != c.want {
				t.Errorf("%d attempts, want %d", dials, c.want)
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	c := client(t, Options{Agent: Alias{BaseURL: "http://" + porttest.Free(t, 1)[0]}})
	reply, _, err := collect(t.Context(), c, streamed())
	wantFailure(t, reply, err, abi.FailUnavailable)
	if !strings.HasSuffix(err.Error(), "connection refused") {
		t.Errorf("text %q does not say what is wrong", err)
	}
}

// A proxy from the environment would see the key and the conversation.
func TestNoProxyFromEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	c := serve(t, Options{}, sends("text/event-stream", events(content("a"), finish("stop"))))
	c.transport.DisableKeepAlives = true
	if c.transport.Proxy != nil {
		t.Error("the transport has a proxy")
	}
	if _, _, err := collect(t.Context(), c, streamed()); err != nil {
		t.Error(err)
	}
}

// Clause 15, the stall turn: who gives up closes the connection at once.
func TestCancelClosesTheConnection(t *testing.T) {
	for name, first := range map[string]string{"after the head": "", "in the stream": events(content("a"))} {
		t.Run(name, func(t *testing.T) {
			started, closed := make(chan struct{}), make(chan time.Time, 1)
			c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, first)
				w.(http.Flusher).Flush()
				started <- struct{}{}
				<-r.Context().Done() // of the server: the connection is gone
				closed <- time.Now()
			})
			took := benchtest.Best(5, 300*time.Millisecond, func() time.Duration {
				ctx, cancel := context.WithCancelCause(t.Context())
				var cancelled time.Time
				go func() {
					<-started
					cancelled = time.Now()
					cancel(errors.New("the client of " + internalHost + " left"))
				}()
				reply, _, err := collect(ctx, c, streamed())
				wantFailure(t, reply, err, abi.FailUnavailable)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v is not context.Canceled", err)
				}
				return (<-closed).Sub(cancelled)
			})
			if took > 300*time.Millisecond {
				t.Errorf("the server saw the end after %v, want at most 300ms", took)
			}
		})
	}
}

// Calls one after the other use one connection, also when the server ends the
// body only after [DONE]. They do not when that end is late, as it may be on a
// busy machine: one attempt is enough.
func TestKeepAlive(t *testing.T) {
	dials := 0
	opts := Options{dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	c := serve(t, opts, sends("text/event-stream", events(content("a"), finish("stop")), events("[DONE]")))
	least := 5
	for attempt := 0; attempt < 5 && least > 1; attempt++ {
		c.Close()
		dials = 0
		for range 5 {
			if _, _, err := collect(t.Context(), c, streamed()); err != nil {
				t.Fatal(err)
			}
		}
		least = min(least, dials)
	}
	if least != 1 {
		t.Errorf("%d connections for 5 calls at the best, want 1", least)
	}
}

// An idle connection that the server has closed is no failure. Whether there is
// one depends on times of the HTTP library, so calls are made until there was.
func TestStaleConnection(t *testing.T) {
	kept, stale := map[string]bool{}, 0
	c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if kept[r.RemoteAddr] { // closes it without a byte
			stale++
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
			return
		}
		kept[r.RemoteAddr] = true
		sends("text/event-stream", events(content("a"), finish("stop"), "[DONE]"))(w, r)
	})
	for calls := 0; stale == 0 && calls < 50; calls++ {
		if _, _, err := collect(t.Context(), c, streamed()); err != nil {
			t.Error(err)
		}
	}
	if stale != 1 {
		t.Errorf("%d kept connections were closed, want 1", stale)
	}
}

// One client serves many runs at once, and both aliases.
func TestConcurrentCalls(t *testing.T) {
	c := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"stream":true`) {
			io.WriteString(w, events(content("a"), content("b"), finish("stop"), "[DONE]"))
			return
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"No"}}]}`)
	})
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			for req, want := range map[*Request]string{streamed(): "ab", whole(): "No"} {
				if reply, _, err := collect(t.Context(), c, req); err != nil || reply.Text != want {
					t.Errorf("reply %+v, %v, want %s", reply, err, want)
				}
			}
		})
	}
	calls.Wait()
}
