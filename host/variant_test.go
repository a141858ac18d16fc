package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/abi"
	"weir/host"
	"weir/host/hosttest"
	"weir/host/plugin/plugintest"
	"weir/host/run/replay"
)

// varied is a world with the base "a" and two variants: "left" has another loop
// and "right" another guard. Shares are edited in place.
func varied(t *testing.T, more string) *hosttest.World {
	t.Helper()
	w := hosttest.Prepare(t, hosttest.Options{Config: more + `
[[variant]]
name = "left"
share = 0.3
[variant.agent]
workflow = "other"
[variant.plugins.other]
[[variant]]
name = "right"
share = 0.3
[variant.plugins.screen]
module = "plugins/second.wasm"
`})
	w.WriteFile(t, "plugins/other.wasm", hosttest.Workflow("answer-left"))
	w.WriteFile(t, "plugins/second.wasm", hosttest.Guard("right"))
	return w
}

func askAs(t *testing.T, w *hosttest.World, user string) hosttest.Answer {
	t.Helper()
	a, err := w.AskAs(t.Context(), user, `{"messages":[{"role":"user","content":"hello"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// is holds an answer against what its variant does, and returns what is wrong.
func is(a hosttest.Answer) string {
	text, guard := "answer-a", "a"
	switch a.Variant {
	case "left":
		text = "answer-left"
	case "right":
		guard = "right"
	case "base":
	default:
		return "variant " + a.Variant
	}
	if len(a.Generations) != 1 || a.Text != text || !strings.Contains(a.Raw, `"variant":"`+guard+`","`) && !strings.Contains(a.Raw, `"variant":"`+guard+`"}`) {
		return "variant " + a.Variant + " answered " + a.Raw
	}
	return ""
}

// members asks as so many users and returns what each got.
func members(t *testing.T, w *hosttest.World, users int) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := range users {
		user := fmt.Sprint("user-", i)
		a := askAs(t, w, user)
		if why := is(a); why != "" {
			t.Fatalf("%s: %s", user, why)
		}
		out[user] = a.Variant
	}
	return out
}

func counts(of map[string]string) map[string]int {
	n := map[string]int{}
	for _, variant := range of {
		n[variant]++
	}
	return n
}

// W7: a share of the runs, by the user, gets another policy, which has a
// generation of its own and is named wherever that is.
func TestVariants(t *testing.T) {
	w := varied(t, "")
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	was := members(t, w, 40)
	if n := counts(was); n["left"] < 4 || n["right"] < 4 || n["base"] < 6 {
		t.Errorf("of 40 users: %v", n)
	}
	s := w.Host.Status().Active
	if len(s.Variants) != 2 || s.Variants[0].Name != "left" || s.Variants[0].Share != 0.3 || s.Variants[0].Generation == s.Generation ||
		s.Variants[1].Generation == s.Variants[0].Generation || len(s.Variants[0].Plugins) != 2 {
		t.Errorf("status: %+v", s)
	}
	var version struct {
		Generation string
		Variants   []struct {
			Name, Generation string
			Share            float64
		}
	}
	if err := json.Unmarshal([]byte(w.Get(t, "/version")), &version); err != nil || version.Generation != s.Generation ||
		len(version.Variants) != 2 || version.Variants[1].Name != "right" || version.Variants[1].Generation != s.Variants[1].Generation || version.Variants[1].Share != 0.3 {
		t.Errorf("/version: %+v, %v", version, err)
	}
	for user, variant := range was {
		want := s.Generation
		for _, v := range s.Variants {
			if v.Name == variant {
				want = v.Generation
			}
		}
		if a := askAs(t, w, user); a.Variant != variant || a.Generations[0] != want {
			t.Fatalf("%s was in %s and got %s", user, variant, a.Raw)
		}
	}
	// The base's identity is what it is without variants.
	alone := hosttest.Start(t, hosttest.Options{})
	if got := alone.Host.Status().Active; got.Generation != s.Generation || len(got.Variants) != 0 {
		t.Errorf("without variants: %+v", got)
	}
	if a := ask(t, alone); a.Variant != "" || strings.Contains(alone.Get(t, "/version"), "variants") {
		t.Errorf("without variants something is named: %s", a.Raw)
	}
}

