package platform

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir/host/server"
)

func TestMain(m *testing.M) {
	// The library's pool of workers sleeps for up to ten seconds after its end.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

type reply struct {
	status int
	head   http.Header
	body   string
}

// start serves a handler as the host does, behind a gate that lets nobody in.
func start(t *testing.T, opts Options) func(line string) reply {
	t.Helper()
	h := New(opts)
	s, err := server.New(server.Options{Listen: "127.0.0.1:0",
		Authenticate: func(server.Header) (any, error) { return nil, io.EOF },
		Public: []server.Route{
			{Method: "GET", Path: PathHealth, Handle: h.Health}, {Method: "GET", Path: PathLive, Handle: h.Live},
			{Method: "GET", Path: PathReady, Handle: h.Ready}, {Method: "GET", Path: PathManifest, Handle: h.Manifest},
		}})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(t.Context()) })
	return func(line string) reply {
		t.Helper()
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, line+" HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
		method, _, _ := strings.Cut(line, " ")
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply{resp.StatusCode, resp.Header, string(body)}
	}
}

func tickets() Manifest {
	return Manifest{Name: `Support "Tickets"`, Version: "1.2.3", Description: "Answers.",
		Skills:       []Skill{{ID: "a", Name: "A", Description: "Does a.", Tags: []string{"x"}, Examples: []string{"Do a."}}, {ID: "b", Name: "B"}},
		Capabilities: Capabilities{Streaming: true, DirectAPI: true}}
}

// Sections 4 and 6: the bodies, byte for byte, their types and that nobody
// keeps them.
func TestRoutes(t *testing.T) {
	const text, object = "text/plain; charset=utf-8", "application/json"
	const health = `{"status":"healthy","service":"Support \"Tickets\"","version":"1.2.3"}`
	const manifest = `{"name":"Support \"Tickets\"","version":"1.2.3","description":"Answers.","url":"/","skills":[` +
		`{"id":"a","name":"A","description":"Does a.","tags":["x"],"examples":["Do a."]},` +
		`{"id":"b","name":"B","description":"","tags":[],"examples":[]}],` +
		`"capabilities":{"streaming":true,"conversational":false,"direct_api":true}}`
	const wrong, denied = `{"error":"method not allowed"}`, 400
	ask := start(t, Options{Title: `Support "Tickets"`, Version: "1.2.3", Manifest: tickets})
	for _, tt := range []struct {
		line   string
		status int
		kind   string
		body   string
	}{
		{"GET /health", 200, object, health},
		{"HEAD /health", 200, object, ""},
		{"GET /health/live", 200, text, "ok"},
		{"GET /health/ready", 200, text, "ready"},
		{"HEAD /health/ready", 200, text, ""},
		{"GET /.well-known/agent.json", 200, object, manifest},
		{"GET /.well-known/agent.json?x=1", 200, object, manifest},
		{"HEAD /.well-known/agent.json", 200, object, ""},
		{"POST /.well-known/agent.json", 405, object, wrong},
		{"DELETE /health/ready", 405, object, wrong},
		{"GET /.well-known/agent.json/", denied, object, ""},
		{"GET /.well-known/Agent.json", denied, object, ""},
		{"GET /.well-known/agent-card.json", denied, object, ""},
		{"GET /health/", denied, object, ""},
	} {
		got := ask(tt.line)
		if got.status != tt.status || got.head.Get("Content-Type") != tt.kind || tt.status != denied && got.body != tt.body {
			t.Errorf("%s: got %d %q %q, want %+v", tt.line, got.status, got.head.Get("Content-Type"), got.body, tt)
		}
		if tt.status == 200 && got.head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", tt.line, got.head)
		}
		if tt.status == 405 && got.head.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: headers %v", tt.line, got.head)
		}
	}
}

// Not ready is 503 with a line for each reason, and alive all the same.
func TestReady(t *testing.T) {
	reasons := []string{"mcp session closed", "store:\n\tunreachable"}
	ask := start(t, Options{Ready: func() []string { return reasons }})
	if got := ask("GET /health/ready"); got.status != 503 || got.body != "mcp session closed\nstore: unreachable" {
		t.Errorf("got %+v", got)
	}
	if got := ask("HEAD /health/ready"); got.status != 503 {
		t.Errorf("got %+v", got)
	}
	if got := ask("GET /health"); got.status != 200 {
		t.Errorf("got %+v", got)
	}
	reasons = nil
	if got := ask("GET /health/ready"); got.status != 200 || got.body != "ready" {
		t.Errorf("got %+v", got)
	}
}

// Section 6: skills are an array, also of an agent that has none.
func TestNoSkills(t *testing.T) {
	ask := start(t, Options{Title: "T", Version: "1.0.0"})
	if got := ask("GET /.well-known/agent.json").body; !strings.Contains(got, `"skills":[]`) || !strings.Contains(got, `"name":"T","version":"1.0.0"`) {
		t.Errorf("got %s", got)
	}
}

// The operator's skill stands in place of a plugin's with the same id, and what
// a plugin says has bounds.
func TestManifestIsBounded(t *testing.T) {
	long := strings.Repeat("é", 5000)
	var many []string
	for range 100 {
		many = append(many, long)
	}
	m := Manifest{Skills: []Skill{{ID: "a", Name: "first"}, {ID: "a", Name: "second"}, {ID: long, Name: long, Description: long + "\xff", Tags: many, Examples: many}}}
	for i := range 1000 {
		m.Skills = append(m.Skills, Skill{ID: strings.Repeat("x", i+1)})
	}
	data := m.encode()
	var got Manifest
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(data) > 64<<10 || len(got.Skills) != maxSkills || got.Skills[0].Name != "first" || !utf8.Valid(data) {
		t.Errorf("%d bytes, %d skills, the first %+v", len(data), len(got.Skills), got.Skills[0])
	}
	s := got.Skills[1]
	want := []int{maxShort, maxShort, maxLong, maxList, maxList, maxShort, maxLong}
	if d := cmp.Diff(want, []int{len(s.ID), len(s.Name), len(s.Description), len(s.Tags), len(s.Examples), len(s.Tags[0]), len(s.Examples[0])}); d != "" {
		t.Error(d)
	}
}

// Whatever plugins say, the manifest is JSON in UTF-8 and comes back as it was
// within the bounds.
func FuzzManifest(f *testing.F) {
	f.Add("id", "name", "tag\x00", "</script>\u2028")
	f.Add("\xff", strings.Repeat("😀", 40), "", "é")
	f.Fuzz(func(t *testing.T, id, name, tag, example string) {
		m := Manifest{Name: "n", Skills: []Skill{{ID: id, Name: name, Tags: []string{tag}, Examples: []string{example}}}}
		data := m.encode()
		var got Manifest
		if err := json.Unmarshal(data, &got); err != nil || len(got.Skills) != 1 {
			t.Fatalf("%s: %v", data, err)
		}
		if utf8.ValidString(name) && len(name) <= maxShort && got.Skills[0].Name != name {
			t.Errorf("%q became %q", name, got.Skills[0].Name)
		}
	})
}
