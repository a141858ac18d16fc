package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/host/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "an-admin-key-of-24-characters"

// scripted is a controller that does what a test says.
type scripted struct {
	outcome string
	err     error
	wait    chan struct{} // closed when asked; then until the request's context ends
	asked   []string
}

func (s *scripted) do(ctx context.Context, what string) (string, error) {
	s.asked = append(s.asked, what)
	if s.wait != nil {
		close(s.wait)
		<-ctx.Done()
		return "failed", context.Cause(ctx)
	}
	return s.outcome, s.err
}

func (s *scripted) Reload(ctx context.Context) (string, error)   { return s.do(ctx, "reload") }
func (s *scripted) Rollback(ctx context.Context) (string, error) { return s.do(ctx, "rollback") }
func (s *scripted) Logs(context.Context, time.Time, int) (json.RawMessage, error) {
	return json.RawMessage(`[]`), nil
}

func (s *scripted) ReloadIf(_ context.Context, _ time.Duration, gate string) (string, json.RawMessage, error) {
	return "swapped", json.RawMessage(`{"gate":"` + gate + `"}`), nil
}

func (s *scripted) Log(_ context.Context, run string) (json.RawMessage, error) {
	if run != "r-1" {
		return nil, fault.New(fault.NotFound, "run: there is no log")
	}
	return json.RawMessage(`{"run":"r-1"}`), nil
}
func (s *scripted) Status() Status { return Status{Active: Active{Generation: "g"}, InSync: true} }

