package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/goleak"

	"weir/host/auth"
	"weir/host/benchtest"
	"weir/host/logtest"
)

func TestMain(m *testing.M) {
	// The library's pool of workers sleeps for up to ten seconds after its end.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

const (
	key  = "a-service-key"
	good = "Authorization: Bearer " + key + "\r\nx-authenticated-user-id: alice\r\n"
)

// start runs a server with one echoing route until the test ends.
func start(t testing.TB, opts Options, routes ...Route) (*Server, string) {
	t.Helper()
	a, err := auth.New(key)
	if err != nil {
		t.Fatal(err)
	}
	opts.Listen = "127.0.0.1:0"
	text := func(c *fiber.Ctx, caller any) error { return c.SendString(fmt.Sprint("public to ", caller)) }
	opts.Public = []Route{{Method: "GET", Path: "/health", Handle: text}, {Method: "GET", Path: "/health/ready", Handle: text}}
	opts.Authenticate = func(h Header) (any, error) { return a.Authenticate(h) }
	opts.Routes = append(routes,
		Route{Method: "POST", Path: "/v1/echo", Handle: func(c *fiber.Ctx, caller any) error {
			who := caller.(auth.Caller)
			return c.SendString(fmt.Sprintf("%s %d %q", who.UserID(), len(c.BodyRaw()), c.Get("Authorization")))
		}},
		Route{Method: "GET", Path: "/version", Handle: func(c *fiber.Ctx, _ any) error { return c.SendString("v") }},
		Route{Method: "POST", Path: "/panic", Handle: func(*fiber.Ctx, any) error { panic("secret of alice") }},
		Route{Method: "POST", Path: "/fail", Handle: func(*fiber.Ctx, any) error { return fmt.Errorf("secret of alice") }},
	)
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(t.Context()) })
	return s, addr.String()
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

type answer struct {
	status int
	head   http.Header
	body   string
	close  bool
}

// receive reads one response.
func receive(t testing.TB, r *bufio.Reader, method string) answer {
	t.Helper()
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no response: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("body: %v", err)
	}
	return answer{resp.StatusCode, resp.Header, string(body), resp.Close}
}

// send writes raw bytes on a new connection and reads one response.
func send(t testing.TB, addr, raw string) answer {
	t.Helper()
	c := dial(t, addr)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(strings.TrimLeft(raw, "\r\n"), " ")
	return receive(t, bufio.NewReader(c), method)
}

