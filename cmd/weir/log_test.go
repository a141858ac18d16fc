package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/host/hosttest"
	"weir/host/run"
)

var workflowRun = regexp.MustCompile(`"workflow_run_id":"([^"]+)"`)

// The three commands on a run's log: asked of a running host, of the store of one
// that has ended, and of one that is held by a host without an admin key, where
// they say what is missing.
func TestLogCommands(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: "[store]\nbackend = \"jetstream\"\ndir = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n",
		Env: map[string]string{"WEIR_ADMIN_KEY": hosttest.AdminKey}})
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	reply, err := w.Ask(t.Context(), "What is new?")
	if err != nil {
		t.Fatal(err)
	}
	id, config := workflowRun.FindStringSubmatch(reply.Raw)[1], w.ReadFile(t, "agent.toml")
	w.WriteFile(t, "running.toml", []byte(strings.Replace(config, "127.0.0.1:0", w.Host.AdminAddr(), 1)))
	running, ended := filepath.Join(w.Dir, "running.toml"), w.ConfigPath()
	key := environment{"WEIR_ADMIN_KEY": hosttest.AdminKey}

	read := func(t *testing.T, env environment, config string) {
		t.Helper()
		call := func(args ...string) result {
			return invoke(t, env, "", append(append([]string{"log"}, args...), "--config", config)...)
		}
		head := "run " + id + ", generation "
		if got := call("show", id); got.code != exitOK || !strings.HasPrefix(got.stdout, head) || !strings.Contains(got.stdout, " run_ended ") || strings.Contains(got.stdout, `"someone"`) {
			t.Errorf("show: %+v", got)
		}
		got := call("verify", id)
		if got.code != exitOK || !strings.HasPrefix(got.stdout, head) || !strings.Contains(got.stdout, "\nverified: ") {
			t.Errorf("verify: %+v", got)
		}
		var v struct{ Records, Full, Dropped, Withheld int }
		if got = call("verify", id, "--json"); json.Unmarshal([]byte(got.stdout), &v) != nil || v.Records == 0 || v.Records != v.Full+v.Dropped+v.Withheld {
			t.Errorf("verify --json: %+v", got)
		}
		file := filepath.Join(t.TempDir(), "run.jsonl")
		if got = call("export", id, "-o", file); got.code != exitOK || got.stdout != "" || got.stderr != "" {
			t.Fatalf("export: %+v", got)
		}
		data, err := os.ReadFile(file)
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		var report run.Report
		if err != nil || len(lines) != v.Records+1 || json.Unmarshal([]byte(lines[0]), &report) != nil || report.Run != id || len(report.Entries) > 0 {
			t.Errorf("export: %v, %d lines for %d records, %+v", err, len(lines), v.Records, report)
		}
		if got = call("export", id, "-o", file); got.code != exitFailed || !strings.Contains(got.stderr, "file exists") {
			t.Errorf("export over a file: %+v", got)
		}
		if got = call("show", "no-such-run"); got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, "weir log show: run no-such-run: there is no log") {
			t.Errorf("no such run: %+v", got)
		}
	}
	t.Run("running", func(t *testing.T) { read(t, key, running) })
	for _, args := range [][]string{{"log", "show", id}, {"replay"}} {
		got := invoke(t, nil, "", append(args, "--config", running)...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "is in use by another process") ||
			!strings.Contains(got.stderr, "; a running host is asked where it and this command have the same WEIR_ADMIN_KEY\n") {
			t.Errorf("%q without a key: %+v", args, got)
		}
	}
	if got := invoke(t, environment{"WEIR_ADMIN_KEY": "another-key-of-24-characters"}, "", "log", "show", id, "--config", running); got.code != exitFailed ||
		got.stdout != "" || !strings.Contains(got.stderr, "invalid or missing admin key") {
		t.Errorf("another key: %+v", got)
	}
	w.Stop(t)
	t.Run("ended", func(t *testing.T) { read(t, nil, ended) })

	w.WriteFile(t, "elsewhere.toml", []byte(strings.Replace(config, `dir = "state"`, `dir = "another"`, 1)))
	for _, args := range [][]string{{"log", "show", id}, {"replay"}, {"compare", "--log"}} {
		got := invoke(t, nil, "", append(args, "--config", filepath.Join(w.Dir, "elsewhere.toml"))...)
		if got.code == exitOK || !strings.Contains(got.stderr, "another: there is no such state directory") {
			t.Errorf("%q where no host was: %+v", args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "another")); err == nil {
		t.Error("reading has made a state directory")
	}
}
