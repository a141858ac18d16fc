package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/internal/agentv/ledger"
	"weir/host/dna"
)

const (
	workflow = `{"nodes":[{"id":"n","task_description":"t"}],"edges":[]}`
	registry = `{"simulators":{"api_key":"canary","user":"ada"}}`
)

// write makes a ledger as a run does and returns its lines and its head.
func write(t *testing.T) (lines []string, head string) {
	t.Helper()
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.FixedZone("", 3600))
	w, err := ledger.Create(dir, "run-1", func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	topology, err := dna.Topology([]byte(workflow))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := dna.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	provisioning, err := dna.Provisioning([]byte(registry))
	if err != nil {
		t.Fatal(err)
	}
	snapshot, _, err := dna.Snapshot([]byte(registry))
	if err != nil {
		t.Fatal(err)
	}
	name := "unknown"
	w.Defer("run_start", func() []ledger.Field {
		return []ledger.Field{ledger.F("scenario", "s"), ledger.F("metadata", map[string]any{
			"agent_name": name, "topology_hash": topology, "tool_dna_hash": tools, "provisioning_hash": provisioning,
			"fingerprint_v1": dna.Fingerprint(topology, tools, provisioning), "environmental_snapshot": rawJSON(snapshot),
		})}
	})
	w.Append("prompt", ledger.F("role", "user"), ledger.F("content", "Bearer abcdefgh12345 and {braces} <b>"))
	name = "known"
	w.Release()
	w.Append("agent_response", ledger.F("content", "sk-0123456789abcdef0123"))
	w.Append("evaluation", ledger.F("task_id", "n"), ledger.F("attempt", 1), ledger.F("metric", "m"), ledger.F("value", 1), ledger.F("threshold", 0.5), ledger.F("success", true))
	w.Append("node_end", ledger.F("node_id", "n"), ledger.F("attempt", 1), ledger.F("status", "success"))
	w.Append("phase_end", ledger.F("phase", "attempt"), ledger.F("attempt", 1), ledger.F("status", "success"))
	w.Append("run_end", ledger.F("status", "success"), ledger.F("successful_attempts", 1), ledger.F("total_attempts", 1))
	head = w.Head()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Create(dir, "run-1", time.Now); err == nil {
		t.Error("a ledger was written over another")
	}
	data, err := os.ReadFile(filepath.Join(dir, ledger.Name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), head
}

type rawJSON []byte

func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// agentv.md 3.3: the shape of a line, redaction, and the name that came late.
func TestLines(t *testing.T) {
	lines, _ := write(t)
	want := fmt.Sprintf(`{"event":"prompt","timestamp":"2026-01-02T03:04:05.678901+01:00","role":"user","content":"[REDACTED] and {braces} <b>","run_id":"run-1","_seq":2,"_ts_iso":"2026-01-02T03:04:05.678901+01:00","_prev":"%s"}`, dna.Sum([]byte(lines[0])))
	if lines[1] != want {
		t.Errorf("got  %s\nwant %s", lines[1], want)
	}
	if !strings.Contains(lines[0], `"agent_name":"known"`) || !strings.Contains(lines[2], `"content":"[REDACTED]"`) || strings.Contains(strings.Join(lines, ""), "canary") {
		t.Errorf("lines:\n%s", strings.Join(lines, "\n"))
	}
}

func evidence(head string) ledger.Evidence {
	return ledger.Evidence{Workflow: []byte(workflow), Registry: []byte(registry), Head: head}
}

func state(v *ledger.Verification, name string) string {
	for _, c := range v.Checks {
		if c.Name == name {
			return c.State
		}
	}
	return "missing"
}

// chain writes lines again with a chain that is right, as a forger would.
func chain(lines []string) []string {
	var out []string
	prev := dna.Sum(nil)
	for _, line := range lines {
		i := strings.LastIndex(line, `"_prev":"`)
		line = line[:i] + `"_prev":"` + prev + `"}`
		prev = dna.Sum([]byte(line))
		out = append(out, line)
	}
	return out
}

func newVerifier(t testing.TB) *ledger.Verifier {
	t.Helper()
	v, err := ledger.NewVerifier()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerify(t *testing.T) {
	verifier := newVerifier(t)
	lines, head := write(t)
	change := func(line int, old, new string) func([]string) []string {
		return func(lines []string) []string {
			if !strings.Contains(lines[line], old) {
				t.Fatalf("line %d has no %s: %s", line+1, old, lines[line])
			}
			lines[line] = strings.Replace(lines[line], old, new, 1)
			return lines
		}
	}
	forge := func(f func([]string) []string) func([]string) []string {
		return func(lines []string) []string { return chain(f(lines)) }
	}
	for name, tt := range map[string]struct {
		change   func([]string) []string
		evidence ledger.Evidence
		failed   string // names of the checks that fail
		open     string
	}{
		"as written":          {func(l []string) []string { return l }, evidence(head), "", ""},
		"no evidence":         {func(l []string) []string { return l }, ledger.Evidence{}, "", "topology_hash tool_dna_hash provisioning_hash"},
		"changed":             {change(1, "braces", "changed"), evidence(""), "chain", ""},
		"changed and forged":  {forge(change(1, "braces", "changed")), evidence(head), "head", ""},
		"a line left out":     {func(l []string) []string { return append(l[:3:3], l[4:]...) }, evidence(""), "sequence chain", ""},
		"cut":                 {func(l []string) []string { return l[:6] }, evidence(""), "frame", ""},
		"exchanged":           {func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }, evidence(""), "sequence chain", ""},
		"garbage":             {forge(change(4, `"event"`, `"event" `+"\x01")), evidence(""), "form chain", ""},
		"unknown event":       {forge(change(4, `"node_end"`, `"node_stop"`)), evidence(""), "schema", ""},
		"another run":         {forge(change(4, `"run-1"`, `"run-2"`)), evidence(""), "sequence", ""},
		"no time":             {forge(change(4, `"timestamp":"2026-01-02T03:04:05.678901+01:00"`, `"timestamp":"yesterday"`)), evidence(""), "schema", ""},
		"another workflow":    {func(l []string) []string { return l }, ledger.Evidence{Workflow: []byte(`{}`), Registry: []byte(registry)}, "topology_hash", ""},
		"another registry":    {func(l []string) []string { return l }, ledger.Evidence{Workflow: []byte(workflow), Registry: []byte(`{"simulators":{"api_key":"other","user":"ada"}}`)}, "provisioning_hash", ""},
		"more environment":    {forge(change(0, `"environmental_snapshot":{`, `"environmental_snapshot":{"routing":{},`)), evidence(""), "", "provisioning_hash"},
		"another tool":        {func(l []string) []string { return l }, ledger.Evidence{Workflow: []byte(workflow), Tools: []byte(`{"x":{}}`), Registry: []byte(registry)}, "tool_dna_hash", ""},
		"another snapshot":    {forge(change(0, `"ada"`, `"eve"`)), evidence(""), "environmental_snapshot", ""},
		"no fingerprint":      {forge(change(0, `"fingerprint_v1"`, `"fingerprint_v2"`)), evidence(""), "fingerprint_v1", ""},
		"a kinder metric":     {forge(change(3, `"value":1`, `"value":0`)), evidence(""), "outcome", ""},
		"a hidden failure":    {forge(change(4, `"status":"success"`, `"status":"failure"`)), evidence(""), "outcome", ""},
		"one success more":    {forge(change(6, `"successful_attempts":1`, `"successful_attempts":2`)), evidence(""), "outcome", ""},
		"begins with another": {func(l []string) []string { return chain(append([]string{l[4]}, l...)) }, evidence(""), "sequence frame topology_hash tool_dna_hash provisioning_hash fingerprint_v1", ""},
	} {
		changed := tt.change(append([]string{}, lines...))
		v, err := verifier.Verify(strings.NewReader(strings.Join(changed, "\n")+"\n"), tt.evidence)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var failed, open []string
		for _, c := range v.Checks {
			switch c.State {
			case ledger.Failed:
				failed = append(failed, c.Name)
			case ledger.Open:
				open = append(open, c.Name)
			}
		}
		if strings.Join(failed, " ") != tt.failed || strings.Join(open, " ") != tt.open || v.Holds != (tt.failed == "") {
			t.Errorf("%s: failed %q, open %q, holds %v, want %q, %q\n%+v", name, failed, open, v.Holds, tt.failed, tt.open, v.Checks)
		}
	}
}

// A ledger of another harness has no chain and no attempts; that alone is no fault.
func TestVerifyForeign(t *testing.T) {
	const foreign = `{"event":"run_start","timestamp":"2026-01-02T03:04:05+00:00","run_id":"r","scenario":"s","_seq":1}
{"event":"run_end","timestamp":"2026-01-02T03:04:05+00:00","run_id":"r","pass_at_k":1,"_seq":2}
`
	verifier := newVerifier(t)
	v, err := verifier.Verify(strings.NewReader(foreign), ledger.Evidence{Workflow: []byte(workflow)})
	if err != nil || state(v, "chain") != ledger.Absent || state(v, "outcome") != ledger.Absent || state(v, "schema") != ledger.OK || state(v, "topology_hash") != ledger.Failed {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestScrub(t *testing.T) {
	for in, want := range map[string]string{
		`"eyJhbGciOiJI.eyJzdWIi.c2ln x"`:              `"[REDACTED] x"`,
		`["AKIAIOSFODNN7EXAMPLE",{"sk":"task-list"}]`: `["[REDACTED]",{"sk":"task-list"}]`,
		`"ghp_0123456789abcdefghij"`:                  `"[REDACTED]"`,
		`"BEARER abc.def-ghi"`:                        `"[REDACTED]"`,
		`"a bearer of news"`:                          `"a bearer of news"`,
		`{"n":1.50,"t":true,"z":null}`:                `{"n":1.50,"t":true,"z":null}`,
	} {
		if got, err := ledger.Scrub(nil, []byte(in)); err != nil || string(got) != want {
			t.Errorf("Scrub(%s) = %s, %v, want %s", in, got, err, want)
		}
	}
	long := `"` + strings.Repeat("é", 200<<10) + `"`
	if got, err := ledger.Scrub(nil, []byte(long)); err != nil || len(got) > 257<<10 || !strings.HasSuffix(string(got), `é[147456 more bytes]"`) {
		t.Errorf("a long string: %v, %d bytes ending in %s", err, len(got), got[len(got)-40:])
	}
}

// No bytes make verification panic, and nothing but a ledger holds.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(`{"event":"run_start","timestamp":"2026-01-02T03:04:05+00:00","run_id":"r","scenario":"s","_seq":1,"metadata":{"topology_hash":"x"}}` + "\n"))
	f.Add([]byte(`{"event":"evaluation","attempt":1,"value":"x","_prev":""}`))
	verifier := newVerifier(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := verifier.Verify(strings.NewReader(string(data)), ledger.Evidence{Workflow: []byte(workflow)})
		if err == nil && v.Holds {
			t.Errorf("%q holds", data)
		}
	})
}
