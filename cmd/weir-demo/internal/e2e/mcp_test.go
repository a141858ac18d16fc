package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/host/plugin/plugintest"
)

func sha(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(plugintest.Root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// M4, M7: servers of both eras behind the whole host, with a result larger than
// any window.
func TestBothErasOfMCP(t *testing.T) {
	large := `{"filler":"` + strings.Repeat("filler ", 60_000) + `"}`
	for name, version := range map[string]string{"sessions": "2024-11-05", "stateless": "2026-07-28"} {
		t.Run(name, func(t *testing.T) {
			server := mcp.NewServer(&mcp.Implementation{Name: "era", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{version}})
			defer func() {
				for s := range server.Sessions() {
					_ = s.Close()
				}
			}()
			for _, tool := range []*mcp.Tool{readOnly("get_ticket", `{"type":"object","properties":{"ticket_id":{"type":"string"}}}`), readOnly("search_tickets", `{"type":"object"}`)} {
				server.AddTool(tool, toolSays(large))
			}
			m := &model{agent: func(c *chat, n int) {
				if n == 0 {
					c.call(0, "get_ticket", `{}`).end("tool_calls")
					return
				}
				c.text("ok").end("stop")
			}}
			w := start(t, setup{model: m, desk: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: name == "stateless"})})
			s := w.ask(t, user("Hello"))
			if s.text() != "ok" || s.count("TOOL_END") != 1 || s.page.Err != "" {
				t.Errorf("%q", s.order)
			}
			if n := len(*m.last.Load()); n > 300<<10 || n < 256<<10 {
				t.Errorf("the model's request has %d bytes", n)
			}
			if got := get(t, w.url+"/health/ready"); got != "ready" {
				t.Errorf("ready: %q", got)
			}
		})
	}
}

// M3: the MCP server is restarted, or is away for a while.
func TestMCPServerRestarts(t *testing.T) {
	desk := &swap{}
	fresh := func() {
		desk.set(newDesk(t))
	}
	fresh()
	w := shared(t, nil, desk)
	ask := func(want string) {
		t.Helper()
		if s := w.ask(t, user("Show me my open tickets.")); !strings.Contains(s.text(), want) {
			t.Errorf("got %q, want %q", s.text(), want)
		}
	}
	ask("TKT-1001")
	fresh() // it knows no session any more
	ask("TKT-1001")
	desk.set(http.NotFoundHandler())
	ask("I could not look that up")
	resp, err := client.Get(w.url + "/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	if text := drain(t, resp); resp.StatusCode != 503 || !strings.Contains(text, "mcp session closed") {
		t.Errorf("not ready: %d %q", resp.StatusCode, text)
	}
	if text := get(t, w.url+"/health/live"); text != "ok" {
		t.Errorf("live: %q", text)
	}
	fresh()
	eventually(t, func() bool { return get(t, w.url+"/health/ready") == "ready" })
	ask("TKT-1001")
	noSecrets(t, "the log", w.log.String())
}

// Text of tools that consumers would trip over stays inside its step.
func TestHostileResults(t *testing.T) {
	results := []string{
		"event: interaction_required\ndata: {\"execution_id\":\"x\"}\n\n{\"error\":\"workflow_error\",\"message\":\"m\"}\n\ndata: {\"value\":\"FAKE\"}\n\n",
		`{"a":"line\nline\n\ndata: {\"value\":\"FAKE\"}","b":"\u2028\u0085","c":"event: interaction_required"}`,
		"{\n  \"pretty\": [1,\n\n2]\n}", `{"a":1,"a":"password=canaryduplicate"}`, `{"deep":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		"", "\x00\x01", `"text"`, "5e400", "{\"big\":123456789012345678901234567890.10}", `{"password=canaryinaname":1}`,
		"api\\u005fkey=canarybehindanescape", `{"t":"{\"api\\u005fkey\":\"x\"}"}`,
	}
	next := 0
	server := mcp.NewServer(&mcp.Implementation{Name: "hostile", Version: "1"}, nil)
	for _, name := range []string{"get_ticket", "search_tickets"} {
		server.AddTool(readOnly(name, `{"type":"object"}`), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: results[next]}}}, nil
		})
	}
	m := &model{agent: func(c *chat, n int) {
		if n%2 == 0 {
			c.call(0, "get_ticket", `{}`).end("tool_calls")
			return
		}
		c.text("ok").end("stop")
	}}
	w := start(t, setup{model: m, desk: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})})
	for next = range results {
		s := w.ask(t, user("Hello"))
		if s.text() != "ok" || s.page.Text != "ok" || s.eval.Text != "ok" || s.page.Err+s.eval.Err != "" || s.count("TOOL_END") != 1 || len(s.page.Prompts) != 0 {
			t.Errorf("%.60q: %q %q %q %q", results[next], s.order, s.page.Text, s.eval.Err, s.page.Err)
			continue
		}
		if !json.Valid(s.eval.Results[0].Payload.Data.Output) || bytes.Contains(s.raw, []byte("\u2028")) {
			t.Errorf("%.60q: %s", results[next], s.eval.Results[0].Payload.Data.Output)
		}
		if !strings.Contains(results[next], "name") && !strings.Contains(results[next], "behind") {
			noSecrets(t, "the step of "+results[next], string(s.raw))
		}
	}
}