// Faults H1 and H2: what two readers may understand differently is refused.
// The controls beside each show that the harmless form passes.
func TestStrictHeads(t *testing.T) {
	_, addr := start(t, Options{})
	const post = "POST /v1/echo HTTP/1.1\r\n"
	tests := []struct {
		name, raw string
		status    int
	}{
		{"control", post + "Host: a\r\n" + good + "Content-Length: 2\r\n\r\nhi", 200},
		{"control chunked", post + "Host: a\r\n" + good + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200},
		{"control empty lines before", "\r\n" + post + "Host: a\r\n" + good + "Content-Length: 2\r\n\r\nhi", 200},
		{"control LF in a body", post + "Host: a\r\n" + good + "Content-Length: 3\r\n\r\n{\n}", 200},
		{"control connection", post + "Host: a\r\n" + good + "Connection: keep-alive, TE\r\nContent-Length: 0\r\n\r\n", 200},

		{"bare LF after the request line", "POST /v1/echo HTTP/1.1\nHost: a\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"bare LF after a header", post + "Host: a\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"bare LF at the end", post + "Host: a\r\n" + good + "Content-Length: 0\r\n\n", 400},
		{"bare CR in a value", post + "Host: a\r\nx: a\rb: c\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"folded line", post + "Host: a\r\nx-a: b\r\n c\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"folded line with a tab", post + "Host: a\r\nx-a: b\r\n\tc\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"folded identity", post + "Host: a\r\nAuthorization: Bearer " + key +
			"\r\nx-authenticated-user-id: alice\r\n bob\r\nContent-Length: 0\r\n\r\n", 400},
		{"NUL in a value", post + "Host: a\r\nx-a: b\x00c\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"NUL in an identity", post + "Host: a\r\nAuthorization: Bearer " + key +
			"\r\nx-authenticated-user-id: al\x00ice\r\nContent-Length: 0\r\n\r\n", 400},
		{"space before a colon", post + "Host: a\r\nx-a : b\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"no header name", post + "Host: a\r\n: b\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"line without a colon", post + "Host: a\r\nx-a\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"two hosts", post + "Host: a\r\nHost: b\r\n" + good + "Content-Length: 0\r\n\r\n", 400},
		{"no host", post + good + "Content-Length: 0\r\n\r\n", 400},
		{"two lengths", post + "Host: a\r\n" + good + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", 400},
		{"same length twice", post + "Host: a\r\n" + good + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", 400},
		{"list of lengths", post + "Host: a\r\n" + good + "Content-Length: 2, 2\r\n\r\nhi", 400},
		{"signed length", post + "Host: a\r\n" + good + "Content-Length: +2\r\n\r\nhi", 400},
		{"length with chunked", post + "Host: a\r\n" + good + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 400},
		{"chunked with length", post + "Host: a\r\n" + good + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 400},
		{"coding twice", post + "Host: a\r\n" + good + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"coding identity", post + "Host: a\r\n" + good + "Transfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n", 400},
		{"coding gzip", post + "Host: a\r\n" + good + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
		{"connection names the user", post + "Host: a\r\n" + good + "Connection: X-Authenticated-User-Id\r\nContent-Length: 0\r\n\r\n", 400},
		{"connection names roles in a list", post + "Host: a\r\n" + good + "Connection: close , x-authenticated-roles\r\nContent-Length: 0\r\n\r\n", 400},
		{"connection names the request id", post + "Host: a\r\n" + good + "Connection: x-request-id\r\nContent-Length: 0\r\n\r\n", 400},
		{"connection names the key", post + "Host: a\r\n" + good + "Connection: authorization\r\nContent-Length: 0\r\n\r\n", 400},
		{"second connection header", post + "Host: a\r\n" + good + "Connection: keep-alive\r\nConnection: authorization\r\nContent-Length: 0\r\n\r\n", 400},
		{"identity in a trailer", post + "Host: a\r\nAuthorization: Bearer " + key +
			"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-authenticated-user-id: eve\r\n\r\n", 400},
		{"control two identities", post + "Host: a\r\n" + good + "x-authenticated-user-id: bob\r\nContent-Length: 0\r\n\r\n", 401},
		{"control identities in a list", post + "Host: a\r\nAuthorization: Bearer " + key +
			"\r\nx-authenticated-user-id: alice, bob\r\nContent-Length: 0\r\n\r\n", 401},
		{"control no key", post + "Host: a\r\nContent-Length: 0\r\n\r\n", 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := send(t, addr, tt.raw)
			if got.status != tt.status {
				t.Fatalf("status %d (%s), want %d", got.status, got.body, tt.status)
			}
			if tt.status == 400 {
				if got.body != `{"error":"malformed request"}` || got.head.Get("Content-Type") != "application/json" {
					t.Errorf("got %q %q", got.head.Get("Content-Type"), got.body)
				}
				if !got.close {
					t.Error("the connection stays open after a malformed request")
				}
			}
		})
	}
}

// A request behind another one on the same connection is looked at as well,
// and bodies are told from heads.
func TestStrictHeadsOnReusedConnections(t *testing.T) {
	_, addr := start(t, Options{})
	c := dial(t, addr)
	r := bufio.NewReader(c)
	body := "\n x: y\n\x00"
	one := fmt.Sprintf("POST /v1/echo HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s", good, len(body), body)
	for range 3 {
		if _, err := io.WriteString(c, one); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, r, "POST"); got.status != 200 {
			t.Fatalf("status %d %s", got.status, got.body)
		}
	}
	if _, err := io.WriteString(c, "GET /version HTTP/1.1\nHost: a\r\n"+good+"\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, r, "GET"); got.status != 400 {
		t.Errorf("bare LF in a later request: status %d", got.status)
	}
}

// Clause 1.1 and fault H3.
func TestRoutes(t *testing.T) {
	_, addr := start(t, Options{})
	const notFound, wrong = `{"error":"not found"}`, `{"error":"method not allowed"}`
	const noKey = `{"error":"invalid or missing internal API key"}`
	const health = "public to <nil>"
	tests := []struct {
		line   string
		keyed  bool
		status int
		body   string
	}{
		{"GET /health", false, 200, health},
		{"HEAD /health", false, 200, ""},
		{"GET /health?x=1", false, 200, health},
		{"GET /health/ready", false, 200, health},
		{"GET /health", true, 200, health},
		{"GET /health/live", false, 401, noKey}, // no route of this server
		{"POST /health", false, 405, wrong},
		{"DELETE /health/ready", false, 405, wrong},
		{"BREW /health", false, 405, wrong},
		{"GET /health/", false, 401, noKey},
		{"GET /Health", false, 401, noKey},
		{"GET //health", false, 401, noKey},
		{"GET /./health", false, 401, noKey},
		{"GET /x/../health", false, 401, noKey},
		{"GET /%68ealth", false, 401, noKey},
		{"GET /health#x", false, 401, noKey},
		{"GET http://a/health", false, 401, noKey},
		{"GET /", false, 401, noKey},
		{"GET /docs", false, 401, noKey},
		{"GET /v1/chat/completions", false, 401, noKey},
		{"GET /v1/echo", false, 401, noKey},
		{"POST /v1/echo", false, 401, noKey},
		{"BREW /v1/echo", false, 401, noKey},
		{"OPTIONS *", false, 401, noKey},
		{"CONNECT a:80", false, 401, noKey},
		{"GET /executions/x/interactions/y/response", false, 401, noKey},

		{"GET /version", true, 200, "v"},
		{"HEAD /version", true, 200, ""},
		{"POST /version", true, 405, wrong},
		{"GET /v1/echo", true, 405, wrong},
		{"BREW /v1/echo", true, 405, wrong},
		{"BREW /nowhere", true, 404, notFound},
		{"GET /nowhere", true, 404, notFound},
		{"GET /version/", true, 404, notFound},
		{"GET /Version", true, 404, notFound},
		{"GET //version", true, 404, notFound},
		{"GET /./version", true, 404, notFound},
		{"GET /x/../version", true, 404, notFound},
		{"GET /%76ersion", true, 404, notFound},
		{"GET /version#x", true, 404, notFound},
		{"GET http://a/version", true, 404, notFound},
		{"GET /<b>", true, 404, notFound},
		{"OPTIONS *", true, 404, notFound},
		{"POST /executions/x/interactions/y/response", true, 404, notFound},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.line, " keyed ", tt.keyed), func(t *testing.T) {
			raw := tt.line + " HTTP/1.1\r\nHost: a\r\n"
			if tt.keyed {
				raw += good
			}
			got := send(t, addr, raw+"Content-Length: 0\r\n\r\n")
			if got.status != tt.status || got.body != tt.body {
				t.Errorf("got %d %q, want %d %q", got.status, got.body, tt.status, tt.body)
			}
			if tt.status == 401 && got.head.Get("WWW-Authenticate") != "Bearer" {
				t.Error("no challenge")
			}
			if got.head.Get("Location") != "" || got.head.Get("X-Request-Id") != "" || got.head.Get("Server") != "" {
				t.Errorf("unexpected headers: %v", got.head)
			}
		})
	}
}

