// Package model calls language models over the Chat Completions protocol,
// streamed or not, and nothing more of it than an agent needs.
//
// A reply is either complete or a failure: a stream that breaks off, carries an
// error or says nothing is never an empty success. Everything else that
// providers do differently in a stream is put right, see [Client.Complete].
package model

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/telemetry"
)

// Options describe the models behind the two aliases.
type Options struct {
	Agent Alias
	Guard Alias

	// Connect bounds one attempt to connect, and as long again a TLS handshake;
	// default 5 s. A failed attempt to connect is repeated once.
	Connect time.Duration
	// FirstToken bounds the time from the request to the first chunk of a
	// stream, or to the whole of a reply that is not streamed; default 60 s.
	FirstToken time.Duration
	// BetweenChunks bounds the silence between two chunks; comments in the
	// stream do not count as chunks. Default 30 s.
	BetweenChunks time.Duration

	// MaxEvent bounds one event of a stream in bytes; default 1 MiB.
	MaxEvent int
	// MaxStream bounds all bytes of one response; default 64 MiB.
	MaxStream int64
	// MaxReply bounds text and tool calls of one reply in bytes; default 4 MiB.
	MaxReply int

	// Tracer adds the trace to requests and times them; nil does neither.
	Tracer *telemetry.Tracer

	dial dialFunc // for tests; nil: the network
}

// Alias is one model as the operator named it.
type Alias struct {
	// BaseURL is where chat/completions lies, for instance
	// http://127.0.0.1:11434/v1; a query is kept.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// Name is the model's name at the provider.
	Name string
	// ReasoningEffort is sent as it stands; empty sends none.
	ReasoningEffort string
	// Temperature is used where a request has none; nil sends none.
	Temperature *float64
	// MaxTokens is used where a request has none; 0 sends none.
	MaxTokens int
}

// Request is one model call with everything resolved.
type Request struct {
	Alias       string        // abi.ModelAgent or abi.ModelGuard
	Messages    []abi.Message // without Ref and Turn
	Tools       []Tool
	Temperature *float64 // nil: the alias's
	MaxTokens   int      // 0: the alias's
	Stream      bool
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	Schema      abi.Raw // JSON Schema of the arguments; sent byte for byte
}

// Reply is one complete reply.
type Reply struct {
	Text         string
	ToolCalls    []abi.ToolCall // every one has a name, and an id that no other has
	FinishReason string         // as the provider gave it; may be empty
	Usage        Usage
}

// Usage is what the provider counted; zero where it did not say.
type Usage struct {
	InputTokens  int
	OutputTokens int
}

// Client calls the models of both aliases. It is safe for concurrent use.
type Client struct {
	opts      Options
	endpoints map[string]*endpoint
	http      *http.Client
	transport *http.Transport
}

// New checks the options and returns a client. It does not connect.
func New(opts Options) (*Client, error) {
	opts.defaults()
	c := &Client{opts: opts}
	if err := c.name(opts.Agent, opts.Guard); err != nil {
		return nil, err
	}
	c.transport = newTransport(&opts)
	c.http = &http.Client{
		Transport:     opts.Tracer.Transport(c.transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// With returns a client that calls other models over the same connections.
// Both may be used, and closing either closes what is idle for both.
func (c *Client) With(agent, guard Alias) (*Client, error) {
	next := *c
	if err := next.name(agent, guard); err != nil {
		return nil, err
	}
	return &next, nil
}

// name sets what the two aliases mean.
func (c *Client) name(agent, guard Alias) error {
	c.opts.Agent, c.opts.Guard = agent, guard
	c.endpoints = make(map[string]*endpoint, 2)
	for name, alias := range map[string]Alias{abi.ModelAgent: agent, abi.ModelGuard: guard} {
		e, err := newEndpoint(name, alias)
		if err != nil {
			return fmt.Errorf("model %s: %w", name, err)
		}
		c.endpoints[name] = e
	}
	return nil
}

func (o *Options) defaults() {
	if o.Connect <= 0 {
		o.Connect = 5 * time.Second
	}
	if o.FirstToken <= 0 {
		o.FirstToken = 60 * time.Second
	}
	if o.BetweenChunks <= 0 {
		o.BetweenChunks = 30 * time.Second
	}
	if o.MaxEvent <= 0 {
		o.MaxEvent = 1 << 20
	}
	if o.MaxStream <= 0 {
		o.MaxStream = 64 << 20
	}
	if o.MaxReply <= 0 {
		o.MaxReply = 4 << 20
	}
}

// Close closes idle connections. Calls in flight are their contexts' business.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Complete sends one request and returns its reply. Text of a streamed reply
// goes to onText as it arrives, from the calling goroutine; onText may be nil,
// may block, and is given only text: no reasoning, no tool calls.
//
// The call ends as soon as ctx does, and its connection is closed. An error is
// of kind Unavailable with one of the codes abi.FailUnavailable (no connection,
// or a status other than 2xx), abi.FailTimeout and abi.FailBadReply. Its text
// holds nothing that the provider sent, no address and no key. When ctx was
// cancelled the error wraps context.Canceled.
//
// In a stream are put right: chunks without choices, tool calls in any
// interleaving and with a missing or repeated index, missing and repeated ids,
// names repeated or in pieces, text beside tool calls, several finish reasons,
// a missing [DONE]; reasoning is dropped.
func (c *Client) Complete(ctx context.Context, req *Request, onText func(string)) (*Reply, error) {
	e, ok := c.endpoints[req.Alias]
	if !ok {
		return nil, fault.New(fault.Invalid, "model: expected the alias %s or %s", abi.ModelAgent, abi.ModelGuard)
	}
	body, err := e.body(req)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", e.alias, err)
	}
	if onText == nil {
		onText = func(string) {}
	}
	call := c.newCall(ctx, e)
	defer call.close()
	reply, err := call.run(body, req.Stream, onText)
	if err != nil {
		return nil, call.failure(err)
	}
	return reply, nil
}
