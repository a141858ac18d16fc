package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir-demo/internal/gateway"
	"weir/host"
	"weir/host/admin"
	"weir/host/config"
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
	w := &world{log: &buffer{}}
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