// Clause 1.3: identity refusals through the wire.
func TestIdentityRefusals(t *testing.T) {
	_, addr := start(t, Options{})
	const bearer = "Authorization: Bearer " + key + "\r\n"
	for name, tt := range map[string]struct {
		head, body string
		status     int
	}{
		"none":             {bearer, `{"error":"missing or ambiguous authenticated identity"}`, 401},
		"repeated":         {good + "X-AUTHENTICATED-USER-ID: alice\r\n", `{"error":"missing or ambiguous authenticated identity"}`, 401},
		"high byte":        {bearer + "x-authenticated-user-id: Zo\xc3\xab\r\n", `{"error":"missing or ambiguous authenticated identity"}`, 401},
		"two request ids":  {good + "x-request-id: a\r\nX-Request-Id: a\r\n", `{"error":"invalid x-request-id"}`, 400},
		"two keys":         {good + bearer, `{"error":"invalid or missing internal API key"}`, 401},
		"unknown path too": {bearer, `{"error":"missing or ambiguous authenticated identity"}`, 401},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, addr, "POST /v1/echo HTTP/1.1\r\nHost: a\r\n"+tt.head+"Content-Length: 0\r\n\r\n")
			if got.status != tt.status || got.body != tt.body {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if has := got.head.Get("WWW-Authenticate") != ""; has != strings.Contains(tt.body, "API key") {
				t.Errorf("challenge: %v", has)
			}
		})
	}
	got := send(t, addr, "POST /v1/echo HTTP/1.1\r\nHost: a\r\n"+good+"Content-Length: 0\r\n\r\n")
	if want := `alice 0 ""`; got.body != want {
		t.Errorf("the route saw %q, want %q: the key is removed after the check", got.body, want)
	}
}

