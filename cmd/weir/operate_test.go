package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/host/admin"
	"weir/host/hosttest"
	"weir/host/lock"
)

// P11: effective limits, digests and modes are visible, without keys.
func TestPluginList(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: "memory = \"32MiB\"\nfuel = 1000000\n[plugins.gone]\n"})
	config := filepath.Join(w.Dir, "agent.toml")
	var all []listed
	got := invoke(t, nil, "", "plugin", "list", "--config", config, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil || got.code != exitFailed || len(all) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	flow, screen, gone := all[0], all[1], all[2]
	if flow.Role != "workflow" || flow.Mode != "" || flow.Limits.Memory != 64<<20 || flow.Limits.StepTimeout != 200 || flow.Lock != "not pinned" {
		t.Errorf("%+v", flow)
	}
	if screen.Role != "guardrail" || screen.Mode != "enforce" || screen.OnError != "block" || screen.Limits.Memory != 32<<20 ||
		screen.Limits.Fuel != 1_000_000 || screen.Limits.CheckTimeout != 50 || screen.Digest != lock.Digest(hosttest.Guard("a")) {
		t.Errorf("%+v", screen)
	}
	if !strings.Contains(gone.Error, "there is no such module") {
		t.Errorf("%+v", gone)
	}
	if got := invoke(t, nil, "", "lock", "--config", config); got.code != exitFailed {
		t.Errorf("a lock of a module that is not there: %+v", got)
	}
	w.WriteFile(t, "plugins/gone.wasm", hosttest.Guard("x"))
	if got := invoke(t, nil, "", "lock", "--config", config); got.code != exitOK {
		t.Errorf("lock: %+v", got)
	}
	w.WriteFile(t, "plugins/screen.wasm", hosttest.Guard("other"))
	got = invoke(t, nil, "", "plugin", "list", "--config", config)
	if got.code != exitOK || strings.Count(got.stdout, "(pinned)") != 2 || strings.Count(got.stdout, "(differs)") != 1 ||
		!strings.Contains(got.stdout, "screen 1.0.0: guardrail, enforce, on_error block\n") || !strings.Contains(got.stdout, "limits  memory 32MiB") {
		t.Errorf("%+v", got)
	}
}

func TestLock(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{})
	config, file := filepath.Join(w.Dir, "agent.toml"), filepath.Join(w.Dir, "plugins", "agent.lock")
	run := func(args ...string) result {
		return invoke(t, w.Env(), "", append([]string{"lock", "--config", config}, args...)...)
	}
	if got := run("--check"); got.code != exitFailed || !strings.Contains(got.stdout, "compared "+file+": 2 modules, 1 prompts, 0 tools, 3 of them changed\n") {
		t.Errorf("check without a lock: %+v", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("--check wrote the file")
	}
	if got := invoke(t, nil, "", "lock", "--config", config, "--tools"); got.code != exitFailed || !strings.Contains(got.stderr, "environment MCP_API_KEY: expected ") {
		t.Errorf("tools without a key: %+v", got)
	}
	if got := run("--tools"); got.code != exitOK || !strings.Contains(got.stdout, "tool search_tickets: (none) is now ") {
		t.Errorf("tools: %+v", got)
	}
	tools := read(t, file)
	if got := run("--check", "--tools"); got.code != exitOK {
		t.Errorf("check: %+v", got)
	}
	w.WriteFile(t, "prompts/system.md", []byte("Other.\n"))
	var out struct {
		Written bool
		Changes []struct{ Kind, Name, Pinned, Found string }
	}
	got := run("--json")
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || got.code != exitOK || !out.Written || len(out.Changes) != 1 || out.Changes[0].Kind != "prompt" {
		t.Errorf("%+v, %v", got, err)
	}
	f, err := lock.Read(file)
	if err != nil || len(f.Tools) != 1 || !strings.Contains(tools, f.Tools["search_tickets"]) {
		t.Errorf("the tools are not kept: %+v, %v", f, err)
	}
	write(t, file, "{")
	if got := run(); got.code != exitFailed || !strings.Contains(got.stderr, "remove it to write a new one") {
		t.Errorf("a broken lock: %+v", got)
	}
}

