package admin

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"weir/host/fault"
)

const (
	dialTimeout = 5 * time.Second
	maxReply    = 256 << 20 // a run's log has all that was said
)

// Client asks an admin listener. It is for one command: it keeps no connection.
type Client struct {
	key  string
	host string
	http *http.Client
}

// NewClient returns a client of the listener at an address that package net
// calls so.
func NewClient(network, address, key string) *Client {
	host := address
	if network == "unix" {
		host = "admin"
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
		},
	}
	return &Client{key: key, host: host, http: &http.Client{Transport: transport, Timeout: workTimeout + readTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Reload asks for a reload.
func (c *Client) Reload(ctx context.Context) (Reply, error) {
	return c.do(ctx, http.MethodPost, PathReload)
}

// ReloadIf asks for a reload if a replay passes a gate.
func (c *Client) ReloadIf(ctx context.Context, since time.Duration, gate string) (Reply, error) {
	q := url.Values{"replay": {since.String()}, "gate": {gate}}
	return c.do(ctx, http.MethodPost, PathReload+"?"+q.Encode())
}

// Rollback asks for a rollback.
func (c *Client) Rollback(ctx context.Context) (Reply, error) {
	return c.do(ctx, http.MethodPost, PathRollback)
}

// Status asks how things stand.
func (c *Client) Status(ctx context.Context) (Reply, error) {
	return c.do(ctx, http.MethodGet, PathStatus)
}

// Log asks for a run's log.
func (c *Client) Log(ctx context.Context, run string) (Reply, error) {
	return c.do(ctx, http.MethodGet, PathLog+"?run="+url.QueryEscape(run))
}

// Logs asks for a list of runs; most 0 means all.
func (c *Client) Logs(ctx context.Context, since time.Duration, most int) (Reply, error) {
	q := url.Values{"since": {since.String()}}
	if most > 0 {
		q.Set("most", strconv.Itoa(most))
	}
	return c.do(ctx, http.MethodGet, PathLogs+"?"+q.Encode())
}

// do returns the reply, also one that says what failed. An error means that
// there is none, or that the key is wrong.
func (c *Client) do(ctx context.Context, method, path string) (reply Reply, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.host+path, nil)
	if err != nil {
		return reply, fault.New(fault.Invalid, "admin: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return reply, fault.New(fault.Unavailable, "admin: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return reply, fault.New(fault.Unavailable, "admin: %w", err)
	}
	if json.Unmarshal(data, &reply) != nil || reply.Error == "" && resp.StatusCode != http.StatusOK {
		return reply, fault.New(fault.Unavailable, "admin: %s is no admin listener: it answered %d", c.host, resp.StatusCode)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return reply, fault.New(fault.Unauthenticated, "admin: %s", reply.Error)
	}
	return reply, nil
}
