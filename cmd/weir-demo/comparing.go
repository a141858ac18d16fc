package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"weir/cmd/weir-demo/internal/scripted"
	"weir/cmd/weir-demo/internal/tickets"
)

// compareKey is the variable in which `weir compare` finds both agents' key.
const compareKey = "NAT_GATEWAY_API_KEY"

// comparison brings up two agents beside one desk and one model, A without
// guardrails and B as configured, lets `weir compare` ask them, and returns its
// exit code. Neither has approvals: an evaluator cannot give any.
func comparison(ctx context.Context, s settings, stdout, stderr io.Writer) int {
	d := &demo{}
	defer d.stop()
	if err := d.two(ctx, s, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "weir-demo: %v\n", err)
		return 2 // nothing was compared, which must not look like a bad score
	}
	args := append([]string{"compare", "--a", d.twins[0] + ",name=without guards", "--b", d.twins[1] + ",name=with guards", "--out", s.compare}, s.command...)
	cmd := exec.CommandContext(ctx, s.weir, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	cmd.Env = append(agentEnvironment(nil), compareKey+"="+d.twinKey)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintf(stderr, "weir-demo: %v\n", err)
		return 2
	}
	return 0
}

// two starts the desk, the model and both agents.
func (d *demo) two(ctx context.Context, s settings, stdout, stderr io.Writer) error {
	folder, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return err
	}
	d.stops = append(d.stops, func() { _ = os.RemoveAll(folder) }) // the system's own cleaning is left
	bare, err := unguarded(s.config, folder)
	if err != nil {
		return err
	}
	mcpKey := rand.Text()
	deskURL, err := d.openDesk(tickets.Options{Key: mcpKey, Database: s.tickets})
	if err != nil {
		return err
	}
	modelURL, err := d.listen(scripted.New(scripted.Options{GuardTemplate: guardTemplate(s.config), Pace: time.Millisecond}))
	if err != nil {
		return err
	}
	d.twinKey = rand.Text()
	for i, config := range []string{bare, s.config} {
		address, _, err := free("127.0.0.1:0")
		if err != nil {
			return err
		}
		d.agent, err = startChild(s.weir, []string{"serve", "--config", config}, agentEnvironment(map[string]string{
			compareKey: d.twinKey, "MCP_API_KEY": mcpKey, "TICKETS_MCP_URL": deskURL + "/mcp",
			"LLM_BASE_URL": modelURL + "/v1", "LLM_API_KEY": "demo", "LLM_MODEL": "scripted", "LLM_GUARD_MODEL": "scripted",
			"AGENT_BIND_ADDRESS": address, "WEIR_STATE_DIR": filepath.Join(folder, fmt.Sprintf("state-%d", i)),
		}), live(s, stderr))
		if err != nil {
			return fmt.Errorf("the agent cannot be started: %w (build it with: make build)", err)
		}
		d.stops = append(d.stops, d.agent.stop)
		if err := d.await(ctx, "http://"+address+"/health/ready", s.wait); err != nil {
			d.agent.dump(stderr)
			return err
		}
		d.twins[i] = "http://" + address
	}
	fmt.Fprintf(stdout, "A  %s, without guardrails\nB  %s, as configured\n\n", d.twins[0], d.twins[1])
	return nil
}

// unguarded writes a copy of the configuration into a folder in which relative
// paths mean the same, without the tables of guardrails: of the plugins only the
// agent's loop is left.
func unguarded(config, folder string) (string, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	var c struct {
		Agent struct{ Workflow string }
	}
	if _, err := toml.Decode(string(text), &c); err != nil || c.Agent.Workflow == "" {
		return "", fmt.Errorf("%s: expected [agent] workflow, the plugin that stays", config)
	}
	if err := likeness(filepath.Dir(config), folder); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "agent.toml")
	return path, os.WriteFile(path, []byte(withoutGuards(string(text), c.Agent.Workflow)), 0o600)
}

// withoutGuards leaves out every table of a plugin but the workflow's and the
// defaults', and all variants.
func withoutGuards(text, workflow string) string {
	var kept strings.Builder
	keep := true
	for line := range strings.Lines(text) {
		if name, table := strings.CutPrefix(line, "["); table {
			path := strings.Split(strings.Trim(name, "[] \n"), ".")
			plugin := path[0] == "plugins" && len(path) > 1 && path[1] != "defaults" && path[1] != workflow
			keep = !plugin && path[0] != "variant"
		}
		if keep {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
