package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/abi"
	"weir/host"
	"weir/host/fault"
	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
)

func ask(t *testing.T, w *hosttest.World) hosttest.Answer {
	t.Helper()
	a, err := w.Ask(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Generations) != 1 {
		t.Fatalf("the answer names %q", a.Generations)
	}
	return a
}

func reload(t *testing.T, w *hosttest.World, want string) {
	t.Helper()
	if outcome, err := w.Host.Reload(t.Context()); outcome != want || err != nil {
		t.Fatalf("reload: %s, %v; want %s", outcome, err, want)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

// edit changes agent.toml.
func edit(t *testing.T, w *hosttest.World, old, text string) {
	t.Helper()
	data, err := os.ReadFile(w.ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("agent.toml lacks %q", old)
	}
	w.WriteFile(t, "agent.toml", []byte(strings.Replace(string(data), old, text, 1)))
}

// failures are the ways in which the next policy can be wrong, with what its
// refusal says.
var failures = map[string]struct {
	breakIt func(t *testing.T, w *hosttest.World)
	want    string
}{
	"a module cut short": {func(t *testing.T, w *hosttest.World) {
		w.WriteFile(t, "plugins/screen.wasm", hosttest.Guard("b")[:60])
	}, "plugin screen: "},
	"a module that is none": {func(t *testing.T, w *hosttest.World) {
		w.WriteFile(t, "plugins/flow.wasm", []byte("not a module"))
	}, "plugin flow: expected a WebAssembly module"},
	"no module": {func(t *testing.T, w *hosttest.World) {
		if err := os.Remove(filepath.Join(w.Dir, "plugins", "screen.wasm")); err != nil {
			t.Fatal(err)
		}
	}, "plugin screen: "},
	"a self-check that fails": {func(t *testing.T, w *hosttest.World) {
		g := plugintest.NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`)
		g.Description = abi.Description{Name: "screen", Version: "1.0.0", ABI: abi.Version, Cases: []abi.Case{{
			Name: "it blocks", Hook: abi.HookCheckInput,
			Request: abi.Raw(`{"now":0,"seed":"0","text":"x","history":[]}`), Expect: abi.Raw(`{"verdict":"block"}`)}}}
		w.WriteFile(t, "plugins/screen.wasm", g.Build())
	}, `plugin screen: self-check "it blocks": `},
	"a guard that refuses its configuration": {func(t *testing.T, w *hosttest.World) {
		g := plugintest.NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`)
		g.Settings.Error = "no such pattern"
		w.WriteFile(t, "plugins/screen.wasm", g.Build())
	}, `plugin screen: configure: the configuration is refused: "no such pattern"`},
	"a guard in the workflow's place": {func(t *testing.T, w *hosttest.World) {
		w.WriteFile(t, "plugins/flow.wasm", hosttest.Guard("b"))
	}, "plugin flow is a guardrail, expected a workflow"},
	"no TOML":        {func(t *testing.T, w *hosttest.World) { w.WriteFile(t, "agent.toml", []byte("[agent\n")) }, "agent.toml:2: "},
	"an unknown key": {func(t *testing.T, w *hosttest.World) { edit(t, w, "[guard]", "[guard]\nblok = 1") }, "unknown key [guard] blok"},
	"a blank prompt": {func(t *testing.T, w *hosttest.World) { w.WriteFile(t, "prompts/system.md", []byte(" \n")) }, "the file is blank"},
	"no tool": {func(t *testing.T, w *hosttest.World) {
		edit(t, w, `include = ["search_tickets"]`, `include = ["search_tickets", "close_ticket"]`)
	}, `tool "close_ticket": included, but the server does not offer it`},
	"a lock that cannot be read": {func(t *testing.T, w *hosttest.World) {
		w.WriteFile(t, "plugins/agent.lock", []byte(`{"version":1,"modules":`))
	}, "agent.lock: offset"},
}

// P14, P15: what is refused at a reload changes nothing, and the status says
// so; once it is right it is applied.
func TestRefusedReloadChangesNothing(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			w := hosttest.Start(t, hosttest.Options{})
			before, version := ask(t, w), w.Get(t, "/version")
			w.Variant(t, "b")
			f.breakIt(t, w)
			outcome, err := w.Host.Reload(t.Context())
			if outcome != host.OutcomeFailed || err == nil || !strings.Contains(err.Error(), f.want) {
				t.Fatalf("%s, %v; want %q", outcome, err, f.want)
			}
			if after := ask(t, w); after.Generations[0] != before.Generations[0] || after.Text != "answer-a" {
				t.Errorf("the refused policy answered: %q", after.Raw)
			}
			if now := w.Get(t, "/version"); now != version {
				t.Errorf("/version before: %s\nafter: %s", version, now)
			}
			s := w.Host.Status()
			if s.InSync || s.Active.Generation != before.Generations[0] || s.Wanted.Generation == s.Active.Generation ||
				s.LastError == nil || !strings.Contains(s.LastError.Text, f.want) || s.Swaps != 0 {
				t.Errorf("status: %+v", s)
			}
			_ = os.Remove(filepath.Join(w.Dir, "plugins", "agent.lock"))
			w.Variant(t, "b")
			reload(t, w, host.OutcomeSwapped)
			if after := ask(t, w); after.Text != "answer-b" || after.Generations[0] == before.Generations[0] {
				t.Errorf("after the repair: %q", after.Raw)
			}
			if s := w.Host.Status(); !s.InSync || s.LastError == nil || s.Wanted.Generation != s.Active.Generation {
				t.Errorf("status after the repair: %+v", s)
			}
		})
	}
}

