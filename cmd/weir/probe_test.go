package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/host/hosttest"
	"weir/host/porttest"
)

// agent-service.md 8.4: `probe http` and `probe status`.
func TestProbeHTTP(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
		case "/made":
			w.WriteHeader(201)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		case "/endless":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
			}
		case "/post":
			if r.Method != http.MethodPost {
				w.WriteHeader(405)
			}
		default:
			w.WriteHeader(503)
		}
	}))
	defer s.Close()
	gone := "http://" + porttest.Free(t, 1)[0]
	for _, tt := range []struct {
		args   []string
		code   int
		stdout string
		stderr string // is contained
	}{
		{[]string{"http", s.URL + "/ok"}, exitOK, "200\n", ""},
		{[]string{"http", s.URL + "/made"}, exitOK, "201\n", ""},
		{[]string{"http", s.URL + "/other"}, exitFailed, "503\n", ""},
		{[]string{"http", s.URL + "/away"}, exitFailed, "302\n", ""},
		{[]string{"http", s.URL + "/endless"}, exitOK, "200\n", ""},
		{[]string{"http", s.URL + "/hang", "--timeout", "50ms"}, exitFailed, "000\n", "expected an answer within the time-out, got none"},
		{[]string{"http", gone}, exitFailed, "000\n", "weir probe http: dial tcp"},
		{[]string{"http", "http://user:canary@" + porttest.Free(t, 1)[0]}, exitFailed, "000\n", "weir probe http: dial tcp"},
		{[]string{"http", "ftp://canary"}, exitFailed, "000\n", "expected an http or https URL, such as http://"},
		{[]string{"http", "127.0.0.1:8000/canary"}, exitFailed, "000\n", "expected an http or https URL, such as http://"},
		{[]string{"http", "http://%zz-canary"}, exitFailed, "000\n", "expected an http or https URL, such as http://"},
		{[]string{"http", s.URL + "/ok", "--timeout", "0s"}, exitUsage, "", "weir probe http: --timeout: expected more than 0s"},
		{[]string{"http"}, exitUsage, "", "expected 1 argument"},
		{[]string{"status", "GET", s.URL + "/other"}, exitOK, "503\n", ""},
		{[]string{"status", "post", s.URL + "/post"}, exitOK, "200\n", ""},
		{[]string{"status", "GET", s.URL + "/post"}, exitOK, "405\n", ""},
		{[]string{"status", "GET", gone}, exitOK, "000\n", "weir probe status: dial tcp"},
		{[]string{"status", "B\nD", gone}, exitOK, "000\n", "expected a method"},
		{[]string{"status", gone}, exitUsage, "", "expected 2 arguments"},
		{[]string{"tcp", strings.TrimPrefix(s.URL, "http://")}, exitOK, "", ""},
		{[]string{"tcp", strings.TrimPrefix(gone, "http://")}, exitFailed, "", "weir probe tcp: dial tcp"},
		{[]string{"tcp", "127.0.0.1"}, exitFailed, "", "missing port"},
	} {
		t.Run(strings.Join(tt.args[:min(2, len(tt.args))], " "), func(t *testing.T) {
			got := invoke(t, nil, "", append([]string{"probe"}, tt.args...)...)
			if got.code != tt.code || got.stdout != tt.stdout || !strings.Contains(got.stderr, tt.stderr) ||
				tt.stderr == "" && got.stderr != "" || strings.Contains(got.stderr, "canary") {
				t.Errorf("got %+v, want %+v", got, tt)
			}
		})
	}
	if elsewhere > 0 {
		t.Error("a redirect was followed")
	}
}

// agent-service.md 8.4: `probe version` asks the agent's own listener.
func TestProbeVersion(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	config := filepath.Join(w.Dir, "agent.toml")
	env := environment(w.Env())
	got := invoke(t, env, "", "probe", "version", "--url", w.URL, "--config", config)
	if got.code != exitOK || got.stderr != "" || !strings.Contains(got.stdout, `"generation":"`+w.Host.Status().Active.Generation) {
		t.Errorf("got %+v", got)
	}
	got = invoke(t, environment{"AGENT_BIND_ADDRESS": strings.TrimPrefix(w.URL, "http://")}.with(environment{"NAT_GATEWAY_API_KEY": hosttest.ServiceKey}),
		"", "probe", "version", "--config", config)
	if got.code != exitOK {
		t.Errorf("by the configured address: %+v", got)
	}
	wrong := environment(w.Env()).with(environment{"NAT_GATEWAY_API_KEY": "canary"})
	got = invoke(t, wrong, "", "probe", "version", "--url", w.URL, "--config", config)
	if got.code != exitFailed || got.stdout != "" || got.stderr != "weir probe version: expected status 200, got 401\n" {
		t.Errorf("with another key: %+v", got)
	}
	got = invoke(t, environment{}, "", "probe", "version", "--url", w.URL, "--config", config)
	if got.code != exitFailed || !strings.Contains(got.stderr, "environment NAT_GATEWAY_API_KEY: expected the service key") {
		t.Errorf("without a key: %+v", got)
	}
}

func TestNearby(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:8000": "127.0.0.1:8000", ":8000": "127.0.0.1:8000", "[::]:8000": "[::1]:8000",
		"127.0.0.2:1": "127.0.0.2:1", "agent:80": "agent:80",
	} {
		if got := nearby(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}

// agent-service.md 8.4: `probe mcp-auth` tells a server that checks keys from
// one that lets everybody in and one that lets nobody in.
func TestProbeMCPAuth(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{})
	config := filepath.Join(w.Dir, "agent.toml")
	probe := func(more environment) result {
		return invoke(t, environment(w.Env()).with(more), "", "probe", "mcp-auth", "--config", config, "--timeout", "1m")
	}
	if got := probe(nil); got.code != exitOK || got.stderr != "" || !strings.HasPrefix(got.stdout, "without key 401\nwith key ") {
		t.Errorf("a server that checks: %+v", got)
	}
	if got := probe(environment{"MCP_API_KEY": "canary"}); got.code != exitFailed || !strings.Contains(got.stderr, "with the key: expected any status but 401") || strings.Contains(got.stderr, "canary") {
		t.Errorf("the wrong key: %+v", got)
	}
	if got := probe(environment{"MCP_API_KEY": ""}); got.code != exitFailed || !strings.Contains(got.stderr, "environment MCP_API_KEY: expected ") {
		t.Errorf("no key: %+v", got)
	}
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(200) // a stream that does not end: its head is enough
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer open.Close()
	begin := time.Now()
	if got := probe(environment{"TICKETS_MCP_URL": open.URL}); got.code != exitFailed || !strings.Contains(got.stderr, "without the key: expected status 401, got 200") {
		t.Errorf("a server that lets everybody in: %+v", got)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it waited %v for a stream", took)
	}
	if got := probe(environment{"TICKETS_MCP_URL": "http://" + porttest.Free(t, 1)[0]}); got.code != exitFailed || !strings.Contains(got.stderr, "without the key: dial tcp") {
		t.Errorf("no server: %+v", got)
	}
}
