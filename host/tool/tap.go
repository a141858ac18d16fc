package tool

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK decodes results into Go values, which rounds integers above 2^53 and
// forgets the order of keys. So its connection is tapped: the raw result of a
// request whose context asks for it goes to that context's exchange, and the
// SDK is handed an empty one.

// exchange is what became of one request on the wire.
type exchange struct {
	raw bool // the result is wanted here

	mu         sync.Mutex
	result     json.RawMessage // nil without a result
	refused    *jsonrpc.Error  // the error object that the server answered
	status     int             // of the last HTTP response, 0 without one
	hadSession bool            // that request named a session
	err        error           // the first failure below HTTP
}

type exchangeKey struct{}

// watch notes what becomes of the requests made with the returned context.
func watch(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// tapped is watch for one request whose raw result is wanted.
func tapped(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{raw: true}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// exchangeOf returns ctx's exchange, or nil; a nil exchange takes notes too.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

func (x *exchange) failed(err error) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
	}
}

func (x *exchange) answered(status int, hadSession bool) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.hadSession = status, hadSession
}

func (x *exchange) resolved(resp *jsonrpc.Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if resp.Error == nil {
		x.result = resp.Result
	} else {
		errors.As(resp.Error, &x.refused)
	}
}

func (x *exchange) refusal() *jsonrpc.Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.refused
}

// snapshot is safe while the SDK's goroutines still run.
func (x *exchange) snapshot() (result json.RawMessage, status int, hadSession bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.result, x.status, x.hadSession, x.err
}

// tapTransport connects through the SDK's transport and taps the connection.
type tapTransport struct {
	mcp.StreamableClientTransport
	courier *courier
	tap     *tap // set by Connect
}

// Connect implements mcp.Transport.
func (t *tapTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.StreamableClientTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.tap = &tap{Connection: conn, courier: t.courier, waiting: map[jsonrpc.ID]*exchange{}}
	return t.tap, nil
}

// tap is a connection whose results can be had raw.
//
// Being a wrapper, it hides from the SDK that the connection wants to know the
// negotiated version, so it reads the version from initialize's result and the
// courier adds the header that the SDK would have set.
type tap struct {
	mcp.Connection
	courier *courier

	mu         sync.Mutex
	waiting    map[jsonrpc.ID]*exchange
	initialize jsonrpc.ID
}

// Write implements mcp.Connection.
func (t *tap) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return t.Connection.Write(ctx, msg)
	}
	x := exchangeOf(ctx)
	t.mu.Lock()
	if req.Method == "initialize" {
		t.initialize = req.ID
	} else if x != nil && x.raw {
		t.waiting[req.ID] = x
	}
	t.mu.Unlock()
	err := t.Connection.Write(ctx, msg)
	if err != nil {
		t.take(req.ID)
	}
	return err
}

// Read implements mcp.Connection.
func (t *tap) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := t.Connection.Read(ctx)
	resp, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok {
		return msg, err
	}
	x, initialize := t.take(resp.ID)
	if initialize && resp.Error == nil {
		t.learn(resp.Result)
	}
	if x == nil {
		return msg, nil
	}
	x.resolved(resp)
	if resp.Error != nil {
		return msg, nil
	}
	return &jsonrpc.Response{ID: resp.ID, Result: json.RawMessage(`{"content":[],"tools":[]}`)}, nil
}

func (t *tap) take(id jsonrpc.ID) (x *exchange, initialize bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x = t.waiting[id]
	delete(t.waiting, id)
	return x, id.IsValid() && id == t.initialize
}

// drop forgets x, whose call ended without an answer.
func (t *tap) drop(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, other := range t.waiting {
		if other == x {
			delete(t.waiting, id)
		}
	}
}

func (t *tap) learn(result json.RawMessage) {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &r) == nil && r.ProtocolVersion != "" {
		t.courier.version.Store(&r.ProtocolVersion)
	}
}
