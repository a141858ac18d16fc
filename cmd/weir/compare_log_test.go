package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/cmd/weir/internal/compare/variant"
	"weir/host/fault"
	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
)

// W7: variants are compared by what a host has recorded, over its admin listener
// and from the store of one that has ended. A difference that was planted is
// found, and where there is none no winner is named.
func TestCompareLog(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: `[store]
backend = "jetstream"
dir = "state"
[admin]
listen = "127.0.0.1:0"
[[variant]]
name = "strict"
share = 0.34
[variant.plugins.screen]
module = "plugins/strict.wasm"
[[variant]]
name = "control"
share = 0.33
`, Env: map[string]string{"WEIR_ADMIN_KEY": hosttest.AdminKey}})
	verdict := abi.Verdict{Verdict: abi.VerdictBlock, Message: "no", Decision: abi.Raw("{}")}
	w.WriteFile(t, "plugins/strict.wasm", plugintest.NewGuest().Answer(abi.HookCheckInput, string(verdict.AppendJSON(nil))).Build())
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	const users = 45
	asked := map[string]int{}
	for i := range users {
		for range 1 + i%2 { // some come back
			a, err := w.AskAs(t.Context(), fmt.Sprint("canary-user-", i), `{"messages":[{"role":"user","content":"hello"}]}`)
			if err != nil {
				t.Fatal(err)
			}
			asked[a.Variant]++
		}
	}
	// The listener's port is chosen by the system, so the command is told it.
	w.WriteFile(t, "running.toml", []byte(strings.Replace(w.ReadFile(t, "agent.toml"), "127.0.0.1:0", w.Host.AdminAddr(), 1)))
	running, ended := filepath.Join(w.Dir, "running.toml"), w.ConfigPath()
	key := environment{"WEIR_ADMIN_KEY": hosttest.AdminKey}

	compared := func(t *testing.T, env environment, config string) {
		out := filepath.Join(t.TempDir(), "report")
		got := invoke(t, env, "", "compare", "--json", "--log", "--config", config, "--since", "1h", "--out", out)
		var r variant.Result
		if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || got.code != exitOK {
			t.Fatalf("%+v, %v", got, err)
		}
		if len(r.Groups) != 3 || r.Groups[0].Name != "base" || len(r.Comparisons) != 2 || len(r.Broken) != 0 || r.Apart != 0 {
			t.Fatalf("%+v", r)
		}
		for _, g := range r.Groups {
			if g.Runs != asked[g.Name] || g.Runs == 0 || g.Users >= g.Runs || g.Open != 0 || g.Time.N != g.Runs && g.Name != "strict" || g.Time.N != 0 && g.Name == "strict" || len(g.Generations) != 1 {
				t.Errorf("group %+v, asked %d times", g, asked[g.Name])
			}
		}
		for _, c := range r.Comparisons {
			shown := map[string]string{}
			for _, row := range c.Rows {
				// A time is measured, so some three in a thousand of these tests would
				// find a difference of it by chance; everything else is the same here.
				if row.Difference.Decided && row.Name != "running_time" {
					shown[row.Name] = row.Verdict
				}
			}
			if c.Variant == "control" && len(shown) > 0 {
				t.Errorf("a control group differs: %v", shown)
			}
			if c.Variant == "strict" && (shown["blocked"] != "more with strict" || shown["completed"] != "less with strict" || shown["failed"] != "") {
				t.Errorf("a guard that blocks everybody: %v of %+v", shown, c.Rows)
			}
		}
		for _, file := range []string{"report.html", "result.json"} {
			data, err := os.ReadFile(filepath.Join(out, file))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), "more with strict") || strings.Contains(string(data), "canary-user") || strings.Contains(string(data), "hello") {
				t.Errorf("%s: %s", file, data)
			}
		}
		text := invoke(t, env, "", "compare", "--log", "--config", config)
		if text.code != exitOK || !strings.Contains(text.stdout, "no difference shown") || !strings.Contains(text.stdout, "more with strict") || strings.Contains(text.stdout, "canary") {
			t.Errorf("%+v", text)
		}
	}
	awaitRuns(t, key, running, asked)
	t.Run("running", func(t *testing.T) { compared(t, key, running) })
	if got := invoke(t, key, "", "admin", "status", "--config", running); got.code != exitOK || !strings.Contains(got.stdout, "variant    strict 0.34 of the users, ") {
		t.Errorf("admin status: %+v", got)
	}
	w.Stop(t)
	t.Run("ended", func(t *testing.T) { compared(t, nil, ended) })

	a := invoke(t, nil, "", "replay", "--config", ended, "--gate", "changed=0,unanswerable=0", "--json")
	var s struct {
		Results []struct{ Run, Variant string }
	}
	if err := json.Unmarshal([]byte(a.stdout), &s); err != nil || a.code != exitOK || len(s.Results) == 0 {
		t.Fatalf("the same generations differ in a replay: %+v, %v", a, err)
	}
	run := s.Results[0].Run
	if got := invoke(t, nil, "", "log", "show", run, "--config", ended); got.code != exitOK || !strings.Contains(got.stdout, ", variant "+s.Results[0].Variant+", ") {
		t.Errorf("log show: %+v", got)
	}
	if got := invoke(t, nil, "", "log", "verify", run, "--config", ended); got.code != exitOK {
		t.Errorf("log verify: %+v", got)
	}
	if got := invoke(t, w.Env(), "", "config", "check", "--config", ended); got.code != exitOK || !strings.Contains(got.stdout, "variant    control 0.33 of the users, generation ") {
		t.Errorf("config check: %+v", got)
	}

	w.WriteFile(t, "more.toml", []byte(w.ReadFile(t, "agent.toml")+"[[variant]]\nname = \"never\"\nshare = 0.01\n"))
	w.WriteFile(t, "memory.toml", []byte(strings.Replace(w.ReadFile(t, "agent.toml"), "jetstream", "memory", 1)))
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--log", "--config", filepath.Join(w.Dir, "more.toml")}, "variant never: no run of it has ended"},
		{[]string{"--log", "--config", ended, "--since", "1ns"}, "no run of the base has ended"},
		{[]string{"--log", "--config", ended, "--since", "-1h"}, "expected a positive duration"},
		{[]string{"--log", "--config", ended, "--a", "http://127.0.0.1:1"}, "--a: expected no such flag beside --log"},
		{[]string{"--repeat=3", "--log"}, "--repeat: expected no such flag beside --log"},
		{[]string{"--since", "24h", "--a", "x"}, "--since: expected --log beside it"},
		{[]string{"--log", "--nonsense"}, "flag provided but not defined"},
		{[]string{"--log", "something"}, "expected 0 arguments"},
		{[]string{"--log", "--config", filepath.Join(w.Dir, "memory.toml")}, "its logs end with the process"},
	} {
		got := invoke(t, nil, "", append([]string{"compare"}, tc.args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr+got.stdout, tc.want) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
}

// awaitRuns waits until as many runs as were asked can be read: a client has its
// answer before the log is written, for which the host waits a second whenever it
// is asked for its runs.
func awaitRuns(t *testing.T, env environment, config string, asked map[string]int) {
	t.Helper()
	want, got := 0, result{}
	for _, n := range asked {
		want += n
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		got = invoke(t, env, "", "compare", "--json", "--log", "--config", config, "--since", "1h")
		var r variant.Result
		if json.Unmarshal([]byte(got.stdout), &r) == nil && r.Runs >= want {
			return
		}
	}
	t.Fatalf("the logs of %d runs: %+v", want, got)
}

// Without guardrails nothing is decided, of which all is known; where digests are
// kept nothing is known of what was decided, also of a run whose client leaves
// before anything was, and that is said.
func TestCompareLogOfWhatIsKept(t *testing.T) {
	asks := abi.Verdict{Verdict: abi.VerdictAskModel, Decision: abi.Raw("{}"),
		Ask: &abi.ModelRequest{Model: abi.ModelGuard, Messages: []abi.Message{{Role: "user", Content: "is it?"}}}}
	asking := plugintest.NewGuest().Answer(abi.HookCheckInput, string(asks.AppendJSON(nil))).Build()
	for _, tt := range []struct {
		name, guards, content string
		leaves, known         bool
	}{
		{"guardrails", "", "full", false, true},
		{"no guardrails", "guards = []", "full", false, true},
		{"digests", "", "digest", false, false},
		{"digests of a client that leaves", "", "digest", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := hosttest.Prepare(t, hosttest.Options{Config: fmt.Sprintf("[store]\nbackend = \"jetstream\"\ndir = \"state\"\ncontent = %q\n[[variant]]\nname = \"all\"\nshare = 1.0\n%s\n",
				tt.content, tt.guards)})
			if tt.leaves {
				w.WriteFile(t, "plugins/screen.wasm", asking)
			}
			if err := w.Boot(t); err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if tt.leaves {
				arrived, answer := w.Model.Hold()
				defer close(answer)
				go func() { <-arrived; leave() }()
			}
			if _, err := w.Ask(ctx, "hello"); (err != nil) != tt.leaves {
				t.Fatal(err)
			}
			w.Stop(t)
			got := invoke(t, nil, "", "compare", "--json", "--log", "--config", w.ConfigPath())
			var r variant.Result
			if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || len(r.Groups) != 2 || r.Groups[1].Runs != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			for _, m := range r.Groups[1].Metrics {
				if m.Name == "masked" && (m.Runs == 1) != tt.known {
					t.Errorf("masked is known of %d runs", m.Runs)
				}
			}
			if said := strings.Contains(strings.Join(r.Notes, "\n"), "all: no decision is kept"); said == tt.known {
				t.Errorf("notes: %q", r.Notes)
			}
		})
	}
}

