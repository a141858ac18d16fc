package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"weir/host/config"
	"weir/host/contract/stream"
	"weir/host/fault"
)

// The probes are the contract's section 8.4: what a health check or a Makefile
// asks in an image that has no shell. Each makes one request, follows no
// redirect, takes no proxy, and is over within its time-out.

const (
	probeTimeout = 5 * time.Second
	maxProbed    = 1 << 20 // bytes of an answer that are read
	probeUser    = "make-version"
)

// ask sends a request and returns the answer's head. An error repeats nothing
// of the address, which may hold a password. The caller closes the body.
func ask(ctx context.Context, method, address, body string, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil && method != http.MethodGet {
		return nil, errors.New("expected a method and an http or https URL")
	}
	if err != nil || (req.URL.Scheme != "http" && req.URL.Scheme != "https") || req.URL.Host == "" {
		return nil, errors.New("expected an http or https URL, such as http://127.0.0.1:8000/health")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("expected an answer within the time-out, got none")
	}
	return resp, err
}

// status is an answer's code, 0 for no answer.
func status(ctx context.Context, method, address, body string, header map[string]string) (int, error) {
	resp, err := ask(ctx, method, address, body, header)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// probe parses the flags that every probe has, and bounds its time.
func (w *weir) probe(ctx context.Context, f *flag.FlagSet, args []string, operands int) (context.Context, []string, int, context.CancelFunc) {
	timeout := f.Duration("timeout", probeTimeout, "time for the whole probe")
	rest, code, ok := w.parse(f, args, operands)
	if !ok {
		return nil, nil, code, nil
	}
	if *timeout == 0 {
		fmt.Fprintf(w.stderr, "%s: --timeout: expected more than 0s\n", f.Name())
		return nil, nil, exitUsage, nil
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	return ctx, rest, exitOK, cancel
}

// probeHTTP prints the status of a GET and says by the exit code whether it is a
// 2xx.
func (w *weir) probeHTTP(ctx context.Context, args []string) int {
	ctx, rest, code, cancel := w.probe(ctx, w.flags("probe http"), args, 1)
	if cancel == nil {
		return code
	}
	defer cancel()
	got, err := status(ctx, http.MethodGet, rest[0], "", nil)
	fmt.Fprintf(w.stdout, "%03d\n", got)
	if err != nil {
		return w.refuse("weir probe http", err)
	}
	if got < 200 || got > 299 {
		return exitFailed
	}
	return exitOK
}

// probeStatus prints a status, whatever it is.
func (w *weir) probeStatus(ctx context.Context, args []string) int {
	ctx, rest, code, cancel := w.probe(ctx, w.flags("probe status"), args, 2)
	if cancel == nil {
		return code
	}
	defer cancel()
	got, err := status(ctx, strings.ToUpper(rest[0]), rest[1], "", nil)
	fmt.Fprintf(w.stdout, "%03d\n", got)
	if err != nil {
		w.refuse("weir probe status", err)
	}
	return exitOK
}

// probeTCP says by the exit code whether somebody listens.
func (w *weir) probeTCP(ctx context.Context, args []string) int {
	ctx, rest, code, cancel := w.probe(ctx, w.flags("probe tcp"), args, 1)
	if cancel == nil {
		return code
	}
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", rest[0])
	if err != nil {
		return w.refuse("weir probe tcp", err)
	}
	_ = conn.Close()
	return exitOK
}

// probeVersion prints the provenance of the agent that the configuration
// describes, as its gateway would ask for it.
func (w *weir) probeVersion(ctx context.Context, args []string) int {
	const prefix = "weir probe version"
	f := w.flags("probe version")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	base := f.String("url", "", "base URL of the agent; default: where the configuration has it listen")
	ctx, _, code, cancel := w.probe(ctx, f, args, 0)
	if cancel == nil {
		return code
	}
	defer cancel()
	cfg, err := config.Load(config.Source{Path: *path, Env: w.env, Keyless: true})
	if err != nil {
		return w.refuse(prefix, err)
	}
	if !cfg.Server.APIKey.Set() {
		return w.refuse(prefix, fault.New(fault.Invalid, "environment NAT_GATEWAY_API_KEY: expected the service key, it is missing or blank"))
	}
	if *base == "" {
		*base = "http://" + nearby(cfg.Server.Listen)
	}
	resp, err := ask(ctx, http.MethodGet, strings.TrimRight(*base, "/")+stream.PathVersion, "", map[string]string{
		"Authorization": "Bearer " + cfg.Server.APIKey.Reveal(), "x-authenticated-user-id": probeUser})
	if err != nil {
		return w.refuse(prefix, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return w.refuse(prefix, fmt.Errorf("expected status 200, got %d", resp.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProbed))
	if err != nil {
		return w.refuse(prefix, err)
	}
	fmt.Fprintf(w.stdout, "%s\n", body)
	return exitOK
}

// nearby is where this machine reaches an address that is listened on.
func nearby(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// probeMCPAuth says whether the MCP server lets in who has the key and nobody
// else.
func (w *weir) probeMCPAuth(ctx context.Context, args []string) int {
	const prefix = "weir probe mcp-auth"
	f := w.flags("probe mcp-auth")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	ctx, _, code, cancel := w.probe(ctx, f, args, 0)
	if cancel == nil {
		return code
	}
	defer cancel()
	cfg, err := config.Load(config.Source{Path: *path, Env: w.env, Keyless: true})
	if err != nil {
		return w.refuse(prefix, err)
	}
	key := cfg.Tools.MCP.APIKey
	if !key.Set() {
		return w.refuse(prefix, fault.New(fault.Invalid, "environment MCP_API_KEY: expected the key for the MCP server, it is missing or blank"))
	}
	without, err := knock(ctx, cfg.Tools.MCP.URL, "")
	if err != nil {
		return w.refuse(prefix, fmt.Errorf("without the key: %w", err))
	}
	with, err := knock(ctx, cfg.Tools.MCP.URL, key.Reveal())
	if err != nil {
		return w.refuse(prefix, fmt.Errorf("with the key: %w", err))
	}
	fmt.Fprintf(w.stdout, "without key %03d\nwith key %03d\n", without, with)
	switch {
	case without != http.StatusUnauthorized:
		return w.refuse(prefix, fmt.Errorf("without the key: expected status 401, got %d", without))
	case with == http.StatusUnauthorized:
		return w.refuse(prefix, errors.New("with the key: expected any status but 401"))
	}
	return exitOK
}

// knock posts what every MCP server understands and what changes nothing. The
// answer's head is all that counts; a stream behind it need not end.
func knock(ctx context.Context, address, key string) (int, error) {
	header := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	if key != "" {
		header["Authorization"] = "Bearer " + key
	}
	return status(ctx, http.MethodPost, address, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header)
}