// A share that grows keeps who was in it; one of 0 is nobody's, and then there
// is nothing to name.
func TestSharesChange(t *testing.T) {
	w := varied(t, "")
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	was := members(t, w, 40)
	edit(t, w, "name = \"right\"\nshare = 0.3", "name = \"right\"\nshare = 0.6")
	reload(t, w, host.OutcomeSwapped)
	for user, now := range members(t, w, 40) {
		if now != was[user] && (was[user] != "base" || now != "right") {
			t.Errorf("%s went from %s to %s", user, was[user], now)
		}
	}
	edit(t, w, "share = 0.3", "share = 0.0")
	edit(t, w, "share = 0.6", "share = 0")
	reload(t, w, host.OutcomeSwapped)
	if a := ask(t, w); a.Variant != "" || a.Text != "answer-a" || len(w.Host.Status().Active.Variants) != 0 {
		t.Errorf("with no share: %s", a.Raw)
	}
	eventually(t, "the variants are freed", func() bool { return len(w.Host.Status().Draining) == 0 })
	// Back goes everything at once.
	if outcome, err := w.Host.Rollback(t.Context()); outcome != host.OutcomeSwapped || err != nil {
		t.Fatalf("%s, %v", outcome, err)
	}
	if n := counts(members(t, w, 40)); n["right"] < 12 || n["left"] < 4 {
		t.Errorf("after the rollback: %v", n)
	}
	w.Host.Reload(t.Context())
	if a := ask(t, w); a.Variant != "" {
		t.Errorf("a reload after the rollback: %s", a.Raw)
	}
}

