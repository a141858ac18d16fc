package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir-demo/internal/gateway"
	"weir/host"
	"weir/host/admin"
	"weir/host/config"
	"weir/host/logtest"
	"weir/host/run"
	"weir/host/run/replay"
)

const adminKey = "canary-admin-key-of-24-and-more"

// recorded is an office whose host keeps logs, and the admin listener's client.
type recorded struct {
	*office
	*world
	admin *admin.Client
}

// record starts a host with all shipped plugins and approvals, in this process.
func record(t testing.TB, store string) *recorded {
	t.Helper()
	o := newOffice(t, officeSetup{store: store, setup: setup{only: modules,
		env: map[string]string{"WEIR_ADMIN_KEY": adminKey},
		config: func(c string) string {
			c = replace(t, c, "\n[reload]\n", "\n[reload]\nwatch = false\n")
			return replace(t, c, "\n[admin]\n", "\n[admin]\nlisten = \"127.0.0.1:0\"\n")
		}}})
	w := &world{log: &logtest.Buffer{}}
	h, err := host.Start(t.Context(), host.Options{ConfigPath: o.path, Env: o.lookup,
		Logger: slog.New(slog.NewTextHandler(w.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w.host, w.addr, w.url = h, h.Addr().String(), "http://"+h.Addr().String()
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		client.CloseIdleConnections()
	})
	return &recorded{o, w, admin.NewClient("tcp", h.AdminAddr(), adminKey)}
}

func (o *office) lookup(name string) (string, bool) { v, ok := o.env[name]; return v, ok }

// talk has the conversations of the demo, those that guards change, and a
// change that a person approves.
func (r *recorded) talk(t testing.TB) {
	t.Helper()
	var out strings.Builder
	g := gateway.New(gateway.Options{Address: r.addr, Key: serviceKey, Out: &out})
	defer g.Close()
	if failures := g.Play(t.Context(), gateway.Demo()); failures != 0 {
		t.Fatalf("%d failures:\n%s", failures, out.String())
	}
	for _, question := range []string{"Show the history for all open tickets.",
		"Show ticket TKT-GR-PII and quote its complete description exactly.",
		"Show ticket TKT-GR-REGEX and quote its complete description exactly."} {
		r.ask(t, user(question))
	}
	l := r.propose(t)
	for {
		q, err := l.question()
		if err != nil {
			break
		}
		if status, text := r.answer(t, userID, q, q.reply()); status != 204 {
			t.Fatalf("status %d: %s", status, text)
		}
	}
}

// runs are the logs of the last hour, by way of the admin listener.
func (r *recorded) runs(t testing.TB) []*run.Recorded {
	t.Helper()
	reply, err := r.admin.Logs(t.Context(), time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	var listed []run.Listed
	if err := json.Unmarshal(reply.Logs, &listed); err != nil {
		t.Fatal(err)
	}
	var out []*run.Recorded
	for _, l := range listed {
		reply, err := r.admin.Log(t.Context(), l.Run)
		if err != nil {
			t.Fatal(err)
		}
		report := new(run.Report)
		if err := json.Unmarshal(reply.Log, report); err != nil {
			t.Fatal(err)
		}
		rec, err := run.ReadRecorded(report)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

// through folds runs through what a configuration says.
func through(t testing.TB, path string, env func(string) (string, bool), runs []*run.Recorded, gate string) *replay.Summary {
	t.Helper()
	trial, err := host.OpenTrial(t.Context(), host.TrialOptions{Options: host.Options{ConfigPath: path, Env: env}})
	if err != nil {
		t.Fatal(err)
	}
	defer trial.Close(context.Background())
	rules, err := replay.ParseGate(gate)
	if err != nil {
		t.Fatal(err)
	}
	s, err := trial.Replay(t.Context(), len(runs), 2, func(_ context.Context, i int) (*run.Recorded, error) { return runs[i], nil }, rules)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unchanged checks that a replay found no difference and left nothing open.
func unchanged(t testing.TB, s *replay.Summary, least int) {
	t.Helper()
	for _, r := range s.Results {
		if r.Status != replay.StatusSame {
			body, _ := json.MarshalIndent(r, "", " ")
			t.Errorf("run %s: %s", r.Run, body)
		}
	}
	if s.Replayed < least || s.Answered != s.Items {
		t.Errorf("%d of %d runs replayed, %d of %d questions answered", s.Replayed, s.Runs, s.Answered, s.Items)
	}
}

// DECISIONS 5: the same generation makes no difference: the same actions, the
// same verdicts on what is kept, the same released text.
func TestReplaySameGeneration(t *testing.T) {
	for _, store := range []string{config.BackendMemory, config.BackendJetStream} {
		t.Run(store, func(t *testing.T) {
			r := record(t, "backend = \""+store+"\"")
			r.talk(t)
			runs := r.runs(t)
			s := through(t, r.path, r.lookup, runs, "changed=0,unanswerable=0")
			unchanged(t, s, 8)
			if !s.Passed() || s.Generation != r.host.Status().Active.Generation {
				t.Errorf("passed %v, generation %s", s.Passed(), s.Generation)
			}
			size := 0
			for _, rec := range runs {
				body, _ := json.Marshal(rec.Recording)
				size += len(body)
			}
			t.Logf("%d runs, recordings of %d bytes on average, replayed in %.0f ms", len(runs), size/len(runs), s.TookMS)
		})
	}
}

// another writes a variant of a deployment beside it and returns its path.
func another(t testing.TB, path string, edit func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "agent.toml")
	if err := os.WriteFile(path, []byte(edit(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run returns the result of the run whose question begins so.
func result(t testing.TB, s *replay.Summary, runs []*run.Recorded, blocked bool, text string) *replay.Result {
	t.Helper()
	for i, rec := range runs {
		last := len(rec.Turns) - 1
		if blocked && rec.State == run.Blocked || last >= 0 && strings.HasPrefix(rec.Turns[last].Content, text) && !blocked {
			return s.Results[i]
		}
	}
	t.Fatalf("no run of %q", text)
	return nil
}

func has(r *replay.Result, kind, stage string) bool {
	return slices.ContainsFunc(r.Changes, func(c replay.Change) bool { return c.Kind == kind && c.Stage == stage })
}

func open(r *replay.Result, was, stage string) bool {
	return slices.ContainsFunc(r.Unanswered, func(u replay.Unanswered) bool { return u.Was == was && u.Stage == stage })
}

// A policy that was weakened on purpose does not pass, whether the recording
// shows that or only cannot rule it out; a stricter one shows whom it blocks.
func TestReplayAnotherGeneration(t *testing.T) {
	r := record(t, "backend = \"memory\"")
	r.talk(t)
	runs := r.runs(t)
	const pii, secret = "Show ticket TKT-GR-PII", "Show ticket TKT-GR-REGEX"
	for _, tc := range []struct {
		name     string
		old, new string
		gate     string // is not passed
		passes   string
		check    func(t *testing.T, s *replay.Summary) bool
	}{
		{"fewer masks", "  \"EMAIL_ADDRESS\",\n", "", "mask->none=0", "block->allow=0", func(t *testing.T, s *replay.Summary) bool {
			r := result(t, s, runs, false, pii)
			return r.Status == replay.StatusUnanswerable && open(r, replay.WasMask, replay.StageOutput)
		}},
		{"no masks", "[plugins.output-pii]\n", "[plugins.output-pii]\nmode = \"monitor\"\n", "mask->none=0", "block->allow=0", func(t *testing.T, s *replay.Summary) bool {
			r := result(t, s, runs, false, pii)
			return has(r, replay.MaskNone, replay.StageOutput) && len(r.Unanswered) == 0
		}},
		{"no cut", "[plugins.output-secrets]\n", "[plugins.output-secrets]\nmode = \"monitor\"\n", "block->allow=0", "mask->none=0", func(t *testing.T, s *replay.Summary) bool {
			return has(result(t, s, runs, false, secret), replay.BlockAllow, replay.StageOutput)
		}},
		{"fewer critical patterns", "name = \"prompt_injection\"\nexpr = '''", "name = \"prompt_injection\"\nexpr = '''never said and ", "block->allow=0", "allow->block=0,mask->none=0",
			func(t *testing.T, s *replay.Summary) bool {
				return open(result(t, s, runs, true, ""), replay.WasBlock, replay.StageInput)
			}},
		{"a stricter screen", "name = \"prompt_injection\"\nexpr = '''", "name = \"histories\"\nexpr = '''history for all'''\n\n[[plugins.input-screen.config.critical_patterns]]\nname = \"prompt_injection\"\nexpr = '''",
			"allow->block<=1%", "mask->none=0,allow->block<=12%", func(t *testing.T, s *replay.Summary) bool {
				r := result(t, s, runs, false, "Show the history for all")
				return has(r, replay.AllowBlock, replay.StageInput) && r.First.Stage == replay.StageInput && has(r, replay.Text, replay.StageOutput)
			}},
		{"stricter output", "{16}\\b''',\n", "{16}\\b''',\n  '''castillo''',\n", "allow->block=0", "block->allow<=100%", func(t *testing.T, s *replay.Summary) bool {
			return has(result(t, s, runs, false, "Show me my open tickets"), replay.AllowBlock, replay.StageOutput)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := another(t, r.path, func(c string) string { return replace(t, c, tc.old, tc.new) })
			s := through(t, path, r.lookup, runs, tc.gate)
			if s.Passed() || s.Failed() == "" {
				t.Errorf("the gate %s is passed", tc.gate)
			}
			if !tc.check(t, s) {
				body, _ := json.MarshalIndent(s, "", " ")
				t.Errorf("%s", body)
			}
			if s := through(t, path, r.lookup, runs, tc.passes); !s.Passed() {
				t.Errorf("the gate %s is not passed: %s", tc.passes, s.Failed())
			}
		})
	}
	t.Run("another prompt", func(t *testing.T) {
		path := another(t, r.path, func(c string) string { return c })
		write(t, filepath.Join(filepath.Dir(path), "prompts", "system.md"), []byte("You are somebody else.\n"))
		s := through(t, path, r.lookup, runs, "unanswerable=0")
		got := result(t, s, runs, false, pii)
		if s.Passed() || got.Status != replay.StatusUnanswerable || !open(got, replay.WasAllow, replay.StageModel) || got.Answered >= got.Items {
			t.Errorf("a model call that was never made: %+v", got)
		}
		if blocked := result(t, s, runs, true, ""); blocked.Status != replay.StatusSame {
			t.Errorf("a question that never got to the model: %+v", blocked)
		}
	})
}

// A reload that depends on a gate leaves the policy that is active where the
// gate is not passed, and says the counts.
func TestReloadIfReplayPasses(t *testing.T) {
	r := record(t, "backend = \"memory\"")
	for _, question := range []string{"Show me my open tickets.", "Show ticket TKT-GR-PII and quote its complete description exactly."} {
		r.ask(t, user(question))
	}
	before := r.host.Status().Active.Generation
	shipped, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(config string, since time.Duration, gate string) (admin.Reply, replay.Summary) {
		t.Helper()
		write(t, r.path, []byte(config))
		reply, err := r.admin.ReloadIf(t.Context(), since, gate)
		if err != nil {
			t.Fatal(err)
		}
		var s replay.Summary
		if len(reply.Replay) > 0 {
			if err := json.Unmarshal(reply.Replay, &s); err != nil {
				t.Fatal(err)
			}
		}
		return reply, s
	}
	weak := replace(t, string(shipped), "[plugins.output-pii]\n", "[plugins.output-pii]\nmode = \"monitor\"\n")
	reply, s := ask(weak, time.Hour, "mask->none=0")
	if reply.Outcome != host.OutcomeFailed || s.Replayed != 2 || s.Kinds[replay.MaskNone] != 1 ||
		!strings.Contains(reply.Error, "does not pass the gate: mask->none=0 is broken by 1 of 2 runs") {
		t.Errorf("%s %q %+v", reply.Outcome, reply.Error, s)
	}
	if st := r.host.Status(); st.Active.Generation != before || st.LastError == nil || st.InSync || st.Swaps != 0 {
		t.Errorf("%+v", st)
	}
	if a := r.ask(t, user("Show ticket TKT-GR-PII and quote its complete description exactly.")); !strings.Contains(a.text(), "<EMAIL_ADDRESS>") {
		t.Errorf("the active policy masks no more: %s", a.text())
	}
	if reply, _ := ask(weak, time.Nanosecond, "mask->none=0"); reply.Outcome != host.OutcomeFailed || !strings.Contains(reply.Error, "no run could be replayed") {
		t.Errorf("an empty record passes: %s %q", reply.Outcome, reply.Error)
	}
	if reply, _ := ask(weak, time.Hour, "mask->some=0"); reply.Outcome != host.OutcomeFailed || !strings.Contains(reply.Error, "expected one of") {
		t.Errorf("%s %q", reply.Outcome, reply.Error)
	}
	same := replace(t, string(shipped), "[plugins.output-pii]\n", "[plugins.output-pii]\nfuel = 3000000000\n")
	if reply, s = ask(same, time.Hour, "changed=0,unanswerable=0"); reply.Outcome != host.OutcomeSwapped || s.Same != 3 || s.Generation == before {
		t.Errorf("%s %q %+v", reply.Outcome, reply.Error, s)
	}
	if r.host.Status().Active.Generation != s.Generation {
		t.Error("what was tried is not what is active")
	}
}

// replays checks that the run's own generation does the same again, from the
// store of an office whose hosts have ended.
func (o *office) replays(t testing.TB, ids ...string) {
	t.Helper()
	var runs []*run.Recorded
	for _, id := range ids {
		report, err := o.lookInto(id)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := run.ReadRecorded(report)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, rec)
	}
	unchanged(t, through(t, o.path, o.lookup, runs, ""), len(ids))
}
