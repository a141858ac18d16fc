package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
	"weir/host/porttest"
)

// binary builds the program as it is shipped.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// agent-service.md 8.3: the process ends with 1 and says why on stderr only.
func TestProcessRefuses(t *testing.T) {
	cmd := exec.Command(binary(t), "serve", "--config", filepath.Join(deployment(t), "agent.toml"))
	cmd.Env = []string{"MCP_API_KEY=x"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != exitFailed || stdout.Len() > 0 ||
		stderr.String() != "weir refused to start: environment NAT_GATEWAY_API_KEY: expected the service key that the gateway presents, it is missing or blank\n" {
		t.Errorf("%v, stdout %q, stderr %q", err, &stdout, &stderr)
	}
}

// A process that is still waiting for its MCP server ends at once when it is told to.
func TestProcessEndsWhileStarting(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM on Windows")
	}
	dir := deployment(t)
	for _, name := range []string{"react", "input-screen", "output-secrets", "output-pii", "tool-injection"} {
		write(t, filepath.Join(dir, "plugins", "dist", name+".wasm"), string(plugintest.Build(t, "plugins/"+name)))
	}
	cmd := exec.Command(binary(t), "serve", "--config", filepath.Join(dir, "agent.toml"))
	cmd.Env = append(os.Environ(), "NAT_GATEWAY_API_KEY=gateway-canary", "MCP_API_KEY=mcp-canary",
		"TICKETS_MCP_URL=http://"+porttest.Free(t, 1)[0]+"/mcp", "AGENT_BIND_ADDRESS=127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // after an early failure; it has ended otherwise
	var log strings.Builder
	var signalled time.Time
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "policy loaded") {
			signalled = time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	if signalled.IsZero() || time.Since(signalled) > 20*time.Second { // its attempts to connect take 28 s
		t.Errorf("signalled at %v, ended %v later", signalled, time.Since(signalled))
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != exitFailed || !strings.Contains(log.String(), "\nweir refused to start: ") {
		t.Errorf("%v, stderr:\n%s", err, &log)
	}
	if strings.Contains(log.String(), "canary") {
		t.Errorf("a key is in the log:\n%s", &log)
	}
}

// A SIGHUP reads the policy again; the process serves on.
func TestProcessReloadsOnHangup(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGHUP on Windows")
	}
	w := hosttest.Prepare(t, hosttest.Options{})
	cmd := exec.Command(binary(t), "serve", "--config", filepath.Join(w.Dir, "agent.toml"))
	cmd.Env = os.Environ()
	for name, value := range w.Env() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // after an early failure; it has ended otherwise
	var log strings.Builder
	swapped := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		switch {
		case strings.Contains(lines.Text(), "msg=listening"):
			w.Variant(t, "b")
			err = cmd.Process.Signal(syscall.SIGHUP)
		case strings.Contains(lines.Text(), "policy swapped") && strings.Contains(lines.Text(), "trigger=signal"):
			swapped = true
			err = cmd.Process.Signal(syscall.SIGTERM)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil || !swapped {
		t.Errorf("%v, swapped %v, stderr:\n%s", err, swapped, &log)
	}
}
