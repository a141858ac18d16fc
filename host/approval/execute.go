package approval

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// ExecutorOptions configures an [Executor]. MCPURL, APIKey and Secret are
// required; every other zero value means the default.
type ExecutorOptions struct {
	// MCPURL is the MCP server's address; the execution endpoint lies beside it
	// (4.5): http://h:8080/mcp → http://h:8080/approvals/execute.
	MCPURL string
	// APIKey is sent as a bearer token, to this address only.
	APIKey string
	// Secret signs tokens; it is used as it is.
	Secret []byte
	// Connect bounds the connection, TLS included. Default 5 s.
	Connect time.Duration
	// Timeout bounds the whole exchange. Default 30 s. Too short and changes
	// that were applied end as unknown.
	Timeout time.Duration
	// MaxBody bounds the answer in bytes. Default 64 KiB. A longer one cannot be
	// read.
	MaxBody int64
}

// Executor has approved changes executed. It may be used concurrently and holds
// no connection between two calls.
type Executor struct {
	opts     ExecutorOptions
	endpoint string
	client   *http.Client
}

// NewExecutor checks the options. Its errors quote neither address nor secrets.
func NewExecutor(opts ExecutorOptions) (*Executor, error) {
	opts = opts.withDefaults()
	endpoint, err := endpointOf(opts.MCPURL)
	switch {
	case err != nil:
		return nil, err
	case blank(opts.APIKey):
		return nil, fault.New(fault.Invalid, "approval: api key: expected a key for the MCP server")
	case !strong(opts.Secret):
		return nil, fault.New(fault.Invalid, "approval: secret: expected at least %d characters", MinSecret)
	case opts.Connect < 0 || opts.Timeout < 0 || opts.MaxBody < 0:
		return nil, fault.New(fault.Invalid, "approval: time-outs and sizes may not be negative")
	}
	opts.Secret = bytes.Clone(opts.Secret)
	return &Executor{opts: opts, endpoint: endpoint, client: newClient(opts)}, nil
}

func (o ExecutorOptions) withDefaults() ExecutorOptions {
	if o.Connect == 0 {
		o.Connect = 5 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 10
	}
	return o
}

func endpointOf(mcp string) (string, error) {
	u, err := url.Parse(mcp)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return "", fault.New(fault.Invalid, "approval: mcp url: expected an http or https URL with a host, without user, password or fragment")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/mcp") + "/approvals/execute"
	u.RawPath = ""
	return u.String(), nil
}

// Execute has a change executed: one POST, never repeated (4.5). It blocks at
// most for the time-out; a context that ends with the client's connection would
// leave changes unknown, so give it one that does not.
//
// Nothing was applied when the server refuses, or when no request left this
// process. Where a request left and no readable answer came back, nobody can
// say, and the outcome is Unknown.
func (e *Executor) Execute(ctx context.Context, claims abi.Raw) Outcome {
	token, request, err := e.mint(claims)
	if err != nil {
		return Outcome{Result: failure("the approved change could not be applied")}
	}
	return e.post(ctx, token, request).executed()
}

// Settle finds out what became of claims whose execution was begun by a process
// that then died: the same token is sent again, and its nonce protects. A server
// that has seen it says so, and the change is committed; one that carries it out
// now has committed it as well; one that looked at the nonce and refuses for
// another reason has never applied it. Everything else (it cannot be reached, it
// cannot be read, the token has expired or is refused before its nonce is
// looked at) is Unknown: the first request may have been carried out.
func (e *Executor) Settle(ctx context.Context, claims abi.Raw) Outcome {
	token, request, err := e.mint(claims)
	if err != nil {
		return unknown()
	}
	return e.post(ctx, token, request).settled()
}

func (e *Executor) mint(claims abi.Raw) (token, request string, err error) {
	c, err := readClaims(claims)
	if err != nil {
		return "", "", err
	}
	token, err = Mint(e.opts.Secret, claims)
	return token, c.request, err
}

// post sends the one request.
func (e *Executor) post(ctx context.Context, token, request string) reply {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	body := object(field{"approval_token", token}, field{"request_id", request})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return reply{}
	}
	req.Header.Set("Authorization", "Bearer "+e.opts.APIKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return reply{sent: sent.Load()}
	}
	defer resp.Body.Close()
	return e.read(resp, token)
}

func failure(text string) abi.Raw { return object(field{"error", text}) }
