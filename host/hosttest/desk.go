package hosttest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const deskKey = "hosttest-desk-key"

// Desk is an MCP server whose tools a test may change. It begins with
// search_tickets and get_ticket.
type Desk struct {
	URL string

	mu      sync.Mutex
	tools   map[string]string // name to description
	server  *mcp.Server
	handler http.Handler
}

// NewDesk starts a desk that ends with the test.
func NewDesk(t testing.TB) *Desk {
	d := &Desk{tools: map[string]string{"search_tickets": "finds tickets", "get_ticket": "gets a ticket"}}
	d.Restart(nil)
	s := httptest.NewServer(d)
	t.Cleanup(func() {
		s.Close()
		d.forget()
	})
	d.URL = s.URL
	return d
}

// Restart makes the desk forget its sessions and changes descriptions; an empty
// one takes the tool away.
func (d *Desk) Restart(changes map[string]string) {
	d.forget()
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.Copy(d.tools, changes)
	d.server = mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	for name, description := range d.tools {
		if description == "" {
			continue
		}
		d.server.AddTool(&mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
			InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}}}`),
		}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "none"}}}, nil
		})
	}
	server := d.server
	d.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

func (d *Desk) forget() {
	d.mu.Lock()
	server := d.server
	d.mu.Unlock()
	if server == nil {
		return
	}
	for s := range server.Sessions() {
		_ = s.Close()
	}
}

func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+deskKey {
		http.Error(w, "wrong key", http.StatusUnauthorized)
		return
	}
	d.mu.Lock()
	h := d.handler
	d.mu.Unlock()
	h.ServeHTTP(w, r)
}
