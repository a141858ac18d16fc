package tickets

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"weir/cmd/weir-demo/internal/approval"
)

// Options configures a [Server].
type Options struct {
	// Key is the bearer token that every request to /mcp and /approvals/execute
	// must carry. Required.
	Key string
	// AllowedHosts are the Host headers that are answered, with a port or for
	// any port without one. Default: the loopback names.
	AllowedHosts []string
	// Database is the file that holds the tickets; it is made when it is
	// missing and kept afterwards. Default: a database in memory, which ends
	// with the server.
	Database string
	// ApprovalSecret signs approvals, at least [approval.MinSecret] bytes.
	// Empty: /approvals/execute does not exist.
	ApprovalSecret string
	// Committed is called with each token whose change was committed, and the
	// request id that came with it, before the caller is answered. It is there
	// to show that a token works once; nothing else keeps tokens. Default: none.
	Committed func(token, requestID string)
	// Now is the clock of approvals and of what they write. Default time.Now.
	Now func() time.Time
	// Log is told why a change failed. Default: nobody.
	Log *slog.Logger
}

// Server is the ticket desk as an http.Handler: /mcp, /approvals/execute and
// /health.
type Server struct {
	opts     Options
	desk     *desk
	verifier *approval.Verifier // nil without a secret
	mcp      *mcp.Server
	handler  http.Handler
	key      [sha256.Size]byte
	hosts    []string
}

// New opens the database and returns a server. Close ends both.
func New(opts Options) (*Server, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, key: sha256.Sum256([]byte("Bearer " + opts.Key)), hosts: opts.AllowedHosts}
	if len(s.hosts) == 0 {
		s.hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	var err error
	if opts.ApprovalSecret != "" {
		if s.verifier, err = approval.New(opts.ApprovalSecret, approval.Options{Now: opts.Now}); err != nil {
			return nil, err
		}
	}
	if s.desk, err = openDesk(opts.Database, opts.Now); err != nil {
		return nil, err
	}
	s.mcp = newMCP(s.desk)
	s.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp },
		&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}) // ours is below
	return s, nil
}

func newMCP(d *desk) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "weir-demo-tickets", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "Read-only access to customer-support tickets: search_tickets lists them, get_ticket returns one with its history.",
	})
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	server.AddTool(&mcp.Tool{Name: "search_tickets", Annotations: readOnly, InputSchema: json.RawMessage(searchSchema),
		Description: "List support tickets, newest first, optionally only those with one status."}, d.serveSearch)
	server.AddTool(&mcp.Tool{Name: "get_ticket", Annotations: readOnly, InputSchema: json.RawMessage(getSchema),
		Description: "Get one support ticket by its exact id, with its complete history."}, d.serveGet)
	return server
}

// Close ends every session and closes the database. It may be called twice.
func (s *Server) Close() {
	for session := range s.mcp.Sessions() {
		_ = session.Close() // the connection may be gone; nothing to do about it
	}
	s.desk.close()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
	case "/mcp":
		if s.admits(w, r) {
			s.handler.ServeHTTP(w, r)
		}
	case "/approvals/execute":
		s.serveExecute(w, r)
	default:
		http.Error(w, "not found", http.StatusNotFound)
	}
}

// admits answers whoever lacks the key or comes by another name of this host.
func (s *Server) admits(w http.ResponseWriter, r *http.Request) bool {
	given := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	if len(r.Header.Values("Authorization")) != 1 || subtle.ConstantTimeCompare(given[:], s.key[:]) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "invalid or missing internal API key")
		return false
	}
	if !s.allows(r.Host) {
		refuse(w, http.StatusForbidden, "this Host is not allowed")
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the caller may have left
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

func (d *desk) serveSearch(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Status *string `json:"status"`
		Limit  *int64  `json:"limit"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return nil, invalid("the arguments of search_tickets are not valid", nil)
	}
	found, err := d.search(ctx, in.Status, in.Limit)
	if err != nil {
		return nil, broken()
	}
	return answer(found)
}

func (d *desk) serveGet(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
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
	found, ok, err := d.get(ctx, id)
	if err != nil {
		return nil, broken()
	}
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

// broken is what a database that fails looks like from outside (5.2).
func broken() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The tickets database operation failed"}
}

func invalid(message string, data map[string]string) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
	if data != nil {
		e.Data, _ = json.Marshal(data) // a map of strings always marshals
	}
	return e
}
