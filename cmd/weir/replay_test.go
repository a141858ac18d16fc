package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/host/hosttest"
	"weir/host/run/replay"
)

// The command against a running host over its admin listener, and against the
// store of one that has ended.
func TestReplay(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: "[store]\nbackend = \"jetstream\"\ndir = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n",
		Env: map[string]string{"WEIR_ADMIN_KEY": hosttest.AdminKey}})
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Ask(t.Context(), "What is new?"); err != nil {
		t.Fatal(err)
	}
	// The listener's port is chosen by the system, so the command is told it.
	config := w.ReadFile(t, "agent.toml")
	w.WriteFile(t, "running.toml", []byte(strings.Replace(config, "127.0.0.1:0", w.Host.AdminAddr(), 1)))
	running, ended := filepath.Join(w.Dir, "running.toml"), w.ConfigPath()
	w.WriteFile(t, "other.wasm", hosttest.Workflow("answer-b"))
	key := environment{"WEIR_ADMIN_KEY": hosttest.AdminKey}

	replayed := func(t *testing.T, env environment, config string) {
		t.Helper()
		run := func(args ...string) result {
			return invoke(t, env, "", append([]string{"replay", "--config", config}, args...)...)
		}
		got := run("--gate", "changed=0,unanswerable=0", "--json")
		var s replay.Summary
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.code != exitOK || s.Same != 1 || s.Replayed != 1 || s.Items == 0 || s.Items != s.Answered {
			t.Fatalf("the same generation: %+v, %v", got, err)
		}
		id, report := s.Results[0].Run, filepath.Join(t.TempDir(), "report.html")
		got = run(id, "--plugin", "flow="+filepath.Join(w.Dir, "other.wasm"), "--gate", "text=0", "--report", report)
		if got.code != exitFailed || !strings.Contains(got.stderr, "weir replay: the gate is not passed: text=0 is broken by 1 of 1 runs") ||
			!strings.Contains(got.stdout, "run "+id+", recorded with "+s.Generation[:12]+": changed\n") || !strings.Contains(got.stdout, "coverage") {
			t.Errorf("another workflow: %+v", got)
		}
		page, err := os.ReadFile(report)
		if err != nil || !strings.Contains(string(page), "answer-b") || !strings.Contains(string(page), "plugin flow from ") {
			t.Errorf("the report: %v\n%s", err, page)
		}
		if got := run(id, "--plugin", "flow="+filepath.Join(w.Dir, "other.wasm")); got.code != exitOK {
			t.Errorf("without a gate: %+v", got)
		}
		if got := run("no-such-run"); got.code != exitOK || !strings.Contains(got.stdout, "its log cannot be read") {
			t.Errorf("no run: %+v", got)
		}
		if got := run("no-such-run", "--gate", "text=0"); got.code != exitFailed || !strings.Contains(got.stderr, "no run could be replayed") {
			t.Errorf("no run and a gate: %+v", got)
		}
	}
	t.Run("running", func(t *testing.T) { replayed(t, key, running) })
	w.Stop(t)
	t.Run("ended", func(t *testing.T) { replayed(t, nil, ended) })

	for _, tc := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"--gate", "text"}, exitUsage, "expected KIND=N"},
		{[]string{"--since", "-1h"}, exitUsage, "expected a positive duration"},
		{[]string{"--since", "1h", "some-run"}, exitUsage, "expected names of runs, or --since"},
		{[]string{"--plugin", "flow"}, exitUsage, "expected NAME=FILE"},
		{[]string{"--plugin", "none=x.wasm"}, exitFailed, "plugin \"none\": expected one that"},
		{[]string{"--prompt", "none=x.md"}, exitFailed, "prompt \"none\": expected one of [prompts]"},
		{[]string{"--prompt", "system=" + filepath.Join(w.Dir, "gone.md")}, exitFailed, "prompt system: "},
		{[]string{"--with", filepath.Join(w.Dir, "gone.toml")}, exitFailed, "gone.toml"},
	} {
		got := invoke(t, nil, "", append([]string{"replay", "--config", ended}, tc.args...)...)
		if got.code != tc.code || !strings.Contains(got.stderr, tc.stderr) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	for _, args := range [][]string{{"--replay", "24h"}, {"--gate", "text=0"}, {"--replay", "0s", "--gate", "text=0"}} {
		got := invoke(t, key, "", append([]string{"admin", "reload", "--config", ended}, args...)...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "expected --replay with a duration and --gate with rules, together") {
			t.Errorf("admin reload %q: %+v", args, got)
		}
	}
}
