package conform

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/host/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// turnTimeout is more than an answer without a model takes on a busy machine.
const turnTimeout = 3 * time.Second

func target(url, dir string) Target {
	return Target{URL: url, Key: key, Dir: dir, Ask: "What time is it?"}
}

func run(t *testing.T, target Target) *Report {
	t.Helper()
	r, err := Run(t.Context(), target, Options{Timeout: time.Minute, AskTimeout: time.Minute, TurnTimeout: turnTimeout})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// with are the results of one outcome, as spec/id: reason.
func (r *Report) with(o Outcome) (ids, reasons []string) {
	for _, x := range r.Results {
		if x.Outcome == o {
			ids = append(ids, x.Spec+"/"+x.ID)
			reasons = append(reasons, x.Spec+"/"+x.ID+": "+x.Reason)
		}
	}
	return ids, reasons
}

// unseen are the clauses that cannot be judged from outside.
var unseen = []string{"platform/registration", "platform/model-spans"}

// The control of everything below: an agent and a folder that keep all clauses
// pass all of them.
func TestKeepsAllClauses(t *testing.T) {
	r := run(t, target((&fake{}).start(t), deployment(t)))
	if _, failed := r.with(Failed); len(failed) > 0 {
		t.Errorf("failed:\n%s", strings.Join(failed, "\n"))
	}
	na, reasons := r.with(NotApplicable)
	if want := append(slices.Clone(unseen), "platform/log-bridge", "platform/meter"); !same(na, want) {
		t.Errorf("not applicable:\n%s", strings.Join(reasons, "\n"))
	}
	if r.Failed() {
		t.Error("the report says that a MUST failed")
	}
}

func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Every clause notices its breach, and no other one does.
func TestNoticesEachBreach(t *testing.T) {
	for _, b := range breaches {
		t.Run(b.clause, func(t *testing.T) {
			t.Parallel()
			r := run(t, target((&fake{broken: b.broken}).start(t), ""))
			failed, reasons := r.with(Failed)
			if b.many && slices.Contains(failed, b.clause) {
				return
			}
			if want := append(slices.Clone(b.also), b.clause); !same(failed, want) {
				t.Errorf("failed:\n%s\nexpected\n%s", strings.Join(reasons, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestNoticesEachBreachOfAFolder(t *testing.T) {
	base := deployment(t)
	for _, b := range folderBreaches {
		t.Run(b.clause, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			b.broken(t, dir)
			r := run(t, target("", dir))
			failed, reasons := r.with(Failed)
			if want := append(slices.Clone(b.also), b.clause); !same(failed, want) {
				t.Errorf("failed:\n%s\nexpected\n%s", strings.Join(reasons, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// No clause is without a breach that it notices, and each is described.
func TestEveryClauseCanFail(t *testing.T) {
	broken := map[string]bool{}
	for _, b := range breaches {
		broken[b.clause] = true
	}
	for _, b := range folderBreaches {
		broken[b.clause] = true
	}
	seen := map[string]bool{}
	for _, c := range Clauses() {
		id := c.Spec + "/" + c.ID
		if seen[id] || c.Section == "" || c.Text == "" || c.Level != Must && c.Level != Should {
			t.Errorf("%s: stands twice or is not described: %+v", id, c)
		}
		seen[id] = true
		if !broken[id] && !slices.Contains(unseen, id) {
			t.Errorf("%s: no agent breaks it, so nobody knows whether it is checked", id)
		}
	}
	for id := range broken {
		if !seen[id] {
			t.Errorf("%s: there is no such clause", id)
		}
	}
}

// What an agent need not serve is not applicable.
func TestNotApplicable(t *testing.T) {
	agent := &fake{broken: func(r *httpRequest, _ string, a *response) {
		if _, _, ok := interactionIDs(r.URL.Path); (ok || r.URL.Path == pathTask) && a.status != 401 {
			*a = *refuse(404, "not found")
		}
	}}
	url := agent.start(t)
	r := run(t, target(url, ""))
	if failed, reasons := r.with(Failed); len(failed) > 0 {
		t.Errorf("failed:\n%s", strings.Join(reasons, "\n"))
	}
	na, _ := r.with(NotApplicable)
	for _, c := range Clauses() {
		id := c.Spec + "/" + c.ID
		off := c.Spec == SpecTurn || strings.HasPrefix(c.ID, "interaction-") && c.ID != "interaction-closed" && c.ID != "interaction-event"
		if off && !slices.Contains(na, id) {
			t.Errorf("%s was judged although it is not served", id)
		}
		if c.Spec == SpecService && !off && slices.Contains(na, id) {
			t.Errorf("%s was not judged", id)
		}
	}
	asked := target(url, "")
	asked.Ask, asked.Key, asked.Spec = "", "", []string{SpecService}
	na, _ = run(t, asked).with(NotApplicable)
	if len(na) != len(Clauses(SpecService))-1 { // health
		t.Errorf("%d of %d clauses are not applicable without a key", len(na), len(Clauses(SpecService)))
	}
	asked.Key = key
	if _, reasons := run(t, asked).with(NotApplicable); !slices.ContainsFunc(reasons, func(s string) bool { return strings.Contains(s, "--ask") }) {
		t.Errorf("without a question: %q", reasons)
	}
}

// When nothing can be said there is an error and no report.
func TestBrokenHarness(t *testing.T) {
	closed := "http://" + porttest.Free(t, 1)[0]
	stop := make(chan struct{})
	silent := (&fake{broken: func(r *httpRequest, _ string, _ *response) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}}).start(t)
	t.Cleanup(func() { close(stop) })
	good := (&fake{}).start(t)
	tests := []struct {
		name string
		Target
		want string
	}{
		{"nobody listens", target(closed, ""), "cannot be reached"},
		{"nobody answers", target(silent, ""), "nothing within"},
		{"a wrong key", Target{URL: good, Key: "wrong-key-canary"}, "refuses the key"},
		{"no address", target("localhost:8000", ""), "expected an address such as"},
		{"credentials in the address", target("http://a:b@localhost", ""), "expected an address such as"},
		{"no folder", target("", filepath.Join(t.TempDir(), "none")), "expected a folder"},
		{"nothing", Target{}, "expected an agent's address, a folder, or both"},
		{"an unknown specification", Target{URL: good, Key: key, Spec: []string{"a2a"}}, `got "a2a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := Options{Timeout: time.Minute}
			if tt.name == "nobody answers" {
				opts.Timeout = 200 * time.Millisecond
			}
			_, err := Run(t.Context(), tt.Target, opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), key) {
				t.Errorf("%v, expected %q", err, tt.want)
			}
		})
	}
}

// A hanging route fails its clause in time, and the rest is still looked at.
func TestTimesOut(t *testing.T) {
	url := (&fake{broken: func(r *httpRequest, _ string, _ *response) {
		if r.URL.Path == pathManifest {
			<-r.Context().Done()
		}
	}}).start(t)
	r, err := Run(t.Context(), target(url, ""), Options{Timeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if failed, reasons := r.with(Failed); !same(failed, []string{"platform/manifest"}) || !strings.Contains(reasons[0], "nothing within 3s") {
		t.Errorf("%q", reasons)
	}
}

// The key is in no report, even where the agent says it.
func TestConcealsTheKey(t *testing.T) {
	url := (&fake{broken: func(r *httpRequest, _ string, a *response) {
		if r.URL.Path == "/weir-conform" {
			*a = *refuse(404, "no such path for Bearer "+key)
		}
	}}).start(t)
	r := run(t, target(url, ""))
	var text, data bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&data); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), data.String()} {
		if strings.Contains(out, key) || !strings.Contains(out, "[key]") {
			t.Errorf("the key is in the report, or what stands for it is not:\n%s", out)
		}
	}
	var v struct {
		OK      bool `json:"ok"`
		Must    int  `json:"failed_must"`
		Clauses []struct{ ID, Outcome, Reason string }
	}
	if err := json.Unmarshal(data.Bytes(), &v); err != nil || v.OK || v.Must != 1 || len(v.Clauses) != len(Clauses()) {
		t.Errorf("%v: %+v", err, v)
	}
}

// A failed SHOULD decides nothing.
func TestShould(t *testing.T) {
	r := run(t, target((&fake{broken: path("/health/live", reworded)}).start(t), ""))
	if failed, _ := r.with(Failed); len(failed) != 1 || r.Failed() {
		t.Errorf("%q, %v", failed, r.Failed())
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
