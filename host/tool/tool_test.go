package tool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/host/fault"
)

func eachEra(t *testing.T, test func(t *testing.T, versions []string)) {
	for name, versions := range eras() {
		t.Run(name, func(t *testing.T) { test(t, versions) })
	}
}

// FAULTS M4, M5: both eras; numbers keep their text and objects their order in
// both directions.
func TestNumbersKeepTheirTextBothWays(t *testing.T) {
	const schema = `{"type":"object","properties":{"z":{"type":"integer","maximum":9007199254740993},"a":{"type":"number"},"s":{"type":"string"}}}`
	eachEra(t, func(t *testing.T, versions []string) {
		f := serve(t, versions, readOnly("echo", schema, echo))
		c := connect(t, f.options())
		if got := string(c.Tools()[0].Schema); got != schema {
			t.Errorf("schema = %s, want the server's bytes %s", got, schema)
		}
		const arguments = `{"z":9007199254740993,"s":"<&> ü \u0041","a":1.10}`
		text, failed := call(t, c, "echo", arguments)
		if failed {
			t.Fatalf("failed: %s", text)
		}
		for _, want := range []string{`"z":9007199254740993`, `"a":1.10`} {
			if !strings.Contains(text, want) {
				t.Errorf("the tool saw %s, want %s in it", text, want)
			}
		}
		if strings.Index(text, `"z"`) > strings.Index(text, `"s"`) || strings.Index(text, `"s"`) > strings.Index(text, `"a"`) {
			t.Errorf("the order of keys is lost: %s", text)
		}
		var sent, got struct{ S string }
		if json.Unmarshal([]byte(arguments), &sent) != nil || json.Unmarshal([]byte(text), &got) != nil || sent != got {
			t.Errorf("string arrived as %q, want %q", got.S, sent.S)
		}
		if n := f.unauthed.Load(); n != 0 {
			t.Errorf("%d requests went out without the key", n)
		}
	})
}