// Logs that cannot be read are named, but not all of a store that is damaged.
func TestUnreadable(t *testing.T) {
	var u unreadable
	if got := u.all(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
	for i := range 1000 {
		u.add(fmt.Sprint("run-", i), fault.New(fault.Internal, "record 3: not what its header names"))
		if i < 20 {
			u.add(fmt.Sprint("gone-", i), fault.New(fault.NotFound, "no such run"))
		}
	}
	got := u.all()
	if len(got) != 41 || got[0] != "a log cannot be read: run-0: record 3: not what its header names" || got[40] != "and 980 more logs cannot be read: internal" ||
		!slices.Contains(got, "a log cannot be read: gone-19: no such run") || !slices.Contains(got, "a log cannot be read: run-19: record 3: not what its header names") {
		t.Errorf("%q", got)
	}
}

// A host without variants has nothing to compare, which is said and is no score.
func TestCompareLogWithoutVariants(t *testing.T) {
	w := hosttest.Prepare(t, hosttest.Options{Config: "[store]\nbackend = \"jetstream\"\ndir = \"state\"\n"})
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Ask(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	w.Stop(t)
	got := invoke(t, nil, "", "compare", "--log", "--config", w.ConfigPath())
	if got.code != exitUsage || !strings.Contains(got.stdout, "there are no variants") || !strings.Contains(got.stdout, "1 runs are left out") {
		t.Errorf("%+v", got)
	}
}