// P15: the same at a start refuses it.
func TestRefusedStart(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			w := hosttest.Prepare(t, hosttest.Options{})
			f.breakIt(t, w)
			if err := w.Boot(t); err == nil || !strings.Contains(err.Error(), f.want) {
				t.Errorf("%v, want %q", err, f.want)
			}
		})
	}
}

func TestUnchanged(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	before := w.Host.Status()
	reload(t, w, host.OutcomeUnchanged)
	// Another file with the same meaning: the same generation, the new digest.
	edit(t, w, "[guard]", "# a comment\n[guard]")
	reload(t, w, host.OutcomeUnchanged)
	after := w.Host.Status()
	if after.Active.Generation != before.Active.Generation || after.Active.Since != before.Active.Since || after.Swaps != 0 ||
		after.Previous != "" || after.Active.ConfigSHA256 == before.Active.ConfigSHA256 {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	if !strings.Contains(w.Get(t, "/version"), after.Active.ConfigSHA256) {
		t.Error("/version shows another file")
	}
	if len(after.Draining) > 0 || ask(t, w).Text != "answer-a" {
		t.Errorf("draining: %+v", after.Draining)
	}
}

// DECISIONS 4: keys that need a restart keep their old values, and everybody is
// told; the rest of the file is applied.
func TestKeysThatWait(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	health := w.Get(t, "/health")
	edit(t, w, "[agent]", "[agent]\ntitle = \"Another\"\nmax_history = 3")
	edit(t, w, "[server]", "[server]\nkeep_alive = \"1s\"")
	reload(t, w, host.OutcomeSwapped)
	s := w.Host.Status()
	if got := fmt.Sprint(s.Restart); got != "[[agent] title [server]]" {
		t.Errorf("waiting: %s", got)
	}
	if now := w.Get(t, "/health"); now != health {
		t.Errorf("/health was %s, is %s", health, now)
	}
	if !strings.Contains(w.Log.String(), "a changed key waits for a restart") {
		t.Error("nothing in the log")
	}
	edit(t, w, "title = \"Another\"\n", "")
	edit(t, w, "\nkeep_alive = \"1s\"", "")
	reload(t, w, host.OutcomeUnchanged)
	if s := w.Host.Status(); len(s.Restart) > 0 {
		t.Errorf("still waiting: %q", s.Restart)
	}
}

// Rollback goes one step back, with bytes that the disk does not have any more;
// changed files do not undo it, a person does.
func TestRollback(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{Watch: true})
	first := w.Host.Status().Active.Generation
	if outcome, err := w.Host.Rollback(t.Context()); outcome != host.OutcomeFailed || fault.Of(err) != fault.Conflict {
		t.Errorf("with nothing to go back to: %s, %v", outcome, err)
	}
	if s := w.Host.Status(); !s.InSync || s.Wanted.Generation != first {
		t.Errorf("a rollback that went nowhere changed the status: %+v", s)
	}
	w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer-b"))
	eventually(t, "the changed file was read", func() bool { return ask(t, w).Text == "answer-b" })
	second := w.Host.Status().Active.Generation
	if s := w.Host.Status(); s.Previous != first || s.Wanted.Trigger != host.TriggerFile {
		t.Errorf("status: %+v", s)
	}
	if outcome, err := w.Host.Rollback(t.Context()); outcome != host.OutcomeSwapped || err != nil {
		t.Fatalf("%s, %v", outcome, err)
	}
	if a := ask(t, w); a.Text != "answer-a" || a.Generations[0] != first {
		t.Errorf("after the rollback: %s", a.Raw)
	}
	s := w.Host.Status()
	if s.Held != second || s.Previous != "" || !s.InSync {
		t.Errorf("status: %+v", s)
	}
	if _, err := w.Host.Rollback(t.Context()); fault.Of(err) != fault.Conflict {
		t.Errorf("a second rollback: %v", err)
	}
	w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer-b")) // again: an event
	eventually(t, "the file event is told", func() bool { return strings.Contains(w.Log.String(), "rolled back from") })
	if a := ask(t, w); a.Text != "answer-a" {
		t.Errorf("a changed file undid the rollback: %s", a.Raw)
	}
	reload(t, w, host.OutcomeSwapped)
	if a := ask(t, w); a.Text != "answer-b" || a.Generations[0] != second || w.Host.Status().Previous != first {
		t.Errorf("after the reload: %s", a.Raw)
	}
}

