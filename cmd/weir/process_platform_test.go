package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/host/hosttest"
)

// The shipped binary as the platform meets it (sections 4 to 6 and 8): it
// registers once its listener answers, after a gateway that refused at first,
// its own probes find it healthy, and it ends in time although a gateway hangs.
func TestProcessOnThePlatform(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM on Windows")
	}
	program := binary(t)
	w := hosttest.Prepare(t, hosttest.Options{})
	address, read := make(chan string, 1), make(chan string, 1)
	var attempts atomic.Int32
	gateway := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if attempts.Add(1) == 1 {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		body, _ := io.ReadAll(r.Body)
		at := <-address
		resp, err := http.Get("http://" + at + "/.well-known/agent.json")
		if err != nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		manifest, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		address <- at
		read <- r.URL.Path + " " + string(body) + " " + string(manifest)
	}))
	defer gateway.Close()
	p := serveProcess(t, program, w, "REGISTRY_URL="+gateway.URL, "AGENT_SELF_URL=http://self")
	at := p.until(t, regexp.MustCompile(`msg=listening address=(\S+)`))
	address <- at
	p.until(t, regexp.MustCompile(`level=INFO msg="registered with the agent gateway".* attempt=(2)`))

	path, manifest, _ := strings.Cut(<-read, ` {"name"`)
	if path != `/agents/register-url {"endpoint":"http://self"}` {
		t.Errorf("the gateway was told %s", path)
	}
	var m struct {
		Version string
		Skills  []map[string]any
	}
	if err := json.Unmarshal([]byte(`{"name"`+manifest), &m); err != nil || m.Version != "0.1.0" || m.Skills == nil {
		t.Errorf("the manifest: %v, %+v", err, m)
	}
	for _, tt := range []struct{ args, want string }{
		{"http http://" + at + "/health", "200\n"},
		{"status POST http://" + at + "/v1/workflow/full", "401\n"},
		{"tcp " + at, ""},
		{"version --url http://" + at + " --config " + w.ConfigPath(), `"agent_runtime":`},
		{"mcp-auth --config " + w.ConfigPath(), "without key 401\n"},
	} {
		cmd := exec.Command(program, append([]string{"probe"}, strings.Fields(tt.args)...)...)
		cmd.Env = p.env
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("probe %s: %v, %q", tt.args, err, out)
		}
	}
	p.end(t)
	if strings.Contains(p.log.String(), "level=ERROR") || strings.Contains(p.log.String(), hosttest.ServiceKey) {
		t.Errorf("log:\n%s", &p.log)
	}
	cmd := exec.Command(program, "probe", "http", "http://"+at+"/health")
	if out, err := cmd.Output(); err == nil || string(out) != "000\n" {
		t.Errorf("the probe of an agent that has ended: %v, %q", err, out)
	}

	entered := make(chan struct{}, 1)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-r.Context().Done()
	}))
	defer hanging.Close()
	p = serveProcess(t, program, w, "REGISTRY_URL="+hanging.URL)
	p.until(t, regexp.MustCompile(`msg=(listening)`))
	<-entered
	begin := time.Now()
	p.end(t)
	if took := time.Since(begin); took > 10*time.Second { // one attempt alone may hang for as long
		t.Errorf("with a gateway that hangs the process ended after %v", took)
	}
}

// process is a running agent and what it has written.
type process struct {
	cmd   *exec.Cmd
	env   []string
	lines *bufio.Scanner
	log   strings.Builder
}

func serveProcess(t *testing.T, program string, w *hosttest.World, more ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, "serve", "--config", w.ConfigPath()), env: os.Environ()}
	for name, value := range w.Env() {
		p.env = append(p.env, name+"="+value)
	}
	p.env = append(p.env, more...)
	p.cmd.Env = p.env
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // after an early failure; it has ended otherwise
	p.lines = bufio.NewScanner(stderr)
	return p
}

// until reads the log to a line and returns what it captures.
func (p *process) until(t *testing.T, line *regexp.Regexp) string {
	t.Helper()
	for p.lines.Scan() {
		p.log.WriteString(p.lines.Text() + "\n")
		if m := line.FindStringSubmatch(p.lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatalf("no line %s in\n%s", line, &p.log)
	return ""
}

// end asks the process to end and waits for it.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for p.lines.Scan() {
		p.log.WriteString(p.lines.Text() + "\n")
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v, stderr:\n%s", err, &p.log)
	}
}
