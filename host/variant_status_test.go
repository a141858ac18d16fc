package host_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/host"
	"weir/host/hosttest"
	"weir/host/run/replay"
)

// W7: what is wanted is a policy with its variants and their shares. A swap in
// which only these change is held, named and counted like any other.
func TestStatusOfAChangedShare(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{Watch: true, Config: "[[variant]]\nname = \"first\"\nshare = 0.1\n[[variant]]\nname = \"second\"\nshare = 0.3\n"})
	id := w.Host.Status().Active.Generation
	edit(t, w, "share = 0.3", "share = 0.4")
	eventually(t, "the changed file was read", func() bool { return w.Host.Status().Swaps == 1 })
	eventually(t, "the swap is told", func() bool { return strings.Contains(w.Log.String(), "policy swapped") })
	swapped := fmt.Sprintf("\"policy swapped\" generation=%s from=%s changed_variants=second trigger=file", id[:12], id[:12])
	if log := w.Log.String(); !strings.Contains(log, swapped) {
		t.Errorf("the log does not say what changed: %s", log)
	}
	// Status is asked until it fits: one change may be several events.
	fits := func(what string, inSync bool, held string, share float64) {
		t.Helper()
		eventually(t, what, func() bool {
			s := w.Host.Status()
			return s.InSync == inSync && s.Held == held && s.Wanted.Generation == id && s.Active.Generation == id && s.Active.Variants[1].Share == share
		})
	}
	fits("the new share is in sync", true, "", 0.4)
	if outcome, err := w.Host.Rollback(t.Context()); outcome != host.OutcomeSwapped || err != nil {
		t.Fatalf("%s, %v", outcome, err)
	}
	w.WriteFile(t, "agent.toml", []byte(w.ReadFile(t, "agent.toml"))) // an event
	eventually(t, "the file event is told", func() bool { return strings.Contains(w.Log.String(), "rolled back from") })
	fits("the new share is held and the old one not in sync", false, id, 0.3)
	reload(t, w, host.OutcomeSwapped)
	fits("the reload brought it back", true, "", 0.4)
}

// The log says which variants are others now: one that is new, one that is gone,
// one that has another generation, and those whose users stand elsewhere.
func TestSwapsNameTheirVariants(t *testing.T) {
	w := varied(t, "")
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	last := func() string {
		log := w.Log.String()
		log = log[strings.LastIndex(log, "\"policy swapped\""):]
		line, _, _ := strings.Cut(log, "\n")
		return line
	}
	for _, step := range []struct{ old, text, want string }{
		{"name = \"right\"\nshare = 0.3", "name = \"right\"\nshare = 0.2", "changed_variants=right"},
		{"name = \"left\"\nshare = 0.3", "name = \"left\"\nshare = 0", "changed_variants=\"right, left\""}, // right begins where left did
		{"name = \"left\"\nshare = 0", "name = \"left\"\nshare = 0.3", "changed_variants=\"left, right\""},
		{"[plugins.flow]\n", "[plugins.flow]\nfuel = 77777777\n", "changed_variants=right"}, // left has another loop
	} {
		edit(t, w, step.old, step.text)
		reload(t, w, host.OutcomeSwapped)
		if line := last(); !strings.Contains(line, step.want+" trigger=admin") {
			t.Errorf("%q: %s, want %s", step.text, line, step.want)
		}
	}
	w.WriteFile(t, "plugins/second.wasm", hosttest.Guard("right again"))
	reload(t, w, host.OutcomeSwapped)
	if line := last(); !strings.Contains(line, "changed_variants=right trigger=admin") {
		t.Errorf("another module: %s", line)
	}
	alone := hosttest.Start(t, hosttest.Options{})
	alone.Variant(t, "b")
	reload(t, alone, host.OutcomeSwapped)
	if log := alone.Log.String(); strings.Contains(log, "changed_variants=") || !strings.Contains(log, "policy swapped") {
		t.Errorf("without variants: %s", log)
	}
}

// A gate that a variant does not pass says which, and a summary names every
// generation that judged.
func TestGateNamesTheVariant(t *testing.T) {
	w := hosttest.Start(t, hosttest.Options{})
	ask(t, w)
	gate, err := replay.ParseGate("text=0")
	if err != nil {
		t.Fatal(err)
	}
	left := "[[variant]]\nname = \"left\"\nshare = 0.1\n[variant.agent]\nworkflow = \"other\"\n[variant.plugins.other]\n"
	w.WriteFile(t, "plugins/other.wasm", hosttest.Workflow("something else"))
	edit(t, w, "[plugins.screen]\n", "[plugins.screen]\n"+left)
	base := w.Host.Status().Active.Generation
	_, summary, err := w.Host.ReloadIf(t.Context(), time.Hour, gate)
	if err == nil || summary == nil || summary.Generation == base || summary.Judged[summary.Generation] != 1 ||
		err.Error() != "variant left: generation "+summary.Generation[:12]+" does not pass the gate: "+summary.Failed() {
		t.Errorf("a variant that does not pass: %v, %+v", err, summary)
	}
	// The base, which does not pass either, is tried first and is no variant.
	w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer-b"))
	if _, summary, err = w.Host.ReloadIf(t.Context(), time.Hour, gate); err == nil || !strings.HasPrefix(err.Error(), "generation "+summary.Generation[:12]+" with its variants does not pass the gate: ") {
		t.Errorf("a base that does not pass: %v, %+v", err, summary)
	}
	w.WriteFile(t, "plugins/flow.wasm", hosttest.Workflow("answer-a"))
	w.WriteFile(t, "plugins/other.wasm", hosttest.Workflow("answer-a"))
	outcome, summary, err := w.Host.ReloadIf(t.Context(), time.Hour, gate)
	if outcome != host.OutcomeSwapped || err != nil {
		t.Fatalf("the control: %s, %v", outcome, err)
	}
	v := w.Host.Status().Active.Variants[0].Generation
	if summary.Generation != base || len(summary.Judged) != 2 || summary.Judged[base] != 1 || summary.Judged[v] != 1 || summary.Results[0].GenerationNow != base {
		t.Errorf("the control judged by %v, not by %s and %s", summary.Judged, base, v)
	}
}
