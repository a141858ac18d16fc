package route_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/route"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

func load(t *testing.T, metadata string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse(fmt.Appendf(nil, `{"aes_version":1.4,"metadata":{"id":"a","name":"A","compliance_level":"Gold"%s},"workflow":{"nodes":[{"id":"n","task_description":"t"}],"edges":[]},"evaluation":{}}`, metadata))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes.json")
	const mappings = `{"support":{"protocol":"sse","endpoint":"http://a/","metadata":{"payload_template":{"agent":"x","input":"{task_description}"}}},"plain":"tcp:127.0.0.1:9"}`
	if err := os.WriteFile(path, []byte(`{"version":1,"mappings":`+mappings+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := route.Load(path)
	if err != nil || string(m.Source) != mappings {
		t.Fatalf("%v, %s", err, m.Source)
	}
	bare, err := route.Parse([]byte(mappings))
	if err != nil || string(bare.Source) != mappings {
		t.Fatalf("without the wrapping: %v", err)
	}
	const agent = `,"agent":{"protocol":"http","endpoint":"http://localhost:5001/execute_task"}`
	for _, tt := range []struct {
		flag, metadata, endpoint, source string
		kind                             fault.Kind
	}{
		{"python3 a.py", `,"capabilities":["support"]` + agent, "python3 a.py", route.FromFlag, 0},
		{"", `,"capabilities":["unknown","support"]` + agent, "http://a/", route.FromRoutes, 0},
		{"", `,"capabilities":["plain"]`, "tcp:127.0.0.1:9", route.FromRoutes, 0},
		{"", `,"capabilities":["unknown"]` + agent, "http://localhost:5001/execute_task", route.FromMetadata, 0},
		{"", `,"capabilities":["unknown"]`, "", "", fault.NotFound},
		{"", ``, "", "", fault.NotFound},
		{"", `,"agent":{"protocol":"local","endpoint":"rm -r x"}`, "", "", fault.Denied},
		{"", `,"agent":{"protocol":"local","endpoint":"http://x"}`, "", "", fault.Denied},
		{"", `,"agent":{"endpoint":"unix:/run/x"}`, "", "", fault.Denied},
	} {
		r, source, err := route.Find(tt.flag, m, load(t, tt.metadata))
		if r.Endpoint != tt.endpoint || source != tt.source || err != nil && fault.Of(err) != tt.kind || (err == nil) != (tt.source != "") {
			t.Errorf("Find(%q, %s) = %+v, %s, %v, want %s", tt.flag, tt.metadata, r, source, err, tt.endpoint)
		}
		if tt.endpoint == "http://a/" && (r.Protocol != "sse" || string(r.Template) != `{"agent":"x","input":"{task_description}"}`) {
			t.Errorf("route %+v", r)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:                               "expected JSON",
		`[]`:                             "expected an object",
		`{"a":{}}`:                       `mappings.a: `,
		`{"mappings":{"a":{}}}`:          `missing field "endpoint"`,
		`{"a":{"endpoint":7}}`:           "mappings.a: ",
		`{"a":7}`:                        "mappings.a: ",
		`{"a":"http://x","a":"http://"}`: "repeated field",
	} {
		if _, err := route.Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) || fault.Of(err) != fault.Invalid {
			t.Errorf("Parse(%s): %v, want %s", in, err, want)
		}
	}
	if _, err := route.Load("absent.json"); err == nil {
		t.Error("a missing file was accepted")
	}
}

// No bytes make the reader panic, and every route that it accepts has an endpoint.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mappings":{"a":{"protocol":"sse","endpoint":"http://a/","metadata":{"payload_template":{"x":"{task_description}"}}}}}`))
	f.Add([]byte(`{"a":"tcp:x:1","mappings":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := route.Parse(data)
		if err == nil && (m == nil || len(m.Source) == 0) {
			t.Errorf("%q: %+v", data, m)
		}
	})
}