// 5.2: one text block arrives as it is; other content is named, not dropped.
func TestResults(t *testing.T) {
	results := map[string]struct {
		result *mcp.CallToolResult
		err    error
		want   string
		failed bool
	}{
		"text":       {result: textResult(`{"n":9007199254740993,"b":1.10,"a":"  "}`), want: `{"n":9007199254740993,"b":1.10,"a":"  "}`},
		"blocks":     {result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}, &mcp.TextContent{Text: "b"}}}, want: "a\n[image]\nb"},
		"structured": {result: &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"z":9007199254740993,"a":1.10}`)}, want: `{"z":9007199254740993,"a":1.10}`},
		"tool error": {result: &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "it broke"}}}, want: "Error: it broke", failed: true},
		"rpc error":  {err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Ticket 'x' was not found"}, want: "Error: Ticket 'x' was not found", failed: true},
		"long error": {err: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: strings.Repeat("é", 700)}, want: "Error: " + strings.Repeat("é", 600) + "…", failed: true},
		"large":      {result: textResult(strings.Repeat("é", 10_000)), want: strings.Repeat("é", 499) + "\n[result cut at 999 bytes]"},
	}
	eachEra(t, func(t *testing.T, versions []string) {
		var tools []fixtureTool
		for name, r := range results {
			tools = append(tools, readOnly(strings.ReplaceAll(name, " ", "_"), anySchema,
				func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return r.result, r.err }))
		}
		opts := serve(t, versions, tools...).options()
		opts.MaxResult = 999 // odd, so that a two-byte character lies on the cut
		c := connect(t, opts)
		for name, r := range results {
			text, failed := call(t, c, strings.ReplaceAll(name, " ", "_"), `{}`)
			if failed != r.failed || text != r.want {
				t.Errorf("%s: got %q, %v; want %q, %v", name, text, failed, r.want, r.failed)
			}
			if !utf8.ValidString(text) {
				t.Errorf("%s: the cut is inside a character", name)
			}
		}
	})
}

// FAULTS M7: the default cap holds for a result of several megabytes.
func TestResultLargerThanAnyWindow(t *testing.T) {
	f := serve(t, eras()["sessions"], readOnly("big", anySchema, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return textResult(strings.Repeat("x", 3<<20)), nil
	}))
	text, failed := call(t, connect(t, f.options()), "big", "")
	want := strings.Repeat("x", 256<<10) + "\n[result cut at 262144 bytes]"
	if failed || text != want {
		t.Errorf("got %d bytes, failed %v: %.80q; want %d", len(text), failed, text, len(want))
	}
}

// A response beyond MaxResponse fails its own call; the next one works.
func TestResponseBeyondTheLimit(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		f := serve(t, versions, readOnly("big", anySchema, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			return textResult(strings.Repeat("x", 1<<20)), nil
		}), readOnly("echo", anySchema, echo))
		opts := f.options()
		opts.MaxResponse = 64 << 10
		c := connect(t, opts)
		text, failed := call(t, c, "big", `{}`)
		if want := "Error: MCP tool 'big' request failed: the response is larger than 65536 bytes"; !failed || text != want {
			t.Errorf("got %q, %v; want %q", text, failed, want)
		}
		if text, failed := call(t, c, "echo", `{"n":1}`); failed || text != `{"n":1}` {
			t.Errorf("the next call: %q, %v", text, failed)
		}
	})
}

// 5.1: a call ends after its time-out with this text, and the server is told.
func TestTimeout(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		release, cancelled := make(chan struct{}), make(chan struct{}, 1)
		f := serve(t, versions, readOnly("slow", anySchema, func(ctx context.Context, _ json.RawMessage) (*mcp.CallToolResult, error) {
			select {
			case <-ctx.Done():
				cancelled <- struct{}{}
			case <-release:
			}
			return textResult("late"), nil
		}))
		t.Cleanup(func() { close(release) })
		opts := f.options()
		opts.CallTimeout = 1500 * time.Millisecond // in which the call must get there
		c := connect(t, opts)
		text, failed := call(t, c, "slow", `{}`)
		if want := "Error: MCP tool 'slow' timed out after 1.5s"; !failed || text != want {
			t.Errorf("got %q, %v; want %q", text, failed, want)
		}
		if err := c.Ready(); err != nil {
			t.Errorf("a slow tool is no reason to be unready: %v", err)
		}
		if versions[0] == stateless {
			return // the request's end is the cancellation; a server may ignore it
		}
		select {
		case <-cancelled:
		case <-time.After(time.Minute):
			t.Error("the server was not told")
		}
	})
}

func TestSecondsAsInTheContract(t *testing.T) {
	if got := seconds(30 * time.Second); got != "30s" {
		t.Errorf("30 s are written %q", got)
	}
}

// A run that ends does not wait for its tool.
func TestCallerCancels(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		release, started := make(chan struct{}), make(chan struct{})
		f := serve(t, versions, readOnly("slow", anySchema, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			close(started)
			<-release
			return textResult("late"), nil
		}))
		t.Cleanup(func() { close(release) })
		c := connect(t, f.options())
		why := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-started; cancel(why) }()
		begin := time.Now()
		text, failed, err := c.Call(ctx, "slow", []byte(`{}`))
		if !errors.Is(err, why) || text != "" || failed {
			t.Errorf("got %q, %v, %v; want the cause", text, failed, err)
		}
		if took := time.Since(begin); took > 20*time.Second { // the call's own time-out is 30 s
			t.Errorf("it took %v", took)
		}
	})
}

// FAULTS M3: a server that lost its sessions gets one new initialize, however
// many calls noticed.
func TestExpiredSessionIsRenewedOnce(t *testing.T) {
	for _, body := range []string{"Session not found", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`} {
		f := serve(t, eras()["sessions"], readOnly("echo", anySchema, echo))
		c := connect(t, f.options())
		before := f.initialized.Load()
		f.restart()
		known := atomic.Pointer[string]{}
		f.answer(func(w http.ResponseWriter, r *http.Request) bool {
			id := r.Header.Get(headerSession)
			if id != "" && known.CompareAndSwap(nil, &id) || id != "" && *known.Load() == id {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(body))
				return true
			}
			return false
		})
		const calls = 20
		results := make(chan string, calls)
		for range calls {
			go func() {
				text, failed, err := c.Call(context.Background(), "echo", []byte(`{"n":1}`))
				if failed || err != nil {
					text = "failed: " + text
				}
				results <- text
			}()
		}
		for range calls {
			if got := <-results; got != `{"n":1}` {
				t.Errorf("body %.20q: got %q", body, got)
			}
		}
		if n := f.initialized.Load() - before; n != 1 {
			t.Errorf("body %.20q: %d new sessions, want 1", body, n)
		}
		if err := c.Ready(); err != nil {
			t.Error(err)
		}
	}
}

