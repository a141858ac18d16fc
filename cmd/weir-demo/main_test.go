//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/cmd/weir-demo/internal/gateway/gatewaytest"
	"weir/host/logtest"
)

// fakeAgent makes this test binary play weir, as a real child process.
const fakeAgent = "WEIR_DEMO_TEST_AGENT"

func TestMain(m *testing.M) {
	if variant := os.Getenv(fakeAgent); variant != "" {
		os.Exit(playAgent(variant))
	}
	goleak.VerifyTestMain(m)
}

func playAgent(variant string) int {
	fmt.Fprintf(os.Stderr, "the fake agent says %q\n", os.Args[1:])
	switch variant {
	case "dies":
		return 3
	case "parent": // has a child of its own and ends neither when asked politely nor alone
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			return 4
		}
		if err := os.WriteFile(os.Getenv("WEIR_DEMO_TEST_PID"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			return 5
		}
		variant = gatewaytest.Good
	case "never":
		select {}
	}
	for _, name := range []string{"MCP_API_KEY", "TICKETS_MCP_URL", "LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL", "LLM_GUARD_MODEL",
		"HITL_APPROVAL_SECRET", "HITL_ENABLE_INTERACTIVE", "WEIR_STATE_DIR"} {
		if os.Getenv(name) == "" {
			fmt.Fprintln(os.Stderr, "missing", name)
			return 6
		}
	}
	approvals := &gatewaytest.Approvals{DeskURL: strings.TrimSuffix(os.Getenv("TICKETS_MCP_URL"), "/mcp"),
		DeskKey: os.Getenv("MCP_API_KEY"), Secret: os.Getenv("HITL_APPROVAL_SECRET")}
	err := http.ListenAndServe(os.Getenv("AGENT_BIND_ADDRESS"), gatewaytest.AgentWith(variant, os.Getenv("NAT_GATEWAY_API_KEY"), askModel, approvals))
	fmt.Fprintln(os.Stderr, err)
	return 7
}

// askModel is a call of the agent's model as a host makes it.
func askModel() {
	resp, err := http.Post(os.Getenv("LLM_BASE_URL")+"/chat/completions", "application/json",
		strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return // the demo misses the call
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// shipped is the configuration of which the demo runs a copy.
const shipped = "../../agent.toml"

func demoWith(ctx context.Context, t *testing.T, variant string, args ...string) (code int, stdout, stderr *logtest.Buffer) {
	t.Helper()
	t.Setenv(fakeAgent, variant)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr = &logtest.Buffer{}, &logtest.Buffer{}
	args = append([]string{"--weir", self, "--address", "127.0.0.1:0", "--config", shipped}, args...)
	return run(ctx, args, stdout, stderr), stdout, stderr
}

func TestDemo(t *testing.T) {
	code, stdout, stderr := demoWith(t.Context(), t, gatewaytest.Good)
	if code != 0 || !strings.Contains(stdout.String(), "Every conversation went as it should.") || stderr.String() != "" {
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}
}

// The tickets go with the demo unless a file is named for them.
func TestTickets(t *testing.T) {
	temporary, file := t.TempDir(), filepath.Join(t.TempDir(), "kept.db")
	t.Setenv("TMPDIR", temporary)
	if code, _, stderr := demoWith(t.Context(), t, gatewaytest.Good); code != 0 {
		t.Fatal(stderr)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
	if code, _, stderr := demoWith(t.Context(), t, gatewaytest.Good, "--tickets", file); code != 0 {
		t.Fatal(stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("no tickets are kept: %v", err)
	}
	code, _, stderr := demoWith(t.Context(), t, gatewaytest.Good, "--tickets", filepath.Join(file, "none"))
	if code != 1 || !strings.Contains(stderr.String(), "tickets database: ") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

func TestDemoThatGoesWrong(t *testing.T) {
	code, stdout, stderr := demoWith(t.Context(), t, gatewaytest.Leaky)
	if code != 1 || !strings.Contains(stdout.String(), "expectations failed") ||
		!strings.Contains(stderr.String(), `agent | the fake agent says ["serve" "--config" "/`) {
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}
}

func TestAgentThatDoesNotStart(t *testing.T) {
	const word = "agent | the fake agent"
	code, _, stderr := demoWith(t.Context(), t, "dies", "--wait", "1m")
	if code != 1 || !strings.Contains(stderr.String(), "the agent has ended before it was ready: exit status 3") || !strings.Contains(stderr.String(), word) {
		t.Errorf("code %d\n%s", code, stderr)
	}
	for _, wait := range []string{"300ms", "3s", "30s"} { // of which it needs some to say a word
		code, _, stderr = demoWith(t.Context(), t, "never", "--wait", wait)
		if code != 1 || !strings.Contains(stderr.String(), "the agent was not ready within "+wait) {
			t.Errorf("code %d\n%s", code, stderr)
		}
		if strings.Contains(stderr.String(), word) {
			break
		}
	}
	if !strings.Contains(stderr.String(), word) {
		t.Errorf("the agent's log is not shown: %s", stderr)
	}
	stderr = &logtest.Buffer{}
	if code := run(t.Context(), []string{"--config", shipped, "--weir", filepath.Join(t.TempDir(), "none")}, &logtest.Buffer{}, stderr); code != 1 ||
		!strings.Contains(stderr.String(), "the agent cannot be started") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	if code := run(t.Context(), []string{"--nonsense"}, &logtest.Buffer{}, &logtest.Buffer{}); code != 2 {
		t.Errorf("an unknown flag gives %d", code)
	}
}

// A busy port is no reason to fail; --serve runs until it is interrupted, and
// then nothing is left, not even what the agent started.
func TestServeOnABusyPortAndInterrupt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pidFile := filepath.Join(t.TempDir(), "pid")
	t.Setenv("WEIR_DEMO_TEST_PID", pidFile)
	t.Setenv(fakeAgent, "parent")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout, stderr logtest.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--config", shipped, "--weir", self, "--address", l.Addr().String(), "--serve"}, &stdout, &stderr)
	}()
	eventually(t, func() bool { return strings.Contains(stdout.String(), "Ctrl-C ends it.") })
	for _, want := range []string{l.Addr().String() + " is in use; the agent gets 127.0.0.1:", "curl -N -X POST 'http://127.0.0.1:", "Authorization: Bearer "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &stdout)
		}
	}
	// The agent's words come through a pipe, and may be behind its answers.
	eventually(t, func() bool { return strings.Contains(stderr.String(), "agent | the fake agent") })
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("an interrupted --serve gives %d", got)
	}
	eventually(t, func() bool { return !alive(pid) })
}

// alive is false for a process that ended and for one that only waits to be
// reaped by somebody else.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

func TestTail(t *testing.T) {
	var live bytes.Buffer
	out := &tail{live: &live}
	_, _ = out.Write([]byte("a\nb"))
	_, _ = out.Write([]byte("c\n\nd"))
	if live.String() != "agent | a\nagent | bc\nagent | \n" {
		t.Errorf("%q", live.String())
	}
	_, _ = out.Write(bytes.Repeat([]byte("x"), 1<<20))
	if len(out.kept) > keptLog || len(out.line) >= longLine {
		t.Errorf("%d and %d bytes are kept", len(out.kept), len(out.line))
	}
}
