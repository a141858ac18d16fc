package host_test

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/host"
	"weir/host/hosttest"
	"weir/host/lock"
)

// pin writes an agent.lock that pins what the world's files are, changed by
// edit.
func pin(t *testing.T, w *hosttest.World, edit func(*lock.File)) {
	t.Helper()
	f, err := host.Pins(host.Options{ConfigPath: w.ConfigPath()})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(f)
	}
	w.WriteFile(t, "plugins/agent.lock", f.Encode())
}

func require(t *testing.T, w *hosttest.World) {
	edit(t, w, "[plugins]\n", "[plugins]\nlock = \"require\"\n")
}

// DECISIONS 4: a module or prompt that differs is loaded and said with "warn",
// refused with both digests with "require".
func TestLock(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{})
	require(t, w)
	if err := w.Boot(t); err == nil || !strings.Contains(err.Error(), "agent.lock: there is no such file, so nothing is pinned") {
		t.Fatalf("require without a lock: %v", err)
	}
	pin(t, w, nil)
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	if s := w.Host.Status(); len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], "tool search_tickets: agent.lock has no entry for it") {
		t.Errorf("warnings: %q", s.Warnings)
	}
	pinned := lock.Digest(hosttest.Guard("a"))
	w.WriteFile(t, "plugins/screen.wasm", hosttest.Guard("b"))
	w.WriteFile(t, "prompts/system.md", []byte("Other.\n"))
	_, err := w.Host.Reload(t.Context())
	for _, want := range []string{
		"module screen: agent.lock pins the sha256 " + pinned + ", found " + lock.Digest(hosttest.Guard("b")),
		"prompt system: agent.lock pins the sha256 ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if got := ask(t, w); !strings.Contains(got.Raw, `"variant":"a"`) {
		t.Errorf("what was refused is active: %s", got.Raw)
	}
	edit(t, w, `lock = "require"`, `lock = "warn"`)
	reload(t, w, host.OutcomeSwapped)
	if s := w.Host.Status(); len(s.Warnings) != 3 || !strings.HasPrefix(s.Warnings[0], "module screen: agent.lock pins ") {
		t.Errorf("warnings: %q", s.Warnings)
	}
	if got := ask(t, w); !strings.Contains(got.Raw, `"variant":"b"`) || !strings.Contains(w.Log.String(), "module screen: agent.lock pins ") {
		t.Errorf("warn did not load it, or did not say so: %s", got.Raw)
	}
	pin(t, w, nil)
	edit(t, w, `lock = "warn"`, `lock = "require"`)
	reload(t, w, host.OutcomeUnchanged)
}

// M6 and DECISIONS 4: a tool that is not the pinned one is refused in every
// mode; one without an entry is said.
func TestToolsAreLocked(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{})
	wrong := strings.Repeat("0", 64)
	pin(t, w, func(f *lock.File) { f.Tools = map[string]string{"search_tickets": wrong} })
	want := "tool search_tickets: agent.lock pins the sha256 " + wrong + ", found "
	err := w.Boot(t)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %q", err, want)
	}
	tools, err := host.PinTools(t.Context(), w.Options(w.Env(), nil, nil))
	if err != nil || len(tools) != 1 {
		t.Fatalf("%v, %v", tools, err)
	}
	pin(t, w, func(f *lock.File) { f.Tools = tools })
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	if s := w.Host.Status(); len(s.Warnings) > 0 {
		t.Errorf("warnings: %q", s.Warnings)
	}
	// The server changes it: found when a session is begun anew, here because
	// the include list needs the server.
	w.Desk.Restart(map[string]string{"search_tickets": "finds tickets and mails them"})
	edit(t, w, `include = ["search_tickets"]`, `include = ["search_tickets", "get_ticket"]`)
	if _, err := w.Host.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "tool search_tickets: agent.lock pins the sha256 "+tools["search_tickets"]) {
		t.Errorf("a changed tool at a reload: %v", err)
	}
	s := w.Host.Status()
	if len(s.ChangedTools) != 1 || s.ChangedTools[0].Name != "search_tickets" || s.ChangedTools[0].Admitted != tools["search_tickets"] {
		t.Errorf("changed: %+v", s.ChangedTools)
	}
	if got := w.Get(t, "/health/ready"); !strings.HasPrefix(got, "ready") {
		t.Errorf("readiness: %q", got)
	}
	// Looked at and pinned again it is a tool like any other.
	tools, err = host.PinTools(t.Context(), w.Options(w.Env(), nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	pin(t, w, func(f *lock.File) { f.Tools = tools })
	reload(t, w, host.OutcomeSwapped)
	if s := w.Host.Status(); len(s.ChangedTools) > 0 || !s.InSync {
		t.Errorf("status: %+v", s)
	}
	if got := w.Get(t, "/version"); !strings.Contains(got, `"tools_exposed":["get_ticket","search_tickets"]`) {
		t.Errorf("/version: %s", got)
	}
}

func TestPins(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{})
	pin(t, w, nil)
	f, err := lock.Read(filepath.Join(w.Dir, "plugins", "agent.lock"))
	if err != nil || len(f.Modules) != 2 || len(f.Prompts) != 1 || f.Modules["screen"] != lock.Digest(hosttest.Guard("a")) {
		t.Errorf("%+v, %v", f, err)
	}
}
