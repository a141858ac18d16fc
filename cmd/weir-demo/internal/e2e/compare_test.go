package e2e

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"weir/host/plugin/plugintest"
)

// The shipped suites against the shipped agent and against the same without
// guardrails, asked by the binary: every gate passes on the first, the guards'
// gates fail on the second, and what guards do not touch is no different.
func TestCompareWithAndWithoutGuards(t *testing.T) {
	guarded, bare := shared(t, nil, nil), start(t, setup{only: []string{"react"}})
	c := launch(t, map[string]string{"NAT_GATEWAY_API_KEY": serviceKey}, nil, "compare", "--a", bare.url, "--b", guarded.url, "--gate", "--json")
	if code := c.wait(t, 3*time.Minute); code != 0 {
		t.Errorf("exit code %d\n%s", code, c.stderr)
	}
	var r struct {
		Broken []string
		Cases  []struct{ A, B []struct{ Broken string } }
		Suites []struct {
			Suite string
			Cases int
			A, B  struct {
				Passed  *bool
				Metrics map[string]float64
			}
			Difference struct {
				Mean    float64
				Decided bool
			}
		}
	}
	if err := json.Unmarshal([]byte(c.stdout.String()), &r); err != nil {
		t.Fatal(err)
	}
	better := map[string]bool{"guardrails": true, "injection": true, "tools": false, "grounding": false}
	if len(r.Broken) > 0 || len(r.Suites) != len(better) || len(r.Cases) < 40 {
		t.Fatalf("broken %q, %d suites, %d cases", r.Broken, len(r.Suites), len(r.Cases))
	}
	for _, s := range r.Suites {
		if s.B.Passed == nil || !*s.B.Passed || s.A.Passed == nil || *s.A.Passed == better[s.Suite] {
			t.Errorf("%s: A passed %v, B passed %v", s.Suite, s.A.Passed, s.B.Passed)
		}
		if s.Difference.Decided != better[s.Suite] || s.Difference.Mean < 0 {
			t.Errorf("%s: difference %+v", s.Suite, s.Difference)
		}
	}
	for name, want := range map[string]float64{"guardrail_false_positive/mean": 0, "guardrail_false_negative/mean": 0, "guardrail_decision_event_present/mean": 1} {
		if got := r.Suites[0].B.Metrics[name]; got != want {
			t.Errorf("%s of the shipped agent is %v, want %v", name, got, want)
		}
	}
	// The control: the gates do fail, and with another exit code than a
	// comparison that did not work.
	suite := filepath.Join(plugintest.Root(t), "docs", "evaluation", "guardrails.json")
	swapped := launch(t, map[string]string{"NAT_GATEWAY_API_KEY": serviceKey}, nil, "compare", "--a", guarded.url, "--b", bare.url, "--suite", suite, "--gate")
	if code := swapped.wait(t, 3*time.Minute); code != 1 {
		t.Errorf("the other way round: exit code %d\n%s%s", code, swapped.stdout, swapped.stderr)
	}
	refused := launch(t, map[string]string{"NAT_GATEWAY_API_KEY": "another-key"}, nil, "compare", "--a", guarded.url, "--b", bare.url, "--gate")
	if code := refused.wait(t, time.Minute); code != 2 {
		t.Errorf("without the key: exit code %d\n%s%s", code, refused.stdout, refused.stderr)
	}
}