// Clause 2.1: 413 beyond 2 MiB, as JSON; the head's bound is 431.
func TestLimits(t *testing.T) {
	_, addr := start(t, Options{})
	post := func(n int) string {
		return fmt.Sprintf("POST /v1/echo HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s", good, n, strings.Repeat("x", n))
	}
	const limit = 2 << 20
	if got := send(t, addr, post(limit)); got.status != 200 {
		t.Errorf("a body of the limit: %d %s", got.status, got.body)
	}
	for range 5 { // the answer arrives although the client is still sending
		got := send(t, addr, post(limit+1))
		if got.status != 413 || got.body != `{"error":"the request body is too large"}` {
			t.Errorf("a body over the limit: %d %s", got.status, got.body)
		}
	}
	chunked := "POST /v1/echo HTTP/1.1\r\nHost: a\r\n" + good + "Transfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n", limit+1) + strings.Repeat("x", 64<<10)
	if got := send(t, addr, chunked); got.status != 413 {
		t.Errorf("a chunk over the limit: %d", got.status)
	}
	for n, want := range map[int]int{8 << 10: 200, 17 << 10: 431} {
		got := send(t, addr, "GET /version HTTP/1.1\r\nHost: a\r\n"+good+"x-pad: "+strings.Repeat("p", n)+"\r\n\r\n")
		if got.status != want {
			t.Errorf("a head of %d bytes: %d, want %d", n, got.status, want)
		}
		if want == 431 && got.body != `{"error":"the request header is too large"}` {
			t.Errorf("431 says %s", got.body)
		}
	}
}