// FAULTS M3: only a read-only tool is called again.
func TestOnlyReadOnlyCallsAreRepeated(t *testing.T) {
	var calls atomic.Int64
	count := func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		calls.Add(1)
		return textResult("done"), nil
	}
	unmarked := fixtureTool{name: "unmarked", schema: anySchema, call: count}
	f := serve(t, eras()["sessions"], unmarked, readOnly("safe", anySchema, count))
	c := connect(t, f.options())
	f.restart()
	text, failed := call(t, c, "unmarked", `{}`)
	if !failed || !strings.Contains(text, "not repeated") || calls.Load() != 0 {
		t.Errorf("got %q, %v, %d calls", text, failed, calls.Load())
	}
	if text, failed = call(t, c, "unmarked", `{}`); failed || text != "done" {
		t.Errorf("after the renewal: %q, %v", text, failed)
	}
	f.restart()
	if text, failed = call(t, c, "safe", `{}`); failed || text != "done" || calls.Load() != 2 {
		t.Errorf("read-only: %q, %v, %d calls", text, failed, calls.Load())
	}
}

// A connection that breaks is opened again once; a server that stays away makes
// the call fail and Ready say so, and its return is noticed without a call.
func TestConnectionLost(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		f := serve(t, versions, readOnly("echo", anySchema, echo))
		c := connect(t, f.options())
		var cuts atomic.Int64
		f.answer(func(w http.ResponseWriter, _ *http.Request) bool {
			if cuts.Add(-1) < 0 {
				return false
			}
			panic(http.ErrAbortHandler)
		})
		cuts.Store(1)
		if text, failed := call(t, c, "echo", `{"n":1}`); failed || text != `{"n":1}` {
			t.Errorf("one broken connection: %q, %v", text, failed)
		}
		cuts.Store(1 << 40)
		text, failed := call(t, c, "echo", `{"n":1}`)
		if want := "Error: MCP tool 'echo' request failed: the connection was closed"; !failed || text != want {
			t.Errorf("got %q, %v; want %q", text, failed, want)
		}
		err := c.Ready()
		if err == nil || err.Error() != "mcp session closed" || fault.Of(err) != fault.Unavailable {
			t.Errorf("Ready = %v", err)
		}
		cuts.Store(0)
		eventually(t, func() bool { return c.Ready() == nil })
		if text, failed := call(t, c, "echo", `{"n":2}`); failed || text != `{"n":2}` {
			t.Errorf("after the return: %q, %v", text, failed)
		}
	})
}

// Readiness follows a server that goes away between calls.
func TestProbeFindsADeadServer(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		f := serve(t, versions, readOnly("echo", anySchema, echo))
		opts := f.options()
		opts.ProbeAfter = time.Nanosecond
		c := connect(t, opts)
		eventually(t, func() bool { return c.Ready() == nil })
		f.answer(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		eventually(t, func() bool { return c.Ready() != nil })
		f.intercept.Store(nil)
		eventually(t, func() bool { return c.Ready() == nil })
	})
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		time.Sleep(5 * time.Millisecond) // real sockets: there is nothing to wait on
	}
}

