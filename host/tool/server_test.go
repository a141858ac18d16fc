package tool

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "k-0123456789"

// eras are the two transports that the client must speak (M4).
func eras() map[string][]string {
	return map[string][]string{
		"sessions":  {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"},
		"oldest":    {"2024-11-05"},
		"stateless": {stateless},
	}
}

// fixture is a real MCP server on loopback whose tools the test chooses.
type fixture struct {
	*httptest.Server
	mu       sync.Mutex
	handler  http.Handler
	server   *mcp.Server
	versions []string
	tools    []fixtureTool

	requests    atomic.Int64
	initialized atomic.Int64
	unauthed    atomic.Int64
	intercept   atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool] // true: answered
}

type fixtureTool struct {
	name, description, schema string
	annotations               *mcp.ToolAnnotations
	call                      func(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error)
}

func readOnly(name, schema string, call func(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error)) fixtureTool {
	return fixtureTool{name: name, description: "does " + name, schema: schema,
		annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}, call: call}
}

const anySchema = `{"type":"object","properties":{"n":{"type":"integer"},"x":{"type":"number"},"s":{"type":"string"}}}`

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// echo answers with the bytes of the arguments that it got.
func echo(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	return textResult(string(arguments)), nil
}

func serve(t *testing.T, versions []string, tools ...fixtureTool) *fixture {
	t.Helper()
	f := &fixture{versions: versions, tools: tools}
	f.restart()
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Server.Close()
		f.forget()
	})
	return f
}

// restart replaces the server by one that knows no session.
func (f *fixture) restart() {
	server := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: f.versions,
		PageSize:                  2, // so that every listing has pages
		InitializedHandler:        func(context.Context, *mcp.InitializedRequest) { f.initialized.Add(1) },
	})
	for _, tool := range f.tools {
		server.AddTool(&mcp.Tool{
			Name: tool.name, Description: tool.description, Annotations: tool.annotations,
			InputSchema: json.RawMessage(tool.schema),
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return tool.call(ctx, req.Params.Arguments)
		})
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: f.versions[0] == stateless})
	f.forget()
	f.mu.Lock()
	f.handler, f.server = h, server
	f.mu.Unlock()
}

// forget ends the sessions that clients could not end.
func (f *fixture) forget() {
	f.mu.Lock()
	server := f.server
	f.mu.Unlock()
	if server == nil {
		return
	}
	for s := range server.Sessions() {
		_ = s.Close()
	}
}

func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	if r.Header.Get("Authorization") != "Bearer "+testKey {
		f.unauthed.Add(1)
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "missing or wrong key", http.StatusUnauthorized)
		return
	}
	if i := f.intercept.Load(); i != nil && (*i)(w, r) {
		return
	}
	f.mu.Lock()
	h := f.handler
	f.mu.Unlock()
	h.ServeHTTP(w, r)
}

func (f *fixture) answer(fn func(w http.ResponseWriter, r *http.Request) bool) {
	f.intercept.Store(&fn)
}

// options names the server's tools and does not wait for anybody.
func (f *fixture) options() Options {
	o := Options{URL: f.URL + "/mcp", Key: testKey, FunctionGroup: "grp", Attempts: 1, RetryDelay: time.Millisecond}
	for _, tool := range f.tools {
		o.Include = append(o.Include, tool.name)
	}
	return o
}

func connect(t *testing.T, opts Options) *Client {
	t.Helper()
	c, err := Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// call is Call for tests that expect no error.
func call(t *testing.T, c *Client, name, arguments string) (string, bool) {
	t.Helper()
	text, failed, err := c.Call(t.Context(), name, []byte(arguments))
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	return text, failed
}
