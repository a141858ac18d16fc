package model

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"weir/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a real model endpoint and returns a client of it.
func serve(t *testing.T, opts Options, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	opts.Agent.BaseURL = server.URL + "/v1"
	return client(t, opts)
}

// client fills in what a test left out.
func client(t *testing.T, opts Options) *Client {
	t.Helper()
	if opts.Agent.Name == "" {
		opts.Agent.Name = "large"
	}
	if opts.Guard.BaseURL == "" {
		opts.Guard.BaseURL = opts.Agent.BaseURL
	}
	if opts.Guard.Name == "" {
		opts.Guard.Name = "small"
	}
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func streamed() *Request {
	return &Request{Alias: abi.ModelAgent, Stream: true, Messages: []abi.Message{{Role: abi.RoleUser, Content: "hello"}}}
}

func whole() *Request {
	return &Request{Alias: abi.ModelGuard, Messages: []abi.Message{{Role: abi.RoleUser, Content: "hello"}}}
}

// sends answers with a body in pieces, each flushed.
func sends(contentType string, pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		for _, piece := range pieces {
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	}
}

func bytewise(body string) []string { return strings.Split(body, "") }

// collect completes and returns what onText was given, joined.
func collect(ctx context.Context, c *Client, req *Request) (*Reply, string, error) {
	var text strings.Builder
	reply, err := c.Complete(ctx, req, func(s string) { text.WriteString(s) })
	return reply, text.String(), err
}