// The commands against a running host, over a socket.
func TestAdmin(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "a.sock")
	w := hosttest.Prepare(t, hosttest.Options{Config: "[admin]\nlisten = 'unix:" + socket + "'\n",
		Env: map[string]string{"WEIR_ADMIN_KEY": hosttest.AdminKey}})
	config := filepath.Join(w.Dir, "agent.toml")
	key := environment{"WEIR_ADMIN_KEY": hosttest.AdminKey}
	run := func(env environment, what string, args ...string) result {
		return invoke(t, env, "", append([]string{"admin", what, "--config", config}, args...)...)
	}
	if got := run(key, "status"); got.code != exitFailed || !strings.HasPrefix(got.stderr, "weir admin status: admin: ") ||
		!strings.Contains(got.stderr, "; expected a running host that has WEIR_ADMIN_KEY, too, and the same [admin] listen\n") {
		t.Errorf("nobody listens: %+v", got)
	}
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	if got := run(nil, "status"); got.code != exitFailed || !strings.Contains(got.stderr, "environment WEIR_ADMIN_KEY: expected the key") {
		t.Errorf("without a key: %+v", got)
	}
	if got := run(environment{"WEIR_ADMIN_KEY": "another-key-of-24-characters"}, "reload"); got.code != exitFailed || !strings.Contains(got.stderr, "invalid or missing admin key") {
		t.Errorf("a wrong key: %+v", got)
	}
	first := w.Host.Status().Active.Generation
	if got := run(key, "status"); got.code != exitOK || !strings.HasPrefix(got.stdout, "active     "+first[:12]+" since ") || !strings.Contains(got.stdout, "\nin sync    true\n") {
		t.Errorf("status: %+v", got)
	}
	if got := run(key, "reload"); got.code != exitOK || !strings.HasPrefix(got.stdout, "unchanged\n") {
		t.Errorf("nothing new: %+v", got)
	}
	w.Variant(t, "b")
	if got := run(key, "reload"); got.code != exitOK || !strings.HasPrefix(got.stdout, "swapped\n") {
		t.Errorf("reload: %+v", got)
	}
	var reply admin.Reply
	got := run(key, "rollback", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &reply); err != nil || got.code != exitOK || reply.Outcome != "swapped" || reply.Status.Active.Generation != first {
		t.Errorf("rollback: %+v, %v", got, err)
	}
	if got := run(key, "rollback"); got.code != exitFailed || !strings.Contains(got.stderr, "weir admin rollback: there is no previous generation to go back to\n") {
		t.Errorf("rollback again: %+v", got)
	}
	w.WriteFile(t, "plugins/flow.wasm", []byte("text"))
	if got := run(key, "reload"); got.code != exitFailed || !strings.HasPrefix(got.stdout, "failed\n") || !strings.Contains(got.stderr, "weir admin reload: plugin flow: ") {
		t.Errorf("a refused reload: %+v", got)
	}
	if got := run(key, "status"); got.code != exitFailed || !strings.Contains(got.stdout, "\nin sync    false\n") || !strings.Contains(got.stdout, "\nlast error by admin at ") {
		t.Errorf("status: %+v", got)
	}
	// Now as ever: a file that no start would take is when one asks.
	whole := read(t, config)
	for _, broken := range []string{"\njunk = 1\n", "\n[[nonsense\n"} {
		write(t, config, whole+broken)
		if got := run(key, "reload"); got.code != exitFailed || !strings.HasPrefix(got.stdout, "failed\n") {
			t.Errorf("%q: a refused reload: %+v", broken, got)
		}
		if got := run(key, "status"); got.code != exitFailed || !strings.Contains(got.stdout, "\nlast error by ") {
			t.Errorf("%q: status: %+v", broken, got)
		}
	}
	if strings.Contains(w.Log.String(), hosttest.AdminKey) {
		t.Error("the key is in the log")
	}
}