// What is wrong with a variant refuses the whole: start and reload alike.
func TestBrokenVariantChangesNothing(t *testing.T) {
	broken := map[string]struct {
		breakIt func(t *testing.T, w *hosttest.World)
		want    string
	}{
		"a module cut short": {func(t *testing.T, w *hosttest.World) {
			w.WriteFile(t, "plugins/other.wasm", hosttest.Workflow("x")[:60])
		}, "variant left: plugin other: "},
		"a guard in the workflow's place": {func(t *testing.T, w *hosttest.World) {
			w.WriteFile(t, "plugins/other.wasm", hosttest.Guard("x"))
		}, "variant left: policy: plugin other is a guardrail, expected a workflow"},
		"a guard that refuses its configuration": {func(t *testing.T, w *hosttest.World) {
			g := plugintest.NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`)
			g.Settings.Error = "no such pattern"
			w.WriteFile(t, "plugins/second.wasm", g.Build())
		}, `variant right: plugin screen: configure: the configuration is refused: "no such pattern"`},
		"an unknown key": {func(t *testing.T, w *hosttest.World) {
			edit(t, w, "[variant.plugins.screen]\n", "[variant.plugins.screen]\nmod = 1\n")
		}, "unknown key [variant.right.plugins.screen] mod"},
		"what needs a restart": {func(t *testing.T, w *hosttest.World) {
			edit(t, w, "[variant.plugins.other]\n", "[variant.plugins.other]\n[variant.server]\ndrain = \"1s\"\n")
		}, "[variant.left] server: expected one of"},
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			w := varied(t, "")
			if err := w.Boot(t); err != nil {
				t.Fatal(err)
			}
			before, version := w.Host.Status(), w.Get(t, "/version")
			// The base and the other variant change too, and stay as they are.
			w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer-b"))
			b.breakIt(t, w)
			outcome, err := w.Host.Reload(t.Context())
			if outcome != host.OutcomeFailed || err == nil || !strings.Contains(err.Error(), b.want) {
				t.Fatalf("%s, %v; want %q", outcome, err, b.want)
			}
			members(t, w, 12)
			if now := w.Get(t, "/version"); now != version {
				t.Errorf("/version before: %s\nafter: %s", version, now)
			}
			s := w.Host.Status()
			if s.InSync || s.Swaps != 0 || len(s.Draining) != 0 || s.Active.Generation != before.Active.Generation {
				t.Errorf("status: %+v", s)
			}
			w.Stop(t)
			if err := w.Boot(t); err == nil || !strings.Contains(err.Error(), b.want) {
				t.Errorf("a start: %v, want %q", err, b.want)
			}
		})
	}
}

// A variant that becomes the base, and one that goes: plugins that are in use
// are not made again, and what nobody has any more is freed.
func TestVariantBecomesTheBase(t *testing.T) {
	w := varied(t, "")
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	left := w.Host.Status().Active.Variants[0].Generation
	edit(t, w, `workflow = "flow"`, `workflow = "other"`)
	edit(t, w, "[plugins.flow]\nprompts = [\"system\"]\n", "[plugins.other]\n")
	edit(t, w, "share = 0.3", "share = 0")
	edit(t, w, "share = 0.3", "share = 0")
	edit(t, w, "[variant.plugins.other]\n", "")
	reload(t, w, host.OutcomeSwapped)
	if a := ask(t, w); a.Text != "answer-left" || a.Generations[0] != left || a.Variant != "" {
		t.Errorf("the new base: %s", a.Raw)
	}
	eventually(t, "the others are freed", func() bool { return len(w.Host.Status().Draining) == 0 })
	if a := ask(t, w); a.Text != "answer-left" {
		t.Errorf("after the others were freed: %s", a.Raw)
	}
}

// Variants that do not differ from the base are a control group: a name, and
// nothing is loaded twice.
func TestControlGroup(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{Config: "[[variant]]\nname = \"control\"\nshare = 0.5\n"})
	s := w.Host.Status().Active
	if s.Variants[0].Generation != s.Generation {
		t.Errorf("generations %s and %s", s.Generation, s.Variants[0].Generation)
	}
	n := map[string]int{}
	for i := range 24 {
		a := askAs(t, w, fmt.Sprint("user-", i))
		if a.Text != "answer-a" {
			t.Fatal(a.Raw)
		}
		n[a.Variant]++
	}
	if n["control"] < 3 || n["base"] < 3 {
		t.Errorf("%v", n)
	}
	w.Variant(t, "b")
	reload(t, w, host.OutcomeSwapped)
	if a := ask(t, w); a.Text != "answer-b" {
		t.Errorf("after a swap: %s", a.Raw)
	}
	eventually(t, "what was shared is freed", func() bool { return len(w.Host.Status().Draining) == 0 })
}

// agent.lock pins what variants differ in, under names of their own.
func TestVariantsAreLocked(t *testing.T) {
	w := varied(t, "")
	edit(t, w, "[plugins]\n", "[plugins]\nlock = \"require\"\n")
	pins, err := host.Pins(w.Options(w.Env(), nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	if pins.Modules["variant.left.other"] == "" || pins.Modules["variant.right.screen"] == "" ||
		pins.Modules["variant.right.screen"] == pins.Modules["screen"] || len(pins.Modules) != 4 || len(pins.Prompts) != 1 {
		t.Errorf("pins: %+v", pins)
	}
	if err := pins.Write(filepath.Join(w.Dir, "plugins", "agent.lock")); err != nil {
		t.Fatal(err)
	}
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	w.WriteFile(t, "plugins/second.wasm", hosttest.Guard("changed"))
	outcome, err := w.Host.Reload(t.Context())
	if outcome != host.OutcomeFailed || err == nil || !strings.Contains(err.Error(), "module variant.right.screen: agent.lock pins the sha256") {
		t.Errorf("%s, %v", outcome, err)
	}
	members(t, w, 12)
}

// A gate that a reload has to pass counts for a new variant too.
func TestGateCountsForVariants(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	ask(t, w)
	w.WriteFile(t, "plugins/other.wasm", hosttest.Workflow("something else"))
	edit(t, w, "[plugins.screen]\n", "[plugins.screen]\n[[variant]]\nname = \"left\"\nshare = 0.1\n[variant.agent]\nworkflow = \"other\"\n[variant.plugins.other]\n")
	gate, err := replay.ParseGate("text=0")
	if err != nil {
		t.Fatal(err)
	}
	outcome, summary, err := w.Host.ReloadIf(t.Context(), time.Hour, gate)
	if outcome != host.OutcomeFailed || err == nil || summary == nil || summary.Kinds[replay.Text] != 1 || len(w.Host.Status().Active.Variants) != 0 {
		t.Fatalf("%s, %v, %+v", outcome, err, summary)
	}
	w.WriteFile(t, "plugins/other.wasm", hosttest.Workflow("answer-a"))
	if outcome, _, err := w.Host.ReloadIf(t.Context(), time.Hour, gate); outcome != host.OutcomeSwapped || err != nil {
		t.Errorf("the control: %s, %v", outcome, err)
	}
}

// A session of the turn contract stays with the variant in which it has begun,
// also when its user's would be another by now.
func TestTurnSessionKeepsItsVariant(t *testing.T) {
	w := varied(t, "[contract.turn]\nenabled = true\n[[contract.turn.tools]]\nname = 'a'\ndescription = 'does a'\n")
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	type reply struct {
		Metadata struct {
			Session string `json:"session_id"`
			Variant string `json:"variant"`
		} `json:"metadata"`
		Text string `json:"-"`
	}
	post := func(user, session string) (out reply) {
		out.Text = executeTask(t, w.URL, user, fmt.Sprintf(`{"task_description":"hello","run_id":%q}`, session))
		if err := json.Unmarshal([]byte(out.Text), &out); err != nil {
			t.Fatalf("%s: %v", out.Text, err)
		}
		return out
	}
	user := ""
	for i := range 100 {
		if user = fmt.Sprint("user-", i); askAs(t, w, user).Variant == "left" {
			break
		}
	}
	first := post(user, "s1")
	if first.Metadata.Variant != "left" || !strings.Contains(first.Text, "answer-left") {
		t.Fatalf("first: %s", first.Text)
	}
	edit(t, w, "name = \"left\"\nshare = 0.3", "name = \"left\"\nshare = 0.000001")
	reload(t, w, host.OutcomeSwapped)
	again, other := post(user, "s1"), post(user, "s2")
	if again.Metadata.Session != first.Metadata.Session || again.Metadata.Variant != "left" || !strings.Contains(again.Text, "answer-left") {
		t.Errorf("the session went to %s: %s", again.Metadata.Variant, again.Text)
	}
	if other.Metadata.Variant == "left" {
		t.Errorf("the control, a new session of the same user: %s", other.Text)
	}
}

// P9 and P14 with variants: swaps fail no request, and each answer is of one
// generation, which is that of the variant that it names.
func TestSwapVariantsUnderLoad(t *testing.T) {
	w := varied(t, "")
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var asked, failed atomic.Int64
	var named sync.Map
	var shooting sync.WaitGroup
	for range 4 {
		shooting.Go(func() {
			for ctx.Err() == nil {
				user := fmt.Sprint("user-", rand.IntN(1000))
				a, err := w.AskAs(context.Background(), user, `{"messages":[{"role":"user","content":"hello"}]}`)
				asked.Add(1)
				why := ""
				if err == nil {
					why = is(a)
					named.Store(a.Variant, true)
				}
				if err != nil || why != "" {
					if failed.Add(1) == 1 {
						t.Errorf("%v %s", err, why)
					}
				}
			}
		})
	}
	swaps := 60
	if testing.Short() {
		swaps = 20
	}
	shares := []string{"0.1", "0.3", "0.5"}
	for i := range swaps {
		edit(t, w, "share = "+shares[(i+1)%3], "share = "+shares[(i+2)%3]) // of left, which begins with 0.3
		reload(t, w, host.OutcomeSwapped)
		time.Sleep(5 * time.Millisecond)
	}
	for _, name := range []string{"base", "left", "right"} { // also where a swap takes no longer than a request
		eventually(t, "somebody got "+name, func() bool { _, ok := named.Load(name); return ok })
	}
	eventually(t, "there was load", func() bool { return asked.Load() >= 20 })
	stop()
	shooting.Wait()
	if failed.Load() > 0 || w.Host.Status().Swaps != swaps {
		t.Errorf("%d of %d requests failed over %d swaps", failed.Load(), asked.Load(), w.Host.Status().Swaps)
	}
	if log := w.Log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("log:\n%s", log)
	}
	t.Logf("%d requests over %d swaps", asked.Load(), swaps)
}

// What guards in monitor mode judge is ended by a stop, also where it began
// before a reload that made nothing of theirs anew.
func TestStopEndsMonitorsOfLentPlugins(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{Config: "[plugins.watch]\nmode = \"monitor\"\n[[variant]]\nname = \"control\"\nshare = 0.5\n",
		Write: func(w *hosttest.World) {
			asks := abi.Verdict{Verdict: abi.VerdictAskModel, Decision: abi.Raw("{}"),
				Ask: &abi.ModelRequest{Model: abi.ModelGuard, Messages: []abi.Message{{Role: "user", Content: "is it?"}}}}
			w.Variant(t, "a")
			w.WriteFile(t, "plugins/watch.wasm", plugintest.NewGuest().Answer(abi.HookCheckInput, string(asks.AppendJSON(nil))).Build())
		}})
	arrived, answer := w.Model.Hold()
	defer close(answer)
	ask(t, w)
	<-arrived
	edit(t, w, "share = 0.5", "share = 0.6")
	reload(t, w, host.OutcomeSwapped)
	began := time.Now()
	w.Stop(t)
	if took := time.Since(began); took > 15*time.Second { // a judgement may take 30
		t.Errorf("the stop took %s", took)
	}
}