// 5.1, 14.5: what a model reads of a failure holds neither address nor key.
func TestFailuresTellNothingOfTheServer(t *testing.T) {
	f := serve(t, eras()["sessions"], readOnly("echo", anySchema, echo))
	c := connect(t, f.options())
	host := strings.TrimPrefix(f.URL, "http://")
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		"status": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Error(w, "at "+f.URL+" with "+testKey, http.StatusInternalServerError)
			return true
		}, "Error: MCP tool 'echo' request failed: the server answered 500"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, f.URL+"/elsewhere", http.StatusTemporaryRedirect)
			return true
		}, "Error: MCP tool 'echo' request failed: the server answered 307"},
		"rpc": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"bad key ` + testKey + ` at ` + host + `"}}`))
			return true
		}, "Error: bad key [redacted] at [redacted]"},
		"no JSON": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"at":"` + host))
			return true
		}, "Error: MCP tool 'echo' request failed: "},
	} {
		eventually(t, func() bool { return c.Ready() == nil })
		f.answer(tc.answer)
		text, failed := call(t, c, "echo", `{}`)
		if !failed || !strings.HasPrefix(text, tc.want) {
			t.Errorf("%s: got %q, %v; want %q", name, text, failed, tc.want)
		}
		if strings.Contains(text, testKey) || strings.Contains(text, host) || strings.Contains(text, "127.0.0.1") {
			t.Errorf("%s: %q tells too much", name, text)
		}
		f.intercept.Store(nil)
	}
	f.Server.CloseClientConnections()
	f.Server.Close()
	text, failed := call(t, c, "echo", `{}`)
	if want := "Error: MCP tool 'echo' request failed: the connection was refused"; !failed || text != want {
		t.Errorf("refused: got %q, %v; want %q", text, failed, want)
	}
}

// Defence in depth: Call does not rely on Validate having been called.
func TestCallChecksArgumentsAgain(t *testing.T) {
	f := serve(t, eras()["sessions"], readOnly("echo", anySchema, echo))
	c := connect(t, f.options())
	text, failed := call(t, c, "echo", `{"n":1.5}`)
	if want := `Tool call refused: argument "n" must be integer`; !failed || text != want {
		t.Errorf("got %q, %v; want %q", text, failed, want)
	}
	if _, _, err := c.Call(t.Context(), "other", []byte(`{}`)); err == nil {
		t.Error("an unknown tool was called")
	}
}

func TestClose(t *testing.T) {
	eachEra(t, func(t *testing.T, versions []string) {
		release, started := make(chan struct{}), make(chan struct{})
		f := serve(t, versions, readOnly("slow", anySchema, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			close(started)
			<-release
			return textResult("late"), nil
		}))
		t.Cleanup(func() { close(release) })
		c := connect(t, f.options())
		result := make(chan string, 1)
		go func() {
			text, _, _ := c.Call(context.Background(), "slow", []byte(`{}`))
			result <- text
		}()
		<-started
		begin := time.Now()
		go func() { _ = c.Close() }()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > farewell+20*time.Second {
			t.Errorf("Close took %v", took)
		}
		if got, want := <-result, "Error: MCP tool 'slow' request failed: the tool client is closed"; got != want {
			t.Errorf("the call in flight got %q, want %q", got, want)
		}
		if text, failed, err := c.Call(context.Background(), "slow", []byte(`{}`)); err != nil || !failed || !strings.Contains(text, "closed") {
			t.Errorf("a call after Close: %q, %v, %v", text, failed, err)
		}
		if err := c.Ready(); err == nil {
			t.Error("a closed client is ready")
		}
	})
}