// Every request for a reload is served by a build that began after it, and a
// burst by few.
func TestBurstsCoalesce(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	w.Variant(t, "b")
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if outcome, err := w.Host.Reload(context.Background()); err != nil {
				t.Errorf("%s, %v", outcome, err)
			}
			if got := ask(t, w).Text; got != "answer-b" {
				t.Errorf("after its reload somebody got %q", got)
			}
		})
	}
	all.Wait()
	if s := w.Host.Status(); s.Swaps != 1 {
		t.Errorf("%d swaps", s.Swaps)
	}
}

// agent-service.md 7 and DECISIONS 4: a SIGHUP reads the policy again.
func TestHangup(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{})
	hangup, started := make(chan os.Signal, 1), make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	env := w.Env()
	ended := make(chan error, 1)
	go func() {
		ended <- host.Serve(ctx, w.Options(env, hangup, func(addr string) { started <- addr }))
	}()
	w.URL = "http://" + <-started
	if got := ask(t, w).Text; got != "answer-a" {
		t.Errorf("at first: %q", got)
	}
	w.Variant(t, "b")
	hangup <- syscall.SIGHUP
	eventually(t, "the signal was heard", func() bool { return ask(t, w).Text == "answer-b" })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Watched files as Kubernetes changes them: all at once, behind a link.
func TestConfigMap(t *testing.T) {
	var w *hosttest.World
	swap := func(name string) {
		dir := ".." + name
		w.WriteFile(t, dir+"/agent.toml", []byte(strings.ReplaceAll(w.Config(t, name), `"prompts/`, `"`)))
		w.WriteFile(t, dir+"/system.md", []byte("You are "+name+".\n"))
		old, _ := os.Readlink(filepath.Join(w.Dir, "..data"))
		err := os.Symlink(dir, filepath.Join(w.Dir, "..tmp"))
		if err == nil {
			err = os.Rename(filepath.Join(w.Dir, "..tmp"), filepath.Join(w.Dir, "..data"))
		}
		if err == nil && old != "" {
			err = os.RemoveAll(filepath.Join(w.Dir, old))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w = hosttest.Prepare(t, hosttest.Options{Watch: true, Write: func(prepared *hosttest.World) {
		w = prepared
		w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer"))
		w.WriteFile(t, "plugins/screen.wasm", hosttest.Guard("x"))
		swap("a")
		for _, name := range []string{"agent.toml", "system.md"} {
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(w.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}})
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{w.Host.Status().Active.Generation: true}
	for _, name := range []string{"b", "c", "d"} {
		before := w.Host.Status().Active.Generation
		swap(name)
		eventually(t, name+" is active", func() bool { return w.Host.Status().Active.Generation != before })
		now := w.Host.Status().Active.Generation
		if seen[now] {
			t.Errorf("variant %s is an old generation", name)
		}
		seen[now] = true
	}
	if s := w.Host.Status(); s.Swaps != 3 || s.LastError != nil {
		t.Errorf("%d swaps, %+v", s.Swaps, s.LastError)
	}
}
