package tickets

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configures a [Server].
type Options struct {
	// Key is the bearer token that every request to /mcp must carry. Required.
	Key string
	// AllowedHosts are the Host headers that are answered, with a port or for
	// any port without one. Default: the loopback names.
	AllowedHosts []string
}

// Server is the ticket desk as an http.Handler: /mcp and /health.
type Server struct {
	mcp     *mcp.Server
	handler http.Handler
	key     [sha256.Size]byte
	hosts   []string
}

// New returns a server. Close ends its sessions.
func New(opts Options) *Server {
	s := &Server{key: sha256.Sum256([]byte("Bearer " + opts.Key)), hosts: opts.AllowedHosts}
	if len(s.hosts) == 0 {
		s.hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "weir-demo-tickets", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "Read-only access to customer-support tickets: search_tickets lists them, get_ticket returns one with its history.",
	})
	d := newDesk()
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	s.mcp.AddTool(&mcp.Tool{Name: "search_tickets", Annotations: readOnly, InputSchema: json.RawMessage(searchSchema),
		Description: "List support tickets, newest first, optionally only those with one status."}, d.serveSearch)
	s.mcp.AddTool(&mcp.Tool{Name: "get_ticket", Annotations: readOnly, InputSchema: json.RawMessage(getSchema),
		Description: "Get one support ticket by its exact id, with its complete history."}, d.serveGet)
	s.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp },
		&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}) // ours is below
	return s
}

// Close ends every session.
func (s *Server) Close() {
	for session := range s.mcp.Sessions() {
		_ = session.Close() // the connection may be gone; nothing to do about it
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
	case "/mcp":
		s.serveMCP(w, r)
	default:
		http.Error(w, "not found", http.StatusNotFound)
	}
}

func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	given := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	if len(r.Header.Values("Authorization")) != 1 || subtle.ConstantTimeCompare(given[:], s.key[:]) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "missing or invalid API key", http.StatusUnauthorized)
		return
	}
	if !s.allows(r.Host) {
		http.Error(w, "this Host is not allowed", http.StatusForbidden)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// allows guards against DNS rebinding.
func (s *Server) allows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	return slices.ContainsFunc(s.hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, name)
	})
}

const searchSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"SearchTickets","type":"object","properties":{` +
	`"status":{"description":"Only tickets with this status, for example open or resolved.","type":["string","null"]},` +
	`"limit":{"description":"How many tickets to return at most, 1 to 100; 50 when absent.","type":["integer","null"],"format":"int64"}}}`

const getSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"GetTicket","type":"object","properties":{` +
	`"ticket_id":{"description":"The exact id of the ticket, for example TKT-1001.","type":"string"}},"required":["ticket_id"]}`

func (d *desk) serveSearch(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Status *string `json:"status"`
		Limit  *int64  `json:"limit"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return nil, invalid("the arguments of search_tickets are not valid", nil)
	}
	return answer(d.search(in.Status, in.Limit))
}

func (d *desk) serveGet(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		TicketID *string `json:"ticket_id"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil || in.TicketID == nil {
		return nil, invalid("the arguments of get_ticket are not valid", nil)
	}
	id := strings.TrimSpace(*in.TicketID)
	if id == "" {
		return nil, invalid("ticket_id must not be empty", nil)
	}
	found, ok := d.get(id)
	if !ok {
		return nil, invalid("Ticket '"+id+"' was not found", map[string]string{"ticket_id": id})
	}
	return answer(found)
}

func answer(v any) (*mcp.CallToolResult, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
}

func invalid(message string, data map[string]string) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
	if data != nil {
		e.Data, _ = json.Marshal(data) // a map of strings always marshals
	}
	return e
}
