package stream_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/host/auth"
	"weir/host/contract/platform"
	"weir/host/contract/stream"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/server"
)

func TestMain(m *testing.M) {
	// The library's pool of workers sleeps for up to ten seconds after its end.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// runner makes a Runner of a function.
type runner func(ctx context.Context, req run.Request, out run.Observer)

func (f runner) Run(ctx context.Context, req run.Request, out run.Observer, over func()) {
	defer over()
	f(ctx, req, out)
}

func (f runner) Follow(context.Context, string, string, string) (func(context.Context, run.Follower), error) {
	return nil, fault.New(fault.NotFound, "not found")
}

func (f runner) Respond(context.Context, string, string, string, []byte) error {
	return fault.New(fault.NotFound, "no pending interaction with that id")
}

// host is the contract behind the real server and the real authentication.
type host struct {
	handler *stream.Handler
	server  *server.Server
	addr    string
}

func start(t testing.TB, r stream.Runner, opts stream.Options, srv server.Options) *host {
	t.Helper()
	opts.Workflow, opts.Version = "support-tickets-agent.invoke", version
	h, err := stream.New(r, opts)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := auth.New("key")
	if err != nil {
		t.Fatal(err)
	}
	srv.Listen, srv.Interrupt = "127.0.0.1:0", h.Drain
	srv.Authenticate = func(head server.Header) (any, error) { return request(gate, head) }
	srv.Routes = []server.Route{
		{Method: "POST", Path: stream.PathWorkflow, Handle: h.Workflow},
		{Method: "GET", Path: stream.PathVersion, Handle: h.Version},
		{Method: "GET", Path: stream.PathEvents, Handle: h.Events},
	}
	p := platform.New(platform.Options{Title: "Support Tickets Agent", Version: "1.2.3"})
	srv.Public = []server.Route{
		{Method: "GET", Path: platform.PathHealth, Handle: p.Health},
		{Method: "GET", Path: platform.PathLive, Handle: p.Live},
		{Method: "GET", Path: platform.PathReady, Handle: p.Ready},
	}
	s, err := server.New(srv)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return &host{handler: h, server: s, addr: addr.String()}
}

func request(gate *auth.Authenticator, head auth.Header) (any, error) {
	c, err := gate.Authenticate(head)
	source := run.SourceGateway
	if c.Generated() {
		source = run.SourceGenerated
	}
	return run.Request{Principal: run.Principal{UserID: c.UserID(), Username: c.Username(), Roles: c.Roles(),
		Pseudonym: c.Pseudonym()}, RequestID: c.RequestID(), RequestIDSource: source}, err
}

func version() stream.Version {
	return stream.Version{Available: true, Framework: "wazero", FrameworkVersion: "v1.12.0",
		MCPSDK: "modelcontextprotocol/go-sdk", MCPSDKVersion: "v1.8.0", AgentVersion: "1.2.3",
		Model: "m", GuardModel: "g", ReasoningEffort: "none", BuildCommit: "unknown", ConfigPath: "agent.toml",
		PromptSHA256: "p", GuardrailsPromptSHA256: "q", ToolsExposed: []string{"search_tickets", "get_ticket"}, Generation: "abc"}
}

// ask opens a stream with one user turn.
func (h *host) ask(t testing.TB) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	body := `{"messages":[{"role":"user","content":"hi"}]}`
	_, err = fmt.Fprintf(c, "POST /v1/workflow/full HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key\r\n"+
		"x-authenticated-user-id: alice\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// response reads the head of a response.
func response(t testing.TB, r *bufio.Reader) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(r, &http.Request{Method: "POST"})
	if err != nil {
		t.Fatalf("no response: %v", err)
	}
	return resp
}

// whole asks and reads the whole stream, which must end as HTTP wants it.
func (h *host) whole(t testing.TB) string {
	t.Helper()
	_, r := h.ask(t)
	resp := response(t, r)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("status %d, body %q: %v", resp.StatusCode, body, err)
	}
	return string(body)
}

// until waits for a condition that other goroutines make true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// blocks splits a stream.
func blocks(s string) []string {
	return strings.Split(strings.TrimSuffix(s, "\n\n"), "\n\n")
}

// kinds names the blocks of a stream shortly.
func kinds(s string) string {
	var names []string
	for _, b := range blocks(s) {
		switch {
		case strings.HasPrefix(b, "intermediate_data: "):
			_, rest, _ := strings.Cut(b, `"type":"`)
			name, _, _ := strings.Cut(rest, `"`)
			names = append(names, name)
		case strings.HasPrefix(b, "data: "):
			names = append(names, "data")
		case strings.HasPrefix(b, "{"):
			names = append(names, "error")
		case b == ": keep-alive":
			names = append(names, "keep-alive")
		default:
			names = append(names, "?"+b)
		}
	}
	return strings.Join(names, " ")
}

func wantKinds(t testing.TB, stream, want string) {
	t.Helper()
	if got := kinds(stream); got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, stream)
	}
}

var info = run.Info{RunID: "E", StepID: "W", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", RequestID: "R", Generation: "abc"}

// crlf makes a raw request of lines; the body's length is filled in.
func crlf(text string) []byte {
	head, body, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	var b bytes.Buffer
	for line := range strings.Lines(head) {
		b.WriteString(strings.TrimSuffix(line, "\n") + "\r\n")
	}
	if !strings.Contains(strings.ToLower(head), "content-length:") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}
