package harness_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/cmd/weir/internal/agentv/agenttest"
	"weir/cmd/weir/internal/agentv/harness"
	"weir/cmd/weir/internal/agentv/ledger"
	"weir/cmd/weir/internal/agentv/scenario"
)

func TestMain(m *testing.M) {
	agenttest.Main()
	goleak.VerifyTestMain(m)
}

const shipped = "../testdata/aes"

func load(t *testing.T, file string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(filepath.Join(shipped, file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a scenario into a folder of the test.
func run(t *testing.T, s *scenario.Scenario, address string, opts harness.Options) *harness.Result {
	t.Helper()
	a, err := agent.ParseAddress(address, "")
	if err != nil {
		t.Fatal(err)
	}
	opts.Out = t.TempDir()
	if opts.Agent.Timeout == 0 {
		opts.Agent.Timeout = time.Minute
	}
	r, err := harness.Run(t.Context(), s, harness.Target{Address: a, Source: "flag"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verify holds the ledger of a run against everything that there is.
func verify(t *testing.T, s *scenario.Scenario, r *harness.Result) {
	t.Helper()
	f, err := os.Open(r.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	registry, err := harness.Registry(s, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := ledger.NewVerifier()
	if err != nil {
		t.Fatal(err)
	}
	v, err := verifier.Verify(f, ledger.Evidence{Workflow: s.Workflow, Tools: s.ToolsSource, Registry: registry, Head: r.Head})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Checks {
		if c.State != ledger.OK {
			t.Errorf("%s: %+v", r.Ledger, c)
		}
	}
}

// events reads a ledger.
func events(t *testing.T, r *harness.Result) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(r.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for line := range strings.Lines(string(data)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// of are the events of one name.
func of(all []map[string]any, name string) (out []map[string]any) {
	for _, e := range all {
		if e["event"] == name {
			out = append(out, e)
		}
	}
	return out
}