// A body is a promise of memory, and nobody makes it to strangers: beyond a few
// KiB they are refused by the head alone, with authentication's own answer.
func TestStrangersSendNoBodies(t *testing.T) {
	_, addr := start(t, Options{})
	const more = "Content-Length: 2097152\r\n"
	for name, tt := range map[string]struct {
		head string
		want int
	}{
		"no key":               {more, 401},
		"no identity":          {"Authorization: Bearer " + key + "\r\n" + more, 401},
		"a bad request id":     {good + "x-request-id: a b\r\n" + more, 400},
		"chunks":               {"Transfer-Encoding: chunked\r\n\r\n" + "100000\r\n" + strings.Repeat("x", 64<<10), 413},
		"more than anybody":    {"Content-Length: 99999999\r\n", 401},
		"more than the caller": {good + "Content-Length: 99999999\r\n", 413},
	} {
		got := send(t, addr, "POST /v1/echo HTTP/1.1\r\nHost: a\r\n"+tt.head+"\r\n")
		if got.status != tt.want || (got.head.Get("WWW-Authenticate") != "") != (name != "no identity" && tt.want == 401) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := send(t, addr, "GET /health HTTP/1.1\r\nHost: a\r\n"+more+"\r\n"); got.status != 413 {
		t.Errorf("a public path: %d %s", got.status, got.body)
	}
	small := "POST /v1/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8192\r\n\r\n" + strings.Repeat("x", 8192)
	if got := send(t, addr, small); got.status != 401 {
		t.Errorf("a small body: %d %s", got.status, got.body)
	}
}

// The library's own refusals quote the request; ours do not.
func TestErrorsNeverQuote(t *testing.T) {
	var log logtest.Buffer
	_, addr := start(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for name, tt := range map[string]struct {
		raw    string
		status int
	}{
		"no protocol":  {"GET secret\r\n\r\n", 400},
		"bad method":   {"G(ET) /secret HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"bad version":  {"GET /secret HTTP/3\r\nHost: a\r\n\r\n", 400},
		"bad target":   {"GET secret HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"broken chunk": {"POST /v1/echo HTTP/1.1\r\nHost: a\r\n" + good + "Transfer-Encoding: chunked\r\n\r\nsecret\r\n", 400},
		"panic":        {"POST /panic HTTP/1.1\r\nHost: a\r\n" + good + "Content-Length: 0\r\n\r\n", 500},
		"error":        {"POST /fail HTTP/1.1\r\nHost: a\r\n" + good + "Content-Length: 0\r\n\r\n", 500},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, addr, tt.raw)
			if got.status != tt.status || strings.Contains(got.body, "secret") || got.head.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %q", got.status, got.body)
			}
		})
	}
	if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "alice") {
		t.Errorf("the log has text of a request: %s", log.String())
	}
	if !strings.Contains(log.String(), "class=string") {
		t.Errorf("the log does not have the panic's class: %s", log.String())
	}
}

// A client that sends nothing, or half a head or body, is let go.
func TestReadTimeouts(t *testing.T) {
	_, addr := start(t, Options{HeadTimeout: 100 * time.Millisecond, BodyTimeout: 100 * time.Millisecond, IdleTimeout: 100 * time.Millisecond})
	for name, raw := range map[string]string{
		"nothing":       "",
		"half a head":   "GET /version HTTP/1.1\r\nHost",
		"half a body":   "POST /v1/echo HTTP/1.1\r\nHost: a\r\n" + good + "Content-Length: 10\r\n\r\nhi",
		"then nothing":  "GET /version HTTP/1.1\r\nHost: a\r\n" + good + "\r\n",
		"second halved": "GET /version HTTP/1.1\r\nHost: a\r\n" + good + "\r\nGET /version HT",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			_, _ = io.WriteString(c, raw)
			// A reset is an end as well: of a server that has not read it all.
			if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
}

// Fault H5: no limit on a whole response, one on each write.
func TestStall(t *testing.T) {
	closed := make(chan struct{}, 1)
	stream := Route{Method: "POST", Path: "/stream", Handle: func(c *fiber.Ctx, _ any) error {
		c.Context().Response.SetBodyStream(&endless{closed: closed}, -1)
		return nil
	}}
	_, addr := start(t, Options{Stall: 300 * time.Millisecond}, stream)
	ask := "POST /stream HTTP/1.1\r\nHost: a\r\n" + good + "Content-Length: 0\r\n\r\n"

	slow := dial(t, addr)
	_, _ = io.WriteString(slow, ask)
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("a client that never reads holds its stream")
	}

	// A busy machine may keep this client from reading: one attempt is enough.
	took := benchtest.Best(5, 0, func() time.Duration {
		reader := dial(t, addr)
		_, _ = io.WriteString(reader, ask)
		begin, buf := time.Now(), make([]byte, 64<<10)
		var err error
		for err == nil && time.Since(begin) < time.Second { // more than three limits
			_, err = reader.Read(buf)
		}
		_ = reader.Close()
		<-closed
		if err == nil {
			return 0
		}
		return time.Since(begin)
	})
	if took > 0 {
		t.Errorf("a client that reads is cut, at the earliest after %v", took)
	}
}

