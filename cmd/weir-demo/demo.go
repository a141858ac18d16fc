package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"weir/cmd/weir-demo/internal/gateway"
	"weir/cmd/weir-demo/internal/scripted"
	"weir/cmd/weir-demo/internal/tickets"
)

// demo is everything that runs. Parts are stopped in the reverse order.
type demo struct {
	agent   *child
	gateway *gateway.Gateway
	address string // the agent's
	key     string // its service key
	desk    gateway.Desk
	stops   []func()

	twins   [2]string // addresses of a comparison's agents
	twinKey string
}

// start brings up the desk, the model and the agent, and waits for the agent.
// What it started is stopped again when it fails.
func start(ctx context.Context, s settings, stdout, stderr io.Writer) (d *demo, err error) {
	d = &demo{}
	defer func() {
		if err != nil {
			d.stop()
		}
	}()
	config, remove, err := approving(s.config)
	if err != nil {
		return d, err
	}
	d.stops = append(d.stops, remove)
	agentKey, mcpKey, secret := rand.Text(), rand.Text(), rand.Text()+rand.Text()
	last := new(tickets.LastApproval)
	deskURL, err := d.openDesk(tickets.Options{Key: mcpKey, Database: s.tickets, ApprovalSecret: secret, Committed: last.Remember})
	if err != nil {
		return d, err
	}
	d.desk = gateway.Desk{URL: deskURL, Key: mcpKey, Accepted: last.Accepted}
	model := scripted.New(scripted.Options{GuardTemplate: guardTemplate(s.config), Pace: 4 * time.Millisecond})
	modelURL, err := d.listen(model)
	if err != nil {
		return d, err
	}
	address, busy, err := free(s.address)
	if err != nil {
		return d, err
	}
	if busy {
		fmt.Fprintf(stdout, "%s is in use; the agent gets %s.\n", s.address, address)
	}
	fmt.Fprintf(stdout, "support desk (MCP)  %s/mcp\nscripted model      %s/v1\nagent               http://%s\n", deskURL, modelURL, address)
	d.address, d.key = address, agentKey
	d.gateway = gateway.New(gateway.Options{Address: address, Key: agentKey, Out: stdout, Colour: s.colour, ModelCalls: model.AgentCalls})
	d.stops = append(d.stops, d.gateway.Close)

	d.agent, err = startChild(s.weir, []string{"serve", "--config", config}, agentEnvironment(map[string]string{
		"NAT_GATEWAY_API_KEY": agentKey,
		"MCP_API_KEY":         mcpKey,
		"TICKETS_MCP_URL":     deskURL + "/mcp",
		"LLM_BASE_URL":        modelURL + "/v1",
		"LLM_API_KEY":         "demo",
		"LLM_MODEL":           "scripted",
		"LLM_GUARD_MODEL":     "scripted",
		"AGENT_BIND_ADDRESS":  address,
		"WEIR_STATE_DIR":      filepath.Join(filepath.Dir(config), "state"),

		"HITL_APPROVAL_SECRET":    secret,
		"HITL_ENABLE_INTERACTIVE": "true",
	}), live(s, stderr))
	if err != nil {
		return d, fmt.Errorf("the agent cannot be started: %w (build it with: make build)", err)
	}
	d.stops = append(d.stops, d.agent.stop)
	if err := d.await(ctx, "http://"+address+"/health/ready", s.wait); err != nil {
		if ctx.Err() == nil {
			d.agent.dump(stderr)
		}
		return d, err
	}
	return d, nil
}

// openDesk serves the support desk. Without a file of its own the database lies
// in a folder that goes when the demo ends.
func (d *demo) openDesk(opts tickets.Options) (url string, err error) {
	if opts.Database == "" {
		folder, err := os.MkdirTemp("", "weir-demo-")
		if err != nil {
			return "", err
		}
		d.stops = append(d.stops, func() { _ = os.RemoveAll(folder) }) // the system's own cleaning is left
		opts.Database = filepath.Join(folder, "tickets.db")
	}
	desk, err := tickets.New(opts)
	if err != nil {
		return "", err
	}
	d.stops = append(d.stops, desk.Close)
	return d.listen(desk)
}

func live(s settings, stderr io.Writer) io.Writer {
	if s.verbose || s.serve {
		return stderr
	}
	return nil
}

// stop ends everything, the last part first.
func (d *demo) stop() {
	for i := len(d.stops) - 1; i >= 0; i-- {
		d.stops[i]()
	}
	d.stops = nil
}

// listen serves h on a free loopback port.
func (d *demo) listen(h http.Handler) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // returns when stopped
	}()
	d.stops = append(d.stops, func() {
		_ = server.Close()
		<-done
	})
	return "http://" + l.Addr().String(), nil
}

// free returns address, or the same host with a free port when that port
// cannot be had.
func free(address string) (got string, busy bool, err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		host, _, bad := net.SplitHostPort(address)
		if bad != nil {
			return "", false, bad
		}
		busy = true
		if l, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return "", false, err
		}
	}
	return l.Addr().String(), busy, l.Close()
}

// await polls the agent until it is ready, has ended, or took too long.
func (d *demo) await(ctx context.Context, url string, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the agent was not ready within %s", limit))
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if ready(ctx, client, url) {
			return nil
		}
		select {
		case <-tick.C:
		case <-d.agent.ended:
			return fmt.Errorf("the agent has ended before it was ready: %v", d.agent.err)
		case <-ctx.Done():
			return fmt.Errorf("waiting for the agent: %w", context.Cause(ctx))
		}
	}
}

func ready(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// agentEnvironment is set, and of our own environment only what does not
// change what the demo shows.
func agentEnvironment(set map[string]string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if keeps(name) {
			env = append(env, entry)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

func keeps(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG", "GOCOVERDIR", "GOMAXPROCS", "GOMEMLIMIT", "GODEBUG":
		return true
	}
	return strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "WEIR_") || strings.HasPrefix(name, "XDG_")
}

// guardTemplate reads the classifier's prompt where the configuration has it,
// so that the scripted model can tell the message from the instructions. What
// is wrong with either file is the agent's to report.
func guardTemplate(config string) string {
	var c struct {
		Prompts map[string]string `toml:"prompts"`
	}
	if _, err := toml.DecodeFile(config, &c); err != nil || c.Prompts["self_check_input"] == "" {
		return ""
	}
	path := c.Prompts["self_check_input"]
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(config), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