func start(t *testing.T, c Controller, network, address string) *Server {
	t.Helper()
	s, err := Start(c, Options{Network: network, Address: address, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// ask sends one request and returns status, headers and body.
func ask(t *testing.T, s *Server, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

// DECISIONS 4: nothing is said or done without the key, not even whether a
// route exists.
func TestKey(t *testing.T) {
	c := &scripted{outcome: "swapped"}
	s := start(t, c, "tcp", "127.0.0.1:0")
	const refused = `{"error":"invalid or missing admin key"}` + "\n"
	for name, header := range map[string][]string{
		"none":         nil,
		"another":      {"Authorization", "Bearer another-key-of-24-characters"},
		"a beginning":  {"Authorization", "Bearer " + key[:len(key)-1]},
		"more":         {"Authorization", "Bearer " + key + "x"},
		"basic":        {"Authorization", "Basic " + key},
		"the key bare": {"Authorization", key},
		"twice":        {"Authorization", "Bearer " + key, "Authorization", "Bearer " + key},
		"in the query": {"X-Admin-Key", key},
	} {
		for _, path := range []string{PathReload, PathRollback, PathStatus, "/none", "/reload?key=" + key} {
			resp, body := ask(t, s, "POST", path, "", header...)
			if resp.StatusCode != http.StatusUnauthorized || body != refused || resp.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s, %s: %d, %q", name, path, resp.StatusCode, body)
			}
		}
	}
	if len(c.asked) > 0 {
		t.Errorf("done without a key: %q", c.asked)
	}
	resp, body := ask(t, s, "POST", PathReload, "", "Authorization", "Bearer "+key)
	if resp.StatusCode != http.StatusOK || len(c.asked) != 1 || !strings.HasPrefix(body, `{"outcome":"swapped","status":{"active":{"generation":"g",`) {
		t.Errorf("control: %d, %q, %q", resp.StatusCode, body, c.asked)
	}
}

func TestStartRefuses(t *testing.T) {
	if _, err := Start(&scripted{}, Options{Network: "tcp", Address: "127.0.0.1:0", Key: key[:MinKey-1]}); fault.Of(err) != fault.Invalid {
		t.Errorf("a short key: %v", err)
	}
	first := start(t, &scripted{}, "tcp", "127.0.0.1:0")
	if _, err := Start(&scripted{}, Options{Network: "tcp", Address: first.Addr().String(), Key: key}); fault.Of(err) != fault.Unavailable {
		t.Errorf("an address in use: %v", err)
	}
}

func TestRoutes(t *testing.T) {
	c := &scripted{outcome: "swapped"}
	s := start(t, c, "tcp", "127.0.0.1:0")
	for _, tt := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", PathStatus, "", 200, `{"status":{"active":`},
		{"POST", PathReload, "{}", 200, `{"outcome":"swapped"`},
		{"POST", PathRollback, "", 200, `{"outcome":"swapped"`},
		{"POST", PathStatus, "", 405, `{"error":"expected GET"}`},
		{"GET", PathLog + "?run=r-1", "", 200, `{"log":{"run":"r-1"}}`},
		{"GET", PathLog + "?run=r-2", "", 404, `{"error":"run: there is no log"}`},
		{"POST", PathLog + "?run=r-1", "", 405, `{"error":"expected GET"}`},
		{"GET", PathReload, "", 405, `{"error":"expected POST"}`},
		{"GET", "/", "", 404, `{"error":"not found"}`},
		{"POST", "/reload/", "", 404, `{"error":"not found"}`},
		{"POST", "/Reload", "", 404, `{"error":"not found"}`},
		{"POST", "//reload", "", 404, `{"error":"not found"}`},
		{"POST", PathReload, strings.Repeat("x", maxBody+1), 413, `{"error":"expected no body"}`},
	} {
		resp, body := ask(t, s, tt.method, tt.path, tt.body, "Authorization", "Bearer "+key)
		if resp.StatusCode != tt.code || !strings.HasPrefix(body, tt.want) || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d, %q", tt.method, tt.path, resp.StatusCode, body)
		}
	}
}

func TestErrors(t *testing.T) {
	for code, err := range map[int]error{
		409: fault.New(fault.Conflict, "there is no previous generation"),
		422: fault.New(fault.Plugin, "plugin x: self-check"),
		503: fault.New(fault.Unavailable, "the host is stopping"),
		500: errors.New("a bug"),
	} {
		s := start(t, &scripted{outcome: "failed", err: err}, "tcp", "127.0.0.1:0")
		resp, body := ask(t, s, "POST", PathRollback, "", "Authorization", "Bearer "+key)
		if resp.StatusCode != code || !strings.HasPrefix(body, `{"outcome":"failed","error":"`+err.Error()+`","status":{`) {
			t.Errorf("%v: %d, %q", err, resp.StatusCode, body)
		}
		reply, clientErr := NewClient("tcp", s.Addr().String(), key).Rollback(t.Context())
		if clientErr != nil || reply.Error != err.Error() || reply.Outcome != "failed" || reply.Status.Active.Generation != "g" {
			t.Errorf("the client: %+v, %v", reply, clientErr)
		}
	}
}

// A client that leaves waits no longer.
func TestClientLeaves(t *testing.T) {
	c := &scripted{wait: make(chan struct{})}
	s := start(t, c, "tcp", "127.0.0.1:0")
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-c.wait; leave() }()
	if _, err := NewClient("tcp", s.Addr().String(), key).Reload(ctx); fault.Of(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if len(c.asked) != 1 {
		t.Errorf("asked: %q", c.asked)
	}
}

// A socket is its owner's alone; one that was left behind is taken over, one
// that is in use and a file are not.
func TestSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "a.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()

	s := start(t, &scripted{}, "unix", path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if reply, err := NewClient("unix", path, key).Status(t.Context()); err != nil || reply.Status.Active.Generation != "g" {
		t.Errorf("%+v, %v", reply, err)
	}
	if _, err := NewClient("unix", path, "wrong").Status(t.Context()); fault.Of(err) != fault.Unauthenticated {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := Start(&scripted{}, Options{Network: "unix", Address: path, Key: key}); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a socket in use: %v", err)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(&scripted{}, Options{Network: "unix", Address: path, Key: key}); err == nil {
		t.Error("a file was replaced by a socket")
	}
	if data, _ := os.ReadFile(path); !bytes.Equal(data, []byte("text")) {
		t.Error("a file was removed")
	}
}

// What answers at the address need not be ours.
func TestClientElsewhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	if _, err := NewClient("tcp", l.Addr().String(), key).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "is no admin listener: it answered 302") {
		t.Errorf("%v", err)
	}
}