// endless is a body without an end.
type endless struct{ closed chan<- struct{} }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func (e *endless) Close() error {
	e.closed <- struct{}{}
	return nil
}

// Fault H6: open requests get the drain time, then the interrupt; nobody is
// accepted meanwhile; what ignores the interrupt is closed.
func TestStop(t *testing.T) {
	for name, tt := range map[string]struct {
		drain, grace time.Duration
		obeys        bool
		body         string
	}{
		"finishes in time": {time.Minute, time.Second, false, "late"},
		"interrupted":      {20 * time.Millisecond, time.Minute, true, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			entered, interrupt, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
			s, addr := start(t, Options{Drain: tt.drain, Grace: tt.grace, Interrupt: func() { close(interrupt) }},
				Route{Method: "POST", Path: "/wait", Handle: func(c *fiber.Ctx, _ any) error {
					close(entered)
					if tt.obeys {
						<-interrupt
						return c.SendString("interrupted")
					}
					<-release
					return c.SendString("late")
				}})
			c := dial(t, addr)
			_, _ = io.WriteString(c, "POST /wait HTTP/1.1\r\nHost: a\r\n"+good+"Content-Length: 0\r\n\r\n")
			<-entered
			idle := dial(t, addr)
			first, second := make(chan struct{}), make(chan struct{})
			go func() { defer close(first); s.Stop(context.Background()) }()
			go func() { defer close(second); s.Stop(context.Background()) }()
			<-s.served
			if _, err := net.Dial("tcp", addr); err == nil {
				t.Error("a new connection is accepted")
			}
			close(release)
			if got := receive(t, bufio.NewReader(c), "POST"); got.status != 200 || got.body != tt.body {
				t.Errorf("got %d %q", got.status, got.body)
			}
			<-first
			<-second
			if _, err := idle.Read(make([]byte, 1)); err == nil {
				t.Error("an idle connection is still open")
			}
			s.Stop(context.Background())
		})
	}
}

// What ignores the interrupt is closed after the grace time, or when the
// context of Stop ends.
func TestStopCloses(t *testing.T) {
	closed := make(chan struct{}, 1)
	s, addr := start(t, Options{Drain: time.Millisecond, Grace: time.Millisecond},
		Route{Method: "POST", Path: "/stream", Handle: func(c *fiber.Ctx, _ any) error {
			c.Context().Response.SetBodyStream(&endless{closed: closed}, -1)
			return nil
		}})
	c := dial(t, addr)
	_, _ = io.WriteString(c, "POST /stream HTTP/1.1\r\nHost: a\r\n"+good+"Content-Length: 0\r\n\r\n")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.Stop(context.Background())
	<-closed
}

func TestStopBeforeStartAndTwice(t *testing.T) {
	s, err := New(Options{Authenticate: func(Header) (any, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(context.Background())
}

func TestListenFails(t *testing.T) {
	_, addr := start(t, Options{})
	s, err := New(Options{Listen: addr, Authenticate: func(Header) (any, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(); err == nil {
		t.Error("a second server listens on the same address")
	}
}

// The scanner never keeps more than a head, and never loses track of bodies:
// feeding bytes in any pieces gives the same result.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET"), uint8(3))
	f.Add([]byte("\r\n\r\nGET / HTTP/1.1\nHost: a\r\n\r\n"), uint8(1))
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		whole, pieces := scanner{limit: 512}, scanner{limit: 512}
		whole.feed(data)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			pieces.feed(rest[:n])
			rest = rest[n:]
		}
		if whole.bad != pieces.bad || (!whole.bad && whole.state != pieces.state && whole.state != scanBlind && pieces.state != scanBlind) {
			t.Errorf("in one piece: bad %v state %d; in pieces: bad %v state %d", whole.bad, whole.state, pieces.bad, pieces.state)
		}
		if len(pieces.line) > 512 {
			t.Errorf("%d bytes are kept", len(pieces.line))
		}
	})
}
