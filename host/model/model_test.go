package model

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
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

// A client with other models sends over the connections of the first.
func TestWith(t *testing.T) {
	var asked []string
	var conns atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, string(body[:bytes.IndexByte(body, ',')])+" "+r.Header.Get("Authorization"))
		io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	one := Alias{BaseURL: server.URL + "/v1", Name: "one", APIKey: "k1"}
	c := client(t, Options{Agent: one, Guard: one})
	two := Alias{BaseURL: server.URL + "/v1", Name: "two", APIKey: "k2"}
	other, err := c.With(two, two)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Client{c, other, c} {
		if reply, err := c.Complete(t.Context(), whole(), nil); err != nil || reply.Text != "yes" {
			t.Fatalf("%+v, %v", reply, err)
		}
	}
	want := []string{`{"model":"one" Bearer k1`, `{"model":"two" Bearer k2`, `{"model":"one" Bearer k1`}
	if !slices.Equal(asked, want) || conns.Load() != 1 {
		t.Errorf("asked %q over %d connections", asked, conns.Load())
	}
	if _, err := c.With(two, Alias{}); err == nil || !strings.Contains(err.Error(), "model guard: base_url") {
		t.Errorf("no guard: %v", err)
	}
}
