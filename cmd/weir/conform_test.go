package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/host/hosttest"
)

// conformed is what --json prints, as far as it is looked at.
type conformed struct {
	OK      bool `json:"ok"`
	Must    int  `json:"failed_must"`
	Clauses []struct {
		Spec, ID, Level, Outcome, Reason string
	} `json:"clauses"`
}

func (c conformed) failed() (out []string) {
	for _, x := range c.Clauses {
		if x.Outcome == "fail" {
			out = append(out, x.Spec+"/"+x.ID+": "+x.Reason)
		}
	}
	return out
}

// Our own host keeps every clause of the three specifications that can be seen
// from outside, and our own folder those about folders.
func TestConformOfOurOwn(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	r := invoke(t, environment{conformKey: hosttest.ServiceKey}, "", "conform", "--url", w.URL, "--dir", filepath.Join("..", ".."),
		"--ask", "Show me my open tickets.", "--json")
	var c conformed
	if err := json.Unmarshal([]byte(r.stdout), &c); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.code != exitOK || !c.OK || c.Must != 0 || len(c.failed()) > 0 {
		t.Errorf("exit code %d, failed:\n%s\n%s", r.code, strings.Join(c.failed(), "\n"), r.stderr)
	}
	if i := slices.IndexFunc(strings.Split(r.stdout+r.stderr, "\n"), func(line string) bool { return strings.Contains(line, hosttest.ServiceKey) }); i >= 0 {
		t.Error("the key is in the output")
	}
}

// The same for the AgentV contract where it is served.
func TestConformOfOurOwnTurns(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{Config: "[contract.turn]\nenabled = true\n"})
	r := invoke(t, environment{conformKey: hosttest.ServiceKey}, "", "conform", "--url", w.URL, "--spec", "agentv", "--ask", "What time is it?", "--json")
	var c conformed
	if err := json.Unmarshal([]byte(r.stdout), &c); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	passed := 0
	for _, x := range c.Clauses {
		if x.Outcome == "pass" {
			passed++
		}
	}
	if r.code != exitOK || len(c.failed()) > 0 || passed < 10 {
		t.Errorf("exit code %d, %d passed, failed:\n%s", r.code, passed, strings.Join(c.failed(), "\n"))
	}
}

// The exit codes: 1 for a failed MUST, 2 when nothing can be said.
func TestConformExits(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), "a-key-from-a-file\n")
	tests := []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"an empty folder", []string{"--dir", dir}, exitFailed, "expected k8s/configmap.yaml", ""},
		{"nothing to look at", nil, exitUsage, "", "expected an agent's address, a folder, or both"},
		{"no such folder", []string{"--dir", filepath.Join(dir, "none")}, exitUsage, "", "expected a folder"},
		{"nobody there", []string{"--url", "http://127.0.0.1:1", "--key", "@" + filepath.Join(dir, "key")}, exitUsage, "", "cannot be reached"},
		{"no such key file", []string{"--url", "http://127.0.0.1:1", "--key", "@" + filepath.Join(dir, "none")}, exitUsage, "", "no such file"},
		{"an unknown specification", []string{"--dir", dir, "--spec", "platform,a2a"}, exitUsage, "", `got "a2a"`},
		{"an argument", []string{"everything"}, exitUsage, "", "expected 0 arguments"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := invoke(t, nil, "", append([]string{"conform"}, tt.args...)...)
			if r.code != tt.code || !strings.Contains(r.stdout, tt.stdout) || !strings.Contains(r.stderr, tt.stderr) || strings.Contains(r.stdout+r.stderr, "a-key-from") {
				t.Errorf("%+v", r)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "key")); err != nil {
		t.Error(err)
	}
}
